"""The rule by which regions go on to states that are no nodes."""

import numpy as np
import pytest
from bare import bare_problem

from onlooker import Posterior, sample
from onlooker.partitions import Continuation, GaussianDecay, Regions, WindowDecay
from onlooker.partitions.geometry import Geometry
from onlooker.prediction.neighbours import NeighbourSearch
from onlooker.problem import Landmarks
from onlooker.worlds import CircularMotion

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")
WORLD = CircularMotion()
DEMOS = WORLD.rollout(5, 12, random_state=0)[0]
ASKED = np.array([[0.3, 0.2], [4.0, -1.0], [-3.0, 2.5], [30.0, 0.0]])


def run(continuation, nodes="visited", seed=0):
    prior = Regions.inferred(1.0, continuation=continuation)
    problem = bare_problem(DEMOS, WORLD.dynamics, nodes=nodes)
    return sample(problem, prior, draws=8, tune=4, chains=2, random_state=seed, progress=False)


def by_hand(posterior, tau, tau0, alone, kappa=None, n_neighbors=None):
    """The formulas, draw by draw, of f, W_k and W_fresh."""
    problem, total = posterior.problem, np.zeros((len(ASKED), posterior.problem.n_actions))
    for chain, draw in np.ndindex(posterior.labels.shape[:2]):
        labels = posterior.labels[chain, draw]
        hyper = {name: values[chain, draw] for name, values in posterior.hyper.items()}
        nodes, spacing = np.arange(problem.n_nodes), 1.0
        start = problem.node_of
        if problem.landmarks is not None:
            coarse = problem.for_chain(chain, posterior.prior.geometry)
            nodes, start = coarse.owners.nodes, coarse.owners.nodes[coarse.node_of]
        if problem.landmarks is not None or posterior.prior.continuation.local:
            apart = np.linalg.norm(problem.states[nodes][:, None] - problem.states[nodes], axis=2)
            eighth = np.sort(apart, axis=1)[:, 8]
            spacing = eighth / np.median(eighth)
        apart = np.linalg.norm(ASKED[:, None] - problem.states[nodes], axis=2)
        u = (apart / spacing / hyper["scale"]) ** 2
        if n_neighbors is not None:
            u[u > np.sort(u, axis=1)[:, n_neighbors - 1 : n_neighbors]] = np.inf
        nu = hyper["nu"] if alone is None else alone
        f = nu / (nu + np.exp(-tau0 * u).sum(axis=1))
        above = u - u.min(axis=1, keepdims=True)
        if posterior.prior.continuation.nearest is not None:
            k = posterior.prior.continuation.nearest
            tau = 1 / np.sort(above, axis=1)[:, k - 1 : k]
        near = np.exp(-tau * above)
        near /= near.sum(axis=1, keepdims=True)
        regions = posterior.regions[chain, draw]
        of_region = labels[np.unique(regions, return_index=True)[1]]
        m = len(of_region)
        actions = posterior.actions[chain, draw]
        mixed = np.outer(f, np.full(problem.n_actions, 1 / problem.n_actions))
        overall = posterior.prior.continuation.overall
        m = problem.n_nodes if overall else m
        mixed *= hyper["gamma"] / (m + hyper["gamma"])
        for k in range(labels.max() + 1):
            counts = np.bincount(actions[labels[problem.node_of] == k], minlength=24)
            theta = (counts + hyper["alpha"]) / (counts.sum() + 24 * hyper["alpha"])
            shared = np.sum((labels if overall else of_region) == k) / (m + hyper["gamma"])
            mixed += np.outer(f * shared, theta)
            for place in np.flatnonzero(labels[nodes] == k):
                policy = theta
                if kappa is not None:
                    own = np.bincount(actions[start == nodes[place]], minlength=24)
                    policy = (own + kappa * theta) / (own.sum() + kappa)
                mixed += np.outer((1 - f) * near[:, place], policy)
        total += mixed
    return total / posterior.labels[:, :, 0].size


