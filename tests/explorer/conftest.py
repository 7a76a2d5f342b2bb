"""Stored runs that the explorer's tests share; read, never written."""

import pytest

from onlooker.explorer.run import read
from pictured_runs import KINDS, store_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A store of every kind of state space, by its name."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        store_run(kind, folder / kind)
    return {kind: folder / kind for kind in KINDS}


@pytest.fixture(scope="session")
def studies(runs):
    """The same, read and studied to the end."""
    found = {}
    for kind, path in runs.items():
        _, found[kind] = read(path)
        for _ in found[kind].refine():
            pass
    return found
