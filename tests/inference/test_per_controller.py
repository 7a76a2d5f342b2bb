"""Controllers with concentrations of their own: twins, all partitions, and broken on purpose."""

from dataclasses import replace

import exact
import naive
import numpy as np
import pytest
import test_against_exact as enumerated
import test_broken as sharp
import test_split_merge as moves
import test_twins as twins
from agreement import canonical
from naive_mixture import Mixed, MixedLinks, MixedSplitMerge, log_sum, log_terms

from onlooker import Problem
from onlooker.hyper import DirichletMixture
from onlooker.inference.chain import Chain
from onlooker.inference.metropolis import draw_candidates, log_proposal
from onlooker.inference.split_merge import SCANS
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.partitions.links.kernels import Economy
from onlooker.partitions.links.sampler import LinkOptions

ALPHAS = DirichletMixture((0.05, 0.8, 6.0), (0.3, 0.2, 0.5))
ORACLE = exact.Mixture(ALPHAS.alphas, ALPHAS.weights)

# -- the oracle ---------------------------------------------------------------------------------


def test_with_one_cluster_the_mixture_is_a_prior_of_the_one_alpha():
    mixed = enumerated._exact("uniform", ORACLE, n_clusters=1)
    cases = [enumerated._exact("uniform", alpha, n_clusters=1) for alpha in ALPHAS.alphas]
    other = exact.mix("alpha", ALPHAS.alphas, ALPHAS.weights, cases)
    np.testing.assert_allclose(mixed.policy, other.policy)
    np.testing.assert_allclose(mixed.actions, other.actions)
    assert mixed.log_evidence == pytest.approx(other.log_evidence)


def test_alphas_that_are_all_alike_are_one():
    mixed = enumerated._exact("crp", exact.Mixture((0.7, 0.7), (0.2, 0.8)), gamma=1.3)
    single = enumerated._exact("crp", 0.7, gamma=1.3)
    np.testing.assert_allclose(mixed.policy, single.policy)
    np.testing.assert_allclose(mixed.co_clustering, single.co_clustering)


# -- kernels and their twins --------------------------------------------------------------------


def make_chain(prior, collapsed, blocked, seed):
    problem = twins.make_problem(seed)
    rng = np.random.default_rng(seed + 1000)
    sampler = prior.sampler(problem)
    chain = Chain(problem, sampler, alpha=ALPHAS, collapsed=collapsed, blocked=blocked, rng=rng)
    chain.prior = prior
    return chain


def twin_of(chain, kind=Mixed):
    state, first = chain.state.copy(), chain.data.first
    twin = kind(
        chain.data.likelihood,
        [range(first[i], first[i + 1]) for i in range(chain.problem.n_nodes)],
        state.actions,
        state.labels,
        ALPHAS,
        state.rng,
        clusters=state.arrays["slots"][: state.arrays["n_slots"][0]],
    )
    if not chain.collapsed:
        twin.controllers = dict(enumerate(state.arrays["controllers"].tolist()))
    return twin


def sweep_twin(twin, chain, collapsed, blocked):
    slots = range(len(chain.state.counts.size))  # the kernel draws for all, used or not
    if collapsed:
        twin.draw_components(slots)
        twin.collapsed_actions(blocked)
        twin.draw_components(slots)
    else:
        twin.ordinary_actions(blocked)
        twin.draw_components(slots)
        for k in slots:
            twin.draw_controller(k, twin.xi.get(k, [0] * twin.n_actions))
    log_prior, gamma = twins.prior_of(chain, twin)
    twin.update_indicators(log_prior, not collapsed, blocked, gamma)


@pytest.mark.parametrize("blocked", [False, True], ids=["plain", "blocked"])
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("name", ["mixing-q", "potts-offset", "crp"])
def test_a_sweep_equals_its_twin(name, collapsed, blocked):
    for seed in range(3):
        chain = make_chain(twins.PRIORS[name], collapsed, blocked, seed)
        for _ in range(4):
            twin = twin_of(chain)
            sweep_twin(twin, chain, collapsed, blocked)
            chain.sweep()
            twins.assert_same_state(chain, twin)


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("name", ["mixing", "potts", "crp"])
def test_moves_equal_their_twin(name, collapsed):
    numbers = set()
    for seed in range(2):
        chain = make_chain(moves.PRIORS[name], collapsed, False, seed)
        for _ in range(8):
            twin = twin_of(chain, MixedSplitMerge)
            sweep_twin(twin, chain, collapsed, False)
            log_prior, log_labels, gamma = moves.priors_of(chain)
            for _ in range(moves.MOVES):
                twin.split_merge(SCANS, log_prior, log_labels, gamma, not collapsed)
            chain.sweep()
            twins.assert_same_state(chain, twin)
            numbers.add(chain.n_controllers)
    assert len(numbers) > 1  # else no move was ever accepted


def link_chain(seed, **parameters):
    problem = twins.make_problem(seed)
    prior = DistanceDependent(0.3, **parameters)
    rng = np.random.default_rng(seed + 1000)
    chain = Chain(problem, prior.sampler(problem), alpha=ALPHAS, collapsed=True, rng=rng)
    chain._draw_components()
    return chain


