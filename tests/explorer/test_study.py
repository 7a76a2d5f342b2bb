"""What the page shows is what the posterior says."""

import json

import numpy as np
import pandas as pd
import pytest
from pictured_runs import KINDS
from small_runs import made_up, plane_problem, quick, ring_problem

from onlooker import Demonstrations, Problem, anomaly
from onlooker.dynamics import DisplacementDynamics
from onlooker.explorer.compare import compare
from onlooker.explorer.overview import in_short, overview, rounded
from onlooker.explorer.packing import pack, to_json, unpack, zipped
from onlooker.explorer.query import at_state, shares_at_nodes
from onlooker.explorer.run import read
from onlooker.explorer.space import graph_layout, space_of
from onlooker.explorer.study import Study
from onlooker.findings.verdict import verdict
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Potts, Static


def made_up_study(problem=None, prior=None, **options):
    posterior = made_up(problem or plane_problem(), prior or DistanceDependent(), **options)
    header = {"dynamics": None, "draws": posterior.n_draws, "chains": posterior.n_chains}
    return Study.of(posterior, header)


# -- a place ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [DistanceDependent(), ChineseRestaurant(), Potts(3)])
@pytest.mark.parametrize("where", ["a node", "elsewhere"])
def test_the_answer_has_the_mean_that_the_library_has(prior, where):
    hyper = {"nu": 0.1, "gamma": 1.0, "beta": 1.6}
    study = made_up_study(prior=prior, hyper=hyper, n_draws=40)
    state = study.posterior.problem.states[3] + (0.0 if where == "a node" else 0.123)
    answer = at_state(study, state.tolist())
    np.testing.assert_allclose(answer["mean"], study.posterior.policy([state])[0], atol=1e-12)
    assert (answer["node"] >= 0) == (where == "a node")


@pytest.mark.parametrize("where", ["a node", "elsewhere"])
def test_the_answer_has_the_interval_that_the_library_has_up_to_chance(where):
    study = made_up_study(n_draws=1500, n_chains=2, hyper={"nu": 0.1})
    state = study.posterior.problem.states[3] + (0.0 if where == "a node" else 0.123)
    answer = at_state(study, state.tolist())
    wanted = study.posterior.policy([state], interval=answer["level"])
    np.testing.assert_allclose(answer["low"], wanted.low[0], atol=0.03)
    np.testing.assert_allclose(answer["high"], wanted.high[0], atol=0.03)


def test_candidates_at_a_node_are_the_shares_of_draws():
    study = made_up_study(n_draws=50)
    answer = at_state(study, study.posterior.problem.states[2].tolist())
    clusters, shares = shares_at_nodes(study, 10)
    wanted = {int(c): s for c, s in zip(clusters[2], shares[2], strict=True) if s > 0}
    assert {one["cluster"]: one["share"] for one in answer["candidates"]} == pytest.approx(wanted)
    assert sum(wanted.values()) == pytest.approx(1.0)


def test_a_state_with_no_neighbour_may_have_a_cluster_of_its_own():
    prior = DistanceDependent(decay=GaussianDecay(0.1, 0.0))
    study = made_up_study(prior=prior, hyper={"nu": 5.0})
    answer = at_state(study, [90.0, 90.0])
    assert answer["candidates"] == [{"cluster": -1, "share": 1.0}]
    np.testing.assert_allclose(answer["mean"], 0.25)


def test_a_concentration_so_small_that_it_underflows_gives_probabilities():
    study = made_up_study(hyper={"alpha": 1e-300, "nu": 1.0})
    answer = at_state(study, [50.0, 50.0])
    assert np.isfinite(answer["low"] + answer["high"]).all()


# -- findings -----------------------------------------------------------------------------------


def test_the_spread_is_that_of_drawn_controllers():
    study = made_up_study(n_draws=400, n_chains=2, hyper={"nu": 0.1})
    rng = np.random.default_rng(0)
    (clusters,) = study.posterior.predictor.blocks()
    rows = clusters.first[:-1, None] + clusters.labels
    drawn = np.concatenate([clusters.thetas(rng)[rows] for _ in range(20)])
    wanted = np.sqrt(drawn.var(axis=0).sum(axis=1))
    np.testing.assert_allclose(study.spread, wanted, rtol=0.03)


