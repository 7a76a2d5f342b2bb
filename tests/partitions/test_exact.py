"""The oracle is right: closed forms, hand-computed numbers."""

import itertools
from math import factorial, gamma, prod

import exact
import numpy as np
import pytest
from scipy import integrate, stats

NO_DATA = (np.zeros(0, dtype=int), np.zeros((0, 3)))
NODE_OF, LOGLIK, N, COORDINATES = exact.small_problem()
DISTANCES = exact.pairwise_distances(COORDINATES)
WEIGHTS = exact.gaussian_decay(1.0, 0.01)(DISTANCES)
COUPLING = exact.weights_potts(DISTANCES, exact.gaussian_decay(), n_neighbors=2)

PRIORS = {
    "static": lambda *data: exact.static(*data, 0.8),
    "uniform": lambda *data: exact.uniform(*data, 0.8, 3),
    "mixing": lambda *data: exact.mixing(*data, 0.8, 3, 1.5),
    "potts": lambda *data: exact.potts(*data, 0.8, 3, 1.2, COUPLING),
    "crp": lambda *data: exact.crp(*data, 0.8, 1.5),
    "ddcrp": lambda *data: exact.ddcrp(*data, 0.8, 0.4, WEIGHTS),
}


def block_sizes(partition):
    return [partition.count(k) for k in set(partition)]


def assert_same(a, b, rtol=1e-9):
    np.testing.assert_allclose(a.co_clustering, b.co_clustering, rtol=rtol)
    np.testing.assert_allclose(a.policy, b.policy, rtol=rtol)
    np.testing.assert_allclose(a.policy_sd, b.policy_sd, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(a.actions, b.actions, rtol=rtol)
    assert a.partitions == pytest.approx(b.partitions, rel=rtol)
    assert a.n_clusters == pytest.approx(b.n_clusters, rel=rtol)
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=rtol)


# ---------------------------------------------------------------- building blocks


def test_there_are_as_many_set_partitions_as_bell_numbers_say():
    assert [len(exact.set_partitions(n)) for n in range(6)] == [1, 1, 2, 5, 15, 52]


def test_canonical_labels_count_up_from_zero_in_order_of_appearance():
    assert exact.canonical([7, 2, 7, 9, 2]) == (0, 1, 0, 2, 1)


def test_components_follow_links_in_both_directions():
    assert exact.components([1, 0, 2]) == (0, 0, 1)
    assert exact.components([0, 3, 0, 3]) == (0, 1, 0, 1)
    assert exact.components([1, 2, 3, 0]) == (0, 0, 0, 0)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.5])
def test_dirichlet_multinomial_sums_to_one_over_action_sequences(alpha):
    sequences = itertools.product(range(3), repeat=4)
    counts = [np.bincount(s, minlength=3) for s in sequences]
    assert np.exp(exact.log_dm(counts, alpha)).sum() == pytest.approx(1.0)


def test_dirichlet_multinomial_is_the_product_of_polya_urn_draws():
    urn = [0.5, 0.5, 0.5]
    p = 1.0
    for j in [2, 0, 2, 2, 1]:
        p *= urn[j] / sum(urn)
        urn[j] += 1
    assert np.exp(exact.log_dm([1, 1, 3], 0.5)) == pytest.approx(p)


@pytest.mark.parametrize(
    "distribution",
    [
        stats.expon(scale=0.1),
        stats.gamma(2.0, scale=0.5),
        stats.gamma(0.5, scale=2.0),
        stats.loguniform(0.01, 10.0),
        stats.uniform(0.0, 3.0),
    ],
)
def test_quadrature_integrates_moments_and_logarithms(distribution):
    x, w = exact.grid(distribution)
    assert w @ x == pytest.approx(distribution.mean(), rel=1e-8)
    assert w @ x**2 == pytest.approx(distribution.moment(2), rel=1e-8)
    assert w @ (1 / (1 + x)) == pytest.approx(
        distribution.expect(lambda y: 1 / (1 + y), epsabs=1e-12), rel=1e-7
    )


def test_potts_weights_are_half_for_one_sided_neighbours_and_ties_go_to_the_lower_index():
    line = np.array([[0.0], [1.0], [2.0], [4.0]])
    weights = exact.weights_potts(exact.pairwise_distances(line), lambda d: 1.0 / (1.0 + d), 1)
    # Nearest: 0 -> 1, 1 -> 0 (tie with 2), 2 -> 1, 3 -> 2.
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1 / 2
    expected[1, 2] = expected[2, 1] = 1 / 4
    expected[2, 3] = expected[3, 2] = 1 / 6
    np.testing.assert_allclose(weights, expected)


