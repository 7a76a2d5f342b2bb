"""What a posterior says of next states, partitions and imitation."""

import exact
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta, chi2
from small_runs import PRIORS, made_up, plane_problem, quick, ring_dynamics, ring_problem

from onlooker import Demonstrations, Posterior
from onlooker.consensus import consensus
from onlooker.inference.draws import Draws
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Regions,
    Static,
    Uniform,
)

PLANE = plane_problem()
RING = ring_problem()
QUERIES = np.random.default_rng(5).normal(0.0, 1.5, (8, 2))


def test_it_tells_what_it_is():
    posterior = made_up(PLANE, Mixing(3))
    assert "2 chains of 5 draws, Mixing" in repr(posterior)
    np.testing.assert_array_equal(posterior.n_controllers, posterior.labels.max(axis=2) + 1)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_an_interval_leaves_as_much_out_on_either_side(level):
    """Where nothing was seen a controller is Dir(α), so each probability is Beta(α, (A - 1)α)."""
    posterior = made_up(PLANE, Static(), n_draws=2000)
    found = posterior.policy(QUERIES[:1] + 50.0, interval=level)
    right = beta(0.7, (PLANE.n_actions - 1) * 0.7).ppf([(1 - level) / 2, (1 + level) / 2])
    np.testing.assert_allclose(found.low[0], right[0], atol=0.03)
    np.testing.assert_allclose(found.high[0], right[1], atol=0.03)


def test_draws_cannot_be_overwritten():
    posterior = made_up(PLANE, Mixing(3))
    with pytest.raises(ValueError, match="read-only"):
        posterior.labels[0, 0, 0] = 1
    with pytest.raises(TypeError):
        posterior.hyper["alpha"] = 1


# -- next states --------------------------------------------------------------------------------


def test_next_states_of_a_table_are_mixed_by_the_policy():
    posterior = made_up(RING, Mixing(3))
    states = np.arange(6)
    expected = np.einsum("nas,na->ns", RING.dynamics.toarray(), posterior.policy(states))
    np.testing.assert_allclose(posterior.next_state(states), expected, atol=1e-14)
    np.testing.assert_allclose(posterior.next_state(states).sum(axis=1), 1.0)


def test_the_density_of_next_states_is_the_mixture_over_actions():
    posterior = made_up(PLANE, DistanceDependent(), {"nu": 0.1})
    following = QUERIES + 0.3
    loglik = PLANE.dynamics.log_likelihood(QUERIES, following)
    for strategy in ("map", "average"):
        policy = posterior.policy(QUERIES, extrapolate=strategy)
        got = posterior.next_state_log_density(QUERIES, following, extrapolate=strategy)
        np.testing.assert_allclose(got, np.log((np.exp(loglik) * policy).sum(axis=1)))


def test_density_and_table_agree():
    posterior = made_up(RING, Mixing(3))
    states, following = np.array([0, 1, 2, 2]), np.array([1, 1, 1, 3])
    table = posterior.next_state(states)
    np.testing.assert_allclose(
        np.exp(posterior.next_state_log_density(states, following)), table[np.arange(4), following]
    )


def test_samples_of_next_states_follow_the_table():
    posterior = made_up(RING, Mixing(3))
    states = np.array([1, 4])
    drawn = posterior.next_state_samples(states, 4000, random_state=0)
    assert drawn.shape == (4000, 2)
    for column, probabilities in zip(drawn.T, posterior.next_state(states), strict=True):
        expected = 4000 * probabilities
        statistic = ((np.bincount(column, minlength=6) - expected) ** 2 / expected).sum()
        assert statistic < chi2.ppf(1 - 1e-6, 5)


def test_samples_of_next_states_in_the_plane_have_the_mean_of_the_mixture():
    posterior = made_up(PLANE, DistanceDependent(), {"nu": 0.1})
    drawn = posterior.next_state_samples(QUERIES, 4000, random_state=0)
    assert drawn.shape == (4000, 8, 2)
    expected = QUERIES + posterior.policy(QUERIES) @ PLANE.dynamics.steps
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=6 * 0.8 / np.sqrt(4000))


def test_tables_are_refused_to_continuous_dynamics_with_the_remedy():
    with pytest.raises(TypeError, match="next_state_log_density"):
        made_up(PLANE, Mixing(3)).next_state(QUERIES)


