"""Every model's chain, and its plain-Python twin from ``tests/naive*.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import naive
import numpy as np
from chains import Chain
from chains import make_chain as chain_of
from naive_links import NaiveLinks

from onlooker import Problem
from onlooker.gibbs.slices import slice_sample_log
from onlooker.hyper import Exponential, LogUniform
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    PartitionPrior,
    Potts,
    Static,
    Uniform,
)

K = 8
ALPHA = 1.0


@dataclass(frozen=True)
class Model:
    """A prior and a scheme; the prior may depend on the number of nodes."""

    prior: Callable[[int], PartitionPrior]
    scheme: dict[str, Any] = field(default_factory=dict)


def _ddcrp(n_nodes: int) -> DistanceDependent:
    return DistanceDependent(0.1, GaussianDecay(1.0, offset=10 / n_nodes))


def _inferred(n_nodes: int) -> DistanceDependent:
    # All inferred; the prior of the offset moves with N, as the fixed one does above.
    decay = GaussianDecay(LogUniform(0.5, 2.0), LogUniform(2 / n_nodes, 50 / n_nodes))
    return DistanceDependent(Exponential(0.1), decay, tolerance=1e-6)


MODELS: dict[str, Model] = {
    "static": Model(lambda n: Static()),
    "uniform": Model(lambda n: Uniform(K)),
    "mixing, ordinary": Model(lambda n: Mixing(K), {"collapsed": False}),
    "mixing, collapsed": Model(lambda n: Mixing(K)),
    "Potts": Model(lambda n: Potts(K, beta=0.8)),
    "CRP": Model(lambda n: ChineseRestaurant(1.0)),
    "ddCRP": Model(_ddcrp),
    "ddCRP, decay inferred": Model(_inferred),
}


def plane(n_nodes: int, a_node: int = 1, n_actions: int = 8, seed: int = 0) -> Problem:
    """So many transitions at each of N random points, one point a unit of area.

    The expert's direction changes every 10 units, so that the number of controllers that the
    data can tell apart grows with the area.
    """
    rng = np.random.default_rng(seed)
    states = rng.uniform(0, np.sqrt(n_nodes), size=(n_nodes, 2))
    node_of = np.repeat(np.arange(n_nodes), a_node)
    cell = np.floor(states / 10).astype(int)[node_of]
    action = (3 * cell[:, 0] + 5 * cell[:, 1] + rng.integers(-1, 2, size=len(cell))) % n_actions
    turn = (np.arange(n_actions) - action[:, None] + n_actions // 2) % n_actions - n_actions // 2
    return Problem(node_of, -0.5 * (turn / 0.5) ** 2, states)


def make_chain(name: str, problem: Problem, sweeps: int) -> Chain:
    """A chain past its first sweeps."""
    model = MODELS[name]
    chain = chain_of(
        problem,
        model.prior(problem.n_nodes),
        alpha=ALPHA,
        rng=np.random.default_rng(0),
        **model.scheme,
    )
    for _ in range(sweeps):
        chain.sweep()
    return chain


# -- twins -----------------------------------------------------------------------------------------


@dataclass
class Twin:
    """A plain-Python sweep from where the chain is now, and the state that it leaves."""

    sweep: Callable[[], None]
    plain: Any


def twin_of(name: str, chain: Chain) -> Twin:
    """The twin of a chain, at the chain's state and with the same random numbers to come."""
    if name.startswith("ddCRP"):
        return _link_twin(chain)
    state = chain.state.copy()
    first = state.data.first
    plain = naive.Naive(
        state.data.likelihood[state.data.row],
        [range(first[i], first[i + 1]) for i in range(len(state.labels))],
        state.actions,
        state.labels,
        ALPHA,
        state.rng,
        clusters=state.slots.order[: state.slots.n[0]],
    )
    if state.controllers is not None:
        plain.controllers = dict(enumerate(state.controllers.tolist()))
    return Twin(partial(_plain_sweep, plain, chain, *_plain_prior(name, chain)), plain)


def _plain_sweep(plain: Any, chain: Chain, log_prior: Any, gamma: float) -> None:
    if chain.target.collapsed:
        plain.collapsed_actions()
    else:
        plain.ordinary_actions()
        plain.draw_controllers()
    if log_prior is not None:
        plain.update_indicators(log_prior, not chain.target.collapsed, gamma)