def test_potts_weights_without_a_rule_are_the_decay_of_all_pairs():
    decay = exact.gaussian_decay(0.7)
    expected = np.exp(-(DISTANCES**2) / 0.49) * (1 - np.eye(N))
    np.testing.assert_allclose(exact.weights_potts(DISTANCES, decay), expected)


@pytest.mark.parametrize("n_nodes", [3, 4, 5])
def test_small_problem_has_an_idle_and_a_busy_node_and_doubtful_actions(n_nodes):
    node_of, loglik, n, coordinates = exact.small_problem(0, n_nodes)
    visits = np.bincount(node_of, minlength=n)
    assert n == n_nodes
    assert len(node_of) == len(loglik) == 5
    assert (visits == 0).sum() == 1
    assert visits.max() >= 2
    assert coordinates.shape == (n, 2)
    marginals = exact.crp(node_of, loglik, n, 1.0, 1.0).actions
    assert marginals.max(axis=1).mean() > 0.6
    assert marginals.max() < 0.99


# ---------------------------------------------------------------- priors, without data


def test_crp_prior_is_the_ewens_formula():
    g = 1.7
    result = exact.crp(*NO_DATA, 4, 1.0, g)
    rising = prod(g + i for i in range(4))
    for partition, p in result.partitions.items():
        sizes = block_sizes(partition)
        expected = g ** len(sizes) * prod(factorial(n - 1) for n in sizes) / rising
        assert p == pytest.approx(expected)


def test_mixing_prior_is_the_dirichlet_multinomial_times_the_number_of_namings():
    g, k = 1.7, 3
    result = exact.mixing(*NO_DATA, 4, 1.0, k, g)
    for partition, p in result.partitions.items():
        sizes = block_sizes(partition)
        namings = factorial(k) / factorial(k - len(sizes))
        polya = prod(gamma(n + g / k) / gamma(g / k) for n in sizes)
        assert p == pytest.approx(namings * polya * gamma(g) / gamma(g + 4))
    assert max(result.n_clusters) == 3


def test_uniform_prior_weighs_partitions_by_their_number_of_namings():
    result = exact.uniform(*NO_DATA, 3, 1.0, 3)
    assert result.partitions == pytest.approx(
        {
            (0, 0, 0): 3 / 27,
            (0, 0, 1): 6 / 27,
            (0, 1, 0): 6 / 27,
            (0, 1, 1): 6 / 27,
            (0, 1, 2): 6 / 27,
        }
    )


def test_ddcrp_prior_of_two_nodes_by_hand():
    weights = np.array([[9.0, 0.3], [0.6, 9.0]])  # asymmetric on purpose; the diagonal is not used
    result = exact.ddcrp(*NO_DATA, 2, 1.0, 0.5, weights)
    apart = 0.5 / 0.8 * 0.5 / 1.1
    assert result.partitions == pytest.approx({(0, 1): apart, (0, 0): 1 - apart})


def test_ddcrp_prior_of_three_equal_nodes_counts_the_27_link_graphs():
    result = exact.ddcrp(*NO_DATA, 3, 1.0, 1.0, np.ones((3, 3)))
    assert result.partitions == pytest.approx(
        {
            (0, 1, 2): 1 / 27,
            (0, 0, 1): 3 / 27,
            (0, 1, 0): 3 / 27,
            (0, 1, 1): 3 / 27,
            (0, 0, 0): 17 / 27,
        }
    )


def test_ddcrp_that_links_only_backwards_is_the_crp():
    backwards = np.tril(np.ones((4, 4)), -1)
    a = exact.ddcrp(NODE_OF, LOGLIK, N, 0.7, 1.3, backwards)
    assert_same(a, exact.crp(NODE_OF, LOGLIK, N, 0.7, 1.3))


def test_potts_prior_of_two_nodes_by_hand():
    weights = np.array([[0.0, 0.4], [0.4, 0.0]])
    result = exact.potts(*NO_DATA, 2, 1.0, 3, 2.0, weights)
    together, apart = 3 * np.exp(0.8), 6.0
    assert result.co_clustering[0, 1] == pytest.approx(together / (together + apart))


def test_potts_refuses_asymmetric_weights():
    with pytest.raises(ValueError, match="symmetric"):
        exact.potts(*NO_DATA, 2, 1.0, 3, 2.0, np.triu(np.ones((2, 2))))


