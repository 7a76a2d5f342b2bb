"""Conditionals that are drawn from: frequencies follow the weights of the theory.

The slow sampler tests compare whole posteriors; here one variable is drawn again and again while
all others stay as they are.
"""

from unittest.mock import patch

import numpy as np
import pytest
from chains import make_chain
from numpy.testing import assert_allclose
from scipy.special import gamma, gammaln
from scipy.stats import chi2

from onlooker import Problem
from onlooker.gibbs.actions import collapsed_actions
from onlooker.gibbs.arrays import Counts, Data, make_tables
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Uniform,
)
from onlooker.partitions.indicators import update_indicators
from onlooker.partitions.links.kernels import update_links

ALPHA = 0.7
DRAWS = 4_000


def dm(xi, alpha=ALPHA):
    """Γ(Aα)/Γ(Aα + Σ_j ξ_j) · Π_j Γ(α + ξ_j)/Γ(α)."""
    total = len(xi) * alpha
    rising = np.prod(gamma(alpha + xi) / gamma(alpha))
    return gamma(total) / gamma(total + np.sum(xi)) * rising


def is_drawn_from(counts, weights):
    """Whether frequencies follow the weights: a right sampler fails once in ten thousand seeds."""
    expected = counts.sum() * weights / weights.sum()
    likely = expected > 5
    rest = counts[~likely].sum(), expected[~likely].sum()
    distance = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    distance += (rest[0] - rest[1]) ** 2 / max(rest[1], 1.0)
    within = distance < chi2.ppf(1 - 1e-4, max(likely.sum(), 1))
    return within and (counts[expected == 0] == 0).all()


def started(prior, n_own=3, collapsed=True):
    """A chain on its way; the last node has `n_own` transitions."""
    rng = np.random.default_rng(4)
    node_of = np.r_[rng.integers(7, size=20), np.full(n_own, 7)]
    problem = Problem(node_of, rng.normal(0, 1.5, (20 + n_own, 3)), rng.normal(0, 1.0, (8, 2)))
    rng = np.random.default_rng(5)
    chain = make_chain(problem, prior, alpha=ALPHA, collapsed=collapsed, rng=rng)
    for _ in range(3):
        chain.sweep()
    return chain


def similarity(chain, decay):
    """f(d_ij) between the chain's places."""
    places = chain.problem.states[chain.bound.layout.nodes]
    return decay(np.linalg.norm(places[:, None] - places[None], axis=2))


def last_node(chain):
    """The last place, its φ_i, ψ_k of every cluster without it, and ζ_k likewise."""
    state, i = chain.state, chain.problem.n_nodes - 1
    phi = state.counts.node[i].astype(float)
    psi, zeta = state.counts.cluster.astype(float), state.counts.size.copy()
    psi[state.labels[i]] -= phi
    zeta[state.labels[i]] -= 1
    return i, phi, psi, zeta


def from_node(i):
    """The kernel, drawing from node i on only."""
    return lambda start, *others: update_indicators(max(start, i), *others)


def drawn_labels(chain, n_slots):
    """How often the last place is given each label, the others staying as they are."""
    state, i = chain.state, chain.problem.n_nodes - 1
    counts = np.zeros(n_slots, dtype=int)
    with patch("onlooker.partitions.indicators.update_indicators", from_node(i)):
        for _ in range(DRAWS):
            chain.update("indicators")(state)
            counts[state.labels[i]] += 1
    return counts