@pytest.mark.parametrize(
    ("tau", "tau0", "alone", "kappa"),
    [
        (1.0, 1.0, None, None),
        (4.0, 1 / 16, 0.01, None),
        (0.25, 1.0, 1.0, None),
        (1.0, 1.0, None, 3.0),
        (4.0, 1 / 16, 0.01, 0.5),
    ],
)
@pytest.mark.parametrize("nodes", ["visited", Landmarks(30)])
def test_policies_are_those_of_the_formulas(tau, tau0, alone, kappa, nodes):
    posterior = run(Continuation(tau, tau0, alone, kappa), nodes)
    right = by_hand(posterior, tau, tau0, alone, kappa)
    np.testing.assert_allclose(posterior.policy(ASKED), right, atol=5e-3)
    np.testing.assert_allclose(posterior.policy(ASKED).sum(axis=1), 1.0)


def test_distances_may_count_by_how_far_apart_nodes_lie():
    posterior = run(Continuation(4.0, local=True))
    np.testing.assert_allclose(
        posterior.policy(ASKED), by_hand(posterior, 4.0, 1.0, None), atol=5e-3
    )
    evenly = run(Continuation(4.0)).policy(ASKED)  # must not pass for it; .016 to .031 by seed
    assert not np.allclose(posterior.policy(ASKED), evenly, atol=5e-3)


@pytest.mark.parametrize("nodes", ["visited", Landmarks(30)])
def test_so_many_nodes_are_near_however_far_away_they_are(nodes):
    posterior = run(Continuation(16.0, 1e-4, local=True, nearest=8), nodes)
    right = by_hand(posterior, None, 1e-4, None)
    by_one = run(Continuation(16.0, 1e-4, local=True), nodes)
    off, other = (np.abs(p.policy(ASKED) - right).max() for p in (posterior, by_one))
    assert off < other / 10


@pytest.mark.parametrize("nodes", ["visited", Landmarks(30)])
def test_only_so_many_nodes_count_where_that_is_asked(nodes):
    posterior = run(Continuation(0.25, 1 / 16, 0.01, 3.0, local=True), nodes)
    right = by_hand(posterior, 0.25, 1 / 16, 0.01, 3.0, n_neighbors=5)
    few, every = posterior.policy(ASKED, n_neighbors=5), posterior.policy(ASKED)
    assert np.abs(few - right).max() < np.abs(every - right).max() / 3
    np.testing.assert_allclose(few, right, atol=5e-3)


@pytest.mark.parametrize("nodes", ["visited", Landmarks(30)])
def test_a_state_by_itself_may_do_what_is_done_overall(nodes):
    posterior = run(Continuation(alone=10.0, overall=True), nodes)
    right = by_hand(posterior, 1.0, 1.0, 10.0)
    by_regions = run(Continuation(alone=10.0), nodes)
    off, other = (np.abs(p.policy(ASKED) - right).max() for p in (posterior, by_regions))
    assert off < other / 3


def test_nodes_that_lie_together_reach_no_farther_than_others():
    """A metric of matrices may have most distances 0: then there is nothing to measure by."""
    apart = np.zeros((12, 12))
    apart[0, 1:] = apart[1:, 0] = 1.0
    geometry = Geometry(np.arange(12), metric=apart)
    spacing = NeighbourSearch(geometry, Continuation(local=True)).spacing
    np.testing.assert_array_equal(spacing, 1.0)


@pytest.mark.parametrize("nodes", ["visited", Landmarks(30)])
def test_a_node_leans_on_what_was_done_there(nodes):
    posterior = run(Continuation(shrinkage=2.0), nodes)
    problem, total = posterior.problem, 0.0
    for chain, draw in np.ndindex(posterior.labels.shape[:2]):
        alpha = posterior.hyper["alpha"][chain, draw]
        labels, actions = posterior.labels[chain, draw], posterior.actions[chain, draw]
        stands = np.arange(problem.n_nodes)
        if problem.landmarks is not None:
            owners = problem.for_chain(chain, posterior.prior.geometry).owners
            stands = owners.nodes[owners.owner]
        for node, stand in enumerate(stands):
            counts = np.bincount(actions[labels[problem.node_of] == labels[node]], minlength=24)
            own = np.bincount(actions[stands[problem.node_of] == stand], minlength=24)
            theta = (counts + alpha) / (counts.sum() + 24 * alpha)
            right = np.eye(problem.n_nodes)[node][:, None] * (own + 2 * theta) / (own.sum() + 2)
            total = total + right
    right = total / posterior.labels[:, :, 0].size
    np.testing.assert_allclose(posterior.policy(), right, atol=1e-12)
    np.testing.assert_allclose(posterior.policy(problem.states[3:5]), right[3:5], atol=1e-12)
    draws = np.arange(posterior.labels[:, :, 0].size)
    each = list(posterior.predictor.each(problem.states, draws))
    np.testing.assert_allclose(np.mean(each, axis=0), right, atol=1e-12)


