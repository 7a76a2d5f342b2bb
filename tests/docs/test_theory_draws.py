"""Conditionals of docs/theory that are drawn from: frequencies follow the printed weights.

The slow sampler tests compare whole posteriors; here one variable is drawn again and again while
all others stay as they are, and the weights are worked out as the page prints them.
"""

import numpy as np
from scipy.stats import chi2
from theory_pages import ALPHA, dm, named, resolve, text_of

from onlooker import Problem
from onlooker.gibbs.state import Counts, Data, make_tables
from onlooker.inference.chain import Chain
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Uniform,
)
from onlooker.partitions.partition import slots_of

DRAWS = 4_000
INDICATORS = "onlooker.partitions.indicators.update_indicators"


def similarity(chain, decay):
    """f(d_ij) between the chain's places."""
    places = chain.problem.states[chain.layout.nodes]
    return decay(np.linalg.norm(places[:, None] - places[None], axis=2))


def assert_drawn_from(counts, weights):
    """Frequencies follow the weights: a right sampler fails this once in ten thousand seeds."""
    expected = counts.sum() * weights / weights.sum()
    assert (counts[expected == 0] == 0).all()
    likely = expected > 5
    rest = counts[~likely].sum(), expected[~likely].sum()
    distance = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    distance += (rest[0] - rest[1]) ** 2 / max(rest[1], 1.0)
    assert distance < chi2.ppf(1 - 1e-4, max(likely.sum(), 1))


def test_collapsed_actions_follow_the_other_actions_of_their_cluster():
    collapsed_actions = named(
        "samplers.md",
        r"p(a_t = j) \propto \ell_{tj}\,(\xi_{kj} - 1[a_t = j] + \alpha)",
        "onlooker.gibbs.actions.collapsed_actions",
    )
    ell, xi, n = np.array([0.5, 1.0, 0.2]), np.array([4, 1, 2]), DRAWS
    data = Data(np.arange(n + 1), np.tile(ell, (n, 1)))  # each transition in a cluster of its own
    counts = Counts(
        np.tile([1, 0, 0], (n, 1)).astype(np.int32),
        np.tile(xi, (n, 1)).astype(np.int32),
        np.full(n, xi.sum(), dtype=np.int64),
        np.ones(n, dtype=np.int64),
    )
    actions, rng = np.zeros(n, dtype=np.int32), np.random.default_rng(0)
    labels = np.arange(n, dtype=np.int32)
    tables = make_tables(ALPHA, 3, n, n)
    collapsed_actions(actions, labels, counts, data, tables, False, rng)
    weights = ell * (xi - np.array([1, 0, 0]) + ALPHA)
    assert_drawn_from(np.bincount(actions, minlength=3), weights)


def last_node(chain):
    """φ_i of the last place, ψ_k of every cluster without it, and ζ_k likewise."""
    state, i = chain.state, chain.problem.n_nodes - 1
    phi = state.counts.node[i].astype(float)
    psi, zeta = state.counts.cluster.astype(float), state.counts.size.copy()
    psi[state.labels[i]] -= phi
    zeta[state.labels[i]] -= 1
    return i, phi, psi, zeta


def prior_of(chain):
    """What the kernel needs of the prior."""
    prior = chain.partition._prior
    if callable(prior):
        return prior(chain.state)
    return prior._replace(new=chain.state.hyper["gamma"])


def drawn_labels(chain, n_slots):
    """How often the last place is given each label, the others staying as they are."""
    state, i = chain.state, chain.problem.n_nodes - 1
    prior = prior_of(chain)
    update = resolve(INDICATORS)
    counts = np.zeros(n_slots, dtype=int)
    for _ in range(DRAWS):
        update(i, state.labels, state.actions, state.counts, slots_of(state), chain.data, prior,
               chain._scheme(), state.rng)  # fmt: skip
        counts[state.labels[i]] += 1
    return counts


def reversed_problem(n_own):
    """A problem whose last node has `n_own` transitions."""
    rng = np.random.default_rng(4)
    node_of = np.r_[rng.integers(7, size=20), np.full(n_own, 7)]
    return Problem(node_of, rng.normal(0, 1.5, (20 + n_own, 3)), rng.normal(0, 1.0, (8, 2)))


def started(prior, n_own=3, **options):
    problem = reversed_problem(n_own)
    options = {"alpha": ALPHA, "collapsed": True, "rng": np.random.default_rng(5)} | options
    chain = Chain(problem, prior.sampler(problem), **options)
    for _ in range(3):
        chain.sweep()
    return chain


def test_a_label_is_drawn_by_prior_times_dm_ratio():
    named("partition_priors.md", r"\zeta_k^{(-i)} + \gamma/K", INDICATORS)
    named(
        "samplers.md",
        r"p(z_i = k) \propto p(z_i = k \mid z_{-i})\,"
        r" \mathrm{DM}(\psi_k + \varphi_i) / \mathrm{DM}(\psi_k)",
        INDICATORS,
    )
    chain = started(Mixing(3, 0.8))
    _, phi, psi, zeta = last_node(chain)
    ratio = np.array([dm(one + phi) / dm(one) for one in psi])
    assert_drawn_from(drawn_labels(chain, 3), (zeta + 0.8 / 3) * ratio)


