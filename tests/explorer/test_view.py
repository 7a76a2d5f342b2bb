"""What the page shows is what the posterior says."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from bare import bare_problem
from pictured_runs import KINDS
from small_runs import made_up, plane_problem, quick, ring_problem

from onlooker import Demonstrations, Problem, anomaly
from onlooker.dynamics import DisplacementDynamics
from onlooker.explorer import query
from onlooker.explorer.compare import compare
from onlooker.explorer.overview import overview
from onlooker.explorer.packing import pack, to_json, unpack, zipped
from onlooker.explorer.query import at_state, shares_at_nodes
from onlooker.explorer.run import read
from onlooker.explorer.space import space_of
from onlooker.explorer.view import RunView
from onlooker.findings.opened import OpenedRun
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Potts, Static

STORES = Path(__file__).parents[1] / "golden" / "stores"


def made_up_view(problem=None, prior=None, **options):
    posterior = made_up(problem or plane_problem(), prior or DistanceDependent(), **options)
    return RunView(OpenedRun.of(posterior))


def test_warming_up_asks_for_a_node_and_for_a_place_that_is_none(monkeypatch):
    asked = []
    monkeypatch.setattr(query, "at_state", lambda view, state: asked.append(state))
    view = made_up_view()
    query.warm_up(view)
    nodes = view.posterior.problem.states.tolist()
    assert [state in nodes for state in asked] == [True, False]


# -- a place ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [DistanceDependent(), ChineseRestaurant(), Potts(3)])
@pytest.mark.parametrize("where", ["a node", "elsewhere"])
def test_the_answer_has_the_mean_that_the_library_has(prior, where):
    hyper = {"nu": 0.1, "gamma": 1.0, "beta": 1.6}
    view = made_up_view(prior=prior, hyper=hyper, n_draws=40)
    state = view.posterior.problem.states[3] + (0.0 if where == "a node" else 0.123)
    answer = at_state(view, state.tolist())
    np.testing.assert_allclose(answer["mean"], view.posterior.policy([state])[0], atol=1e-12)
    assert (answer["node"] >= 0) == (where == "a node")


@pytest.mark.parametrize("where", ["a node", "elsewhere"])
def test_the_answer_has_the_interval_that_the_library_has_up_to_chance(where):
    view = made_up_view(n_draws=1500, n_chains=2, hyper={"nu": 0.1})
    state = view.posterior.problem.states[3] + (0.0 if where == "a node" else 0.123)
    answer = at_state(view, state.tolist())
    wanted = view.posterior.policy([state], interval=answer["level"])
    np.testing.assert_allclose(answer["low"], wanted.low[0], atol=0.03)
    np.testing.assert_allclose(answer["high"], wanted.high[0], atol=0.03)


def test_candidates_at_a_node_are_the_shares_of_draws():
    view = made_up_view(n_draws=50)
    answer = at_state(view, view.posterior.problem.states[2].tolist())
    clusters, shares = shares_at_nodes(view, 10)
    wanted = {int(c): s for c, s in zip(clusters[2], shares[2], strict=True) if s > 0}
    assert {one["cluster"]: one["share"] for one in answer["candidates"]} == pytest.approx(wanted)
    assert sum(wanted.values()) == pytest.approx(1.0)


def test_a_state_with_no_neighbour_may_have_a_cluster_of_its_own():
    prior = DistanceDependent(decay=GaussianDecay(0.1, 0.0))
    view = made_up_view(prior=prior, hyper={"nu": 5.0})
    answer = at_state(view, [90.0, 90.0])
    assert answer["candidates"] == [{"cluster": -1, "share": 1.0}]
    np.testing.assert_allclose(answer["mean"], 0.25)


def test_a_concentration_so_small_that_it_underflows_gives_probabilities():
    view = made_up_view(hyper={"alpha": 1e-300, "nu": 1.0})
    answer = at_state(view, [50.0, 50.0])
    assert np.isfinite(answer["low"] + answer["high"]).all()


# -- findings -----------------------------------------------------------------------------------


def test_the_spread_is_that_of_drawn_controllers():
    view = made_up_view(n_draws=400, n_chains=2, hyper={"nu": 0.1})
    rng = np.random.default_rng(0)
    (clusters,) = view.posterior.predictor.blocks()
    rows = clusters.first[:-1, None] + clusters.labels
    drawn = np.concatenate([clusters.thetas(rng)[rows] for _ in range(20)])
    wanted = np.sqrt(drawn.var(axis=0).sum(axis=1))
    np.testing.assert_allclose(view.spread, wanted, rtol=0.03)


def test_controllers_average_the_policy_of_their_states(views):
    view = views["plane"]
    for one in view.controllers:
        inside = view.reference.labels == one.number
        assert one.n_nodes == inside.sum()
        visits = view.run.visits[inside]  # what is done there, as regions and behaviours say it
        weights = visits / visits.sum() if visits.any() else np.ones(inside.sum()) / inside.sum()
        np.testing.assert_allclose(one.mean, weights @ view.policy[inside])
        assert (one.low <= one.mean).all()
        assert (one.mean <= one.high).all()
    assert sum(one.n_nodes for one in view.controllers) == view.posterior.problem.n_nodes
    assert sum(one.n_transitions for one in view.controllers) == len(view.surprise)


def test_surprise_is_minus_the_log_predictive(views):
    view = views["plane"]
    paths = view.posterior.problem.paths
    states = view.posterior.problem.states[paths.nodes]
    demos = np.split(states, paths.offsets[1:-1])
    np.testing.assert_allclose(view.surprise, -view.posterior.log_predictive(demos))


def test_likely_actions_are_those_drawn_most_often(views):
    view = views["grid"]
    action, share = view.likely_actions
    drawn = view.posterior.actions.reshape(-1, len(action))
    for t in range(0, len(action), 10):
        counts = np.bincount(drawn[:, t], minlength=8)
        assert counts[action[t]] == counts.max()
        assert share[t] == pytest.approx(counts.max() / len(drawn))


def test_trajectories_are_scored_as_the_library_scores_them(views):
    view = views["grid"]
    paths = view.posterior.problem.paths
    states = view.posterior.problem.states[paths.nodes]
    demos = np.split(states, paths.offsets[1:-1])
    wanted = anomaly.score(view.posterior, demos, simulate=False, random_state=0, progress=False)
    wanted = wanted.calibrated(wanted)
    np.testing.assert_array_equal(view.anomaly.trajectories.score, wanted.trajectories.score)
    np.testing.assert_allclose(view.anomaly.steps.surprise, view.surprise)
    seen = overview(view)
    assert [row["p_combined"] for row in seen["anomaly"]] == wanted.trajectories.p_combined.tolist()


def test_the_consensus_is_the_posteriors_own(views):
    view = views["plane"]
    np.testing.assert_array_equal(view.reference.labels, view.posterior.partition())


# -- what is sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_overview_is_strict_json_and_complete(views, kind):
    seen = json.loads(to_json(overview(views[kind])))
    n_nodes = views[kind].posterior.problem.n_nodes
    assert seen["complete"]
    assert unpack(seen["policy"]).shape == (n_nodes, seen["data"]["actions"])
    assert unpack(seen["membership"]).shape == (n_nodes,)
    assert unpack(seen["space"]["sites"]).shape[0] >= n_nodes
    assert sum(row["share"] for row in seen["counts"]) == pytest.approx(1.0)
    assert seen["verdict"]["sentences"]
    assert "random_state=0" in seen["run"]["call"]


def test_an_overview_before_anything_costly_is_strict_json_too():
    view = made_up_view(n_draws=3)
    seen = json.loads(to_json(overview(view)))
    assert seen["policy"] is None
    assert seen["verdict"] is None
    assert not seen["complete"]


def test_packed_arrays_come_back():
    values = np.array([[1.5, np.nan], [np.inf, -2.0]])
    np.testing.assert_array_equal(unpack(pack(values, "f8")), values)
    assert zipped(b"x" * 100) == zipped(b"x" * 100)


def test_numbers_of_a_prior_that_is_read_are_rounded_and_those_of_the_call_less_so():
    prior = DistanceDependent(decay=GaussianDecay(1.0069412453788966, offset=1.23456789e-07))
    view = made_up_view(prior=prior, n_draws=3)
    seen = overview(view)["run"]
    assert "length scale of the decay 1.007" in seen["prior"]
    assert "self-link weight ν inferred" in seen["prior"]
    assert "scale=1.00694, offset=1.23457e-07" in seen["call"]


# -- places -----------------------------------------------------------------------------------


def test_real_states_are_their_own_places(views):
    space = views["space"].space
    assert (space.kind, space.axes) == ("real", ["x1", "x2", "x3", "x4"])
    np.testing.assert_array_equal(space.sites, views["space"].posterior.problem.states)
    assert space.cell is None


def test_a_grid_shows_unvisited_states_and_knows_its_spacing(views):
    space = views["grid"].space
    assert space.kind == "grid"
    assert len(space.sites) == 81
    assert sorted(space.states) == list(range(81))
    assert space.cell == [1.0, 1.0]


def test_moves_on_a_grid_follow_the_compass(views):
    moves = views["grid"].moves
    angles = np.arctan2(moves[:, 1], moves[:, 0]) % (2 * np.pi)
    np.testing.assert_allclose(np.cos(angles - 2 * np.pi * np.arange(8) / 8), 1.0, atol=0.01)


def test_abstract_states_get_a_table_without_gaps(views):
    view = views["abstract"]
    assert view.space.kind == "abstract"
    assert len(view.space.sites) == 18
    assert len(np.unique(view.space.sites, axis=0)) == 18
    assert view.moves is None


def test_numbers_of_abstract_states_may_be_huge():
    problem = Problem([0, 1], [[0.0, -1.0], [-1.0, 0.0]], np.array([5, 10**12]))
    space = space_of(OpenedRun.of(made_up(problem, ChineseRestaurant(), n_clusters=2)))
    assert len(space.sites) == 2


# -- two runs ---------------------------------------------------------------------------------


def test_a_run_agrees_with_itself(views):
    found = compare(views["plane"], views["plane"])
    assert found["rand"] == pytest.approx(1.0)
    assert found["variation"] == pytest.approx(0.0, abs=1e-12)
    assert found["most"] == pytest.approx(0.0, abs=1e-12)
    assert found["shared"] == found["asked"] == found["nodes"]


def test_runs_without_a_state_in_common_are_compared_where_one_has_been():
    one = made_up_view(problem=plane_problem(seed=0), hyper={"nu": 0.1})
    other = made_up_view(problem=plane_problem(seed=1), hyper={"nu": 0.1})
    found = compare(one, other)
    assert found["shared"] == 0
    assert found["rand"] is None
    states = one.posterior.problem.states
    wanted = 0.5 * np.abs(one.posterior.policy() - other.posterior.policy(states)).sum(axis=1)
    np.testing.assert_allclose(unpack(found["distance"]), wanted, rtol=1e-6)


def test_runs_of_other_kinds_of_states_cannot_be_compared(views):
    ring = made_up_view(problem=ring_problem(), prior=ChineseRestaurant(), hyper={"gamma": 1.0})
    assert not compare(views["plane"], ring)["comparable"]
    assert "dimensions" in compare(views["plane"], views["space"])["reason"]


# -- runs at the edge -----------------------------------------------------------------------------


def manhattan(one, other):
    """A metric that is code, which stores do not keep."""
    return float(np.abs(one - other).sum())


def stored_view(problem, prior, path, **options):
    quick(problem, prior, store=path, **options)
    status, view = read(path)
    assert view is not None, status
    for _ in view.refine():
        pass
    return view


def test_a_run_of_one_state_one_action_and_one_draw_is_shown(tmp_path):
    problem = Problem([0, 0], np.zeros((2, 1)))
    view = stored_view(problem, ChineseRestaurant(), tmp_path / "run", draws=1, chains=1)
    seen = json.loads(to_json(overview(view)))
    assert seen["verdict"]["level"] == "unknown"
    assert at_state(view, 0)["mean"] == [1.0]


def test_a_prior_that_is_code_leaves_nodes_answered_and_other_states_refused(tmp_path):
    prior = DistanceDependent(metric=manhattan)
    view = stored_view(plane_problem(), prior, tmp_path / "run")
    node = view.posterior.problem.states[1].tolist()
    assert sum(at_state(view, node)["mean"]) == pytest.approx(1.0)
    with pytest.raises(TypeError, match="states that are no nodes have no weights"):
        at_state(view, [0.0, 0.0])
    assert "metric=" in json.loads(to_json(overview(view)))["run"]["prior"]


def test_a_cluster_for_every_state_is_shown(tmp_path):
    view = stored_view(plane_problem(), Static(), tmp_path / "run")
    assert view.reference.n_clusters == view.posterior.problem.n_nodes
    assert json.loads(to_json(overview(view)))["complete"]


def test_dynamics_that_are_code_cost_the_arrows_and_no_more(tmp_path):
    class Own:
        n_actions = 2

        def log_likelihood(self, states, next_states):
            return np.tile([0.0, -1.0], (len(states), 1))

        def sample(self, states, actions, rng):
            return states

    problem = bare_problem([[[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]], Own())
    view = stored_view(problem, ChineseRestaurant(), tmp_path / "run")
    seen = json.loads(to_json(overview(view)))
    assert seen["space"]["moves"] is seen["node_moves"] is seen["anomaly"] is None
    assert "Own" in seen["data"]["dynamics"]
    assert seen["steps"]["surprise"]


# -- unseen states --------------------------------------------------------------------------------


def test_nothing_is_computed_from_the_first_guess_of_unseen_states(tmp_path):
    _, view = read(shutil.copytree(STORES / "unseen", tmp_path / "run"))
    for _ in view.refine():
        pass
    seen = json.loads(to_json(overview(view)))
    assert seen["complete"]
    assert seen["data"]["unseen"]
    assert seen["steps"] is seen["anomaly"] is seen["data"]["unidentifiable"] is None
    assert any("not seen" in note for note in seen["notes"])
    n_transitions = view.posterior.problem.n_transitions
    assert sum(one["transitions"] for one in seen["controllers"]) == n_transitions


# -- names of trajectories ------------------------------------------------------------------------


def named_problem(names):
    compass = DisplacementDynamics.compass(4)
    walks = [[[0.0, 0.0], [1.0, 0.1 * k], [2.0, 0.2 * k]] for k in range(1, 4)]
    return bare_problem(Demonstrations(walks, names=names), compass)


@pytest.mark.parametrize("names", [["deer07", "deer08", "Ærø"], ["3", "1", "2"]])
def test_names_of_trajectories_reach_the_page_by_way_of_the_store(tmp_path, names):
    view = stored_view(named_problem(names), ChineseRestaurant(), tmp_path / "run")
    assert json.loads(to_json(overview(view)))["paths"]["names"] == names


@pytest.mark.parametrize("names", [None, ["0", "1", "2"]])
def test_numbers_are_no_names(tmp_path, names):
    view = stored_view(named_problem(names), ChineseRestaurant(), tmp_path / "run")
    assert overview(view)["paths"]["names"] is None
    with np.load(tmp_path / "run" / "problem.npz") as arrays:  # as in older stores
        assert "trajectory_names" not in arrays.files


def test_a_name_does_not_make_it_another_run(tmp_path):
    """Runs stored before there were names can go on."""
    quick(named_problem(None), ChineseRestaurant(), store=tmp_path / "run")
    quick(named_problem(["a", "b", "c"]), ChineseRestaurant(), store=tmp_path / "run", resume=True)