def _plain_prior(name: str, chain: Chain) -> tuple[Any, float]:
    bound: Any = chain.bound
    if name == "static":
        return None, 0.0
    if name == "uniform":
        return naive.uniform_prior, 0.0
    if name == "CRP":
        return naive.crp_prior, 1.0
    if name == "Potts":
        return _potts_prior(bound.beta, bound.graph), 0.0
    return naive.mixing_prior(1.0, K), 0.0


def _potts_prior(beta: float, graph: Any) -> Any:
    """As `naive.potts_prior`, but over the neighbours alone: a table of all pairs is too large."""
    rows = list(zip(graph.indptr[:-1], graph.indptr[1:], strict=True))
    near = [
        list(zip(graph.indices[a:b].tolist(), graph.weights[a:b].tolist(), strict=True))
        for a, b in rows
    ]

    def log_prior(chain: Any, i: int, k: int) -> float:
        return float(beta * sum(w for j, w in near[i] if chain.labels[j] == k))

    return log_prior


def _link_twin(chain: Chain) -> Twin:
    state = chain.state.copy()
    first = state.data.first
    graph, nu = chain.bound.similarities.at(state)  # type: ignore[attr-defined]
    near = [
        list(zip(graph.indices[a:b].tolist(), graph.weights[a:b].tolist(), strict=True))
        for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    ]
    links = NaiveLinks(
        state.partition.link, state.counts.node, near, graph.offset, ALPHA, state.rng
    )
    rest = naive.Naive(
        state.data.likelihood[state.data.row],
        [range(first[i], first[i + 1]) for i in range(len(state.labels))],
        state.actions,
        state.labels,
        ALPHA,
        state.rng,
    )
    infers = "offset" in state.hyper

    def sweep() -> None:
        rest.collapsed_actions()
        links.phi = rest.phi
        links.list_in_links()
        links.update_links(nu)
        if infers:
            _plain_decay(links, chain, state)

    return Twin(sweep, links)


def _plain_decay(links: NaiveLinks, chain: Chain, state: Any) -> None:
    """Draw ν, offset and scale, with ``p(c | ν, σ, ε)`` as its formula says: all N² pairs."""
    layout, bound = chain.bound.layout, chain.bound
    at = layout.problem.states[layout.nodes].tolist()
    nu, offset, scale = (state.hyper[name] for name in ("nu", "offset", "scale"))
    scales = bound.similarities.scales  # type: ignore[attr-defined]
    decay = scales.decay

    def log_p(nu: float, offset: float, scale: float) -> float:
        value = 0.0
        for i, (x, y) in enumerate(at):
            total, own = nu, nu
            for j, (u, v) in enumerate(at):
                if i != j:
                    square = (x - u) ** 2 + (y - v) ** 2
                    weight = (1 - offset) * math.exp(-square / scale**2) + offset
                    total += weight
                    if links.links[i] == j:
                        own = weight
            value += math.log(own / total)
        return value

    def posterior(prior: Any, value: float, log_likelihood: Callable[[], float]) -> float:
        log_prior = float(prior.logpdf(value))
        return log_prior + log_likelihood() if log_prior > -math.inf else -math.inf

    rng, prior = state.rng, bound.nu  # type: ignore[attr-defined]
    nu = slice_sample_log(lambda x: posterior(prior, x, lambda: log_p(x, offset, scale)), nu, rng)
    offset = slice_sample_log(
        lambda x: posterior(decay.offset, x, lambda: log_p(nu, x, scale)), offset, rng
    )

    def density(scale: float) -> float:
        return posterior(decay.scale, scale, lambda: log_p(nu, offset, scale)) + math.log(scale)

    step = scales.step
    log_density = density(scale)
    for _ in range(4):  # as often as the kernel
        stride = (1, 2, 4, 8)[int(rng.random() * 4)] * (1 if rng.random() < 0.5 else -1)
        other = scale * math.exp(stride * step)
        candidate = density(other)
        if math.log1p(-rng.random()) < candidate - log_density:
            scale, log_density = other, candidate


def same_state(chain: Chain, plain: Any) -> bool:
    """Whether a twin of indicators ended where the kernel did."""
    if chain.state.actions.tolist() != plain.actions:
        return False
    pairs = set(zip(chain.state.labels.tolist(), plain.labels, strict=True))
    return len(pairs) == len({k for k, _ in pairs}) == len({k for _, k in pairs})