def test_a_label_given_controllers_is_drawn_by_their_probabilities():
    named(
        "samplers.md",
        r"p(z_i = k) \propto p(z_i = k \mid z_{-i}) \prod_j \theta_{kj}^{\varphi_{ij}}",
        INDICATORS,
    )
    chain = started(Uniform(3), collapsed=False)
    _, phi, *_ = last_node(chain)
    weights = np.prod(chain.state.arrays["controllers"] ** phi, axis=1)
    assert_drawn_from(drawn_labels(chain, 3), weights)


def test_a_potts_label_is_drawn_by_its_neighbours():
    named(
        "partition_priors.md", r"\exp\bigl(\beta \sum_j w_{ij}\, \delta(k, z_j)\bigr)", INDICATORS
    )
    decay = GaussianDecay(1.2)
    chain = started(Potts(3, beta=0.9, decay=decay, n_neighbors=None), n_own=1)
    i, phi, psi, _ = last_node(chain)
    w = similarity(chain, decay)[i]
    w[i] = 0.0
    field = np.array([w[chain.state.labels == k].sum() for k in range(3)])
    ratio = np.array([dm(one + phi) / dm(one) for one in psi])
    assert_drawn_from(drawn_labels(chain, 3), np.exp(0.9 * field) * ratio)


def test_a_new_cluster_of_the_crp_weighs_gamma_times_dm():
    named("partition_priors.md", r"$\zeta_k^{(-i)}$; a new cluster $\gamma$", INDICATORS)
    assert r"$\gamma\,\mathrm{DM}(\varphi_i)$" in text_of("samplers.md")
    chain = started(ChineseRestaurant(1.3))
    state = chain.state
    _, phi, psi, zeta = last_node(chain)
    joins = {k: zeta[k] * dm(psi[k] + phi) / dm(psi[k]) for k in np.flatnonzero(zeta)}
    weights = np.array([*joins.values(), 1.3 * dm(phi)])
    place = {k: number for number, k in enumerate(joins)}
    counts = np.zeros(len(weights), dtype=int)
    drawn = drawn_labels(chain, len(state.counts.size))
    for k, times in enumerate(drawn):
        counts[place.get(k, len(joins))] += times
    assert_drawn_from(counts, weights)


def test_a_blocked_step_draws_label_and_action_together():
    named(
        "samplers.md",
        r"p(z_i = k, a_t = j) \propto p(z_i = k \mid z_{-i}) \; \ell_{tj} \;"
        r" \frac{\psi_{kj} + \alpha}{\psi_{k\cdot} + A\alpha}",
        INDICATORS,
    )
    chain = started(Uniform(3), n_own=1, blocked=True)
    state = chain.state
    i, _, psi, _ = last_node(chain)
    t = chain.data.first[i]
    ell = chain.data.likelihood[t]
    weights = ell * (psi + ALPHA) / (psi.sum(axis=1, keepdims=True) + 3 * ALPHA)
    counts = np.zeros((3, 3), dtype=int)
    prior, update = prior_of(chain), resolve(INDICATORS)
    for _ in range(DRAWS):
        update(i, state.labels, state.actions, state.counts, slots_of(state), chain.data, prior,
               chain._scheme(), state.rng)  # fmt: skip
        counts[state.labels[i], state.actions[t]] += 1
    assert_drawn_from(counts.ravel(), weights.ravel())


def test_a_link_is_drawn_by_similarity_times_merge_ratio():
    update_links = named(
        "partition_priors.md",
        r"p(c_i = j) \propto f(d_{ij})\,"
        r" \frac{\mathrm{DM}(\xi_a + \xi_{z_j})}{\mathrm{DM}(\xi_a)\,\mathrm{DM}(\xi_{z_j})}",
        "onlooker.partitions.links.kernels.update_links",
    )
    decay, nu = GaussianDecay(0.8, 0.05), 0.3
    chain = started(DistanceDependent(nu, decay))
    state, sampler = chain.state, chain.partition
    links = state.arrays["forest.link"]
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
            copied.labels, sampler.forest(copied), slots_of(copied), copied.counts, chain.tables,
            sampler.graph, nu, sampler._economy, copied.rng,
        )  # fmt: skip
        counts[copied.arrays["forest.link"][0]] += 1
    assert_drawn_from(counts, weights)


def components(links):
    """The component of every node, named by one of its members."""
    name = np.arange(len(links))
    for i, j in enumerate(links):
        name[name == name[i]] = name[j]
    return name


def test_wrong_weights_are_caught():
    chain = started(Mixing(3, 0.8))
    _, phi, psi, zeta = last_node(chain)
    ratio = np.array([dm(one + phi) / dm(one) for one in psi])
    counts = drawn_labels(chain, 3)
    for wrong in ((zeta + 0.8) * ratio, zeta + 0.8 / 3):  # γ for γ/K; no likelihood
        try:
            assert_drawn_from(counts, wrong)
        except AssertionError:
            continue
        raise RuntimeError("wrong weights passed")
