"""Ten thousand damaged files: every one is refused in words, or answered rightly.

Each kind of file has a process of its own, so that a crash is a failure and not the end of all
tests. ``python tests/support/fuzz.py FIRST COUNT KIND -v`` repeats what failed.
"""

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from fuzz import KINDS

import onlooker

SUPPORT = Path(__file__).parent / "support"
N_FILES = 10_000
N_QUICK = 30  # of each kind, in `make test`
SHARES = {kind: 2 if kind.startswith(("stored", "resumed")) else 6 for kind in KINDS}
GROUPS = {
    group: [kind for kind in KINDS if (re.match("(stored|resumed),? ", kind) or [""])[0] == group]
    for group in ("stored ", "resumed ", "stored, ", "resumed, ", "")
}
"""Kinds that one process starts, one after the other: priors, problems, and files of tracks."""


def fuzz(kinds, first, count):
    """How many files of each kind were refused."""
    package = Path(onlooker.__file__).parents[1]
    path = os.pathsep.join([str(SUPPORT), str(package)])
    command = [sys.executable, "-X", "faulthandler", SUPPORT / "fuzz.py", str(first), str(count)]
    done = subprocess.run(
        [*command, *kinds],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-10_000:]
    found = re.findall(rf"^(.+): (\d+) of {count} refused$", done.stdout, re.M)
    assert [kind for kind, _ in found] == kinds
    return [int(n) for _, n in found]


def count_of(kind):
    return -(-N_FILES * SHARES[kind] // sum(SHARES.values()))


def test_there_are_ten_thousand():
    assert sum(map(count_of, KINDS)) >= N_FILES
    assert sorted(chain.from_iterable(GROUPS.values())) == sorted(KINDS)


def test_some_damaged_files_are_refused_or_answered_rightly():
    kinds = ["stored ddcrp", "resumed crp", "resumed, landmarks", "saved", "csv", "parquet", "gpx",
             "toml", "npz", "npy"]  # fmt: skip
    assert min(fuzz(kinds, 0, N_QUICK)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_damaged_files_are_refused_or_answered_rightly(group):
    kinds = GROUPS[group]
    fuzz(kinds, N_QUICK, count_of(kinds[0]))