def test_the_model_itself_is_the_default_and_has_the_same_neighbours():
    states = np.random.default_rng(0).normal(size=(50, 2))
    asked = np.random.default_rng(1).normal(size=(20, 2))
    geometry = Geometry(states)
    plain = NeighbourSearch(geometry).find(asked, GaussianDecay(0.5), None, 1e-4)
    search = NeighbourSearch(geometry)
    dense = search._continued(asked, GaussianDecay(0.5), None, 1e-4)

    def weights(near):
        full = np.zeros((len(asked), len(states)))
        full[np.repeat(np.arange(len(asked)), np.diff(near.indptr)), near.indices] = near.g
        return full

    np.testing.assert_allclose(weights(plain), weights(dense), atol=2e-4)


def test_far_away_a_wide_reach_keeps_what_was_seen_and_the_model_does_not():
    far = np.array([[30.0, 0.0]])
    near, wide = (run(Continuation(reach=reach, alone=0.1)) for reach in (1.0, 1 / 1024))
    entropy = [-(p * np.log(p)).sum() for p in (near.policy(far), wide.policy(far))]
    assert entropy[0] > entropy[1]


def test_it_is_stored_with_the_run(tmp_path):
    posterior = run(Continuation(4.0, 1 / 16, 0.01, 3.0, local=True, nearest=9))
    posterior.save(tmp_path / "run.npz")
    loaded = Posterior.load(tmp_path / "run.npz")
    assert loaded.prior.continuation == posterior.prior.continuation
    np.testing.assert_array_equal(loaded.policy(ASKED), posterior.policy(ASKED))


@pytest.mark.parametrize("name", ["sharpness", "reach", "alone", "shrinkage"])
def test_bad_numbers_are_refused(name):
    for value in (0.0, 5e-324, 1e308, np.nan):
        with pytest.raises(ValueError, match=name):
            Continuation(**{name: value})
    for value in (0, 1, 2.5):
        with pytest.raises((TypeError, ValueError), match="nearest"):
            Continuation(nearest=value)
    for name in ("local", "overall"):
        with pytest.raises(ValueError, match=name):
            Continuation(**{name: 1})
    with pytest.raises(TypeError, match="continuation"):
        Regions(continuation=1.0)


def test_whatever_numbers_are_allowed_policies_are_distributions():
    for name in ("sharpness", "reach", "alone", "shrinkage"):
        for value in (1e-150, 1e150):
            posterior = run(Continuation(**{name: value}))
            for policy in (posterior.policy(), posterior.policy(ASKED)):
                assert policy.min() >= 0, (name, value)
                np.testing.assert_allclose(policy.sum(axis=1), 1.0, err_msg=f"{name} {value}")


@pytest.mark.parametrize("by", ["coordinates", "distances"])
def test_a_node_as_far_as_a_window_reaches_is_within_it(by):
    places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    apart = np.abs(places[:, None, 0] - places[None, :, 0])
    known = by == "coordinates"
    geometry = Geometry(places) if known else Geometry(np.arange(4), metric=apart)
    query = places[:1] if known else np.array([0])
    found = NeighbourSearch(geometry).find(query, WindowDecay(2.0), None, 1e-9)
    assert found.indices.tolist() == [0, 1, 2]
    assert found.g.tolist() == [1.0, 1.0, 1.0]
