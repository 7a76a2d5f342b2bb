"""Kernels against their plain-Python twins: same uniforms, same state."""

import naive
import numpy as np
import pytest
from agreement import canonical
from chains import make_chain
from link_twins import ALPHA, link_chain, link_twin, make_problem

from onlooker.partitions import (
    ChineseRestaurant,
    GaussianDecay,
    Mixing,
    Potts,
    Uniform,
)
from onlooker.partitions.indicators import update_indicators  # noqa: F401  (compiled once)
from onlooker.partitions.links.kernels import Shortcuts, update_links


def twin_of(chain, kind=naive.Naive):
    """The twin at the chain's state, with the same generator state."""
    state = chain.state.copy()
    first = state.data.first
    twin = kind(
        state.data.likelihood[state.data.row],
        [range(first[i], first[i + 1]) for i in range(chain.problem.n_nodes)],
        state.actions,
        state.labels,
        state.hyper["alpha"],
        state.rng,
        clusters=state.slots.order[: state.slots.n[0]],
    )
    if state.controllers is not None:
        twin.controllers = dict(enumerate(state.controllers.tolist()))
    return twin


def prior_of(chain, twin):
    """The twin's ln p(z_i = k | z_-i) and γ for new clusters."""
    prior = chain.target.prior
    if isinstance(prior, ChineseRestaurant):
        return naive.crp_prior, prior.concentration
    if isinstance(prior, Potts):
        return naive.potts_prior(prior.beta, chain.bound.graph.toarray().tolist()), 0.0
    if isinstance(prior, Uniform):
        return naive.uniform_prior, 0.0
    if not prior.collapsed:
        return naive.weights_prior(chain.state.partition.weights.tolist()), 0.0
    return naive.mixing_prior(prior.concentration, prior.n_clusters), 0.0


PRIORS = {
    "uniform": Uniform(4),
    "mixing": Mixing(4, 0.8),
    "mixing-q": Mixing(4, 0.8, collapsed=False),
    "potts": Potts(4, beta=0.9, n_neighbors=4),
    "potts-offset": Potts(4, beta=0.3, decay=GaussianDecay(0.7, 0.2), n_neighbors=None),
    "crp": ChineseRestaurant(2.5),
}


def chain_of(prior, collapsed, seed):
    problem = make_problem(seed)
    rng = np.random.default_rng(seed + 1000)
    return make_chain(problem, prior, alpha=ALPHA, collapsed=collapsed, rng=rng)


def sweep_twin(twin, chain, collapsed):
    """Draw actions, controllers and indicators of the twin, as the chain is going to."""
    if collapsed:
        twin.collapsed_actions()
    else:
        twin.ordinary_actions()
        slots = len(chain.state.counts.size)
        twin.clusters, used = list(range(slots)), twin.clusters
        twin.xi = {k: twin.xi.get(k, [0] * twin.n_actions) for k in range(slots)}
        twin.draw_controllers()  # the kernel draws one for every slot, used or not
        twin.clusters = used
    log_prior, gamma = prior_of(chain, twin)
    twin.update_indicators(log_prior, not collapsed, gamma)


def assert_same_state(chain, twin):
    assert chain.state.actions.tolist() == twin.actions
    assert canonical(chain.state.labels) == canonical(twin.labels)
    assert chain.state.counts.node.tolist() == twin.phi
    for i, k in enumerate(chain.state.labels):
        assert chain.state.counts.cluster[k].tolist() == twin.xi[twin.labels[i]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("name", PRIORS)
def test_a_sweep_equals_its_twin(name, collapsed, seed):
    chain = chain_of(PRIORS[name], collapsed, seed)
    for _ in range(4):
        twin = twin_of(chain)
        sweep_twin(twin, chain, collapsed)
        chain.sweep()
        assert_same_state(chain, twin)


@pytest.mark.parametrize("few", [10**9, 6, 0], ids=["all-clusters", "some", "by-candidates"])
@pytest.mark.parametrize("offset", [0.1, 0.0], ids=["offset", "no-offset"])
@pytest.mark.parametrize("start", ["self", "nearest"])
@pytest.mark.parametrize("seed", range(3))
def test_link_sweeps_equal_their_twin(seed, start, offset, few):
    chain = link_chain(seed, start, decay=GaussianDecay(0.8, offset))
    twin = link_twin(chain)
    links = chain.update("links")
    links.shortcuts = Shortcuts(max_exact=few, n_candidates=3, max_walk=1 << 62)
    for _ in range(6):
        twin.update_links(0.3, few, 3)
        links(chain.state)
        assert chain.state.partition.link.tolist() == twin.links
        assert canonical(chain.state.labels) == canonical(twin.labels())
        for members in twin.clusters:
            k = chain.state.labels[members[0]]
            assert chain.state.counts.cluster[k].tolist() == twin.counts(members)
    assert update_links.signatures
