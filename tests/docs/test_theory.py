"""What docs/theory says: every function it names exists, and computes the equation beside it.

Equations are worked out here in plain NumPy as they are printed. `named` finds the function beside
the printed equation, so that neither can change without the other. Conditionals that are drawn
from are in `test_theory_draws`.
"""

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from small_runs import plane_problem
from theory_pages import (
    ALPHA,
    PAGES,
    THEORY,
    dm,
    equation_rows,
    links_in,
    named,
    names_in,
    resolve,
    text_of,
)

from onlooker.dynamics import DisplacementDynamics
from onlooker.dynamics.unknown import DisplacementLikelihood
from onlooker.gibbs.state import Counts, make_tables
from onlooker.inference.chain import Chain
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    ExponentialDecay,
    GaussianDecay,
    LogisticDecay,
    Mixing,
    Potts,
    Uniform,
    WindowDecay,
)
from onlooker.partitions.geometry import Geometry
from onlooker.partitions.links.kernels import Graph, clear_desk
from onlooker.partitions.links.scales import near_links
from onlooker.partitions.potts.exchange import edges_of

LABELINGS = "onlooker.partitions.indicator_samplers.FiniteIndicators.log_prior"


def chain_of(prior, seed=0, **options):
    """A chain a few sweeps on its way."""
    problem = plane_problem(seed=seed)
    rng = np.random.default_rng(seed)
    options = {"alpha": ALPHA, "collapsed": True, "rng": rng} | options
    chain = Chain(problem, prior.sampler(problem), **options)
    for _ in range(5):
        chain.sweep()
    return chain


def between(states):
    """Distances d_ij."""
    return np.linalg.norm(states[:, None] - states[None], axis=2)


# -- the pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_function_that_a_page_names_exists(page):
    names = names_in(text_of(page))
    assert names, f"{page} names no function"
    for name in names:
        resolve(name)


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_an_equation_table_names_a_function(page):
    for row in equation_rows(text_of(page)):
        assert names_in(row), row


def test_the_index_lists_every_page_and_links_lead_somewhere():
    listed = re.search(r"```\{toctree\}(.*?)```", text_of("index.md"), re.DOTALL).group(1).split()
    assert {f"{name}.md" for name in listed if name[0] != ":"} == set(PAGES) - {"index.md"}
    for page in PAGES:
        for target in links_in(text_of(page)):
            file = target.partition("#")[0]
            assert not file or (THEORY / file).exists(), f"{page}: {target}"


def test_a_name_that_does_not_exist_is_caught():
    with pytest.raises(AttributeError, match="no_such_kernel"):
        resolve("onlooker.gibbs.actions.no_such_kernel")
    with pytest.raises(AttributeError, match="sweeps"):
        resolve("onlooker.inference.chain.Chain.sweeps")


def test_an_equation_that_is_no_longer_there_is_caught():
    page = "$a = b$ is computed by `onlooker.gibbs.actions.collapsed_actions`."
    named("it", "a = b", "onlooker.gibbs.actions.collapsed_actions", text=page)
    with pytest.raises(AssertionError, match="no longer"):
        named("it", "a = 2b", "onlooker.gibbs.actions.collapsed_actions", text=page)
    with pytest.raises(AssertionError, match="beside"):
        named("it", "a = b", "onlooker.gibbs.actions.ordinary_actions", text=page)


# -- the model ------------------------------------------------------------------------------------


def test_dm_is_the_probability_of_a_sequence_of_actions():
    log_dm = named(
        "model.md",
        r"\mathrm{DM}(\xi) = \frac{\Gamma(A\alpha)}{\Gamma(A\alpha + \sum_j \xi_j)}"
        r" \prod_j \frac{\Gamma(\alpha + \xi_j)}{\Gamma(\alpha)}",
        "onlooker.gibbs.slices.log_dm",
    )
    xi = np.array([[3, 0, 2], [0, 1, 0]], dtype=np.int32)
    assert_allclose(log_dm(ALPHA, xi, xi.sum(axis=1)), np.log(dm(xi[0])) + np.log(dm(xi[1])))
    # without a multinomial coefficient, so that all sequences together have probability 1
    sequences = itertools.product(range(3), repeat=4)
    assert_allclose(sum(dm(np.bincount(one, minlength=3)) for one in sequences), 1.0)


