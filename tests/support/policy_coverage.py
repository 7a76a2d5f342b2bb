"""Whether intervals of the policy cover it, near the data and far away, in worlds from the prior.

Hyper-parameters, links, sharing, controllers and actions are drawn from `Regions.inferred(1.0)`
over nodes and unseen states alike. Only transitions at the nodes are seen.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from exact_regions import similarities
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from onlooker import Problem, sample
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import Regions

LEVEL = 0.9
N_ACTIONS = 6
SIGNAL = 2.5  # what is seen of an action: its unit vector times this, and standard normal noise
BINS = (0.0, 0.5, 1.0, 2.0, 4.0, np.inf)  # scales


class World(NamedTuple):
    """Nodes, unseen states, what was seen, and the truth."""

    nodes: np.ndarray
    unseen: np.ndarray
    node_of: np.ndarray
    loglik: np.ndarray
    policy: np.ndarray  # at unseen states
    distance: np.ndarray  # of unseen states to the nearest node, in scales


def draw_world(seed: int, n_nodes: int = 150, n_unseen: int = 40) -> World:
    """A world from the prior."""
    rng = np.random.default_rng([seed, 7])
    prior = Regions.inferred(1.0)
    nodes = rng.uniform(0.0, 12.0, size=(n_nodes, 2))
    scale = prior.decay.scale.sample(rng)
    unseen = np.concatenate(
        [
            rng.uniform(0.0, 12.0, size=(n_unseen // 2, 2)),
            nodes[rng.integers(n_nodes, size=n_unseen - n_unseen // 2)]
            + scale * rng.normal(0.0, 3.0, size=(n_unseen - n_unseen // 2, 2)),
        ]
    )
    places = np.concatenate([nodes, unseen])
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    weights = similarities(apart, scale) + prior.self_link.sample(rng) * np.eye(len(places))
    links = [rng.choice(len(places), p=row / row.sum()) for row in weights]
    graph = csr_array((np.ones(len(places)), (np.arange(len(places)), links)))
    graph.resize((len(places), len(places)))
    n_regions, region = connected_components(graph, directed=False)
    gamma, sharing = prior.sharing.sample(rng), [0]
    for _ in range(1, n_regions):
        m = np.append(np.bincount(sharing), gamma)
        sharing.append(int(rng.choice(len(m), p=m / m.sum())))
    mass = CONCENTRATION.prior.sample(rng)
    policy = _controllers(mass / N_ACTIONS, max(sharing) + 1, rng)[np.array(sharing)[region]]
    node_of = np.sort(rng.integers(n_nodes, size=2 * n_nodes))
    actions = [rng.choice(N_ACTIONS, p=policy[i]) for i in node_of]
    seen = SIGNAL * np.eye(N_ACTIONS)[actions] + rng.normal(size=(len(actions), N_ACTIONS))
    distance = apart[n_nodes:, :n_nodes].min(axis=1) / scale
    return World(nodes, unseen, node_of, SIGNAL * seen, policy[n_nodes:], distance)


def _controllers(alpha: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """θ ~ Dir(α) in logarithms, for small α."""
    shape = (n, N_ACTIONS)
    logs = np.log(rng.standard_gamma(alpha + 1.0, shape)) + np.log(rng.random(shape)) / alpha
    theta = np.exp(logs - logs.max(axis=1, keepdims=True))
    return theta / theta.sum(axis=1, keepdims=True)


class Covered(NamedTuple):
    """What intervals at unseen states did, a row a state."""

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


def covered(seed: int, draws: int = 300, transductive: bool = False, **how) -> Covered:
    """Fit a world and look."""
    world = draw_world(seed)
    found = fit(world.nodes, world, draws, seed).policy(world.unseen, interval=LEVEL, **how)
    inside = (found.low <= world.policy) & (world.policy <= found.high)
    top = found.mean.argmax(axis=1)[:, None]
    other = np.full(found.mean.shape, np.nan)
    if transductive:
        places = np.concatenate([world.nodes, world.unseen])
        other = fit(places, world, draws, seed).policy(world.unseen)
    return Covered(
        np.digitize(world.distance, BINS) - 1,
        inside.mean(axis=1),
        np.take_along_axis(inside, top, axis=1)[:, 0],
        np.take_along_axis(found.high - found.low, top, axis=1)[:, 0],
        (world.policy * np.log(found.mean)).sum(axis=1),
        (world.policy * np.log(other)).sum(axis=1),
    )


def fit(places: np.ndarray, world: World, draws: int, seed: int):
    """The posterior given what was seen, with these nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(
            Problem(world.node_of, world.loglik, places),
            Regions.inferred(1.0),
            CONCENTRATION,
            draws=draws,
            tune=150,
            chains=2,
            random_state=seed,
            progress=False,
        )


def gather(seeds, **how) -> Covered:
    """Several worlds together."""
    parts = [covered(seed, **how) for seed in seeds]
    return Covered(*map(np.concatenate, zip(*parts, strict=True)))
