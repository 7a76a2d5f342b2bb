"""Samplers broken on purpose must fail the very test that the right ones pass."""

import itertools
import math
from types import SimpleNamespace

import exact
import naive
import numpy as np
import pytest
import scipy.stats
from chains import make_chain
from naive_links import NaiveLinks

from onlooker import Problem
from onlooker.gibbs.slices import slice_sample_log
from onlooker.hyper import Exponential
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.partitions.ddcrp.bound import SelfLink
from onlooker.partitions.links.kernels import log_link_normaliser

ALPHA = 0.1
K = 3
F_SCALE = 3.0
BETA = 2.5


NODE_OF, LOGLIK, N, COORDINATES = exact.sharp_problem()
DISTANCES = exact.pairwise_distances(COORDINATES)
F = exact.gaussian_decay(F_SCALE)(DISTANCES)
LINK_F = exact.gaussian_decay(0.8, 0.1)(DISTANCES)
OWNED = [np.flatnonzero(i == NODE_OF).tolist() for i in range(N)]
LIKELIHOOD = np.exp(LOGLIK)


def chains_of(make, sweep, sweeps, seed):
    """Draws of two plain-Python chains."""
    labels, actions, nu = [], [], []
    for stream in np.random.SeedSequence(seed).spawn(2):
        chain = make(np.random.default_rng(stream))
        for _ in range(sweeps):
            sweep(chain)
            labels.append(list(chain.labels))
            actions.append(list(chain.actions))
            nu.append(getattr(chain, "nu", 0.0))
    return SimpleNamespace(
        labels=np.array(labels).reshape(2, sweeps, N),
        actions=np.array(actions).reshape(2, sweeps, -1),
        hyper={"nu": np.array(nu).reshape(2, sweeps)},
    )


# -- the finite models --------------------------------------------------------------------------


def one_sided(distances, f, n_neighbors):
    weights = np.zeros_like(f)
    for i in range(N):
        others = [j for j in range(N) if j != i]
        for j in sorted(others, key=lambda j: distances[i, j])[:n_neighbors]:
            weights[i, j] = f[i, j]
    return weights


def mixing(gamma):
    return naive.mixing_prior(gamma, K), exact.mixing(NODE_OF, LOGLIK, N, ALPHA, K, gamma)


def potts():
    weights = exact.weights_potts(DISTANCES, exact.gaussian_decay(F_SCALE), 1)
    oracle = exact.potts(NODE_OF, LOGLIK, N, ALPHA, K, BETA, weights)
    return naive.potts_prior(BETA, weights), oracle


class OwnActionNotExcluded(naive.Naive):
    def action_weights(self, i, t):
        xi = self.xi[self.labels[i]]
        return [self.likelihood[t][j] * (xi[j] + self.alpha) for j in range(self.n_actions)]


class OwnNodeNotExcluded(naive.Naive):
    def take_out(self, i):
        self.stays = self.labels[i]

    def put_in(self, i, k):
        super().take_out(i)
        super().put_in(i, k)


class MultinomialCoefficientLeftIn(naive.Naive):
    def fit(self, i, k):
        def coefficient(counts):
            return math.lgamma(sum(counts) + 1) - sum(math.lgamma(n + 1) for n in counts)

        psi = self.xi[k]
        both = naive.plus(psi, self.phi[i])
        return super().fit(i, k) + coefficient(both) - coefficient(psi)


def finite_draws(chain_type, log_prior, sweeps=10_000, seed=0):
    def make(rng):
        labels = rng.integers(K, size=N)
        actions = [naive.draw(row, rng.random()) for row in LIKELIHOOD.tolist()]
        return chain_type(LIKELIHOOD, OWNED, actions, labels, ALPHA, rng, range(K))

    def sweep(chain):
        chain.collapsed_actions()
        chain.update_indicators(log_prior)

    return chains_of(make, sweep, sweeps, seed)


@pytest.mark.parametrize("model", [mixing(0.9), mixing(9.0), potts()], ids=["0.9", "9", "potts"])
def test_the_right_finite_sampler_passes(model):
    log_prior, oracle = model
    assert exact.compare(finite_draws(naive.Naive, log_prior), oracle, alpha=ALPHA) == []


@pytest.mark.parametrize(
    "broken", [OwnActionNotExcluded, OwnNodeNotExcluded, MultinomialCoefficientLeftIn]
)
def test_a_wrong_count_is_caught(broken):
    log_prior, oracle = mixing(9.0)
    assert exact.compare(finite_draws(broken, log_prior), oracle, alpha=ALPHA)


def test_gamma_in_place_of_its_share_is_caught():
    _, oracle = mixing(0.9)
    draws = finite_draws(naive.Naive, naive.mixing_prior(0.9 * K, K))
    assert exact.compare(draws, oracle, alpha=ALPHA)