def test_controllers_average_the_policy_of_their_states(studies):
    study = studies["plane"]
    for one in study.controllers:
        inside = study.reference.labels == one.number
        assert one.n_nodes == inside.sum()
        np.testing.assert_allclose(one.mean, study.policy[inside].mean(axis=0))
        assert (one.low <= one.mean).all()
        assert (one.mean <= one.high).all()
    assert sum(one.n_nodes for one in study.controllers) == study.posterior.problem.n_nodes
    assert sum(one.n_transitions for one in study.controllers) == len(study.surprise)


def test_surprise_is_minus_the_log_predictive(studies):
    study = studies["plane"]
    paths = study.posterior.problem.paths
    states = study.posterior.problem.states[paths.nodes]
    demos = np.split(states, paths.offsets[1:-1])
    np.testing.assert_allclose(study.surprise, -study.posterior.log_predictive(demos))


def test_likely_actions_are_those_drawn_most_often(studies):
    study = studies["grid"]
    action, share = study.likely_actions
    drawn = study.posterior.actions.reshape(-1, len(action))
    for t in range(0, len(action), 10):
        counts = np.bincount(drawn[:, t], minlength=8)
        assert counts[action[t]] == counts.max()
        assert share[t] == pytest.approx(counts.max() / len(drawn))


def test_trajectories_are_scored_as_the_library_scores_them(studies):
    study = studies["grid"]
    paths = study.posterior.problem.paths
    states = study.posterior.problem.states[paths.nodes]
    demos = np.split(states, paths.offsets[1:-1])
    wanted = anomaly.score(study.posterior, demos, random_state=0, progress=False)
    np.testing.assert_array_equal(study.anomaly.trajectories.score, wanted.trajectories.score)
    np.testing.assert_allclose(study.anomaly.steps.surprise, study.surprise)
    seen = overview(study)
    assert [row["p_any"] for row in seen["anomaly"]] == wanted.trajectories.p_any.tolist()


def test_the_consensus_is_the_posteriors_own(studies):
    study = studies["plane"]
    np.testing.assert_array_equal(study.reference.labels, study.posterior.partition())


# -- what is sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_overview_is_strict_json_and_complete(studies, kind):
    seen = json.loads(to_json(overview(studies[kind])))
    n_nodes = studies[kind].posterior.problem.n_nodes
    assert seen["complete"]
    assert unpack(seen["policy"]).shape == (n_nodes, seen["data"]["actions"])
    assert unpack(seen["membership"]).shape == (n_nodes,)
    assert unpack(seen["space"]["sites"]).shape[0] >= n_nodes
    assert sum(row["share"] for row in seen["counts"]) == pytest.approx(1.0)
    assert seen["verdict"]["sentences"]
    assert "random_state=0" in seen["run"]["call"]


def test_an_overview_before_anything_costly_is_strict_json_too():
    study = made_up_study(n_draws=3)
    study.header |= {"created": "", "versions": {}, "prior_text": "", "options": {}}
    seen = json.loads(to_json(overview(study)))
    assert seen["policy"] is None
    assert seen["verdict"] is None
    assert not seen["complete"]


def test_packed_arrays_come_back():
    values = np.array([[1.5, np.nan], [np.inf, -2.0]])
    np.testing.assert_array_equal(unpack(pack(values, "f8")), values)
    assert zipped(b"x" * 100) == zipped(b"x" * 100)


def test_a_prior_in_short_tells_what_is_not_default_and_no_array():
    assert in_short(ChineseRestaurant()) == "ChineseRestaurant()"
    decay = "decay=GaussianDecay(scale=1.0, offset=0.01)"  # in the units of the data: always told
    assert in_short(DistanceDependent()) == f"DistanceDependent({decay})"
    told = in_short(Potts(4, decay=GaussianDecay(0.5), coordinates=np.zeros((9, 2))))
    decay = "decay=GaussianDecay(scale=0.5, offset=0.0)"
    assert told == f"Potts(n_clusters=4, {decay}, coordinates=<9×2 array>)"


def test_a_prior_that_is_read_is_rounded_and_the_call_is_exact():
    scale = 1.0069412453788966
    prior = DistanceDependent(decay=GaussianDecay(scale, offset=1.23456789e-07))
    study = made_up_study(prior=prior, n_draws=3)
    study.header |= {"created": "", "versions": {}, "options": {}}
    seen = overview(study)["run"]
    assert "scale=1.007, offset=1.235e-07" in seen["prior"]
    assert f"scale={scale}, offset=1.23456789e-07" in seen["call"]
    assert rounded("Potts(n_clusters=12345, beta=1.6)") == "Potts(n_clusters=12345, beta=1.6)"


