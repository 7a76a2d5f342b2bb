"""Kernels of regions against their plain-Python twin, and the twin against brute force."""

import numpy as np
import pytest
from chains import make_chain
from exact import pairwise_distances
from link_twins import make_problem
from naive import plus
from naive_regions import NaiveRegions, log_dm

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform
from onlooker.partitions import GaussianDecay, Regions

ALPHA, NU, SHARING = 0.3, Exponential(0.3), Gamma(1.0, 1.0)
SCALE = LogUniform(0.4, 2.0)
BASE = np.array([1.6, 1.6, 0.6, 0.6, 0.6]) / 5


def make_pair(seed, n_nodes=14):
    """A chain that has moved a little, and its twin with the same generator."""
    bare = make_problem(seed, n_nodes=n_nodes, n_transitions=2 * n_nodes)
    problem = Problem(bare.node_of, bare.loglik, bare.states, base=BASE)
    prior = Regions(NU, GaussianDecay(SCALE), SHARING)
    rng = np.random.default_rng(seed + 1000)
    chain = make_chain(problem, prior, alpha=ALPHA, index=seed, rng=rng)
    state = chain.state
    for _ in range(3):
        chain.sweep()
    first, places = state.data.first, problem.states[chain.bound.layout.nodes]
    copy = state.copy()
    twin = NaiveRegions(
        state.data.likelihood[state.data.row],
        [range(first[i], first[i + 1]) for i in range(n_nodes)],
        pairwise_distances(places),
        state.tables.share,
        state.hyper,
        {"nu": NU.logpdf, "gamma": SHARING.logpdf, "scale": SCALE.logpdf},
        SCALE.mean,
        copy.rng,
    ).start(state.partition.link, state.labels, state.actions)
    twin.at = chain.bound.index(state)
    twin.longest, twin.n_slots = state.partition.adapted.tolist()
    twin.n_slots = int(twin.n_slots)
    return chain, twin


def assert_same(chain, twin):
    state = chain.state
    assert state.partition.link.tolist() == twin.links
    assert state.labels.tolist() == twin.labels
    assert state.actions.tolist() == twin.actions
    m = twin.n_regions()
    assert state.partition.n_regions[: len(m)].tolist() == [m[k] for k in sorted(m)]
    assert not state.partition.n_regions[len(m) :].any()
    for name in state.hyper:
        assert state.hyper[name] == pytest.approx(twin.hyper[name], rel=1e-9)
    for k in range(len(state.counts.size)):
        members = [i for i, label in enumerate(twin.labels) if label == k]
        assert state.counts.size[k] == len(members)
        assert state.counts.cluster[k].tolist() == twin.counts(members)
        assert state.counts.total[k] == sum(twin.counts(members))