def link_twin(chain, near, offset):
    state = chain.state.copy()
    twin = MixedLinks(
        state.arrays["forest.link"], state.counts.node, near, offset, ALPHAS, state.rng
    )
    twin.list_in_links()
    for members in twin.clusters:
        twin.drawn[id(members)] = int(chain.tables.component[state.labels[members[0]]])
    return twin


def assert_same_links(chain, twin):
    assert chain.state.arrays["forest.link"].tolist() == twin.links
    assert canonical(chain.state.labels) == canonical(twin.labels())
    for members in twin.clusters:
        k = chain.state.labels[members[0]]
        assert chain.state.counts.cluster[k].tolist() == twin.counts(members)
        assert chain.tables.component[k] == twin.of(members)


@pytest.mark.parametrize("few", [10**9, 6, 0], ids=["all-clusters", "some", "by-candidates"])
@pytest.mark.parametrize("start", ["self", "nearest"])
def test_link_sweeps_equal_their_twin(start, few):
    for seed in range(3):
        chain = link_chain(seed, start=start, decay=GaussianDecay(0.8, 0.1))
        economy = Economy(few=few, tries=3, longest=1 << 62)
        chain.partition.options = replace(chain.partition.options, economy=economy)
        graph = chain.partition.similarity
        rows = [slice(a, b) for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]
        near = [
            list(zip(graph.indices[r].tolist(), graph.weights[r].tolist(), strict=True))
            for r in rows
        ]
        twin = link_twin(chain, near, graph.offset)
        for _ in range(6):
            twin.update_links(0.3, few, 3)
            chain.partition.update(chain.state, chain.data, chain._scheme())
            assert_same_links(chain, twin)


def test_metropolis_sweeps_equal_their_twin():
    for seed in range(3):
        chain = link_chain(seed, decay=GaussianDecay(0.8, 0.05), method="metropolis")
        sampler = chain.partition
        sampler.options = LinkOptions(economy=Economy(few=0, tries=0, longest=1 << 62))
        twin = link_twin(chain, [[] for _ in chain.state.labels], 0.0)
        for _ in range(6):
            candidates = draw_candidates(len(twin.links), sampler.options.tries, twin.rng)
            weights = sampler._log_weight(candidates, 0.3) - log_proposal(candidates)
            links = np.array(twin.links)
            current = sampler._log_weight(links, 0.3) - log_proposal(links)
            twin.metropolis(candidates.tolist(), weights.tolist(), current.tolist())
            sampler.update(chain.state, chain.data, chain._scheme())
            assert_same_links(chain, twin)


# -- all partitions -----------------------------------------------------------------------------

SWEEPS = 4_000
POTTS_WEIGHTS = moves.potts_weights(0.6, 0.3)
LINK_WEIGHTS = enumerated._decay(0.8, 0.1)

MODELS = {
    "static": (Static(), "static", {}),
    "uniform": (Uniform(3), "uniform", {"n_clusters": 3}),
    "mixing-q": (Mixing(3, 0.8, collapsed=False), "mixing", {"n_clusters": 3, "gamma": 0.8}),
    "potts": (
        Potts(3, beta=0.9, decay=GaussianDecay(0.6, offset=0.3), n_neighbors=None),
        "potts",
        {"n_clusters": 3, "beta": 0.9, "weights": POTTS_WEIGHTS},
    ),
    "crp": (ChineseRestaurant(1.3), "crp", {"gamma": 1.3}),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1)),
        "ddcrp",
        {"nu": 0.4, "weights": LINK_WEIGHTS},
    ),
    "ddcrp-metropolis": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), method="metropolis"),
        "ddcrp",
        {"nu": 0.4, "weights": LINK_WEIGHTS},
    ),
}
SCHEMES = [
    ("static", "collapsed"),
    ("uniform", "ordinary"),
    ("mixing-q", "blocked"),
    ("potts", "collapsed"),
    ("potts", "blocked-ordinary"),
    ("crp", "collapsed"),
    ("crp", "ordinary"),
    ("crp", "blocked"),
    ("ddcrp", "collapsed"),
    ("ddcrp-metropolis", "collapsed"),
]


def problems(prior, oracle, scheme="collapsed", **options):
    """What a sampler gets wrong."""
    options = {"alpha": ALPHAS, "sweeps": SWEEPS} | enumerated.SCHEMES[scheme] | options
    return exact.compare(enumerated.run(prior, **options), oracle, alpha=ORACLE)


@pytest.mark.parametrize(("model", "scheme"), SCHEMES)
def test_sampler_matches_the_enumerated_posterior(model, scheme):
    prior, name, parameters = MODELS[model]
    assert problems(prior, enumerated._exact(name, ORACLE, **parameters), scheme) == []


def test_short_cuts_leave_the_posterior_as_it_is():
    prior = DistanceDependent(0.4, GaussianDecay(0.8, 0.5))
    oracle = enumerated._exact("ddcrp", ORACLE, nu=0.4, weights=enumerated._decay(0.8, 0.5))
    assert problems(prior, oracle, economy=Economy(1, 1, 1), sweeps=2 * SWEEPS) == []


