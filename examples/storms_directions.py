"""Directions of storms, the competitors that are trained on them, and who predicts them better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import norm

from onlooker import Demonstrations, geography
from onlooker.dynamics import GeographicDynamics

NAMES = ["E", "NE", "N", "NW", "W", "SW", "S", "SE"]
OURS, NEIGHBOURS, BOOSTING = "onlooker", "k-NN, best k", "gradient boosting, best"
MARGINAL = "global marginal"

Setting = tuple[float, int, int]
"""Of boosting: learning rate, rounds, least samples in a leaf."""


# -- directions ------------------------------------------------------------------------------------


def seen_directions(demos: Demonstrations) -> tuple[np.ndarray, np.ndarray]:
    """Which transitions move at all, and the sector that each of these points into."""
    states, next_states = demos.transitions()
    moves = geography.displacements(states[:, :2], next_states[:, :2])
    moving = np.asarray(moves.any(axis=1))
    angle = np.arctan2(moves[moving, 1], moves[moving, 0])
    return moving, np.round(angle / (2 * np.pi / len(NAMES))).astype(int) % len(NAMES)


def sector_given_action(dynamics: GeographicDynamics) -> np.ndarray:
    """``(A, 8)``: where the steps of each action point, its noise included.

    The angle of a Gaussian step of mean length ``a`` (in sigma) has the density
    ``exp(-a²/2) / 2π · (1 + c Φ(c) / φ(c))`` with ``c = a cos(angle - mean angle)``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.pi / len(NAMES)
    angles = 2 * half * np.arange(len(NAMES))[:, None] + half * nodes
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


# -- competitors, which see directions outright ----------------------------------------------------


def places(states: np.ndarray) -> np.ndarray:
    """States as points in space, where straight lines are the distances that ours uses."""
    return np.hstack([geography.in_space(states[:, :2]), states[:, 2:]])


def neighbour_policies(
    train: np.ndarray, sectors: np.ndarray, test: np.ndarray, ks: tuple[int, ...]
) -> Iterator[tuple[int, np.ndarray]]:
    """Shares of the directions among the k nearest steps, each direction counted once more."""
    ks = tuple(k for k in ks if k <= len(train))
    _, nearest = cKDTree(places(train)).query(places(test), k=max(ks))
    counts = np.cumsum(
        sectors[nearest][:, :, None] == np.arange(len(NAMES)), axis=1, dtype=np.int32
    )
    for k in ks:
        yield k, (counts[:, k - 1] + 1) / (k + len(NAMES))


def boosted_policies(
    train: np.ndarray, sectors: np.ndarray, test: np.ndarray, settings: tuple[Setting, ...]
) -> Iterator[tuple[str, np.ndarray]]:
    """Gradient boosting of trees on longitude, latitude and the features."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    for rate, rounds, leaf in settings:
        model = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=rounds, min_samples_leaf=leaf, random_state=0
        )
        probabilities = np.zeros((len(test), len(NAMES)))
        with threadpool_limits(1):  # more threads wait for each other on a busy machine
            model.fit(train, sectors)
            probabilities[:, model.classes_] = model.predict_proba(test)
        yield f"rate {rate}, {rounds} rounds, leaves of {leaf}", probabilities


# -- the comparison --------------------------------------------------------------------------------


def summary(table: pd.DataFrame) -> pd.Series:
    """Mean over all folds; of k and of the settings of boosting, the best *on the test data*."""
    means = table.drop(columns="storm").mean()
    neighbours = means[means.index.str.startswith("k-NN")]
    boosting = means[means.index.str.startswith("boosting")]
    return pd.Series(
        {
            MARGINAL: means[MARGINAL],
            NEIGHBOURS: neighbours.max(),
            BOOSTING: boosting.max(),
            OURS: means[OURS],
        }
    )


def margin(table: pd.DataFrame) -> tuple[str, float, float]:
    """By how much ours beats the best k-NN, with the standard error over storms."""
    neighbours = table.filter(like="k-NN").mean()
    best = neighbours.idxmax()
    gain = (table[OURS] - table[best]).groupby(table["storm"]).agg(["sum", "size"])
    mean = gain["sum"].sum() / gain["size"].sum()
    spread = gain["sum"] - mean * gain["size"]  # whole storms are independent, steps are not
    return str(best), mean, float(np.sqrt((spread**2).sum()) / gain["size"].sum())
