"""The policy at nodes and anywhere else, against the plain twin."""

import naive_prediction
import numpy as np
import pytest
from chains import make_chain
from scipy.spatial.distance import cdist
from scipy.stats import beta as beta_distribution
from small_runs import made_up, plane_problem, quick, ring_problem

from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    ExponentialDecay,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.prediction import kernels
from onlooker.prediction import predictor as _prediction

PROBLEM = plane_problem()
RNG = np.random.default_rng(7)
QUERIES = RNG.normal(0.0, 2.0, (40, 2))
DRAWS = (2, 5)
NU = RNG.exponential(0.5, DRAWS)

SPATIAL = {
    "ddcrp": (DistanceDependent(decay=GaussianDecay(1.0, 0.05)), {"nu": NU}),
    "ddcrp, no offset": (DistanceDependent(decay=GaussianDecay(1.3)), {"nu": NU}),
    "ddcrp, nearest": (
        DistanceDependent(decay=GaussianDecay(1.0, 0.05), n_neighbors=4),
        {"nu": 1e-3},
    ),
    "potts": (Potts(5, beta=1.1, n_neighbors=4, decay=GaussianDecay(2.0)), {}),
    "potts, all pairs": (Potts(5, beta=0.6, n_neighbors=None, decay=GaussianDecay(1.0, 0.1)), {}),
    "potts, beta drawn": (
        Potts(3, n_neighbors=6, decay=GaussianDecay(2.0)),
        {"beta": RNG.gamma(2.0, 1.0, DRAWS)},
    ),
    "scale and offset drawn": (
        DistanceDependent(decay=GaussianDecay(1.0, 0.05)),
        {"nu": NU, "scale": RNG.choice([0.5, 1.0, 2.0], DRAWS), "offset": RNG.random(DRAWS) / 9},
    ),
    "scale and offset drawn, nearest": (
        DistanceDependent(decay=GaussianDecay(1.0, 0.05), n_neighbors=5),
        {"nu": NU, "scale": RNG.choice([0.5, 1.0, 2.0], DRAWS), "offset": RNG.random(DRAWS) / 9},
    ),
}
PLACELESS = {
    "static": (Static(), {}),
    "uniform": (Uniform(5), {}),
    "mixing": (Mixing(5, concentration=2.0), {}),
    "mixing, gamma drawn": (Mixing(3), {"gamma": RNG.gamma(2.0, 1.0, DRAWS)}),
    "crp": (ChineseRestaurant(1.5), {}),
    "crp, gamma drawn": (ChineseRestaurant(), {"gamma": RNG.gamma(2.0, 4.0, DRAWS)}),
}


def _twin(posterior, queries, strategy, n_neighbors=None, metric="euclidean"):
    distances = cdist(queries, posterior.problem.states, metric=metric)
    return np.array(
        [naive_prediction.policy(posterior, row, strategy, n_neighbors) for row in distances]
    )


@pytest.mark.parametrize("strategy", ["map", "local", "average"])
@pytest.mark.parametrize("name", SPATIAL)
def test_spatial_extrapolation_matches_the_plain_twin(name, strategy):
    prior, hyper = SPATIAL[name]
    posterior = made_up(PROBLEM, prior, hyper)
    # beyond six length scales similarities are dropped, by the samplers too
    queries = QUERIES[cdist(QUERIES, PROBLEM.states).min(axis=1) < 2.0]
    assert len(queries) > 20
    got = posterior.policy(queries, extrapolate=strategy)
    expected = _twin(posterior, queries, strategy, prior.n_neighbors)
    np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        (name, strategy)
        for name in PLACELESS
        for strategy in ("map", "average")
        if (name, strategy) != ("uniform", "map")  # see the test below
    ],
)
def test_extrapolation_without_space_matches_the_plain_twin(name, strategy):
    prior, hyper = PLACELESS[name]
    posterior = made_up(PROBLEM, prior, hyper)
    got = posterior.policy(QUERIES[:3], extrapolate=strategy)
    np.testing.assert_allclose(got, _twin(posterior, QUERIES[:3], strategy), atol=1e-12)


def test_the_largest_cluster_stands_for_clusters_that_are_as_likely():
    uniform, mixing = (made_up(PROBLEM, prior) for prior in (Uniform(5), Mixing(5)))
    np.testing.assert_array_equal(
        uniform.policy(QUERIES[:1], extrapolate="map"),
        mixing.policy(QUERIES[:1], extrapolate="map"),
    )