def test_a_one_sided_neighbourhood_is_caught():
    _, oracle = potts()
    draws = finite_draws(naive.Naive, naive.potts_prior(BETA, one_sided(DISTANCES, F, 1)))
    assert exact.compare(draws, oracle, alpha=ALPHA)


# -- the ddCRP ----------------------------------------------------------------------------------

NU_MEAN = 0.5
NEAR = [[(j, LINK_F[i, j] - 0.1) for j in range(N) if j != i] for i in range(N)]


class Links:
    """Actions and links in plain Python; `link_type` may be broken."""

    def __init__(self, link_type, rng):
        actions = [naive.draw(row, rng.random()) for row in LIKELIHOOD.tolist()]
        self.base = naive.Naive(LIKELIHOOD, OWNED, actions, range(N), ALPHA, rng)
        self.links = link_type(range(N), self.base.phi, NEAR, 0.1, ALPHA, rng)
        self.nu = 1.0
        self.economy = {}

    @property
    def labels(self):
        return self.links.labels()

    @property
    def actions(self):
        return self.base.actions

    def sweep(self):
        self.base.labels = self.labels
        self.base.clusters = sorted(set(self.base.labels))
        self.base.recount()
        self.base.collapsed_actions()
        self.links.phi = self.base.phi
        self.links.list_in_links()
        self.links.update_links(self.nu, **self.economy)
        self.nu = self.links.draw_nu(self.nu, NU_MEAN)


class LinkNotRemovedBeforeScoring(NaiveLinks):
    """The component keeps what hangs on i's old link while new links are scored."""

    def remove_link(self, i):
        self.scored = self.component(i)
        return super().remove_link(i)

    def merge_ratio(self, own, other):
        whole = sorted(self.scored)
        rest = [j for j in other if j not in self.scored]
        return super().merge_ratio(whole, rest) if rest else 0.0


class SplitNotDetected(NaiveLinks):
    """Components only ever grow: a cut never parts them."""

    def remove_link(self, i):
        self.cut_from = None
        if self.links[i] != i:
            self.in_links[self.links[i]].remove(i)
        self.links[i] = i
        return self.cluster_of(i)


class CycleTreatedAsSplit(NaiveLinks):
    """A cut on the cycle is scored as if it parted i from the nodes behind its old link."""

    def remove_link(self, i):
        old = self.links[i]
        own = super().remove_link(i)
        if old == i or old not in own:
            return own
        behind = set(self.reaching(old))
        part = [j for j in own if j not in behind]
        self.clusters[self.clusters.index(own)] = [j for j in own if j in behind]
        self.clusters.append(part)
        return part

    def set_link(self, i, j, own):
        super().set_link(i, j, own)
        components = {tuple(sorted(self.component(i))) for i in range(self.n_nodes)}
        self.clusters = [list(members) for members in sorted(components)]


class ChoiceLooksAtTheOldLink(NaiveLinks):
    """Whether all clusters are summed depends on whether the old link joined two."""

    def sums_all(self, few):
        return len(self.clusters) - (self.cut_from is not None) <= few


def test_a_short_cut_that_looks_at_the_old_link_is_caught():
    """One cluster is summed, more are met by a single candidate; the offset is large."""
    weights = exact.gaussian_decay(0.8, 0.5)(DISTANCES)
    near = [[(j, weights[i, j] - 0.5) for j in range(N) if j != i] for i in range(N)]
    oracle = exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, scipy.stats.expon(scale=NU_MEAN), weights)

    def draws(link_type):
        def make(rng):
            chain = Links(link_type, rng)
            chain.links.near, chain.links.offset = near, 0.5
            chain.economy = {"few": 1, "tries": 1}
            return chain

        return chains_of(make, Links.sweep, 8_000, 0)

    assert exact.compare(draws(NaiveLinks), oracle, alpha=ALPHA) == []
    assert exact.compare(draws(ChoiceLooksAtTheOldLink), oracle, alpha=ALPHA)


def link_draws(link_type, sweeps=8_000, seed=0):
    return chains_of(lambda rng: Links(link_type, rng), Links.sweep, sweeps, seed)


def link_oracle():
    prior = scipy.stats.expon(scale=NU_MEAN)
    return exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, prior, LINK_F)


def self_link_discrepancies(link_type, nu=0.4, sweeps=8_000):
    """How often each node links to itself, against all link graphs; what is off by 5 sd.

    The partition alone hardly shows a wrong choice among the links inside a component.
    """
    chain = Links(link_type, np.random.default_rng(0))
    found = np.empty((sweeps, N))
    for s in range(sweeps):
        chain.nu = nu
        chain.sweep()
        found[s] = [chain.links.links[i] == i for i in range(N)]
    oracle = exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, nu, LINK_F)
    weight = np.where(np.eye(N, dtype=bool), nu, LINK_F)
    graphs = list(itertools.product(range(N), repeat=N))
    prior = np.array([math.prod(weight[i, j] for i, j in enumerate(c)) for c in graphs])
    parts = [exact.components(c) for c in graphs]
    of_part = {p: sum(w for w, q in zip(prior, parts, strict=True) if q == p) for p in set(parts)}
    posterior = prior * [oracle.partitions[p] / of_part[p] for p in parts]
    truth = posterior @ (np.array(graphs) == np.arange(N))
    batches = found.reshape(80, -1, N).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(80)
    return np.flatnonzero(np.abs(batches.mean(axis=0) - truth) > 5 * error).tolist()