@pytest.mark.parametrize("name", PRIORS)
def test_without_data_the_evidence_is_one_and_policies_are_flat(name):
    result = PRIORS[name](*NO_DATA, N)
    assert result.log_evidence == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(result.policy, 1 / 3)
    assert result.actions.shape == (0, 3)


# ---------------------------------------------------------------- limits and identities


@pytest.mark.parametrize("name", PRIORS)
def test_probabilities_add_up(name):
    result = PRIORS[name](NODE_OF, LOGLIK, N)
    assert sum(result.partitions.values()) == pytest.approx(1.0)
    assert sum(result.n_clusters.values()) == pytest.approx(1.0)
    np.testing.assert_allclose(result.actions.sum(axis=1), 1.0)
    np.testing.assert_allclose(result.policy.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.diag(result.co_clustering), 1.0)


@pytest.mark.parametrize("name", PRIORS)
def test_shifting_a_row_of_loglik_only_shifts_the_evidence(name):
    shift = np.array([0.0, -1000.0, 3.0, 500.0, 0.5])
    plain = PRIORS[name](NODE_OF, LOGLIK, N)
    shifted = PRIORS[name](NODE_OF, LOGLIK + shift[:, None], N)
    np.testing.assert_allclose(shifted.actions, plain.actions, rtol=1e-9)
    assert shifted.partitions == pytest.approx(plain.partitions)
    assert shifted.log_evidence - plain.log_evidence == pytest.approx(shift.sum())


def test_static_nodes_are_independent_problems():
    whole = exact.static(NODE_OF, LOGLIK, N, 0.6)
    total = 0.0
    for i in range(N):
        mine = np.flatnonzero(np.equal(NODE_OF, i))
        alone = exact.static(np.zeros(len(mine), dtype=int), LOGLIK[mine], 1, 0.6)
        np.testing.assert_allclose(whole.policy[i], alone.policy[0])
        np.testing.assert_allclose(whole.actions[mine], alone.actions)
        total += alone.log_evidence
    assert whole.log_evidence == pytest.approx(total)
    assert whole.n_clusters == pytest.approx({N: 1.0})


def test_static_node_with_one_transition_has_the_textbook_policy():
    loglik = np.log([[0.7, 0.2, 0.1]])
    result = exact.static([0], loglik, 1, 0.5)
    np.testing.assert_allclose(result.actions, [[0.7, 0.2, 0.1]])
    np.testing.assert_allclose(result.policy, [(np.array([0.7, 0.2, 0.1]) + 0.5) / 2.5])


def test_one_cluster_makes_every_finite_prior_the_same():
    data = (NODE_OF, LOGLIK, N)
    one = exact.uniform(*data, 0.6, 1)
    assert_same(one, exact.mixing(*data, 0.6, 1, 2.0))
    assert_same(one, exact.potts(*data, 0.6, 1, 2.0, COUPLING))


def test_uniform_is_the_mixing_prior_of_infinite_concentration():
    data = (NODE_OF, LOGLIK, N)
    assert_same(exact.mixing(*data, 0.8, 3, 1e8), exact.uniform(*data, 0.8, 3), rtol=1e-5)


def test_potts_without_coupling_is_uniform():
    data = (NODE_OF, LOGLIK, N)
    assert_same(exact.potts(*data, 0.8, 3, 0.0, COUPLING), exact.uniform(*data, 0.8, 3))


def test_mixing_approaches_the_crp_as_clusters_are_added():
    node_of, loglik = [0, 2, 0], LOGLIK[:3]
    crp = exact.crp(node_of, loglik, 3, 0.8, 1.5)
    gap = [
        abs(exact.mixing(node_of, loglik, 3, 0.8, k, 1.5).log_evidence - crp.log_evidence)
        for k in (5, 20, 40)
    ]
    assert gap[0] > 3 * gap[1] > 5 * gap[2]
    assert gap[2] < 1e-2


def test_ddcrp_of_huge_self_link_weight_is_static():
    data = (NODE_OF, LOGLIK, N)
    a, b = exact.ddcrp(*data, 0.8, 1e9, WEIGHTS), exact.static(*data, 0.8)
    np.testing.assert_allclose(a.policy, b.policy, atol=1e-7)
    np.testing.assert_allclose(a.co_clustering, b.co_clustering, atol=1e-7)


def test_an_impossible_action_has_probability_zero():
    loglik = LOGLIK.copy()
    loglik[2, 1] = -np.inf
    assert exact.crp(NODE_OF, loglik, N, 1.0, 1.0).actions[2, 1] == 0.0