# -- places -----------------------------------------------------------------------------------


def test_real_states_are_their_own_places(studies):
    space = studies["space"].space
    assert (space.kind, space.axes) == ("real", ["x1", "x2", "x3", "x4"])
    np.testing.assert_array_equal(space.sites, studies["space"].posterior.problem.states)
    assert space.cell is None


def test_a_grid_shows_unvisited_states_and_knows_its_spacing(studies):
    space = studies["grid"].space
    assert space.kind == "grid"
    assert len(space.sites) == 81
    assert sorted(space.states) == list(range(81))
    assert space.cell == [1.0, 1.0]


def test_moves_on_a_grid_follow_the_compass(studies):
    moves = studies["grid"].moves
    angles = np.arctan2(moves[:, 1], moves[:, 0]) % (2 * np.pi)
    np.testing.assert_allclose(np.cos(angles - 2 * np.pi * np.arange(8) / 8), 1.0, atol=0.01)


def test_abstract_states_get_a_table_without_gaps_and_a_graph(studies):
    study = studies["abstract"]
    assert study.space.kind == "abstract"
    assert len(study.space.sites) == 18
    assert len(np.unique(study.space.sites, axis=0)) == 18
    assert study.graph.shape == (study.posterior.problem.n_nodes, 2)
    assert study.moves is None


