"""A run that someone else sent: its files may be links, or FIFOs, and must do no harm outside."""

import os
import shutil
import threading

import numpy as np
import pytest
from fuzz import PRIORS
from small_runs import assert_same_draws, plane_problem, quick

from onlooker.findings.opened import OpenedRun
from onlooker.findings.record import Record
from onlooker.runs.lock import Lock

OPTIONS = {"concentration": 1.0, "draws": 4, "tune": 2, "chains": 1}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "run"
    quick(plane_problem(), PRIORS["crp"], store=path, **OPTIONS)
    Record(names=list("abcd")).write(path)
    return path


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


def on_with(run, draws):
    return quick(plane_problem(), PRIORS["crp"], store=run, resume=True,
                 **(OPTIONS | {"draws": draws}))  # fmt: skip


def test_a_summary_writes_through_no_link(run, victim):
    link = run / "consensus.npz"
    link.symlink_to(victim)
    opened = OpenedRun.read(run)
    found = opened.load_consensus()
    assert not link.is_symlink()
    np.testing.assert_array_equal(OpenedRun.read(run).load_consensus().labels, found.labels)


def test_a_lock_that_is_a_link_is_not_taken(run, victim):
    (run / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="lock"), Lock(run):
        pass
    assert Lock(run).writer() is None
    assert len(OpenedRun.read(run).posterior.labels)


@pytest.mark.parametrize("name", ["run.json", "problem.npz", "fit.json"])
def test_what_is_written_again_is_not_written_through_links(run, victim, name):
    target = run.parent / f"target of {name}"
    (run / name).rename(target)
    (run / name).symlink_to(target)
    before = target.read_bytes()
    if name == "problem.npz":
        before = before[:100]
        target.write_bytes(before)
        with pytest.warns(RuntimeWarning, match="is written again"):
            on_with(run, 6)
    else:
        on_with(run, 6)
        Record(names=list("dcba")).write(run)
    assert target.read_bytes() == before
    assert len(OpenedRun.read(run).posterior.labels[0]) == 6


def test_parts_are_not_written_through_links(run, victim):
    """Names of parts to come can be told."""
    for sweeps in range(7, 13):
        (run / "chain-000" / f"part-{sweeps:012d}.npz").symlink_to(victim)
    with pytest.warns(RuntimeWarning, match="drawn again"):
        again = on_with(run, 10)
    whole = quick(plane_problem(), PRIORS["crp"], **(OPTIONS | {"draws": 10}))
    assert_same_draws(again, whole)


def test_names_of_files_that_are_not_ready_yet_are_no_traps(run, victim):
    for pid in (os.getpid(), os.getppid()):
        (run / f".consensus.npz.{pid}.tmp").symlink_to(victim)
    OpenedRun.read(run).load_consensus()


@pytest.mark.parametrize(
    "name", ["run.json", "problem.npz", "fit.json", "consensus.npz", "lock", "part", "all"]
)
def test_a_fifo_keeps_nobody_waiting(run, name, tmp_path):
    """Opening it would wait for someone to write."""
    path = {"part": next((run / "chain-000").iterdir()), "all": tmp_path / "saved.npz"}.get(
        name, run / name
    )
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    said = []

    def read():
        try:
            opened = OpenedRun.read(path if name == "all" else run)
            opened.load_consensus()
            said.append("answered")
        except ValueError as error:
            said.append(str(error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(30)
    assert said, "it waits"
    optional = name in ("fit.json", "consensus.npz", "lock")
    assert said[0] == "answered" if optional else "regular" in said[0] or "no draws" in said[0]