def test_the_search_for_the_likeliest_cluster_ends_early_without_changing_it():
    problem = plane_problem(n_nodes=120, n_transitions=200)
    prior = DistanceDependent(decay=GaussianDecay(1.0, 0.01))
    posterior = made_up(problem, prior, {"nu": 0.3}, n_draws=10, n_clusters=9)
    queries = RNG.normal(0.0, 2.0, (60, 2))
    got, expected = posterior.policy(queries, extrapolate="map"), _twin(posterior, queries, "map")
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("strategy", ["map", "local", "average"])
def test_n_neighbors_overrules_the_prior(strategy):
    prior, hyper = SPATIAL["ddcrp"]
    posterior = made_up(PROBLEM, prior, hyper)
    got = posterior.policy(QUERIES, extrapolate=strategy, n_neighbors=3)
    np.testing.assert_allclose(got, _twin(posterior, QUERIES, strategy, 3), atol=1e-12)
    assert not np.allclose(got, posterior.policy(QUERIES, extrapolate=strategy))


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", "canberra"])
def test_other_metrics_place_states_too(metric):
    posterior = made_up(PROBLEM, DistanceDependent(metric=metric), {"nu": NU})
    expected = _twin(posterior, QUERIES, "average", metric=metric)
    np.testing.assert_allclose(posterior.policy(QUERIES), expected, atol=1e-12)


def test_a_callable_metric_and_a_matrix_place_states_too():
    named, called = (
        made_up(PROBLEM, DistanceDependent(metric=metric), {"nu": NU})
        for metric in ("cityblock", lambda x, y: float(np.abs(x - y).sum()))
    )
    np.testing.assert_allclose(called.policy(QUERIES), named.policy(QUERIES), atol=1e-12)
    ring = ring_problem(n_states=12)
    every = np.arange(12)
    apart = np.minimum((every[:, None] - every) % 12, (every - every[:, None]) % 12)
    posterior = made_up(ring, DistanceDependent(metric=apart), {"nu": 0.1}, n_clusters=4)
    unseen = np.setdiff1d(every, ring.states)
    for state in unseen:
        expected = naive_prediction.policy(posterior, apart[state, ring.states], "average")
        np.testing.assert_allclose(posterior.policy([state])[0], expected, atol=1e-12)


def test_coordinates_place_integer_states():
    ring = ring_problem(n_states=12, seed=3)
    unseen = np.setdiff1d(np.arange(12), ring.states)
    assert len(unseen) > 0
    angle = 2 * np.pi * np.arange(12) / 12
    prior = Potts(3, coordinates=np.column_stack([np.cos(angle), np.sin(angle)]), n_neighbors=3)
    posterior = made_up(ring, prior)
    distances = cdist(prior.coordinates[unseen], prior.coordinates[ring.states])
    expected = [naive_prediction.policy(posterior, row, "average", 3) for row in distances]
    got = posterior.policy(unseen, extrapolate="average")
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_far_state_takes_its_nearest_node_where_no_weight_is_left():
    states = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0]])
    problem = plane_problem()
    problem = type(problem)([0, 1, 2, 2], RNG.normal(size=(4, 3)), states)
    for strategy, prior in (("map", Potts(3, n_neighbors=1)), ("local", DistanceDependent())):
        posterior = made_up(problem, prior, {"nu": 0.1}, n_clusters=3)
        far = posterior.policy([[900.0, 900.0]], extrapolate=strategy)
        np.testing.assert_allclose(far[0], posterior.policy()[2], atol=1e-12)


@pytest.mark.parametrize("name", [*SPATIAL, *PLACELESS])
def test_a_state_that_is_a_node_has_the_policy_of_its_node(name):
    prior, hyper = (SPATIAL | PLACELESS)[name]
    posterior = made_up(PROBLEM, prior, hyper)
    mixed = np.concatenate([QUERIES[:2], PROBLEM.states[[3, 3, 0]], QUERIES[2:3]])
    got = posterior.policy(mixed, extrapolate="average")
    np.testing.assert_array_equal(got[2:5], posterior.policy()[[3, 3, 0]])
    np.testing.assert_allclose(
        got[[0, 1, 5]], posterior.policy(QUERIES[:3], extrapolate="average"), atol=1e-15
    )


def test_the_default_is_the_exact_conditional():
    for prior, hyper in (SPATIAL | PLACELESS).values():
        posterior = made_up(PROBLEM, prior, hyper)
        np.testing.assert_array_equal(
            posterior.policy(QUERIES), posterior.policy(QUERIES, extrapolate="average")
        )