@pytest.mark.parametrize("prior", [Mixing(3), DistanceDependent()], ids=lambda p: type(p).__name__)
def test_log_joint_sums_likelihoods_dm_and_the_prior(prior):
    log_joint = named(
        "model.md",
        r"\ln p(s, a, z) = \sum_t \ln \ell_{t a_t} + \sum_k \ln \mathrm{DM}(\xi_k) + \ln p(z)",
        "onlooker.inference.chain.Chain.log_joint",
    )
    chain = chain_of(prior)
    problem, actions, labels = chain.problem, chain.actions, chain.labels
    value = problem.loglik[np.arange(problem.n_transitions), actions].sum()
    for k in np.unique(labels):
        inside = labels[problem.node_of] == k
        value += np.log(dm(np.bincount(actions[inside], minlength=problem.n_actions)))
    assert_allclose(log_joint(chain), value + chain.partition.log_prior(chain.state))


def test_steps_have_the_density_of_a_normal_distribution():
    named(
        "model.md",
        r"\mathcal{N}(s' - s \mid u_j, \sigma^2 I)",
        "onlooker.dynamics.DisplacementDynamics.log_likelihood",
    )
    compass = DisplacementDynamics.compass(4, step=1.5, sigma=0.3)
    away = np.array([0.2, 0.9]) - compass.steps
    density = np.exp(-(away**2).sum(axis=1) / (2 * 0.3**2)) / (2 * np.pi * 0.3**2)
    assert_allclose(compass.log_likelihood([[1.0, 1.0]], [[1.2, 1.9]])[0], np.log(density))


# -- partition priors -----------------------------------------------------------------------------


def test_labelings_have_the_probabilities_that_are_printed():
    n, k, gam = 15, 3, 0.8
    named("partition_priors.md", "p(z) = K^{-N}", LABELINGS)
    uniform = chain_of(Uniform(k))
    assert_allclose(uniform.partition.log_prior(uniform.state), -n * np.log(k))

    named(
        "partition_priors.md",
        r"p(z \mid \gamma) = \frac{\Gamma(\gamma)}{\Gamma(\gamma + N)}"
        r" \prod_k \frac{\Gamma(\zeta_k + \gamma/K)}{\Gamma(\gamma/K)}",
        LABELINGS,
    )
    mixing = chain_of(Mixing(k, gam))
    zeta = np.bincount(mixing.labels, minlength=k)
    value = gammaln(gam) - gammaln(gam + n) + (gammaln(zeta + gam / k) - gammaln(gam / k)).sum()
    assert_allclose(mixing.partition.log_prior(mixing.state), value)

    named(
        "partition_priors.md",
        r"\gamma^K \frac{\Gamma(\gamma)}{\Gamma(\gamma + N)} \prod_k (\zeta_k - 1)!",
        "onlooker.partitions.indicator_samplers.RestaurantIndicators.log_prior",
    )
    crp = chain_of(ChineseRestaurant(gam))
    zeta = np.unique(crp.labels, return_counts=True)[1]
    value = len(zeta) * np.log(gam) + gammaln(gam) - gammaln(gam + n) + gammaln(zeta).sum()
    assert_allclose(crp.partition.log_prior(crp.state), value)


def test_potts_weights_are_symmetric_and_count_each_pair_once():
    symmetrised = named(
        "partition_priors.md",
        r"w_{ij} = \tfrac12 f(d_{ij})\,\bigl(1[j \in N_i] + 1[i \in N_j]\bigr)",
        "onlooker.partitions.geometry.symmetrised",
    )
    potts_energy = named(
        "partition_priors.md",
        r"p(z) \propto \exp\bigl(\beta \sum_{i<j} w_{ij}\,\delta(z_i, z_j)\bigr)",
        "onlooker.partitions.indicator_samplers.potts_energy",
    )
    agreement = named("exchange.md", "$S(z)$", "onlooker.partitions.potts.exchange.agreement")
    assert r"S(z) = \sum_{i<j} w_{ij}\,\delta(z_i, z_j)" in text_of("exchange.md")
    states = plane_problem().states
    n, decay = len(states), GaussianDecay(1.2)
    d = between(states)
    near = np.argsort(d + np.diag(np.full(n, np.inf)), axis=1)[:, :3]
    inside = np.zeros((n, n))
    inside[np.arange(n)[:, None], near] = 1
    w = 0.5 * decay(d) * (inside + inside.T)
    graph = symmetrised(Geometry(states).similarity(decay, 3))
    assert_allclose(graph.toarray(), w)
    z = np.random.default_rng(1).integers(3, size=n)
    pairs = [(i, j) for i in range(n) for j in range(i) if z[i] == z[j]]
    value = sum(w[pair] for pair in pairs)
    assert_allclose(potts_energy(z, graph), value)
    assert_allclose(agreement(z, edges_of(graph)), value)
    chain = chain_of(Potts(3, beta=0.9, decay=decay, n_neighbors=3))
    energy = potts_energy(chain.state.labels, chain.partition.graph)
    assert_allclose(chain.partition.log_prior(chain.state), 0.9 * energy)


