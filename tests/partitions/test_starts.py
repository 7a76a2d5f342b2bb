"""Where chains start: those of spatial priors far apart, each its own way."""

import time

import numpy as np
import pytest
from bare import bare_problem
from chains import make_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from small_runs import plane_problem, quick

from onlooker.dynamics import DisplacementDynamics
from onlooker.gibbs.slices import scattered_start_of
from onlooker.hyper import Beta, Exponential, Gamma, LogUniform
from onlooker.partitions import DistanceDependent, GaussianDecay, Mixing, Potts
from onlooker.partitions.links.arrays import Graph
from onlooker.partitions.links.forest import make_forest
from onlooker.partitions.links.starts import ALONE, NEAREST, RANDOM, SPANNING, scattered_links


def graph_of(weights):
    """The graph of a dense matrix, zeros among its entries."""
    weights = np.array(weights, dtype=float)
    n = len(weights)
    off = ~np.eye(n, dtype=bool)
    indptr = np.arange(n + 1) * (n - 1)
    return Graph(indptr, np.nonzero(off)[1].astype(np.int32), weights[off], 0.1)


def links_of(chain, weights, seed=0):
    return scattered_links(chain, graph_of(weights), np.random.default_rng(seed))


def n_components(links):
    return make_forest(links)[2].n[0]