def test_a_bare_problem_needs_dynamics_for_next_states():
    bare = plane_problem()
    dynamics, bare.dynamics = bare.dynamics, None
    posterior = made_up(bare, Mixing(3))
    with pytest.raises(ValueError, match="dynamics="):
        posterior.next_state_log_density(QUERIES, QUERIES)
    given = posterior.next_state_log_density(QUERIES, QUERIES, dynamics=dynamics)
    assert given.shape == (8,)


def test_log_predictive_has_one_number_per_transition():
    posterior = made_up(RING, Mixing(3))
    demos = Demonstrations([[0, 1, 2, 2], [5, 4]])
    got = posterior.log_predictive(demos)
    loglik = RING.dynamics.log_likelihood(np.array([0, 1, 2, 5]), np.array([1, 2, 2, 4]))
    expected = logsumexp(loglik + np.log(posterior.policy([0, 1, 2, 5])), axis=1)
    np.testing.assert_allclose(got, expected, atol=1e-13)
    np.testing.assert_array_equal(got, posterior.log_predictive([[0, 1, 2, 2], [5, 4]]))


def test_an_impossible_transition_scores_minus_infinity():
    table = ring_dynamics().toarray().copy()
    table[:, :, 3] = 0.0
    table /= table.sum(axis=2, keepdims=True)
    posterior = made_up(RING, Mixing(3))
    score = posterior.log_predictive([[2, 3, 4]], dynamics=type(RING.dynamics)(table))
    assert score[0] == -np.inf
    assert np.isfinite(score[1])


# -- imitation ----------------------------------------------------------------------------------