alone = moves.alone


@pytest.mark.parametrize("scheme", ["collapsed", "ordinary"])
@pytest.mark.parametrize("model", ["mixing-q", "potts", "crp"])
def test_splits_and_merges_alone_match_the_enumerated_posterior(model, scheme, alone):
    prior, name, parameters = MODELS[model]
    oracle = enumerated._exact(name, ORACLE, **parameters)
    assert problems(replace(prior, split_merge=3), oracle, scheme) == []


# -- broken on purpose --------------------------------------------------------------------------

SHARP = DirichletMixture((0.02, 3.0), (0.3, 0.7))
SHARP_ORACLE = exact.Mixture(SHARP.alphas, SHARP.weights)


class ComponentsFromThePrior(Mixed):
    """Which concentration a controller has is drawn without a look at what it does."""

    def draw_component(self, k, counts):
        super().draw_component(k, [0] * self.n_actions)


class NewControllerOfTheFirstComponent(Mixed):
    """A new cluster is weighed as if all controllers had the first concentration."""

    def log_dm(self, counts):
        return naive.log_dm(counts, self.alpha.alphas[0])


def crp_draws(kind, sweeps=2_500):
    def make(rng):
        actions = [naive.draw(row, rng.random()) for row in sharp.LIKELIHOOD.tolist()]
        labels = [0] * sharp.N
        return kind(sharp.LIKELIHOOD, sharp.OWNED, actions, labels, SHARP, rng)

    def sweep(chain):
        chain.draw_components(chain.clusters)
        chain.collapsed_actions()
        chain.draw_components(chain.clusters)
        chain.update_indicators(naive.crp_prior, gamma=1.0)

    return sharp.chains_of(make, sweep, sweeps, 0)


def crp_problems(kind):
    oracle = exact.crp(sharp.NODE_OF, sharp.LOGLIK, sharp.N, SHARP_ORACLE, 1.0)
    return exact.compare(crp_draws(kind), oracle, alpha=SHARP_ORACLE)


def test_the_right_indicators_pass():
    assert crp_problems(Mixed) == []


@pytest.mark.parametrize("broken", [ComponentsFromThePrior, NewControllerOfTheFirstComponent])
def test_wrong_components_are_caught(broken):
    assert crp_problems(broken)


class OwnPartOfTheLastComponent(MixedLinks):
    """What is left with i is scored as if it had the last concentration."""

    def merge_ratio(self, own, other):
        a, alpha = self.counts(own), self.alpha.alphas[-1]
        right = log_sum(log_terms(a, self.alpha))
        return super().merge_ratio(own, other) + right - naive.log_dm(a, alpha)


class MixedChain(sharp.Links):
    """Actions and links in plain Python, with concentrations drawn before either."""

    def __init__(self, link_type, rng):
        super().__init__(link_type, rng)
        self.links.alpha = SHARP
        self.base = Mixed(sharp.LIKELIHOOD, sharp.OWNED, self.actions, range(sharp.N), SHARP, rng)

    def sweep(self):
        self.base.labels = self.labels
        self.base.clusters = sorted(set(self.base.labels))
        self.base.recount()
        self.base.draw_components(self.base.clusters)
        self.base.collapsed_actions()
        self.links.phi = self.base.phi
        self.links.list_in_links()
        self.links.draw_components()
        self.links.update_links(0.4)


def link_problems(link_type):
    draws = sharp.chains_of(lambda rng: MixedChain(link_type, rng), MixedChain.sweep, 2_500, 0)
    oracle = exact.ddcrp(sharp.NODE_OF, sharp.LOGLIK, sharp.N, SHARP_ORACLE, 0.4, sharp.LINK_F)
    return exact.compare(draws, oracle, alpha=SHARP_ORACLE)


def test_the_right_links_pass():
    assert link_problems(MixedLinks) == []


def test_a_part_whose_concentration_is_not_integrated_out_is_caught():
    assert link_problems(OwnPartOfTheLastComponent)


def test_the_log_joint_integrates_the_concentrations_out():
    problem = Problem(enumerated.NODE_OF, enumerated.LOGLIK, enumerated.COORDINATES)
    prior = ChineseRestaurant(1.3)
    rng = np.random.default_rng(0)
    chain = Chain(problem, prior.sampler(problem), alpha=ALPHAS, collapsed=True, rng=rng)
    for _ in range(5):
        chain.sweep()
        labels, actions = chain.labels, chain.actions
        fit = enumerated.LOGLIK[np.arange(len(actions)), actions].sum()
        log_dm = 0.0
        for k in np.unique(labels):
            inside = labels[enumerated.NODE_OF] == k
            xi = np.bincount(actions[inside], minlength=enumerated.LOGLIK.shape[1])
            log_dm += float(ORACLE.log_dm(xi))
            policy = chain.policy()[labels == k]
            np.testing.assert_allclose(policy, np.tile(ORACLE.policy(xi), (len(policy), 1)))
        assert chain.log_joint() == pytest.approx(
            fit + log_dm + chain.partition.log_prior(chain.state)
        )
    assert "alpha" not in chain.state.hyper
