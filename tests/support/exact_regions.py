"""The oracle of regions that share controllers: all link graphs times all sharings.

Actions are summed out by their counts, so a node may have many transitions: the weight of all
sequences with the same counts is a coefficient of ``Π_t Σ_j ℓ[t, j] x_j``. Nothing here comes from
the library.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from agreement import Floats, Partition, canonical
from exact import Exact, n_of_size
from exact_parts import components, grid, is_distribution, set_partitions
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

TOLERANCE = 1e-4  # similarities below are zero
Pair = tuple[Partition, Partition]  # regions, controllers


@dataclass(frozen=True)
class Regions:
    """What is known of the partition into regions, as `Exact` has it of controllers."""

    co_clustering: Floats
    n_clusters: dict[int, float]
    partitions: dict[Partition, float]
    hyper: dict[str, tuple[float, float]]
    hyper_by_size: dict[tuple[str, int], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class ExactRegions(Exact):
    """Posterior quantities of controllers, and of regions and links."""

    regions: Regions
    pairs: dict[Pair, float]  # both partitions together
    links: Floats  # (N, N): P(c_i = j | data)


@dataclass(frozen=True)
class _Block:
    """Some nodes that share a controller, on the grid of α and the mass of a kind."""

    log_evidence: Floats  # (G,)
    policy: Floats  # (G, A)
    square: Floats  # (G, A)
    actions: dict[int, Floats]  # (G, A) for each of their transitions


def regions(
    node_of: ArrayLike,
    loglik: ArrayLike,
    n_nodes: int,
    alpha: Any,
    nu: Any,
    gamma: Any,
    distances: Floats,
    scale: Any,
    *,
    share: ArrayLike | None = None,
    kinds: Sequence[int] | None = None,
    n_neighbors: int | None = None,
    given: Sequence[int] | None = None,
) -> ExactRegions:
    """Sum p(links | scale, ν) p(sharing | γ) Π_k Σ_a DM(ξ_k) Π_t ℓ[t, a_t] over everything.

    `scale` is a number, or (values, probabilities); others are numbers or distributions. `share` is
    the base measure over the actions times their number; with `kinds`, 0 or 1 for each action, it
    is uniform within them and the mass of kind 0 is uniform: "kind". `given` are the links, where
    known.
    """
    node_of = np.asarray(node_of, dtype=int)
    loglik = np.asarray(loglik, dtype=float)
    n_actions = loglik.shape[1]
    alphas, alpha_weights = grid(alpha)
    masses, mass_weights = np.full(1, np.nan), np.ones(1)
    shares = np.ones((1, n_actions)) if share is None else np.asarray(share, dtype=float)[None]
    if kinds is not None:
        nodes, mass_weights = np.polynomial.legendre.leggauss(24)
        masses, mass_weights = (nodes + 1) / 2, mass_weights / 2
        sizes = np.bincount(kinds)[np.asarray(kinds)]
        shares = n_actions * np.where(np.equal(kinds, 0), masses[:, None], 1 - masses[:, None])
        shares = shares / sizes
    shapes = np.multiply.outer(alphas, shares).reshape(-1, 1, n_actions)
    alphas, masses = np.repeat(alphas, len(masses)), np.tile(masses, len(alphas))
    alpha_weights = np.multiply.outer(alpha_weights, mass_weights).ravel()
    nus, nu_weights = grid(nu)
    gammas, gamma_weights = grid(gamma)
    scales, scale_weights = scale if isinstance(scale, tuple) else ([scale], [1.0])
    scales, scale_weights = np.asarray(scales, float), np.asarray(scale_weights, float)

    near = np.array([similarities(distances, one, n_neighbors) for one in scales])
    prior, link = _links(near, nus, np.multiply.outer(scale_weights, nu_weights), given)
    blocks = {
        block: _block(block, node_of, loglik, shapes)
        for size in range(1, n_nodes + 1)
        for block in itertools.combinations(range(n_nodes), size)
    }

    grids = {  # of each unknown: values, and which of the three factors holds it
        "scale": (np.repeat(scales, len(nus)), 0, isinstance(scale, tuple)),
        "nu": (np.tile(nus, len(scales)), 0, is_distribution(nu)),
        "gamma": (gammas, 1, is_distribution(gamma)),
        "alpha": (alphas, 2, is_distribution(alpha)),
        "kind": (masses, 2, kinds is not None),
    }
    factors: dict[Pair, list[Floats]] = {}
    for parts, log_links in prior.items():
        n_regions = len(set(parts))
        for sharing in set_partitions(n_regions):
            m = np.bincount(sharing)
            log_sharing = len(m) * np.log(gammas) + gammaln(m).sum()
            log_sharing += gammaln(gammas) - gammaln(gammas + n_regions) + np.log(gamma_weights)
            labels = canonical(sharing[r] for r in parts)
            log_fit = np.log(alpha_weights) + sum(
                blocks[block].log_evidence for block in _blocks(labels)
            )
            factors[parts, labels] = [log_links, log_sharing, log_fit]
    log_w = {pair: sum(logsumexp(one) for one in three) for pair, three in factors.items()}
    log_evidence = float(logsumexp(list(log_w.values())))
    pairs = {pair: float(np.exp(value - log_evidence)) for pair, value in log_w.items()}

    policy, square = np.zeros((2, n_nodes, n_actions))
    actions = np.zeros_like(loglik)
    links = np.zeros((n_nodes, n_nodes))
    moments: dict[str, dict[Pair, tuple[float, float]]] = {
        name: {} for name, (_, _, inferred) in grids.items() if inferred
    }
    for pair, p in pairs.items():
        three = [np.exp(one - logsumexp(one)) for one in factors[pair]]
        links += p * link[pair[0]]
        for block in _blocks(pair[1]):
            policy[list(block)] += p * three[2] @ blocks[block].policy
            square[list(block)] += p * three[2] @ blocks[block].square
            for t, marginal in blocks[block].actions.items():
                actions[t] += p * three[2] @ marginal
        for name, of_pair in moments.items():
            values, factor, _ = grids[name]
            of_pair[pair] = three[factor] @ values, three[factor] @ values**2
    of_controllers = _numbers(pairs, moments, 1)
    return ExactRegions(
        **vars(of_controllers),
        policy=policy,
        policy_sd=np.sqrt(np.maximum(square - policy**2, 0.0)),
        actions=actions,
        log_evidence=log_evidence,
        node_of=node_of,
        regions=_numbers(pairs, moments, 0),
        pairs=pairs,
        links=links,
    )


def similarities(distances: Floats, scale: float, n_neighbors: int | None = None) -> Floats:
    """g(d) = exp(-d²/scale²) of other nodes, zero where it is tiny; some nearest ones only."""
    g = np.exp(-((distances / scale) ** 2))
    g[distances > scale * np.sqrt(-np.log(TOLERANCE))] = 0.0
    np.fill_diagonal(g, 0.0)
    if n_neighbors is not None:
        for i, row in enumerate(distances):
            others = sorted((j for j in range(len(row)) if j != i), key=lambda j: row[j])
            g[i, others[n_neighbors:]] = 0.0
    return g


def _links(
    near: Floats, nus: Floats, weights: Floats, given: Sequence[int] | None
) -> tuple[dict[Partition, Floats], dict[Partition, Floats]]:
    """ln p(regions, scale, ν), flat over the grid, and P(c_i = j | regions), over all graphs."""
    n_scales, n_nodes, _ = near.shape
    p = np.empty((n_nodes, n_nodes, n_scales, len(nus)))
    for i, j in itertools.product(range(n_nodes), repeat=2):
        others = near[:, i].sum(axis=1)[:, None]
        p[i, j] = (nus if i == j else near[:, i, j, None]) / (nus + others)
    total: dict[Partition, Floats] = {}
    link: dict[Partition, Floats] = {}
    every = itertools.product(range(n_nodes), repeat=n_nodes)
    for graph in every if given is None else [tuple(given)]:
        of_graph = weights.copy()
        for i, j in enumerate(graph):
            of_graph *= p[i, j]
        if not of_graph.any():
            continue
        parts = components(graph)
        total[parts] = total.get(parts, 0.0) + of_graph
        hits = link.setdefault(parts, np.zeros((n_nodes, n_nodes)))
        hits[np.arange(n_nodes), graph] += of_graph.sum()
    with np.errstate(divide="ignore"):
        log_p = {parts: np.log(value).ravel() for parts, value in total.items()}
    return log_p, {parts: hits / total[parts].sum() for parts, hits in link.items()}


def _block(
    block: Sequence[int], node_of: NDArray[np.int64], loglik: Floats, shapes: Floats
) -> _Block:
    own = np.flatnonzero(np.isin(node_of, block))
    shift = loglik[own].max(axis=1)
    likelihood = np.exp(loglik[own] - shift[:, None])
    weight, xi = _by_counts(likelihood)
    log_p = np.log(weight) + _log_dm(xi, shapes)
    log_evidence = logsumexp(log_p, axis=1)
    p = np.exp(log_p - log_evidence[:, None])
    theta = (xi + shapes) / (xi + shapes).sum(axis=-1, keepdims=True)
    actions = {}
    for t, row in zip(own, likelihood, strict=True):
        weight, xi = _by_counts(likelihood[own != t])
        with np.errstate(divide="ignore"):
            of_t = [
                np.log(row[j])
                + logsumexp(np.log(weight) + _log_dm(xi + (np.arange(len(row)) == j), shapes), 1)
                for j in range(len(row))
            ]
        actions[int(t)] = np.exp(np.array(of_t).T - log_evidence[:, None])
    return _Block(
        log_evidence + shift.sum(),
        np.einsum("gc,gcj->gj", p, theta),
        np.einsum("gc,gcj->gj", p, theta**2),
        actions,
    )


def _by_counts(likelihood: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """``(C,)`` sums of Π_t ℓ[t, a_t] over all sequences with the same counts, ``(C, A)``."""
    n, n_actions = likelihood.shape
    weight = np.ones((1,) * (n_actions - 1))
    for row in likelihood:
        longer = np.zeros(np.add(weight.shape, 1))
        for j in range(n_actions):
            at = [
                slice(int(j == axis), int(j == axis) - 1 or None) for axis in range(n_actions - 1)
            ]
            longer[tuple(at)] += row[j] * weight
        weight = longer
    some = np.argwhere(weight > 0.0)
    return weight[weight > 0.0], np.column_stack([some, n - some.sum(axis=1)])


def _log_dm(xi: NDArray[np.int64], shapes: Floats) -> Floats:
    """ln DM(ξ) for counts (C, A) and parameters (G, 1, A)."""
    total = shapes.sum(axis=-1)
    by_action = gammaln(shapes + xi) - gammaln(shapes)
    return np.asarray(gammaln(total) - gammaln(total + xi.sum(axis=-1)) + by_action.sum(axis=-1))


def _blocks(labels: Partition) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(np.equal(labels, k)).tolist()) for k in sorted(set(labels))]


def _numbers(
    pairs: Mapping[Pair, float],
    moments: Mapping[str, Mapping[Pair, tuple[float, float]]],
    which: int,
) -> Regions:
    """What both partitions say, of one of them."""
    partitions: dict[Partition, float] = {}
    for pair, p in pairs.items():
        partitions[pair[which]] = partitions.get(pair[which], 0.0) + p
    same = sum(p * np.equal.outer(part, part) for part, p in partitions.items())
    hyper, by_size = {}, {}
    for name, of_pair in moments.items():

        def mean_sd(some: list[Pair], of_pair: Any = of_pair) -> tuple[float, float]:
            mean, square = sum(pairs[pair] * np.array(of_pair[pair]) for pair in some)
            return float(mean), float(np.sqrt(max(square - mean**2, 0.0)))

        hyper[name] = mean_sd(list(pairs))
        for k in n_of_size(partitions):
            by_size[name, k] = mean_sd([pair for pair in pairs if len(set(pair[which])) == k])
    return Regions(np.asarray(same), n_of_size(partitions), partitions, hyper, by_size)
