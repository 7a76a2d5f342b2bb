"""Atlantic storms: held-out folds, the model, and the directions to be predicted.

The direction of a step is the one of eight sectors that its displacement over the sphere points
into; steps that stand still have none and are left out. Ours never sees directions: it infers
latent actions, and predicts a sector by ``Σ_j p(action j | state) p(sector | action j)``. Its
settings were chosen once, after some sixty trials on two other splits of the same storms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from onlooker import Demonstrations, Posterior, Problem, geography, sample
from onlooker.dynamics import Dynamics, GeographicDynamics
from onlooker.dynamics.features import Feature, Heading, day_of_year
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.repertoire import Actions
from onlooker.warnings import ConvergenceWarning

SECTORS = 8


@dataclass(frozen=True)
class Model:
    """What is known of a storm, and the prior that suits it."""

    features: tuple[Feature, ...]
    metric: str
    n_neighbors: int
    concentration: float
    """Large: regimes stay vague unless many storms agree, as tracks at one place differ much."""


MODELS = {
    "position": Model((), "haversine", 200, 2.0),
    "position, heading, season": Model(
        (Heading(8000.0), day_of_year(500.0)),  # weights in km, like distances
        "chord",
        100,
        0.1,
    ),
}


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    chains: int = 4
    tune: int = 60
    draws: int = 20
    thin: int = 3


def propose(demos: Demonstrations) -> GeographicDynamics:
    """Actions from tracks."""
    return GeographicDynamics.from_demonstrations(demos, 8, 5, noise="resolution", stay=False)


def fit(demos: Demonstrations, dynamics: Dynamics, model: Model, size: Size) -> Posterior:
    """Sample partitions of the states, in one thread."""
    prior = DistanceDependent(
        decay=GaussianDecay(1600.0, offset=0.01),  # km
        n_neighbors=model.n_neighbors,
        metric=model.metric,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains are too short to agree
        return sample(
            Problem.from_demonstrations(demos, dynamics, repertoire=[Actions()]),
            prior,
            concentration=model.concentration,
            draws=size.draws,
            tune=size.tune,
            thin=size.thin,
            chains=size.chains,
            random_state=0,
            n_jobs=1,
            progress=False,
        )


def folds(demos: Demonstrations, n: int, seed: int) -> list[np.ndarray]:
    """Trajectories to hold out; all pieces of a storm go together."""
    storms = np.unique(demos.names)
    fold = np.random.default_rng(seed).permutation(len(storms)) % n
    of = fold[np.searchsorted(storms, demos.names)]
    return [np.flatnonzero(of == k) for k in range(n)]


def seen_directions(demos: Demonstrations) -> tuple[np.ndarray, np.ndarray]:
    """Which transitions move at all, and the sector that each of these points into."""
    states, next_states = demos.transitions()
    moves = geography.displacements(states[:, :2], next_states[:, :2])
    moving = np.asarray(moves.any(axis=1))
    angle = np.arctan2(moves[moving, 1], moves[moving, 0])
    return moving, np.round(angle / (2 * np.pi / SECTORS)).astype(int) % SECTORS


def sector_given_action(dynamics: GeographicDynamics) -> np.ndarray:
    """``(A, 8)``: where the steps of each action point, its noise included.

    The angle of a Gaussian step of mean length ``a`` (in sigma) has the density
    ``exp(-a²/2) / 2π · (1 + c Φ(c) / φ(c))`` with ``c = a cos(angle - mean angle)``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.pi / SECTORS
    angles = 2 * half * np.arange(SECTORS)[:, None] + half * nodes
    length = np.linalg.norm(dynamics.steps, axis=1)[:, None, None]
    a = length / np.broadcast_to(dynamics.sigma, dynamics.n_actions)[:, None, None]
    c = a * np.cos(angles - dynamics.angles[:, None, None])
    density = np.exp(-(a**2) / 2) / (2 * np.pi) + c * norm.cdf(c) * np.exp((c**2 - a**2) / 2) / (
        np.sqrt(2 * np.pi)
    )
    return (density * half * weights).sum(axis=2)


def log_scores(probabilities: np.ndarray, sectors: np.ndarray) -> np.ndarray:
    """``ln p`` of what was seen."""
    return np.log(probabilities[np.arange(len(sectors)), sectors])
