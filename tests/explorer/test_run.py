"""Stores in every status are read, or said to be unreadable; nothing raises."""

import json
import shutil
import time

import numpy as np
import pytest

from onlooker import Posterior
from onlooker.consensus import consensus
from onlooker.explorer.run import RunWatcher, drawn, file_stamps, read
from onlooker.files import read_arrays, write_arrays
from onlooker.runs.lock import Lock


@pytest.fixture
def copy(runs, tmp_path):
    """A store of one's own, to be mistreated."""
    shutil.copytree(runs["plane"], tmp_path / "run")
    return tmp_path / "run"


def parts(path):
    return sorted(path.glob("chain-*/part-*.npz"))


def test_a_finished_run_is_finished(runs):
    status, view = read(runs["plane"])
    assert status.state == "finished"
    assert not status.changing
    assert view.posterior.n_draws == 30


def test_a_file_of_a_saved_posterior_is_a_run_too(runs, tmp_path):
    Posterior.load(runs["plane"]).save(tmp_path / "posterior.npz")
    status, view = read(tmp_path / "posterior.npz")
    assert status.state == "finished"
    assert view.posterior.n_chains == 2


@pytest.mark.parametrize("made", [False, True])
def test_no_run_may_come_to_be_one(tmp_path, made):
    if made:
        (tmp_path / "run").mkdir()
    status, view = read(tmp_path / "run")
    assert (status.state, view) == ("missing", None)
    assert status.changing


@pytest.mark.parametrize(
    "header", ["", "{", "[]", "null", '{"what": "a cake"}', '{"what": "onlooker run"}', "\x00\xff"]
)
def test_a_header_that_is_none_is_said_to_be_broken(copy, header):
    (copy / "run.json").write_text(header)
    status, view = read(copy)
    assert (status.state, view) == ("broken", None)
    assert status.text


def test_a_store_of_another_format_names_the_version_to_use(copy):
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(header | {"format": 99}))
    status, _ = read(copy)
    assert status.state == "broken"
    assert "use onlooker" in status.text


@pytest.mark.parametrize("damage", ["missing", "torn", "other arrays", "other sizes"])
def test_a_damaged_problem_is_said_to_be_broken(copy, damage):
    file = copy / "problem.npz"
    if damage == "missing":
        file.unlink()
    elif damage == "torn":
        file.write_bytes(file.read_bytes()[:100])
    elif damage == "other arrays":
        write_arrays(file, {"x": np.zeros(3)})
    else:
        write_arrays(file, read_arrays(file) | {"states": np.zeros((2, 2))})
    status, view = read(copy)
    assert (status.state, view) == ("broken", None)


def test_a_torn_part_is_noted_and_what_comes_before_is_shown(copy):
    for part in parts(copy)[1:]:
        part.write_bytes(part.read_bytes()[:50])
    status, view = read(copy)
    assert status.state == "stopped"
    assert view.posterior.n_chains == 1
    assert any("cannot be read" in note for note in view.notes)


def test_a_run_whose_every_part_is_torn_holds_no_draws(copy):
    for part in parts(copy):
        part.write_bytes(b"PK")
    status, view = read(copy)
    assert (status.state, view) == ("broken", None)
    assert "resume=True" in status.text


def test_a_run_that_tunes_is_waited_for(copy):
    for chain in copy.glob("chain-*"):
        shutil.rmtree(chain)
    with Lock(copy):
        status, view = read(copy)
    assert (status.state, view) == ("waiting", None)
    assert status.changing


def test_a_run_that_died_while_tuning_is_not_waited_for(copy):
    for chain in copy.glob("chain-*"):
        shutil.rmtree(chain)
    status, _ = read(copy)
    assert status.state == "broken"
    assert "stopped before" in status.text


def test_a_run_that_is_written_grows(copy):
    with Lock(copy):
        status, view = read(copy)
    assert status.state == "growing"
    assert view.run.growing


def test_the_consensus_of_a_run_that_grows_is_of_all_draws_while_they_are_few(copy):
    with Lock(copy):
        _, view = read(copy)
    for _ in view.refine():
        pass
    of_all = consensus(view.labels, restarts=4, random_state=0)
    assert view.consensus.expected_loss == of_all.expected_loss