@pytest.mark.parametrize("collapsed", [True, False])
def test_the_policy_at_nodes_is_the_mean_of_the_collapsed_policies_of_the_chains(collapsed):
    prior = Mixing(3)
    posterior = quick(PROBLEM, prior, tune=2, draws=6, collapsed=collapsed)
    total = 0.0
    for child in np.random.SeedSequence(3).spawn(2):
        rng = np.random.default_rng(child)
        chain = make_chain(PROBLEM, prior, collapsed=collapsed, rng=rng)
        for sweep in range(8):
            chain.sweep()
            if sweep >= 2:
                xi = chain.state.counts.cluster[chain.labels] + 1.0
                total = total + xi / xi.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior.policy(), total / 12, atol=1e-13)


@pytest.mark.parametrize("name", ["ddcrp", "scale and offset drawn", "mixing"])
def test_working_in_small_portions_changes_nothing(name, monkeypatch):
    prior, hyper = (SPATIAL | PLACELESS)[name]
    whole = made_up(PROBLEM, prior, hyper)
    expected = {s: whole.policy(QUERIES, extrapolate=s) for s in ("map", "average")}
    interval = whole.policy(QUERIES[:5], interval=0.8)
    monkeypatch.setattr(_prediction, "_ENTRIES", 64)
    portions = made_up(PROBLEM, prior, hyper)
    assert len(list(portions.predictor.blocks())) > 1
    for strategy, mean in expected.items():
        got = portions.policy(QUERIES, extrapolate=strategy)
        np.testing.assert_allclose(got, mean, atol=1e-14)
    got = portions.policy(QUERIES[:5], interval=0.8)
    np.testing.assert_allclose(got.low, interval.low, atol=0.1)


def test_counts_are_kept_only_where_asked_for_or_few(monkeypatch):
    prior, hyper = SPATIAL["ddcrp"]
    assert _blocks_stay(made_up(PROBLEM, prior, hyper).predictor)
    monkeypatch.setattr(_prediction, "_ENTRIES", 64)
    predictor = made_up(PROBLEM, prior, hyper).predictor
    assert not _blocks_stay(predictor)
    predictor.keep_counts = True
    assert _blocks_stay(predictor)


def _blocks_stay(predictor):
    pairs = zip(list(predictor.blocks()), list(predictor.blocks()), strict=True)
    return all(one is other for one, other in pairs)


# -- credible intervals ---------------------------------------------------------------------------


def _one_draw(problem, prior, hyper=None):
    return made_up(problem, prior, hyper, n_chains=1, n_draws=1)


def test_an_interval_holds_the_uncertainty_of_the_controller_itself():
    posterior = _one_draw(PROBLEM, Static())
    mean, low, high = posterior.policy(interval=0.9)
    counts = np.zeros((PROBLEM.n_nodes, 4))
    np.add.at(counts, (PROBLEM.node_of, posterior.actions[0, 0]), 1)
    a = counts + 0.7
    b = a.sum(axis=1, keepdims=True) - a
    np.testing.assert_allclose(mean, a / (a + b))
    for got, level in ((low, 0.05), (high, 0.95)):
        reached = beta_distribution.cdf(got, a, b)  # 1000 controllers: a quantile's sd is 0.007
        np.testing.assert_allclose(reached, level, atol=0.035)


def test_where_clusters_are_mixed_the_interval_is_that_of_the_mixture():
    prior = DistanceDependent(decay=GaussianDecay(1.5, 0.02))
    posterior = _one_draw(PROBLEM, prior, {"nu": 0.4})
    query = QUERIES[:6]
    labels = posterior.labels[0, 0].tolist()
    counts = np.zeros((max(labels) + 2, 4))
    np.add.at(counts, (np.array(labels)[PROBLEM.node_of], posterior.actions[0, 0]), 1)
    a = counts + 0.7
    b = a.sum(axis=1, keepdims=True) - a
    for strategy in ("average", "local"):
        _, low, high = posterior.policy(query, extrapolate=strategy, interval=0.8)
        for q, row in enumerate(cdist(query, PROBLEM.states)):
            weight, _ = naive_prediction.weights(
                prior, labels, {"nu": 0.4, "alpha": 0.7}, row, strategy, None
            )
            for got, level in ((low[q], 0.1), (high[q], 0.9)):
                reached = beta_distribution.cdf(got, a, b).T @ np.array(weight) / sum(weight)
                np.testing.assert_allclose(reached, level, atol=0.045)


