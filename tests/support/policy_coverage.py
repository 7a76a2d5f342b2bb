"""Whether intervals of the policy cover it, at nodes, near them and far away.

Worlds are drawn from a prior: hyper-parameters, partition, controllers and actions, over nodes and
unseen states alike. Only transitions at the nodes are seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from exact_regions import similarities
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from onlooker import Problem, sample
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    Mixing,
    PartitionPrior,
    Potts,
    Regions,
    Static,
    Uniform,
)

LEVEL = 0.9
N_ACTIONS = 6
SIGNAL = 2.5  # what is seen of an action: its unit vector times this, and standard normal noise
BINS = (0.0, 0.5, 1.0, 2.0, 4.0, np.inf)  # scales
AT_NODES = -1  # in place of a bin
REGIONS = Regions.inferred(1.0)
PRIORS: dict[str, PartitionPrior[Any]] = {
    "static": Static(),
    "uniform": Uniform(4),
    "mixing": Mixing(4),
    "mixing, weights drawn": Mixing(4, collapsed=False),
    "crp": ChineseRestaurant(),
    "potts": Potts(4),
    "ddcrp": DistanceDependent(),
    "regions": REGIONS,
}
Rng = np.random.Generator


class World(NamedTuple):
    """Nodes, unseen states, what was seen, and the truth."""

    nodes: np.ndarray
    unseen: np.ndarray
    node_of: np.ndarray
    loglik: np.ndarray
    policy: np.ndarray  # at nodes and unseen states
    distance: np.ndarray  # of unseen states to the nearest node, in scales


def draw_world(
    seed: int, prior: PartitionPrior[Any] = REGIONS, n_nodes: int = 150, n_unseen: int = 40
) -> World:
    """A world from the prior."""
    rng = np.random.default_rng([seed, 7])
    nodes = rng.uniform(0.0, 12.0, size=(n_nodes, 2))
    scale = drawn("scale", prior, rng) if prior.reach else 1.0
    half, far = n_unseen // 2, 3.0 if prior is REGIONS else 5.0  # whose scales are large, too
    unseen = rng.uniform(0.0, 12.0, size=(half, 2))
    some = nodes[rng.integers(n_nodes, size=n_unseen - half)]
    unseen = np.concatenate([unseen, some + scale * rng.normal(0.0, far, size=some.shape)])
    places = np.concatenate([nodes, unseen])
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    controller = _DRAWN[type(prior)](prior, apart, scale, rng)
    mass = CONCENTRATION.prior.sample(rng)
    policy = _controllers(mass / N_ACTIONS, max(controller) + 1, rng)[controller]
    node_of = np.sort(rng.integers(n_nodes, size=2 * n_nodes))
    actions = [rng.choice(N_ACTIONS, p=policy[i]) for i in node_of]
    seen = SIGNAL * np.eye(N_ACTIONS)[actions] + rng.normal(size=(len(actions), N_ACTIONS))
    distance = apart[n_nodes:, :n_nodes].min(axis=1) / scale
    return World(nodes, unseen, node_of, SIGNAL * seen, policy, distance)


def drawn(name: str, prior: PartitionPrior[Any], rng: Rng) -> float:
    """A hyper-parameter: as it is fixed, or from its prior."""
    value = prior.hyper()[name]
    return float(value) if isinstance(value, int | float) else value.sample(rng)


# -- partitions from the priors: (prior, distances, scale, rng) -> cluster of each place


def _mixture(prior: Mixing, apart: np.ndarray, scale: float, rng: Rng) -> np.ndarray:
    n = prior.n_clusters
    weights = rng.dirichlet(np.full(n, drawn("gamma", prior, rng) / n))
    return rng.choice(n, p=weights, size=len(apart))


def _restaurant(n: int, gamma: float, rng: Rng) -> np.ndarray:
    tables = [0]
    for _ in range(1, n):
        m = np.append(np.bincount(tables), gamma)
        tables.append(int(rng.choice(len(m), p=m / m.sum())))
    return np.array(tables)


def _lattice(prior: Potts, apart: np.ndarray, scale: float, rng: Rng) -> np.ndarray:
    """By Swendsen-Wang."""
    near = similarities(apart, scale, prior.n_neighbors)
    joined = -np.expm1(-drawn("beta", prior, rng) * np.triu(near + near.T) / 2)
    labels = rng.integers(prior.n_clusters, size=len(apart))
    for _ in range(300):
        bonds = (rng.random(joined.shape) < joined) & (labels[:, None] == labels)
        n, part = connected_components(csr_array(bonds))
        labels = rng.integers(prior.n_clusters, size=n)[part]
    return labels


def _linked(prior: Any, apart: np.ndarray, scale: float, rng: Rng) -> np.ndarray:
    n, offset = len(apart), prior.decay.known_offset
    weights = (1 - offset) * similarities(apart, scale) + offset
    np.fill_diagonal(weights, drawn("nu", prior, rng))
    links = [rng.choice(n, p=row / row.sum()) for row in weights]
    graph = csr_array((np.ones(n), (np.arange(n), links)), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _regions(prior: Regions, apart: np.ndarray, scale: float, rng: Rng) -> np.ndarray:
    region = _linked(prior, apart, scale, rng)
    return _restaurant(region.max() + 1, drawn("gamma", prior, rng), rng)[region]


_DRAWN: dict[type, Callable[..., np.ndarray]] = {
    Static: lambda prior, apart, scale, rng: np.arange(len(apart)),
    Uniform: lambda prior, apart, scale, rng: rng.integers(prior.n_clusters, size=len(apart)),
    Mixing: _mixture,
    ChineseRestaurant: lambda prior, apart, scale, rng: _restaurant(
        len(apart), drawn("gamma", prior, rng), rng
    ),
    Potts: _lattice,
    DistanceDependent: _linked,
    Regions: _regions,
}


def _controllers(alpha: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """θ ~ Dir(α) in logarithms, for small α."""
    shape = (n, N_ACTIONS)
    logs = np.log(rng.standard_gamma(alpha + 1.0, shape)) + np.log(rng.random(shape)) / alpha
    theta = np.exp(logs - logs.max(axis=1, keepdims=True))
    return theta / theta.sum(axis=1, keepdims=True)


class Covered(NamedTuple):
    """What intervals did, a row a state."""

    bin: np.ndarray
    all: np.ndarray
    """Share of the actions whose interval holds the truth."""
    top: np.ndarray
    """Whether that of the likeliest action does."""
    width: np.ndarray
    """Of the latter."""
    score: np.ndarray
    """Expected log probability of the expert's action."""
    transductive: np.ndarray
    """The same where unseen states are nodes; nan where that was not asked for."""