PASSES = {
    "links": (lambda twin: (twin.draw_links(), twin.tidy()), "links"),
    "sharing": (lambda twin: (twin.draw_sharing(), twin.tidy()), "sharing"),
    "scale": (NaiveRegions.draw_reach, "scale"),
    "carried": (NaiveRegions.summed, "carried"),
    "summed": (lambda twin: twin.summed(carried=False), "summed"),
    "gamma": (NaiveRegions.draw_gamma, "gamma"),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("seed", range(4))
def test_a_pass_equals_its_twin(seed, name):
    chain, twin = make_pair(seed)
    of_twin, update = PASSES[name]
    for _ in range(3):
        of_twin(twin)
        chain.update(update)(chain.state)
        assert_same(chain, twin)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("often", [0.5, 1.0])
def test_sweeps_equal_their_twin(seed, often, monkeypatch):
    monkeypatch.setattr("onlooker.partitions.regions.bound._ALWAYS", 14 if often == 1.0 else 13)
    chain, twin = make_pair(seed)
    twin.often = often
    carried = 0
    for _ in range(4):
        before = twin.hyper["scale"]
        twin.collapsed()
        twin.summed()
        twin.draw_gamma()
        for name in ("links", "scale", "sharing", "carried", "gamma"):
            chain.update(name)(chain.state)
        assert_same(chain, twin)
        carried += twin.hyper["scale"] != before
    assert carried


def test_without_room_for_its_controllers_a_sweep_reports_under_the_same_names():
    chain, _ = make_pair(0)
    chain.sweep()
    names = set(chain.info)
    chain.state.partition.adapted[1] = 0.0
    infos = chain.sweep()
    assert not infos["carried"]["done"]
    assert set(chain.info) == names


# -- the twin against the joint density ---------------------------------------------------------


def by_brute_force(twin, nodes, choices):
    """Probabilities of (c_i, controller of some nodes), from the joint density."""
    logs = []
    for i, j, k in choices:
        twin.links[i] = j
        for x in nodes:
            twin.labels[x] = k
        logs.append(twin.log_joint())
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


def worst_link(twin, i):
    """The largest error of the twin's conditional of (c_i, controller of its branch)."""
    weights = twin.link_weights(i)
    branch, labels = twin.branch(i), twin.labels[:]
    names = controllers(twin, branch)
    choices = [(j, k) for j in branch for k in names]
    choices += [(j, z) for j, z in enumerate(labels) if j not in branch]
    p = np.array([weights.get(choice, 0.0) for choice in choices]) / sum(weights.values())
    truth = by_brute_force(twin, branch, [(i, j, k) for j, k in choices])
    return float(np.abs(p - truth).max())


def controllers(twin, nodes):
    """All that these nodes may have: those of others, and a new one or all free ones."""
    if twin.theta is not None:
        return sorted(twin.theta)
    rest = {z for x, z in enumerate(twin.labels) if x not in nodes}
    return sorted(rest | {min(set(range(twin.n_nodes)) - rest)})


def worst_sharing(twin, r):
    """The same of the controller of a region."""
    region = twin.regions()[r]
    i = region[0]
    weights = twin.sharing_weights(region)
    names = controllers(twin, region)
    p = np.array([weights.get(k, 0.0) for k in names]) / sum(weights.values())
    truth = by_brute_force(twin, region, [(i, twin.links[i], k) for k in names])
    return float(np.abs(p - truth).max())


def worst(kind, worst_of, summed, n_states=12):
    """Over many states, each with controllers drawn or integrated out."""
    found = []
    for seed in range(n_states):
        _, twin = make_pair(seed % 6, n_nodes=9)
        twin.__class__ = kind
        for _ in range(seed // 6):
            NaiveRegions.sweep(twin)
        if summed:
            twin.draw_controllers()
        found.append(worst_of(twin, seed % len(twin.regions())))
    return max(found)


@pytest.mark.parametrize("summed", [False, True], ids=["collapsed", "summed"])
@pytest.mark.parametrize("worst_of", [worst_link, worst_sharing])
def test_the_twin_draws_from_the_joint_density(worst_of, summed):
    assert worst(NaiveRegions, worst_of, summed) < 1e-9


class CountsOfTheBranchStay(NaiveRegions):
    def fit(self, nodes, k):
        if self.theta is not None:
            return super().fit(nodes, k)
        xi, shapes = self.counts([x for x, z in enumerate(self.labels) if z == k]), self.shapes()
        return log_dm(plus(xi, self.counts(nodes)), shapes) - log_dm(xi, shapes)


class ControllerOfTheBranchStays(NaiveRegions):
    """A branch that becomes a region by itself keeps the controller it had."""

    def masses(self, i, branch, m, near, nu):
        home = self.labels[i]
        masses = super().masses(i, branch, m, near, nu)
        kept = home if home in masses else max(masses)
        return {k: (alone if k == kept else 1e-12, join) for k, (alone, join) in masses.items()}


class RegionCountsItself(NaiveRegions):
    def n_regions(self, without=()):
        return super().n_regions()


class MassesNotAdded(NaiveRegions):
    def weigh(self, alone, join):
        return max(alone, join)


@pytest.mark.parametrize(
    ("broken", "worst_of", "summed"),
    [
        (CountsOfTheBranchStay, worst_link, False),
        (CountsOfTheBranchStay, worst_sharing, False),
        (ControllerOfTheBranchStays, worst_link, False),
        (ControllerOfTheBranchStays, worst_link, True),
        (RegionCountsItself, worst_link, False),
        (RegionCountsItself, worst_sharing, True),
        (MassesNotAdded, worst_link, False),
        (MassesNotAdded, worst_link, True),
    ],
)
def test_a_wrong_conditional_is_caught(broken, worst_of, summed):
    assert worst(broken, worst_of, summed) > 0.01
