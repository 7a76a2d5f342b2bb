"""How far the draws spread around a partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.consensus.draws import Floats, Unique, check_draws, check_labels
from onlooker.consensus.losses import TOLERANCE, Loss, check_loss, losses


@dataclass(frozen=True)
class CredibleBall:
    """The draws nearest to a partition that hold at least ``level`` of the probability.

    Attributes
    ----------
    radius, level : float
        The smallest radius whose ball holds at least ``level`` of the draws.
    probability : float
        The share of draws inside.
    distances : (n_draws,) float array
        Distance of each draw, chains one after the other.
    horizontal : (m, N) int array
        The distinct partitions inside that are farthest away.
    upper, lower : (m, N) int array
        The vertical bounds: of the partitions inside with the fewest (upper) and the most (lower)
        clusters, those farthest away.
    """

    radius: float
    level: float
    probability: float
    distances: Floats
    horizontal: NDArray[np.int64]
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


def credible_ball(
    labels: ArrayLike, draws: ArrayLike, level: float = 0.95, loss: Loss = "vi"
) -> CredibleBall:
    """The credible ball of Wade and Ghahramani (2018) around a partition.

    Parameters
    ----------
    labels : (N,) array of int
        The centre, usually `consensus(draws).labels`.
    draws : (n_draws, N) or (n_chains, n_draws, N) array of int
        One partition a row.
    level : float
        Probability that the ball must hold, in (0, 1].
    loss : {"vi", "binder"}
        The distance.
    """
    unique = Unique(check_draws(draws))
    centre = check_labels(labels, "labels", unique.labels.shape[1])
    check_loss(loss)
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level!r}; 0.95 is usual")
    distances = losses(loss, centre, unique)
    nearest = np.argsort(distances, kind="stable")
    held = np.cumsum(unique.counts[nearest])
    # level * n may land just above an integer by rounding: 0.07 * 100 > 7.
    needed = np.ceil(level * held[-1] - 1e-9)
    radius = float(distances[nearest[np.searchsorted(held, needed)]])
    inside = np.flatnonzero(distances <= radius + TOLERANCE)
    n_clusters = unique.labels.max(axis=1)[inside]

    def farthest(among: NDArray[np.int64]) -> NDArray[np.int64]:
        at = distances[among]
        chosen: NDArray[np.int64] = unique.labels[among[at >= at.max() - TOLERANCE]].astype(int)
        return chosen

    return CredibleBall(
        radius=radius,
        level=float(level),
        probability=float(unique.counts[inside].sum() / held[-1]),
        distances=distances[unique.inverse],
        horizontal=farthest(inside),
        upper=farthest(inside[n_clusters == n_clusters.min()]),
        lower=farthest(inside[n_clusters == n_clusters.max()]),
    )