def test_the_right_link_sampler_links_to_itself_as_often_as_it_should():
    assert self_link_discrepancies(NaiveLinks) == []


def test_a_cycle_treated_as_a_split_is_caught():
    assert self_link_discrepancies(CycleTreatedAsSplit)


def test_the_right_link_sampler_passes():
    assert exact.compare(link_draws(NaiveLinks), link_oracle(), alpha=ALPHA) == []


@pytest.mark.parametrize("broken", [LinkNotRemovedBeforeScoring, SplitNotDetected])
def test_a_wrong_link_step_is_caught(broken):
    assert exact.compare(link_draws(broken), link_oracle(), alpha=ALPHA)


class PowerOfNuByClusters(SelfLink):
    def __call__(self, state):
        n_clusters = len(set(exact.components(state.partition.link.tolist())))
        row_sums = self.similarities.row_sums(state)

        def log_density(nu):
            fit = n_clusters * np.log(nu) - log_link_normaliser(nu, row_sums)
            return fit + self.prior.logpdf(nu)

        state.hyper["nu"] = slice_sample_log(log_density, state.hyper["nu"], state.rng)
        return {}


class NormaliserForgotten(SelfLink):
    def __call__(self, state):
        links = state.partition.link
        n_self = int(np.count_nonzero(links == np.arange(len(links))))

        def log_density(nu):
            return n_self * np.log(nu) + self.prior.logpdf(nu)

        state.hyper["nu"] = slice_sample_log(log_density, state.hyper["nu"], state.rng)
        return {}


def nu_draws(step, sweeps=10_000, seed=0):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    prior = DistanceDependent(Exponential(NU_MEAN), GaussianDecay(0.8, 0.1))
    bound = prior.bind(problem)
    links, nu = bound.updates(collapsed=True)
    bound.updates = lambda collapsed: [links, step(bound.similarities, nu.prior, "slice")]
    draws = {"labels": [], "actions": [], "nu": []}
    for stream in np.random.SeedSequence(seed).spawn(2):
        rng = np.random.default_rng(stream)
        chain = make_chain(problem, prior, bound=bound, alpha=ALPHA, rng=rng)
        for _ in range(sweeps):
            chain.sweep()
            draws["labels"].append(chain.labels)
            draws["actions"].append(chain.actions)
            draws["nu"].append(chain.state.hyper["nu"])
    return SimpleNamespace(
        labels=np.array(draws["labels"]).reshape(2, sweeps, N),
        actions=np.array(draws["actions"]).reshape(2, sweeps, -1),
        hyper={"nu": np.array(draws["nu"]).reshape(2, sweeps)},
    )


def test_the_right_step_for_nu_passes():
    assert exact.compare(nu_draws(SelfLink), link_oracle(), alpha=ALPHA) == []


@pytest.mark.parametrize("broken", [PowerOfNuByClusters, NormaliserForgotten])
def test_a_wrong_step_for_nu_is_caught(broken):
    assert exact.compare(nu_draws(broken), link_oracle(), alpha=ALPHA)


def test_leaving_out_the_last_state_of_a_trajectory_is_caught():
    """The ddCRP is not marginally invariant: a state without a transition still carries links.

    The sampler that never saw it gets the best that can be done afterwards: the state's own link
    is drawn from the prior.
    """
    idle = int(np.flatnonzero(np.bincount(NODE_OF, minlength=N) == 0)[0])
    seen = np.delete(np.arange(N), idle)
    smaller = np.searchsorted(seen, NODE_OF)
    problem = Problem(smaller, LOGLIK, COORDINATES[seen])
    nu = 0.4
    prior = DistanceDependent(nu, GaussianDecay(0.8, 0.1))
    rng = np.random.default_rng(0)
    chain = make_chain(problem, prior, alpha=ALPHA, rng=rng)
    link_weights = [*LINK_F[idle, seen], nu]
    labels, actions = [], []
    for _ in range(20_000):
        chain.sweep()
        full = np.empty(N, dtype=int)
        full[seen] = chain.labels
        link = naive.draw(link_weights, rng.random())
        full[idle] = N + 1 if link == N - 1 else full[seen[link]]
        labels.append(full)
        actions.append(chain.actions)
    draws = SimpleNamespace(
        labels=np.array(labels)[None], actions=np.array(actions)[None], hyper={}
    )
    oracle = exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, nu, LINK_F)
    assert exact.compare(draws, oracle, alpha=ALPHA)