def test_collapsed_actions_follow_the_other_actions_of_their_cluster():
    ell, xi, n = np.array([0.5, 1.0, 0.2]), np.array([4, 1, 2]), DRAWS
    data = Data(  # each transition in a cluster of its own
        np.arange(n + 1), np.tile(ell, (n, 1)), np.arange(n), np.arange(n), np.zeros(n)
    )
    counts = Counts(
        np.tile([1, 0, 0], (n, 1)).astype(np.int32),
        np.tile(xi, (n, 1)).astype(np.int32),
        np.full(n, xi.sum(), dtype=np.int64),
        np.ones(n, dtype=np.int64),
    )
    actions, labels = np.zeros(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    tables, rng = make_tables(ALPHA, 3, n), np.random.default_rng(0)
    collapsed_actions(actions, labels, counts, data, tables, rng)
    weights = ell * (xi - np.array([1, 0, 0]) + ALPHA)
    assert is_drawn_from(np.bincount(actions, minlength=3), weights)


def test_a_label_is_drawn_by_prior_times_dm_ratio_and_wrong_weights_are_caught():
    chain = started(Mixing(3, 0.8))
    _, phi, psi, zeta = last_node(chain)
    ratio = np.array([dm(one + phi) / dm(one) for one in psi])
    counts = drawn_labels(chain, 3)
    assert is_drawn_from(counts, (zeta + 0.8 / 3) * ratio)
    assert not is_drawn_from(counts, (zeta + 0.8) * ratio)  # γ for γ/K
    assert not is_drawn_from(counts, zeta + 0.8 / 3)  # no likelihood


def test_a_label_given_controllers_is_drawn_by_their_probabilities():
    chain = started(Uniform(3), collapsed=False)
    _, phi, *_ = last_node(chain)
    weights = np.prod(chain.state.controllers**phi, axis=1)
    assert is_drawn_from(drawn_labels(chain, 3), weights)


def test_a_potts_label_is_drawn_by_its_neighbours():
    decay = GaussianDecay(1.2)
    chain = started(Potts(3, beta=0.9, decay=decay, n_neighbors=None), n_own=1)
    i, phi, psi, _ = last_node(chain)
    w = similarity(chain, decay)[i]
    w[i] = 0.0
    field = np.array([w[chain.state.labels == k].sum() for k in range(3)])
    ratio = np.array([dm(one + phi) / dm(one) for one in psi])
    assert is_drawn_from(drawn_labels(chain, 3), np.exp(0.9 * field) * ratio)


def test_a_new_cluster_of_the_crp_weighs_gamma_times_dm():
    chain = started(ChineseRestaurant(1.3))
    _, phi, psi, zeta = last_node(chain)
    joins = {k: zeta[k] * dm(psi[k] + phi) / dm(psi[k]) for k in np.flatnonzero(zeta)}
    weights = np.array([*joins.values(), 1.3 * dm(phi)])
    place = {k: number for number, k in enumerate(joins)}
    counts = np.zeros(len(weights), dtype=int)
    for k, times in enumerate(drawn_labels(chain, len(chain.state.counts.size))):
        counts[place.get(k, len(joins))] += times
    assert is_drawn_from(counts, weights)


def components(links):
    """The component of every node, named by one of its members."""
    name = np.arange(len(links))
    for i, j in enumerate(links):
        name[name == name[i]] = name[j]
    return name


def test_a_link_is_drawn_by_similarity_times_merge_ratio():
    decay, nu = GaussianDecay(0.8, 0.05), 0.3
    chain = started(DistanceDependent(nu, decay))
    state, bound = chain.state, chain.bound
    links = state.partition.link
    weights = similarity(chain, decay)[0]
    weights[0] = nu
    component = components(np.r_[0, links[1:]])  # the first place's link is taken away
    xi = [state.counts.node[component == k].sum(axis=0) for k in range(len(links))]
    own = component[0]
    for j in np.flatnonzero(component != own):
        other = xi[component[j]]
        weights[j] *= dm(xi[own] + other) / (dm(xi[own]) * dm(other))
    assert 1 < len(np.unique(component)) < len(links)  # there is something to merge
    counts = np.zeros(len(links), dtype=int)
    for _ in range(DRAWS):
        copied = state.copy()
        copied.rng = state.rng
        update_links(
            copied.labels, copied.partition, copied.slots, copied.counts, copied.tables,
            bound.similarities.graph, nu, bound.shortcuts, copied.rng,
        )  # fmt: skip
        counts[copied.partition.link[0]] += 1
    assert is_drawn_from(counts, weights)


# -- densities ------------------------------------------------------------------------------------


def log_labels(prior, labels):
    """ln p(z) from its definition."""
    n, zeta = len(labels), np.unique(labels, return_counts=True)[1]
    if isinstance(prior, Uniform):
        return -n * np.log(3)
    rest = gammaln(0.8) - gammaln(0.8 + n)
    if isinstance(prior, Mixing):
        zeta = np.bincount(labels, minlength=3)
        return rest + (gammaln(zeta + 0.8 / 3) - gammaln(0.8 / 3)).sum()
    return rest + len(zeta) * np.log(0.8) + gammaln(zeta).sum()


@pytest.mark.parametrize(
    "prior",
    [Uniform(3), Mixing(3, 0.8), ChineseRestaurant(0.8), DistanceDependent(0.4)],
    ids=lambda prior: type(prior).__name__,
)
def test_log_joint_sums_likelihoods_dm_and_the_prior(prior):
    chain = started(prior)
    problem, actions, labels = chain.problem, chain.actions, chain.labels
    value = problem.loglik[np.arange(problem.n_transitions), actions].sum()
    for k in np.unique(labels):
        inside = labels[problem.node_of] == k
        value += np.log(dm(np.bincount(actions[inside], minlength=problem.n_actions)))
    if isinstance(prior, DistanceDependent):
        places = problem.states
        f = prior.decay(np.linalg.norm(places[:, None] - places[None], axis=2))
        np.fill_diagonal(f, 0.4)
        value += np.log(f[np.arange(len(f)), chain.links] / f.sum(axis=1)).sum()
    else:
        value += log_labels(prior, labels)
    assert_allclose(chain.log_joint(), value)