def covered(
    seed: int,
    prior: PartitionPrior[Any] = REGIONS,
    draws: int = 300,
    transductive: bool = False,
    collapsed: bool = True,
    **how: Any,
) -> Covered:
    """Fit a world and look."""
    world = draw_world(seed, prior)
    return look(
        world, fit(world.nodes, world, prior, draws, seed, collapsed), seed, transductive, **how
    )


def look(
    world: World, posterior: Any, seed: int, transductive: bool = False, **how: Any
) -> Covered:
    """What a posterior's intervals do at nodes and unseen states."""
    places = np.concatenate([world.nodes, world.unseen])
    found = posterior.policy(places, interval=LEVEL, **how)
    inside = (found.low <= world.policy) & (world.policy <= found.high)
    top = found.mean.argmax(axis=1)[:, None]
    other = np.full(found.mean.shape, np.nan)
    if transductive:
        other = fit(places, world, posterior.prior, posterior.n_draws, seed).policy(places)
    at_nodes = np.full(len(world.nodes), AT_NODES)
    return Covered(
        np.concatenate([at_nodes, np.digitize(world.distance, BINS) - 1]),
        inside.mean(axis=1),
        np.take_along_axis(inside, top, axis=1)[:, 0],
        np.take_along_axis(found.high - found.low, top, axis=1)[:, 0],
        (world.policy * np.log(found.mean)).sum(axis=1),
        (world.policy * np.log(other)).sum(axis=1),
    )


def fit(
    places: np.ndarray,
    world: World,
    prior: PartitionPrior[Any],
    draws: int,
    seed: int,
    collapsed: bool = True,
) -> Any:
    """The posterior given what was seen, with these nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(
            Problem(world.node_of, world.loglik, places),
            prior,
            CONCENTRATION,
            collapsed=collapsed,
            draws=draws,
            tune=150,
            chains=2,
            random_state=seed,
            progress=False,
        )


def gather(seeds: Any, **how: Any) -> Covered:
    """Several worlds together."""
    return join(covered(seed, **how) for seed in seeds)


def join(parts: Any) -> Covered:
    """Several worlds together."""
    return Covered(*map(np.concatenate, zip(*parts, strict=True)))