def test_two_nodes_two_actions_by_hand():
    loglik = np.log([[0.8, 0.2], [0.6, 0.4]])
    result = exact.crp([0, 1], loglik, 2, 1.0, 1.0)
    # Together: 1/3 for equal actions, 1/6 for different ones. Apart: 1/4 for all. Prior: 1/2 each.
    together = (0.48 + 0.08) / 3 + (0.32 + 0.12) / 6
    assert together == pytest.approx(0.26)
    assert result.log_evidence == pytest.approx(np.log(0.5 * 0.26 + 0.5 * 0.25))
    assert result.co_clustering[0, 1] == pytest.approx(0.26 / 0.51)
    assert result.actions[0, 0] == pytest.approx((0.48 / 3 + 0.32 / 6 + 0.8 / 4) / 0.51)
    policy = (
        3 / 4 * 0.48 / 3 + 1 / 4 * 0.08 / 3 + 1 / 2 * 0.44 / 6 + (2 / 3 * 0.8 + 1 / 3 * 0.2) / 4
    )
    assert result.policy[0, 0] == pytest.approx(policy / 0.51)


# ---------------------------------------------------------------- hyper-parameters


def test_posterior_of_nu_for_two_nodes_matches_direct_integration():
    loglik = np.log([[0.9, 0.1], [0.1, 0.9]])
    prior, w = stats.expon(scale=0.1), 0.3
    result = exact.ddcrp([0, 1], loglik, 2, 0.5, prior, np.full((2, 2), w))
    together = np.exp(exact.static([0, 0], loglik, 1, 0.5).log_evidence)
    apart = np.exp(exact.static([0, 1], loglik, 2, 0.5).log_evidence)

    def joint(nu):
        p_apart = (nu / (nu + w)) ** 2
        return prior.pdf(nu) * (p_apart * apart + (1 - p_apart) * together)

    m = [
        integrate.quad(lambda x, r=r: x**r * joint(x), 0, 10, points=[0.3, 1.5])[0]
        for r in range(3)
    ]
    assert result.log_evidence == pytest.approx(np.log(m[0]), rel=1e-7)
    mean = m[1] / m[0]
    assert result.hyper["nu"] == pytest.approx((mean, np.sqrt(m[2] / m[0] - mean**2)), rel=1e-6)


@pytest.mark.parametrize("name", ["gamma", "beta", "nu"])
def test_without_data_the_hyper_posterior_is_the_prior(name):
    prior = stats.gamma(2.0, scale=0.5)
    result = {
        "gamma": lambda: exact.crp(*NO_DATA, N, 1.0, prior),
        "beta": lambda: exact.potts(*NO_DATA, N, 1.0, 3, prior, COUPLING),
        "nu": lambda: exact.ddcrp(*NO_DATA, N, 1.0, prior, WEIGHTS),
    }[name]()
    assert result.hyper[name] == pytest.approx((prior.mean(), prior.std()), rel=1e-7)


def test_fixed_hyper_parameters_are_not_reported():
    assert exact.crp(NODE_OF, LOGLIK, N, 1.0, 1.0).hyper == {}


def test_mixing_posteriors_over_a_grid_equals_quadrature():
    nu, alpha = stats.expon(scale=0.5), stats.gamma(2.0, scale=0.5)
    data = (NODE_OF[:3], LOGLIK[:3], N)
    whole = exact.ddcrp(*data, alpha, nu, WEIGHTS)
    values, weights = exact.grid(nu)
    keep = weights > 1e-9
    values, weights = values[keep], weights[keep] / weights[keep].sum()
    cases = [exact.ddcrp(*data, alpha, v, WEIGHTS) for v in values]
    mixed = exact.mix("nu", values, weights, cases)
    assert_same(mixed, whole, rtol=1e-5)
    for name in ("nu", "alpha"):
        assert mixed.hyper[name] == pytest.approx(whole.hyper[name], rel=1e-5)
    for key, moments in whole.hyper_by_size.items():
        assert mixed.hyper_by_size[key] == pytest.approx(moments, rel=1e-5)


def test_hyper_means_by_number_of_clusters_add_up():
    result = exact.crp(NODE_OF, LOGLIK, N, stats.gamma(2), stats.gamma(1))
    for name, (mean, _) in result.hyper.items():
        parts = [m for (other, _), (m, _) in result.hyper_by_size.items() if other == name]
        assert sum(parts) == pytest.approx(mean)