def test_a_run_with_fewer_draws_than_planned_was_stopped(copy):
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(header | {"draws": 500}))
    status, _ = read(copy)
    assert status.state == "stopped"
    assert "30 of 500" in status.text


def test_marks_change_with_parts_with_the_header_and_with_the_writer(copy):
    before = file_stamps(copy)
    assert file_stamps(copy) == before
    with Lock(copy):
        assert file_stamps(copy) != before
    parts(copy)[0].unlink()
    assert file_stamps(copy) != before


def wait_for(watched, done, seconds=60.0):
    until = time.monotonic() + seconds
    while not done(watched):
        assert time.monotonic() < until, (watched.status, watched.version)
        watched.wait(watched.version, 0.2)


def test_a_watched_run_is_followed_from_nothing_to_its_end(copy, tmp_path):
    target = tmp_path / "new"
    watched = RunWatcher(target)
    watched.start()
    try:
        wait_for(watched, lambda w: w.status.state == "missing")
        target.mkdir()
        with Lock(target):
            for name in ("problem.npz", "run.json"):
                shutil.copy(copy / name, target / name)
            wait_for(watched, lambda w: w.status.state == "waiting")
            shutil.copytree(copy / "chain-000", target / "chain-000")
            wait_for(watched, lambda w: w.status.state == "growing")
            assert watched.view.posterior.n_chains == 1
            wait_for(watched, lambda w: w.view.complete)
            shutil.copytree(copy / "chain-001", target / "chain-001")
            wait_for(watched, lambda w: w.view.posterior.n_chains == 2)
        wait_for(watched, lambda w: w.status.state == "finished" and w.view.complete)
        labels = watched.view.posterior.partition()
        np.testing.assert_array_equal(watched.view.consensus.labels, labels)
    finally:
        watched.stop()


def test_how_far_a_run_is_can_be_told_without_reading_it(copy):
    header = json.loads((copy / "run.json").read_text())
    assert drawn(copy, header) == 30
    shutil.rmtree(copy / "chain-001")
    assert drawn(copy, header) == 0


def test_a_growing_run_says_what_it_has_and_what_is_shown(copy):
    watched = RunWatcher(copy)
    with Lock(copy):
        watched.status, watched.view = read(copy)
    assert watched.text == watched.status.text
    watched.view.run.header["draws"] = 500
    for chain in copy.glob("chain-*"):
        (chain / "part-000000000090.npz").touch()  # 70 draws after 20 sweeps of tuning
    assert "70 of 500" in watched.text
    assert "first 30" in watched.text


def test_what_was_read_stays_when_its_files_go(copy):
    watched = RunWatcher(copy)
    watched.start()
    try:
        wait_for(watched, lambda w: w.view is not None and w.view.complete)
        shutil.rmtree(copy)
        wait_for(watched, lambda w: w.status.state == "missing")
        assert watched.view is not None
        assert "before" in watched.status.text
    finally:
        watched.stop()


# -- what stores keep for pictures ------------------------------------------------------------


def test_a_store_keeps_its_trajectories(runs):
    problem = Posterior.load(runs["plane"]).problem
    assert len(problem.paths.offsets) == 7
    starts = np.delete(problem.paths.nodes, problem.paths.offsets[1:] - 1)
    np.testing.assert_array_equal(starts, problem.node_of)


def test_a_store_without_trajectories_and_command_is_read_as_ever(copy):
    arrays = read_arrays(copy / "problem.npz")
    older = {name: x for name, x in arrays.items() if not name.startswith("paths.")}
    write_arrays(copy / "problem.npz", older)
    header = json.loads((copy / "run.json").read_text())
    del header["command"]
    (copy / "run.json").write_text(json.dumps(header))
    status, view = read(copy)
    assert status.state == "finished"
    assert view.posterior.problem.paths is None


def test_only_onlookers_own_command_is_kept(monkeypatch):
    from onlooker.runs.header import _command

    monkeypatch.setattr("sys.argv", ["/usr/local/bin/onlooker", "fit", "my tracks.csv"])
    assert _command() == "onlooker fit 'my tracks.csv'"
    monkeypatch.setattr("sys.argv", ["analysis.py", "--secret"])
    assert _command() is None