def knn(n, k, seed=0):
    """Each node's k nearest: not mutual; at constant density."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2)) * np.sqrt(n)
    distance, near = cKDTree(places).query(places, k + 1)
    near = near[:, 1:].astype(np.int32)
    return Graph(np.arange(n + 1) * k, near.ravel(), np.exp(-(distance[:, 1:].ravel() ** 2)), 0.0)


@given(st.integers(0, 10_000), st.integers(1, 9), st.floats(0, 1), st.integers(0, 7))
@settings(max_examples=150, deadline=None)
def test_links_go_to_the_node_itself_or_along_positive_weights(seed, n, density, chain):
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n)) * (rng.random((n, n)) < density)
    links = links_of(chain, weights, seed)
    others = links != np.arange(n)
    assert np.all(weights[np.arange(n), links][others] > 0)


def test_the_first_chain_links_to_the_nearest_and_the_second_to_itself():
    weights = [[0, 0.2, 0.7], [0.2, 0, 0.1], [0.7, 0.1, 0]]
    assert links_of(NEAREST, weights).tolist() == [2, 0, 0]
    assert links_of(ALONE, weights).tolist() == [0, 1, 2]


def test_random_links_follow_the_similarities_with_a_tenth_of_self_links():
    weights = np.tile([0.0, 1.0, 2.0, 0.0], (4, 1))
    drawn = np.array([links_of(RANDOM, weights, seed)[0] for seed in range(4000)])
    share = np.bincount(drawn, minlength=4) / 4000
    np.testing.assert_allclose(share, [0.1, 0.3, 0.6, 0.0], atol=0.03)


@given(st.integers(0, 10_000), st.integers(1, 9), st.floats(0, 0.5))
@settings(max_examples=150, deadline=None)
def test_spanning_trees_are_as_few_as_can_be(seed, n, density):
    """One for each set of nodes that no way leads out of; brute force by reachability."""
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n)) * (rng.random((n, n)) < density)
    links = links_of(SPANNING, weights, seed)
    reach = np.linalg.matrix_power((weights > 0) + np.eye(n), n) > 0
    is_end = np.all(~reach | reach.T, axis=1)  # whatever it reaches leads back
    ends = {tuple(row) for row in reach[is_end]}
    roots = np.flatnonzero(links == np.arange(n))
    assert len(roots) == n_components(links) == len(ends)  # trees: no cycle but at the roots


def test_spanning_trees_take_the_nearest_link_that_closes_no_cycle():
    """Breadth first alone would make a star of nodes that all see each other."""
    line = np.exp(-np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))))
    for seed in range(9):
        links = links_of(SPANNING, line, seed)
        assert n_components(links) == 1
        assert np.sum(np.abs(links - np.arange(9)) > 1) <= 1


def test_four_chains_start_far_apart_and_the_fifth_as_the_first():
    graph = knn(500, 8)
    rng = np.random.default_rng(0)
    made = [scattered_links(chain, graph, rng) for chain in range(5)]
    counts = [n_components(links) for links in made]
    assert counts[ALONE] == 500
    assert counts[SPANNING] <= 5 < counts[RANDOM] < counts[NEAREST] < 300
    np.testing.assert_array_equal(made[4], made[NEAREST])


def test_random_and_spanning_links_differ_by_seed_and_not_otherwise():
    graph = knn(200, 6)
    for chain in (RANDOM, SPANNING):
        first, again, other = (
            scattered_links(chain, graph, np.random.default_rng(seed)) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert np.any(first != other)


@pytest.mark.slow
def test_a_million_nodes_take_seconds():
    graph = knn(1_000_000, 8)
    scattered_links(NEAREST, graph, np.random.default_rng(0))  # compiles
    for chain in range(4):
        began = time.process_time()
        links = scattered_links(chain, graph, np.random.default_rng(0))
        assert time.process_time() - began < 6
        assert len(links) == 1_000_000


# -- chains ---------------------------------------------------------------------------------------

PROBLEM = plane_problem(n_nodes=60, n_transitions=150)


def started(prior, index, problem=PROBLEM, alpha=1.0, seed=3):
    """The state that the chain of this number starts in."""
    rng = np.random.default_rng([seed, index])
    return make_chain(problem, prior, alpha=alpha, index=index, rng=rng).state


def test_chains_of_the_ddcrp_start_scattered_unless_told_otherwise():
    counts = [started(DistanceDependent(), index).n_used for index in range(4)]
    assert counts[ALONE] == 60
    assert counts[SPANNING] < counts[NEAREST] < 60
    for start, kind in (("nearest", NEAREST), ("self", ALONE)):
        prior = DistanceDependent(start=start)
        links = [started(prior, index).partition.link for index in range(4)]
        np.testing.assert_array_equal(
            links, [started(DistanceDependent(), kind).partition.link] * 4
        )


def test_chains_of_potts_start_at_random_as_one_or_in_blobs():
    prior = Potts(4, n_neighbors=5)
    states = [started(prior, index) for index in range(6)]
    assert [state.n_used for state in states] == [4, 1, 4, 4, 1, 4]
    sizes = [np.bincount(state.labels, minlength=4) for state in states]
    assert np.all(sizes[0] > 5)
    blobs = [np.var(PROBLEM.states[states[2].labels == k], axis=0).sum() for k in range(4)]
    assert np.mean(blobs) < 0.6 * np.var(PROBLEM.states, axis=0).sum()
    alike = [started(Potts(4, n_neighbors=5, start="random"), index).labels for index in range(3)]
    assert all(np.all(np.bincount(labels, minlength=4) > 5) for labels in alike)


def test_blobs_are_those_of_the_nearest_centre_by_any_metric():
    distances = np.abs(np.subtract.outer(np.arange(60.0), np.arange(60.0)))
    labels = started(Potts(3, metric=distances), 2).labels
    assert np.count_nonzero(np.diff(labels)) == 2  # three stretches of the line


def test_fewer_nodes_than_clusters_are_no_trouble():
    few = plane_problem(n_nodes=3, n_transitions=4)
    for index in range(4):
        assert started(Potts(5), index, few).labels.max() < 5
        started(DistanceDependent(), index, few)


def test_inferred_hyper_parameters_start_scattered_too():
    prior = DistanceDependent.inferred(1.0)
    hyper = [started(prior, index, alpha=Gamma(2, 2)).hyper for index in range(4)]
    assert hyper[0]["nu"] == 1.0
    assert hyper[0]["alpha"] == 1.0
    for name in ("alpha", "nu", "offset"):
        assert len({one[name] for one in hyper}) == 4
    assert {name: prior.hyper()[name].mean for name in ("scale", "offset")}.items() <= hyper[
        0
    ].items()
    assert all(np.isfinite(prior.decay.scale.logpdf(one["scale"])) for one in hyper)
    beta = [started(Potts(3, beta=Exponential(1.0)), index).hyper["beta"] for index in range(3)]
    assert beta[0] == 1.0
    assert len(set(beta)) == 3


def test_parameters_of_the_dynamics_and_noise_start_scattered_too():
    compass = DisplacementDynamics.compass(4, sigma=LogUniform(0.1, 1.0))
    walk = np.random.default_rng(0).normal(size=(30, 2)).cumsum(axis=0)
    problem = bare_problem([walk], compass, observation_noise=LogUniform(0.05, 0.5))
    hyper = [started(DistanceDependent(), index, problem).hyper for index in range(3)]
    for name in ("sigma", "observation_noise"):
        assert len({one[name] for one in hyper}) == 3


@pytest.mark.parametrize("prior", [Mixing(3), DistanceDependent(start="self")])
def test_chains_that_start_alike_start_their_hyper_parameters_alike(prior):
    alpha = [started(prior, index, alpha=Gamma(2, 2)).hyper["alpha"] for index in range(3)]
    assert alpha == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "prior", [Exponential(0.1), Gamma(0.001, 0.001), LogUniform(0.5, 5.0), Beta(1.0, 20.0)]
)
def test_scattered_values_are_draws_that_their_priors_allow_and_not_out_of_reach(prior):
    rng = np.random.default_rng(0)
    values = np.array([scattered_start_of(prior, rng) for _ in range(500)])
    assert len(np.unique(values)) > 1
    assert np.all(np.isfinite([prior.logpdf(value) for value in values]))
    assert values.min() >= prior.mean / 10
    assert values.max() <= prior.mean * 10
    assert scattered_start_of(0.3, rng) == 0.3


def test_the_links_of_a_start_are_possible_by_its_own_scale():
    """Without an offset, a link that is out of reach would have probability 0."""
    prior = DistanceDependent(0.3, GaussianDecay(LogUniform(0.05, 20.0), 0.0))
    bound = prior.bind(PROBLEM)
    for index in range(8):
        rng = np.random.default_rng(index)
        chain = make_chain(PROBLEM, prior, bound=bound, index=index, rng=rng)
        assert np.isfinite(chain.log_joint())


def test_sampled_chains_start_by_their_number_and_stay_reproducible():
    options = {"draws": 1, "tune": 0, "chains": 5, "random_state": 4}
    prior = DistanceDependent(self_link=1e-9, decay=GaussianDecay(1.0, 0.0))
    posterior = quick(PROBLEM, prior, **options)
    again = quick(PROBLEM, prior, n_jobs=1, **options)
    np.testing.assert_array_equal(posterior.labels, again.labels)
    fewer = quick(PROBLEM, prior, **(options | {"chains": 2}))
    np.testing.assert_array_equal(posterior.labels[:2], fewer.labels)
