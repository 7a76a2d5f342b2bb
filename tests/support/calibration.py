"""Simulation-based calibration (Talts et al. 2018) of every prior, all hyper-parameters inferred.

Truth and data are drawn from the model. Among draws from the posterior given these data, the rank
of the truth is then uniform. χ² tests of its histogram and of its moments say whether it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.stats
from chains import make_chain

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform, Prior
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Regions,
    Static,
    Uniform,
)
from onlooker.partitions.base import PartitionPrior

Array = np.ndarray[Any, Any]
N_NODES, N_ACTIONS = 8, 3
NODE_OF = np.repeat(np.arange(N_NODES), 3)
MANY_OF = np.repeat(np.arange(N_NODES), 20)
PLACES = np.random.default_rng(0).uniform(0, 3, size=(N_NODES, 2))
DISTANCES = np.linalg.norm(PLACES[:, None] - PLACES[None], axis=-1)
CONFUSION = np.full((N_ACTIONS, N_ACTIONS), 0.15) + 0.55 * np.eye(N_ACTIONS)
"""Each action shows as one of three symbols."""
ALPHA, GAMMA, BETA, NU = Gamma(2.0, 2.0), Gamma(2.0, 1.0), Gamma(3.0, 3.0), Gamma(2.0, 4.0)
SCALE, OFFSET = LogUniform(0.4, 2.0), LogUniform(0.01, 0.5)
DRAWS = 31
Hyper = dict[str, float]


@dataclass(frozen=True)
class Model:
    """A prior to sample from, and how truth is drawn from it."""

    prior: PartitionPrior
    draw: Callable[[np.random.Generator], tuple[Array, Hyper]]
    """Labels and hyper-parameters."""
    collapsed: bool = True
    thin: int = 12
    """Sweeps between two draws; ten times as many come before the first."""
    alpha: Prior = ALPHA
    """Of the concentration."""
    node_of: Array = field(default_factory=lambda: NODE_OF)


def _static(rng: np.random.Generator) -> tuple[Array, Hyper]:
    return np.arange(N_NODES), {}


def _uniform(rng: np.random.Generator) -> tuple[Array, Hyper]:
    return rng.integers(3, size=N_NODES), {}


def _mixing(rng: np.random.Generator) -> tuple[Array, Hyper]:
    gamma = GAMMA.sample(rng)
    return rng.choice(3, size=N_NODES, p=rng.dirichlet(np.full(3, gamma / 3))), {"gamma": gamma}


def _seats(rng: np.random.Generator, gamma: float, n: int) -> Array:
    labels: list[int] = []
    for _ in range(n):
        weights = np.append(np.bincount(labels) if labels else [], gamma)
        labels.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return np.array(labels)


def _restaurant(rng: np.random.Generator) -> tuple[Array, Hyper]:
    gamma = GAMMA.sample(rng)
    return _seats(rng, gamma, N_NODES), {"gamma": gamma}


def _any_problem() -> Problem:
    """The nodes, for what depends on them alone."""
    return Problem(NODE_OF, np.log(CONFUSION.T[np.zeros_like(NODE_OF)]), PLACES)


@cache
def _labelings() -> tuple[Array, Array]:
    """All labelings with three labels, and the weight of their equal pairs."""
    bound: Any = Potts(3, beta=1.0, n_neighbors=3).bind(_any_problem())
    labels = np.array(list(itertools.product(range(3), repeat=N_NODES)))
    weights = bound.graph.toarray()
    same = labels[:, :, None] == labels[:, None, :]
    return labels, np.einsum("lij,ij->l", same, weights) / 2


def _potts(rng: np.random.Generator) -> tuple[Array, Hyper]:
    beta = BETA.sample(rng)
    labels, agreement = _labelings()
    p = np.exp(beta * (agreement - agreement.max()))
    return labels[rng.choice(len(p), p=p / p.sum())], {"beta": beta}


@cache
def _scales() -> tuple[Array, Array]:
    """The grid that the scale lies on, and its probabilities."""
    grid = MODELS["ddcrp"].prior.bind(_any_problem()).similarities.scales  # type: ignore[attr-defined]
    values = np.array([grid.scale(k) for k in range(-60, 61)])
    p = np.array([np.exp(SCALE.logpdf(value)) * value for value in values])
    return values[p > 0], p[p > 0] / p.sum()


def _distance_dependent(rng: np.random.Generator) -> tuple[Array, Hyper]:
    values, p = _scales()
    nu, offset, scale = NU.sample(rng), OFFSET.sample(rng), float(rng.choice(values, p=p))
    weights = GaussianDecay(scale, offset)(DISTANCES)
    np.fill_diagonal(weights, nu)
    return _parts(rng, weights), {"nu": nu, "scale": scale, "offset": offset}


def _parts(rng: np.random.Generator, weights: Array) -> Array:
    """Connected components of links that are drawn with these weights."""
    labels = np.arange(N_NODES)
    for i, row in enumerate(weights):
        j = rng.choice(N_NODES, p=row / row.sum())
        labels[labels == labels[i]] = labels[j]
    return labels


def _regions(rng: np.random.Generator) -> tuple[Array, Hyper]:
    scales = SCALE.mean * np.exp(0.025 * np.arange(-60, 61))
    scale = float(rng.choice(scales[(scales >= SCALE.low) & (scales <= SCALE.high)]))
    nu, gamma = NU.sample(rng), GAMMA.sample(rng)
    weights = np.exp(-((DISTANCES / scale) ** 2))
    weights[weights < 1e-4] = 0.0
    np.fill_diagonal(weights, nu)
    region = _parts(rng, weights)
    shared = _seats(rng, gamma, len(np.unique(region)))
    labels = shared[np.unique(region, return_inverse=True)[1]]
    return labels, {"nu": nu, "scale": scale, "gamma": gamma, "regions": float(len(shared))}


MODELS = {
    "static": Model(Static(), _static),
    "uniform": Model(Uniform(3), _uniform),
    "uniform, ordinary": Model(Uniform(3), _uniform, collapsed=False),
    "mixing": Model(Mixing(3, GAMMA), _mixing),
    "mixing, q drawn": Model(Mixing(3, GAMMA, collapsed=False), _mixing),
    "crp": Model(ChineseRestaurant(GAMMA), _restaurant),
    "crp, ordinary": Model(ChineseRestaurant(GAMMA), _restaurant, collapsed=False),
    # β moves in small steps: draws that are closer crowd at one side of the truth
    "potts": Model(Potts(3, beta=BETA, n_neighbors=3), _potts, thin=120),
    "ddcrp": Model(DistanceDependent(NU, GaussianDecay(SCALE, OFFSET)), _distance_dependent),
    "ddcrp, reassigned": Model(
        DistanceDependent(NU, GaussianDecay(SCALE, OFFSET), reassign=2), _distance_dependent
    ),
    "regions": Model(Regions(NU, GaussianDecay(SCALE), GAMMA), _regions, thin=8),
    "regions, small mass, many visits": Model(
        Regions(NU, GaussianDecay(SCALE), GAMMA),
        _regions,
        thin=8,
        alpha=Exponential(0.1),
        node_of=MANY_OF,
    ),
}


def _numbers(labels: Array, actions: Array, hyper: Hyper) -> dict[str, float]:
    """What is ranked: hyper-parameters, and numbers that no naming of clusters changes."""
    same = labels[:, None] == labels[None]
    played = np.bincount(actions, minlength=N_ACTIONS)
    return hyper | {
        "clusters": float(len(np.unique(labels))),
        "pairs": float(same.sum()),
        "first action": float(played[0]),
    }


def ranks(name: str, seed: int, alpha: Prior | None = None) -> dict[str, int]:
    """Ranks of the truth among the draws, for one replicate; ties are broken by lot.

    `alpha` is the prior that the sampler is told, if not that of the truth.
    """
    model = MODELS[name]
    node_of = model.node_of
    rng = np.random.default_rng([seed, list(MODELS).index(name)])
    labels, hyper = model.draw(rng)
    hyper |= {"alpha": model.alpha.sample(rng)}
    theta = rng.dirichlet(np.full(N_ACTIONS, hyper["alpha"]), size=N_NODES)
    actions = np.array([rng.choice(N_ACTIONS, p=theta[labels[i]]) for i in node_of])
    shown = np.array([rng.choice(N_ACTIONS, p=CONFUSION[action]) for action in actions])
    truth = _numbers(labels, actions, hyper)

    problem = Problem(node_of, np.log(CONFUSION.T[shown]), PLACES)
    alpha = model.alpha if alpha is None else alpha
    chain = make_chain(problem, model.prior, alpha=alpha, collapsed=model.collapsed, rng=rng)
    below, ties = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for sweep in range(-9 * model.thin, DRAWS * model.thin + 1):
        chain.sweep()
        if sweep < -3 * model.thin:
            chain.adapt()
        if sweep > 0 and sweep % model.thin == 0:
            drawn = _numbers(chain.labels, chain.actions, chain.state.hyper)
            if "regions" in truth:
                drawn["regions"] = float(chain.state.partition.n_regions.sum())
            for what, value in truth.items():
                tie = bool(np.isclose(drawn[what], value, rtol=1e-12))
                ties[what] += tie
                below[what] += bool(drawn[what] < value) and not tie
    return {what: below[what] + int(rng.integers(ties[what] + 1)) for what in truth}


def p_values(found: list[dict[str, int]], n_bins: int = 8) -> dict[str, float]:
    """Tests of uniform ranks, one for each number: χ² of the histogram, or of two moments.

    Ranks that are shifted, or spread too far or too little, show in their mean and variance first:
    by both tests, 144 replicates find as much as 192 do by the histogram alone.
    """
    return {
        what: min(_p_histogram(ranks, n_bins), _p_moments(ranks))
        for what in found[0]
        for ranks in [np.array([row[what] for row in found])]
    }


def _p_histogram(ranks: Array, n_bins: int) -> float:
    counts = np.bincount(ranks * n_bins // (DRAWS + 1), minlength=n_bins)
    return float(scipy.stats.chisquare(counts).pvalue)


def _p_moments(ranks: Array) -> float:
    every = (np.arange(DRAWS + 1) - DRAWS / 2) ** np.array([[1], [2]])
    every -= every.mean(axis=1, keepdims=True)
    z = every[:, ranks].sum(axis=1) / np.sqrt(len(ranks) * (every**2).mean(axis=1))
    return float(scipy.stats.chi2.sf((z**2).sum(), 2))