@pytest.mark.parametrize(
    ("formula", "decay", "by_hand"),
    [
        (r"g(d) = \exp(-d^2 / \sigma_f^2)", GaussianDecay, lambda d, s: np.exp(-(d**2) / s**2)),
        (r"g(d) = \exp(-d / \sigma_f)", ExponentialDecay, lambda d, s: np.exp(-d / s)),
        (r"g(d) = 1[d \le \sigma_f]", WindowDecay, lambda d, s: (d <= s) * 1.0),
        (
            r"g(d) = (1 + e^{-\sigma_f/w}) / (1 + e^{(d - \sigma_f)/w})",
            LogisticDecay,
            lambda d, s: (1 + np.exp(-s / 0.25)) / (1 + np.exp((d - s) / 0.25)),
        ),
    ],
)
def test_decays_are_as_printed(formula, decay, by_hand):
    assert named("partition_priors.md", formula, f"onlooker.partitions.{decay.__name__}") is decay
    named(
        "partition_priors.md",
        r"f(d) = (1 - \varepsilon)\, g(d) + \varepsilon",
        "onlooker.partitions.decay.Decay",
    )
    d = np.array([0.0, 0.3, 1.4, 1.6, 4.0])
    assert_allclose(decay(1.5, 0.02)(d), 0.98 * by_hand(d, 1.5) + 0.02)


def test_links_have_the_probability_that_is_printed():
    log_prior = named(
        "partition_priors.md",
        r"\ln p(c \mid \nu) = \sum_i \ln[\nu \text{ or } f(d_{i c_i})]"
        r" - \sum_i \ln\bigl(\nu + \sum_{j \ne i} f(d_{ij})\bigr)",
        "onlooker.partitions.links.sampler.LinkSampler.log_prior",
    )
    log_links = named(
        "hyperparameters.md",
        r"{\nu + (1-\varepsilon) \sum_{j \ne i} g(d_{ij}) + \varepsilon\,(N - 1)}",
        "onlooker.partitions.links.scales.log_links",
    )
    weights = resolve("onlooker.partitions.links.kernels.log_link_weights")
    normaliser = resolve("onlooker.gibbs.slices.log_link_normaliser")
    decay, nu = GaussianDecay(0.9, 0.03), 0.4
    chain = chain_of(DistanceDependent(nu, decay))
    c, n = chain.links, chain.problem.n_nodes
    f = decay(between(chain.problem.states))
    np.fill_diagonal(f, nu)
    first, second = np.log(f[np.arange(n), c]).sum(), np.log(f.sum(axis=1)).sum()
    assert (c == np.arange(n)).any()  # self-links are there to be weighed by ν
    assert_allclose(log_prior(chain.partition, chain.state), first - second)
    placed = chain.state.arrays["forest.link"]
    graph = chain.partition.graph
    assert_allclose(weights(placed, graph, nu), first)
    np.fill_diagonal(f, 0.0)
    assert_allclose(normaliser(nu, f.sum(axis=1)), second)

    g = decay.at(0.9, 0.0)(between(chain.problem.states))
    np.fill_diagonal(g, 0.0)
    bare = Geometry(chain.problem.states).similarity(decay.at(0.9, 0.0))
    near = np.empty(n)
    near_links(c.astype(np.int64), Graph(bare.indptr, bare.indices, bare.weights, 0.0), near)
    value = log_links(nu, 0.03, near, g.sum(axis=1), np.full(n, n - 1.0))
    assert_allclose(value, first - second)


