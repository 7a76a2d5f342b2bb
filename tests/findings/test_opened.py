"""One reader of a run: what it knows is the same from memory, from a store and from a file."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from bare import bare_problem
from small_runs import made_up, plane_problem, quick, ring_dynamics

from onlooker import Demonstrations, Posterior, Problem
from onlooker.consensus import search
from onlooker.dynamics import DisplacementDynamics
from onlooker.findings.opened import OpenedRun
from onlooker.findings.record import Record
from onlooker.partitions import ChineseRestaurant, DistanceDependent
from onlooker.runs.loading import NoDrawsYet
from onlooker.runs.lock import Lock

STORES = Path(__file__).parents[1] / "golden" / "stores"


@pytest.fixture
def store(tmp_path):
    """A store of `onlooker fit`, to be mistreated."""
    return Path(shutil.copytree(STORES / "fit", tmp_path / "run"))


def test_a_run_of_fit_knows_its_columns_actions_and_how_it_was_read():
    run = OpenedRun.read(STORES / "fit")
    assert run.columns == run.axes == ["east", "north"]
    assert run.action_names == ["0°", "60°", "120°", "180°", "240°", "300°", "stay"]
    assert (run.record.file, run.record.reading.time) == ("tracks.csv", "hour")
    assert run.units == ["", ""]
    assert (run.state, run.notes) == ("finished", [])


def test_a_fresh_run_is_the_one_that_is_read_again(store):
    again = OpenedRun.read(store)
    fresh = OpenedRun.of(Posterior.load(store), Record.read(store), store)
    assert fresh.header == again.header
    assert fresh.record == again.record
    assert fresh.progress == again.progress == "Finished: 6 of 6 draws of 2 chains."
    np.testing.assert_array_equal(fresh.posterior.labels, again.posterior.labels)


def test_a_saved_file_and_a_run_in_memory_have_no_names_but_all_else():
    saved = OpenedRun.read(STORES / "saved.npz")
    assert saved.state == "finished"
    assert saved.record == Record()
    run = OpenedRun.of(made_up(plane_problem(), DistanceDependent()))
    assert run.axes == ["x", "y"]
    assert run.state == "finished"


def test_digits_follow_from_steps_and_not_from_where_the_next_trajectory_begins():
    starts = 100.0 * np.arange(4)[:, None, None] * np.array([1.0, -1.0])
    tracks = list(starts + np.array([[0.0, 0.0], [0.003, 0.3]]))  # a step each
    dynamics = DisplacementDynamics(np.array([[0.003, 0.3], [0.0, 0.0]]), 0.1)
    problem = Problem.from_demonstrations(Demonstrations(tracks), dynamics)
    run = OpenedRun.of(made_up(problem, ChineseRestaurant()))
    assert run.decimals == [4, 2]  # for a twentieth of a step


def test_places_on_earth_have_their_names_and_units(store):
    record = json.loads((store / "fit.json").read_text())
    record["reading"] |= {"geographic": True, "states": None}
    (store / "fit.json").write_text(json.dumps(record))
    run = OpenedRun.read(store)
    assert (run.axes, run.units) == (["longitude", "latitude"], ["°", "°"])
    assert run.columns == ["lon", "lat"]  # what exported tables call them


def test_the_reach_of_similarity_on_earth_is_in_km(store):
    assert OpenedRun.read(store).hyper_words("scale") == "length scale of the decay"
    record = json.loads((store / "fit.json").read_text())
    record["reading"] |= {"geographic": True}
    (store / "fit.json").write_text(json.dumps(record))
    run = OpenedRun.read(store)
    run.posterior.target = replace(run.posterior.target, prior=DistanceDependent(metric="chord"))
    assert run.hyper_words("scale") == "length scale of the decay [km]"
    assert run.hyper_words("nu") == "self-link weight ν"


@pytest.mark.parametrize(
    ("hours", "words"),
    [([0, 6, 12], "6 h"), ([0, 6, 12, 19], "6 h (median)"), ([0.0, 6.0, 12.0], None)],
)
def test_how_long_a_step_takes_is_told_from_dates_within_trajectories(hours, words):
    times = np.array(hours)
    if times.dtype.kind == "i":
        times = np.datetime64("2024-05-03", "s") + times.astype("timedelta64[h]")
    tracks = [np.arange(len(hours))[:, None] * [1.0, 0.0]] * 2
    demos = Demonstrations(tracks, times=[times, times])
    problem = Problem.from_demonstrations(demos, DisplacementDynamics.compass(4))
    assert OpenedRun.of(made_up(problem, ChineseRestaurant())).step_time == words


def test_the_consensus_of_the_store_is_used_and_a_new_one_is_stored(store):
    with mock.patch.object(search, "consensus", side_effect=AssertionError("there is one")):
        stored = OpenedRun.read(store).load_consensus()
    (store / "consensus.npz").unlink()
    run = OpenedRun.read(store)
    with mock.patch.object(search, "consensus", wraps=search.consensus) as searched:
        np.testing.assert_array_equal(run.load_consensus().labels, stored.labels)
    assert searched.call_count == 1
    assert (store / "consensus.npz").exists()
    np.testing.assert_array_equal(run.posterior.partition(), stored.labels)


def test_a_store_without_draws_says_what_to_do(store):
    for part in store.glob("chain-*/part-*.npz"):
        part.unlink()
    with pytest.raises(NoDrawsYet, match=r"stopped before the first.* --resume continues it"):
        OpenedRun.read(store)
    with Lock(store), pytest.raises(NoDrawsYet, match=r"still tuning \(3 sweeps per chain\)"):
        OpenedRun.read(store)
    (store / "fit.json").unlink()
    with pytest.raises(NoDrawsYet, match="resume=True continues it"):
        OpenedRun.read(store)


def test_a_run_that_was_stopped_or_is_sampled_says_so_in_its_notes(store):
    header = json.loads((store / "run.json").read_text())
    (store / "run.json").write_text(json.dumps(header | {"draws": 500, "chains": 3}))
    (note,) = OpenedRun.read(store).notes
    assert note.startswith("The run was stopped: 6 of 500 draws of 2 of 3 chains.")
    with Lock(store):
        assert OpenedRun.read(store).state == "growing"


def test_visits_are_averaged_over_the_draws_where_states_are_unseen():
    demos = Demonstrations([[0, 1, -1, -1, 4, 5], [5, -1, -1, 2, 1, 0]], missing="infer")
    problem = bare_problem(demos, ring_dynamics(6), nodes="all")
    run = OpenedRun.of(quick(problem, ChineseRestaurant()))
    drawn = run.posterior.imputed.reshape(-1, 4)
    starts = [[0, 1, a, b, 4, 5, c, d, 2, 1] for a, b, c, d in drawn]
    expected = np.mean([np.bincount(one, minlength=6) for one in starts], axis=0)
    np.testing.assert_allclose(run.visits, expected)
    assert run.has_unseen