def test_a_graph_puts_neighbours_nearer_than_others():
    n = 24
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n, np.ones(n, dtype=int)])
    place = graph_layout(n, ring)
    step = np.linalg.norm(place - np.roll(place, -1, axis=0), axis=1)
    across = np.linalg.norm(place - np.roll(place, n // 2, axis=0), axis=1)
    assert step.max() < 0.5 * across.min()
    np.testing.assert_array_equal(place, graph_layout(n, ring))


@pytest.mark.parametrize("n_edges", [0, 1])
def test_a_graph_of_almost_nothing_is_no_error(n_edges):
    place = graph_layout(2, np.array([[0, 1, 3]])[:n_edges].reshape(-1, 3))
    assert place is None if n_edges == 0 else np.isfinite(place).all()


def test_numbers_of_abstract_states_may_be_huge():
    problem = Problem([0, 1], [[0.0, -1.0], [-1.0, 0.0]], np.array([5, 10**12]))
    space = space_of(made_up(problem, ChineseRestaurant(), n_clusters=2))
    assert len(space.sites) == 2


# -- verdict ------------------------------------------------------------------------------------


def summary(r_hat, ess):
    columns = {"r_hat": [r_hat, 1.0], "ess_bulk": [ess, 900.0], "ess_tail": [ess, 900.0]}
    return pd.DataFrame(columns, index=["n_controllers", "nu"])


@pytest.mark.parametrize(
    ("r_hat", "ess", "level"),
    [
        (1.005, 900, "good"),
        (1.03, 900, "fair"),
        (1.005, 100, "fair"),
        (1.3, 900, "bad"),
        (1.005, 10, "bad"),
        (np.inf, 0, "bad"),
        (np.nan, np.nan, "good"),
    ],
)
def test_the_verdict_follows_the_thresholds(r_hat, ess, level):
    told = verdict(made_up(plane_problem(), DistanceDependent()), summary(r_hat, ess))
    assert told["level"] == level
    assert json.loads(to_json(told))


def test_the_verdict_on_nothing_that_changes_is_that_it_cannot_be_told():
    table = summary(np.nan, np.nan).iloc[:1]
    assert verdict(made_up(plane_problem(), DistanceDependent()), table)["level"] == "unknown"


def test_a_single_chain_is_warned_of():
    posterior = made_up(plane_problem(), DistanceDependent(), n_chains=1)
    assert "one chain only" in verdict(posterior, summary(1.0, 900))["sentences"][-1]


# -- two runs ---------------------------------------------------------------------------------


def test_a_run_agrees_with_itself(studies):
    found = compare(studies["plane"], studies["plane"])
    assert found["rand"] == pytest.approx(1.0)
    assert found["variation"] == pytest.approx(0.0, abs=1e-12)
    assert found["most"] == pytest.approx(0.0, abs=1e-12)
    assert found["shared"] == found["asked"] == found["nodes"]


def test_runs_without_a_state_in_common_are_compared_where_one_has_been():
    one = made_up_study(problem=plane_problem(seed=0), hyper={"nu": 0.1})
    other = made_up_study(problem=plane_problem(seed=1), hyper={"nu": 0.1})
    found = compare(one, other)
    assert found["shared"] == 0
    assert found["rand"] is None
    states = one.posterior.problem.states
    wanted = 0.5 * np.abs(one.posterior.policy() - other.posterior.policy(states)).sum(axis=1)
    np.testing.assert_allclose(unpack(found["distance"]), wanted, rtol=1e-6)


def test_runs_of_other_kinds_of_states_cannot_be_compared(studies):
    ring = made_up_study(problem=ring_problem(), prior=ChineseRestaurant(), hyper={"gamma": 1.0})
    assert not compare(studies["plane"], ring)["comparable"]
    assert "dimensions" in compare(studies["plane"], studies["space"])["reason"]


# -- runs at the edge -----------------------------------------------------------------------------


def manhattan(one, other):
    """A metric that is code, which stores do not keep."""
    return float(np.abs(one - other).sum())


def stored_study(problem, prior, path, **options):
    quick(problem, prior, store=path, **options)
    condition, study = read(path)
    assert study is not None, condition
    for _ in study.refine():
        pass
    return study


def test_a_run_of_one_state_one_action_and_one_draw_is_shown(tmp_path):
    problem = Problem([0, 0], np.zeros((2, 1)))
    study = stored_study(problem, ChineseRestaurant(), tmp_path / "run", draws=1, chains=1)
    seen = json.loads(to_json(overview(study)))
    assert seen["verdict"]["level"] == "unknown"
    assert at_state(study, 0)["mean"] == [1.0]


def test_a_prior_that_is_code_leaves_nodes_answered_and_other_states_refused(tmp_path):
    prior = DistanceDependent(metric=manhattan)
    study = stored_study(plane_problem(), prior, tmp_path / "run")
    node = study.posterior.problem.states[1].tolist()
    assert sum(at_state(study, node)["mean"]) == pytest.approx(1.0)
    with pytest.raises(TypeError, match="no rule for states that are no nodes"):
        at_state(study, [0.0, 0.0])
    assert "metric=" in json.loads(to_json(overview(study)))["run"]["prior"]


def test_a_cluster_for_every_state_is_shown(tmp_path):
    study = stored_study(plane_problem(), Static(), tmp_path / "run")
    assert study.reference.n_clusters == study.posterior.problem.n_nodes
    assert json.loads(to_json(overview(study)))["complete"]


def test_dynamics_that_are_code_cost_the_arrows_and_no_more(tmp_path):
    class Own:
        n_actions = 2

        def log_likelihood(self, states, next_states):
            return np.tile([0.0, -1.0], (len(states), 1))

        def sample(self, states, actions, rng):
            return states

    problem = Problem.from_demonstrations([[[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]], Own())
    study = stored_study(problem, ChineseRestaurant(), tmp_path / "run")
    seen = json.loads(to_json(overview(study)))
    assert seen["space"]["moves"] is seen["node_moves"] is seen["anomaly"] is None
    assert "Own" in seen["data"]["dynamics"]
    assert seen["steps"]["surprise"]


# -- names of trajectories ------------------------------------------------------------------------


def named_problem(names):
    compass = DisplacementDynamics.compass(4)
    walks = [[[0.0, 0.0], [1.0, 0.1 * k], [2.0, 0.2 * k]] for k in range(1, 4)]
    return Problem.from_demonstrations(Demonstrations(walks, names=names), compass)


@pytest.mark.parametrize("names", [["deer07", "deer08", "Ærø"], ["3", "1", "2"]])
def test_names_of_trajectories_reach_the_page_by_way_of_the_store(tmp_path, names):
    study = stored_study(named_problem(names), ChineseRestaurant(), tmp_path / "run")
    assert json.loads(to_json(overview(study)))["paths"]["names"] == names


@pytest.mark.parametrize("names", [None, ["0", "1", "2"]])
def test_numbers_are_no_names(tmp_path, names):
    study = stored_study(named_problem(names), ChineseRestaurant(), tmp_path / "run")
    assert overview(study)["paths"]["names"] is None
    with np.load(tmp_path / "run" / "problem.npz") as arrays:  # as in older stores
        assert "trajectory_names" not in arrays.files


def test_a_name_does_not_make_it_another_run(tmp_path):
    """Runs stored before there were names can go on."""
    quick(named_problem(None), ChineseRestaurant(), store=tmp_path / "run")
    quick(named_problem(["a", "b", "c"]), ChineseRestaurant(), store=tmp_path / "run", resume=True)