def test_a_rollout_in_a_table_follows_the_learned_chain():
    posterior = quick(RING, Mixing(2), draws=20)
    walks = posterior.rollout(np.zeros(3000, dtype=int), 3, random_state=1)
    assert (len(walks), walks.n_transitions) == (3000, 6000)
    chain = posterior.next_state(np.arange(6))
    expected = 3000 * (chain @ chain)[0]
    last = np.bincount(walks.states[2::3], minlength=6)
    assert ((last - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, 5)


def test_a_rollout_in_the_plane_starts_where_told_and_repeats_with_its_seed():
    posterior = made_up(PLANE, DistanceDependent(), {"nu": 0.1})
    one, other = (posterior.rollout(QUERIES, 6, random_state=4) for _ in range(2))
    assert one == other
    np.testing.assert_array_equal(one.states[::6], QUERIES)
    assert one != posterior.rollout(QUERIES, 6, random_state=5)


# -- partitions -----------------------------------------------------------------------------------


def test_co_clustering_counts_the_draws_in_which_two_nodes_are_together():
    posterior = made_up(PLANE, Mixing(3))
    flat = posterior.labels.reshape(-1, 15)
    expected = (flat[:, :, None] == flat[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(posterior.co_clustering(), expected)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_partition_is_the_consensus_of_the_draws(loss):
    posterior = made_up(PLANE, Mixing(3))
    expected = consensus(posterior.labels, loss, random_state=0)
    np.testing.assert_array_equal(posterior.partition(loss), expected.labels)
    assert posterior.consensus(loss) is posterior.consensus(loss)


def _settled(prior, labels, states, hyper=None):
    """A posterior whose draws all have these labels."""
    problem = type(PLANE)(np.arange(len(states)), np.zeros((len(states), 1)), states)
    posterior = made_up(problem, prior, hyper)
    same = np.broadcast_to(labels, posterior.labels.shape)
    return Posterior(
        posterior.target,
        posterior.schedule,
        Draws({**posterior.draws.arrays, "labels": same}),
        [0, 1],
    )


STATES = np.array([[0.0, 0.0], [0.5, 0.0], [4.0, 0.0], [4.5, 0.0], [4.2, 0.3]])
LABELS = np.array([0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("prior", "hyper"),
    [(DistanceDependent(decay=GaussianDecay(1.0)), {"nu": 0.01}), (Potts(4, n_neighbors=2), {})],
)
def test_states_are_assigned_to_the_consensus_cluster_around_them(prior, hyper):
    posterior = _settled(prior, LABELS, STATES, hyper)
    np.testing.assert_array_equal(posterior.partition(), [1, 1, 0, 0, 0])  # largest first
    got = posterior.assign([[0.2, 0.1], [4.1, 0.1], [0.5, 0.0]])
    np.testing.assert_array_equal(got, [1, 0, 1])


def test_a_state_far_from_everything_has_a_cluster_of_its_own():
    posterior = _settled(DistanceDependent(decay=GaussianDecay(1.0)), LABELS, STATES, {"nu": 0.01})
    np.testing.assert_array_equal(posterior.assign([[40.0, 40.0], [4.2, 0.3]]), [-1, 0])
    np.testing.assert_array_equal(_settled(Static(), np.arange(5), STATES).assign([[9.0, 9.0]]), -1)


def test_without_space_a_state_is_assigned_to_the_largest_cluster():
    for prior in (Mixing(4), ChineseRestaurant()):
        posterior = _settled(prior, LABELS, STATES)
        np.testing.assert_array_equal(posterior.assign([[0.1, 0.0]]), [0])
        np.testing.assert_array_equal(posterior.assign(STATES), [1, 1, 0, 0, 0])


def test_regions_have_a_consensus_of_their_own():
    posterior = quick(plane_problem(), Regions.inferred(1.0))
    assert posterior.regions.shape == posterior.labels.shape
    np.testing.assert_array_equal(
        posterior.partition(of="regions"), consensus(posterior.regions, "vi", random_state=0).labels
    )
    np.testing.assert_array_equal(posterior.partition(of="controllers"), posterior.partition())
    same_region = posterior.regions[..., None] == posterior.regions[..., None, :]
    same = posterior.labels[..., None] == posterior.labels[..., None, :]
    assert (same | ~same_region).all()  # a region has one controller
    with pytest.raises(ValueError, match="of must be one of"):
        posterior.partition(of="islands")
    with pytest.raises(ValueError, match="ChineseRestaurant has no regions beside"):
        made_up(plane_problem(), ChineseRestaurant()).partition(of="regions")


def test_assigning_does_not_touch_the_stored_partition():
    posterior = _settled(Mixing(4), LABELS, STATES)
    posterior.assign(STATES)[:] = 7
    np.testing.assert_array_equal(posterior.partition(), [1, 1, 0, 0, 0])


@pytest.mark.parametrize("name", PRIORS)
def test_every_prior_answers_every_question(name):
    posterior = quick(PLANE, PRIORS[name])
    assert isinstance(posterior, Posterior)
    np.testing.assert_allclose(posterior.policy(QUERIES).sum(axis=1), 1.0)
    assert posterior.assign(QUERIES).shape == (8,)
    assert np.isfinite(posterior.next_state_log_density(QUERIES, QUERIES + 0.5)).all()


# -- against the enumerated posterior -------------------------------------------------------------

NODE_OF, LOGLIK, N, COORDINATES = exact.small_problem(seed=3, n_nodes=4)
SMALL = type(PLANE)(NODE_OF, LOGLIK, COORDINATES)
ELSEWHERE = COORDINATES.max(axis=0) + 1.0


@pytest.mark.parametrize(
    ("prior", "enumerate_posterior"),
    [
        (Uniform(3), lambda n: exact.uniform(NODE_OF, LOGLIK, n, 0.7, 3)),
        (Mixing(3), lambda n: exact.mixing(NODE_OF, LOGLIK, n, 0.7, 3, 1.0)),
        (Mixing(3, collapsed=False), lambda n: exact.mixing(NODE_OF, LOGLIK, n, 0.7, 3, 1.0)),
        (ChineseRestaurant(1.5), lambda n: exact.crp(NODE_OF, LOGLIK, n, 0.7, 1.5)),
        (Static(), lambda n: exact.static(NODE_OF, LOGLIK, n, 0.7)),
    ],
    ids=["uniform", "mixing", "mixing, q drawn", "crp", "static"],
)
@pytest.mark.parametrize("collapsed", [True, False])
def test_policies_are_exact_at_nodes_and_at_a_state_that_is_none(
    prior, enumerate_posterior, collapsed
):
    """These priors do not mind a node without transitions, so averaging is the exact answer."""
    posterior = quick(
        SMALL, prior, concentration=0.7, collapsed=collapsed, draws=4000, tune=50, chains=2
    )
    np.testing.assert_allclose(posterior.policy(), enumerate_posterior(N).policy, atol=0.015)
    new = posterior.policy([ELSEWHERE], extrapolate="average")[0]
    np.testing.assert_allclose(new, enumerate_posterior(N + 1).policy[-1], atol=0.015)