def test_the_merge_ratio_is_that_of_three_dm():
    page = text_of("partition_priors.md")
    assert (
        r"\frac{\mathrm{DM}(\xi_a + \xi_{z_j})}{\mathrm{DM}(\xi_a)\,\mathrm{DM}(\xi_{z_j})}" in page
    )
    score = named("ddcrp.md", "times its ratio", "onlooker.partitions.links.kernels._score")
    xi = np.array([[2, 1, 0], [3, 0, 1], [0, 0, 4]], dtype=np.int32)  # the first is i's own
    counts = Counts(xi, xi, xi.sum(axis=1, dtype=np.int64), np.ones(3, dtype=np.int64))
    desk = clear_desk(3, 3, 1, 1)
    desk.part[:] = xi[0]
    desk.slot[:3], desk.mass[:3] = np.arange(3), 1.0
    score(3, 0, counts, make_tables(ALPHA, 3, 20, 3), desk)
    ratios = [1.0, *(dm(xi[0] + one) / (dm(xi[0]) * dm(one)) for one in xi[1:])]
    assert_allclose(np.exp(desk.score[:3]), ratios)


# -- hyper-parameters -----------------------------------------------------------------------------


def test_noise_and_step_have_the_likelihood_that_is_printed():
    named(
        "hyperparameters.md",
        r"\ln p = -Md \ln(\sigma\sqrt{2\pi}) - \frac{1}{2\sigma^2}\Bigl[",
        "onlooker.dynamics.unknown.DisplacementLikelihood",
    )
    rng = np.random.default_rng(0)
    u, actions = rng.normal(size=(5, 2)), rng.integers(5, size=40)
    delta = 0.9 * u[actions] + rng.normal(0, 0.3, (40, 2))
    best = (delta * u[actions]).sum() / (u[actions] ** 2).sum()
    left = ((delta - best * u[actions]) ** 2).sum()
    sigma, mu = 0.25, 1.1
    squares = left + (mu - best) ** 2 * (u[actions] ** 2).sum()
    value = -40 * 2 * np.log(sigma * np.sqrt(2 * np.pi)) - squares / (2 * sigma**2)
    model = DisplacementLikelihood(delta, u, np.ones_like(u))
    assert_allclose(model.given(actions)({"sigma": sigma, "step": mu}), value)
    world = DisplacementDynamics(u, sigma, mu)  # and that is the density of all steps
    every = world.log_likelihood(np.zeros_like(delta), delta)[np.arange(40), actions]
    assert_allclose(every.sum(), value)


def test_concentrations_of_their_own_are_mixed():
    assert r"\overline{\mathrm{DM}}(\xi) = \sum_g w_g\,\mathrm{DM}_g(\xi)" in text_of(
        "concentrations.md"
    )
    mixed_policy = named(
        "concentrations.md",
        r"\sum_g p(g \mid \xi_z)\,(\xi_z+\alpha_g)/(\xi_{z\cdot}+A\alpha_g)",
        "onlooker.inference.components.mixed_policy",
    )
    shares_of = resolve("onlooker.inference.components.shares_of")
    from onlooker.hyper import DirichletMixture

    mixture, xi = DirichletMixture((0.1, 2.0), (0.3, 0.7)), np.array([[4, 0, 1]], dtype=np.int32)
    terms = np.array([0.3 * dm(xi[0], 0.1), 0.7 * dm(xi[0], 2.0)])
    shares, log_dm = shares_of(xi, make_tables(mixture, 3, 10))
    assert_allclose(np.exp(log_dm), [terms.sum()])
    p = terms / terms.sum()
    by_hand = sum(p[g] * (xi[0] + a) / (5 + 3 * a) for g, a in enumerate((0.1, 2.0)))
    assert_allclose(mixed_policy(xi, shares, np.array([0.1, 2.0]))[0], by_hand)


def test_the_ladder_of_tempering_is_as_printed():
    ladder = named(
        "tempering.md",
        r"\tau_r = \exp(-r/\max(1, \mathrm{sd}(E)))",
        "onlooker.inference.tempering.ladder",
    )
    problem = plane_problem()
    ell = np.exp(problem.loglik)
    p = ell / ell.sum(axis=1, keepdims=True)
    mean = (p * problem.loglik).sum(axis=1)
    variance = (p * (problem.loglik - mean[:, None]) ** 2).sum()
    expected = np.exp(-np.arange(4) / max(1.0, np.sqrt(variance)))
    assert_allclose(ladder(problem, 4), expected)