def test_the_map_interval_is_that_of_the_likeliest_cluster():
    prior = DistanceDependent(decay=GaussianDecay(0.05))  # no other node is near enough to matter
    posterior = _one_draw(PROBLEM, prior, {"nu": 1e-6})
    near = PROBLEM.states[:4] + 1e-6
    at_nodes = posterior.policy(interval=0.9)
    beside = posterior.policy(near, interval=0.9, extrapolate="map")
    np.testing.assert_array_equal(beside.low, at_nodes.low[:4])
    np.testing.assert_array_equal(beside.high, at_nodes.high[:4])


def test_an_interval_widens_with_its_probability_and_shrinks_with_data():
    posterior = made_up(PROBLEM, Mixing(2), n_clusters=2)
    narrow, wide = (posterior.policy(interval=p) for p in (0.5, 0.95))
    assert (wide.low < narrow.low).all()
    assert (wide.high > narrow.high).all()
    many = made_up(plane_problem(n_transitions=4000), Mixing(2), n_clusters=2)
    tight = many.policy(interval=0.95)
    assert (tight.high - tight.low).max() < 0.2 * (wide.high - wide.low).min()


def test_the_same_posterior_gives_the_same_interval():
    one, other = (made_up(PROBLEM, Mixing(2)).policy(QUERIES, interval=0.9) for _ in range(2))
    np.testing.assert_array_equal(one.low, other.low)


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extrapolate": "guess"}, "extrapolate"),
        ({"interval": 1.0}, "interval"),
        ({"interval": -0.1}, "interval"),
        ({"n_neighbors": 0}, "n_neighbors"),
    ],
)
def test_bad_arguments_of_policy_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        made_up(PROBLEM, DistanceDependent(), {"nu": 0.1}).policy(QUERIES, **options)


def test_local_weights_and_neighbours_need_a_spatial_prior():
    posterior = made_up(PROBLEM, Mixing(3))
    with pytest.raises(ValueError, match="must be one of 'average', 'map'; got 'local'"):
        posterior.policy(QUERIES, extrapolate="local")
    with pytest.raises(ValueError, match="n_neighbors"):
        posterior.policy(QUERIES, n_neighbors=3)


def test_states_of_another_kind_are_refused():
    posterior = made_up(PROBLEM, DistanceDependent(), {"nu": 0.1})
    with pytest.raises(ValueError, match="dimension 3"):
        posterior.policy(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="integers"):
        posterior.policy([1, 2])
    with pytest.raises(ValueError, match="nan"):
        posterior.policy([[0.0, np.nan]])


def test_a_state_that_the_world_does_not_have_is_refused():
    ring = ring_problem(n_states=12)
    posterior = made_up(ring, ChineseRestaurant())
    assert posterior.policy([11]).shape == (1, ring.n_actions)
    for asked in (posterior.policy, posterior.assign):
        with pytest.raises(
            ValueError, match=r"states\[1\] is 12; the world has 12 states, 0 to 11"
        ):
            asked([0, 12])


def test_no_states_give_no_policies():
    posterior = made_up(PROBLEM, DistanceDependent(), {"nu": 0.1})
    assert posterior.policy(np.empty((0, 2))).shape == (0, 4)
    assert posterior.policy(np.empty((0, 2)), interval=0.9).low.shape == (0, 4)


def test_a_matrix_between_nodes_cannot_place_other_states():
    apart = cdist(PROBLEM.states, PROBLEM.states)
    posterior = made_up(PROBLEM, DistanceDependent(metric=apart), {"nu": 0.1})
    assert posterior.policy().shape == (15, 4)
    with pytest.raises(ValueError, match="nodes="):
        posterior.policy(QUERIES)


def test_other_decays_extrapolate_too():
    posterior = made_up(PROBLEM, DistanceDependent(decay=ExponentialDecay(0.7)), {"nu": 0.1})
    distances = cdist(QUERIES, PROBLEM.states)
    weights = np.exp(-distances / 0.7)
    expected = weights @ posterior.policy() / weights.sum(axis=1, keepdims=True)
    got = posterior.policy(QUERIES, extrapolate="local")
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-320, 1e-300, 0.01, 2.0])
def test_controllers_of_any_concentration_are_drawn_from_their_dirichlet_distribution(alpha):
    n, share = 4_000, np.array([[1.0, 3.0, 0.5]])
    theta, rng = np.empty((n, 3)), np.random.default_rng(0)
    kernels.draw_thetas(np.zeros((n, 3)), np.array([0, n]), np.array([alpha]), share, theta, rng)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    mean = share[0] / share.sum()
    variance = mean * (1 - mean) / (alpha * share.sum() + 1)
    assert np.abs(theta.mean(axis=0) - mean).max() < 5 * np.sqrt(variance.max() / n)
    np.testing.assert_allclose(theta.var(axis=0), variance, rtol=0.2)
