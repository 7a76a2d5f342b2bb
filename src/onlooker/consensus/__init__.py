"""One partition that stands for many, and how far to trust it.

A sampler gives many partitions of the same nodes. `consensus` finds the one with the least expected
loss, by default under the variation of information; `credible_ball` says how far the draws spread
around it. Labels may be any non-negative integers: only who is together with whom matters.

    result = consensus(draws, random_state=0)
    result.labels, result.membership
    credible_ball(result.labels, draws).radius

The search is that of Dahl, Johnson and Müller (2022), "Search algorithms and loss functions for
Bayesian clustering" (the R package salso); the ball is that of Wade and Ghahramani (2018),
"Bayesian cluster analysis: point estimation and credible balls".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onlooker.consensus import kernels
from onlooker.consensus.draws import (
    TOLERANCE,
    Floats,
    Ints32,
    Loss,
    Unique,
    canonical_rows,
    check_cost,
    check_count,
    check_draws,
    check_labels,
    check_loss,
    count_pairs,
    terms,
)
from onlooker.consensus.pair_kernels import overlaps
from onlooker.consensus.search import Valued, make_evidence, membership, starting_labels

__all__ = [
    "ConsensusResult",
    "CredibleBall",
    "adjusted_rand_index",
    "binder_distance",
    "binder_loss",
    "canonical",
    "co_clustering",
    "consensus",
    "credible_ball",
    "variation_of_information",
    "vi_loss",
]

_MOST_PAIRED = 6_000  # nodes whose pairs are counted: 144 MB, and as much again for a tree


@dataclass(frozen=True)
class ConsensusResult:
    """The partition with the least expected loss that was found.

    Attributes
    ----------
    labels : (N,) int array
        Clusters numbered by decreasing size, ties by first appearance.
    loss : {"vi", "binder"}
        The loss that was minimised.
    expected_loss : float
        Its mean over the draws: bits for "vi", a share of the N² ordered pairs for "binder".
    n_clusters : int
        Number of clusters.
    n_restarts, n_agreeing : int
        Searches made, and how many of them ended at this loss. One of many calls for more restarts.
    membership : (N,) float array
        How certain each node's place is: the mean probability of being together with the others of
        its cluster; for a cluster of one, the probability of being alone.
    """

    labels: NDArray[np.int64]
    loss: Loss
    expected_loss: float
    n_clusters: int
    n_restarts: int
    n_agreeing: int
    membership: Floats


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


def consensus(
    draws: ArrayLike,
    loss: Loss = "vi",
    *,
    max_clusters: int | None = None,
    restarts: int = 16,
    zealous: bool = True,
    a: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> ConsensusResult:
    """Find the partition with the least expected loss over the draws.

    Each search places node after node in random order where it costs least, then visits all nodes
    again until none wants to move; the best results go on to take clusters apart and place their
    nodes anew. Every fourth search starts from nothing, one from the best level of a hierarchical
    clustering, the others from the best draws (or random labels when draws run out). A greedy
    search promises a local minimum only, never worse than any of the draws ranked as starting
    points (all of them, unless there are very many) that ``max_clusters`` permits.

    Parameters
    ----------
    draws : (n_draws, N) or (n_chains, n_draws, N) array of int
        One partition of the N nodes a row; labels mean nothing from one row to the next.
    loss : {"vi", "binder"}
        Variation of information, or Binder's loss (which tends to more and smaller clusters).
    max_clusters : int, optional
        The most clusters the result may have; by default no bound.
    restarts : int
        Number of searches.
    zealous : bool
        Whether to take clusters apart.
    a : float
        Cost of parting what belongs together, between 0 and 2; joining what does not costs 2 - a.
        Above 1 gives fewer clusters, below 1 more.
    random_state : int, numpy.random.Generator, optional
        The result is the same for the same seed, however the draws are ordered and labelled.
    """
    every = check_draws(draws)
    unique, n = Unique(every), every.shape[1]
    check_loss(loss)
    check_cost(a)
    restarts = check_count(restarts, "restarts", 1)
    most = n if max_clusters is None else check_count(max_clusters, "max_clusters", 1)
    rng = np.random.default_rng(random_state)

    f = terms(loss, n)
    step = np.append(np.diff(f), 0.0) - (f[1] - f[0])  # the last entry is never read
    rules = kernels.Rules(step, 2.0 - a, min(most, n), TOLERANCE)
    pairs = count_pairs(every) if n <= _MOST_PAIRED else None
    evidence = make_evidence(loss, pairs, unique)
    value = Valued(unique, f, a)
    found: dict[bytes, tuple[float, Ints32]] = {}
    reached = []
    for start in starting_labels(value, pairs, rules.max_clusters, restarts, rng):
        loss_there, labels = value(kernels.search(start, evidence, rules, False, rng))
        found[labels.tobytes()] = loss_there, labels
        reached.append(labels.tobytes())
    if zealous:
        for key in sorted(found, key=lambda key: found[key][0])[: max(1, restarts // 4)]:
            start = found[key][1].astype(np.int64)
            found[key] = value(kernels.search(start, evidence, rules, True, rng))
    lowest, best = min(found.values(), key=lambda pair: pair[0])
    return ConsensusResult(
        labels=best.astype(np.int64),
        loss=loss,
        expected_loss=lowest,
        n_clusters=int(best.max()) + 1,
        n_restarts=restarts,
        n_agreeing=sum(found[key][0] <= lowest + TOLERANCE for key in reached),
        membership=membership(best, unique),
    )


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
    distances = unique.losses(centre, terms(loss, centre.size), 1.0)
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


def vi_loss(labels: ArrayLike, draws: ArrayLike, *, a: float = 1.0) -> Any:
    """Expected variation of information (bits) between a partition and the draws.

    The exact mean over the draws of a H(labels | draw) + (2 - a) H(draw | labels). ``labels`` is
    (N,) and gives a float, or (m, N) and gives an (m,) array.
    """
    return _expected_loss("vi", labels, draws, a)


def binder_loss(labels: ArrayLike, draws: ArrayLike, *, a: float = 1.0) -> Any:
    """Expected Binder loss between a partition and the draws, as a share of the N² ordered pairs.

    A pair that is together in the draw and apart in ``labels`` costs a, the converse 2 - a.
    ``labels`` is (N,) and gives a float, or (m, N) and gives an (m,) array.
    """
    return _expected_loss("binder", labels, draws, a)


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    """Variation of information of two partitions in bits: H(first | second) + H(second | first)."""
    return _distance("vi", first, second)


def binder_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Share of the N² ordered pairs on which two partitions disagree."""
    return _distance("binder", first, second)


def adjusted_rand_index(first: ArrayLike, second: ArrayLike) -> float:
    """Rand index of two partitions, corrected for chance (Hubert and Arabie, 1985): 1 if equal."""
    one = check_labels(first, "first")
    other = Unique(check_labels(second, "second", one.size)[None, :])
    number = np.arange(one.size + 1, dtype=float)
    pairs = number * (number - 1.0) / 2.0
    both = float(overlaps(one, other.index, pairs)[0])
    mine = float(pairs[np.bincount(one)].sum())
    theirs = float(other.within(pairs)[0])
    chance = mine * theirs / pairs[-1] if one.size > 1 else 0.0
    most = (mine + theirs) / 2.0
    return 1.0 if most == chance else (both - chance) / (most - chance)


def co_clustering(draws: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """The (N, N) matrix of P(z_i = z_j): the share of draws in which i and j are together."""
    labels = check_draws(draws)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    return np.divide(count_pairs(labels), labels.shape[0], dtype=dtype, casting="unsafe")


def canonical(labels: ArrayLike) -> NDArray[np.int64]:
    """Number clusters by decreasing size, ties by first appearance: equal partitions become equal.

    ``labels`` is one partition, or an array of partitions along the last axis.
    """
    given = np.asarray(labels)
    rows = canonical_rows(given if given.ndim != 1 else given[None, :], "labels")
    return rows.reshape(given.shape).astype(np.int64)


def _expected_loss(loss: Loss, labels: ArrayLike, draws: ArrayLike, a: float) -> Any:
    unique = Unique(check_draws(draws))
    n = unique.labels.shape[1]
    check_cost(a)
    f = terms(loss, n)
    if np.ndim(labels) != 2:
        return unique.expected_loss(check_labels(labels, "labels", n), f, a)
    rows = canonical_rows(np.asarray(labels), "labels")
    if rows.shape[1] != n:
        raise ValueError(f"labels has {rows.shape[1]} nodes but draws has {n}; they must agree")
    return np.array([unique.expected_loss(row, f, a) for row in rows])


def _distance(loss: Loss, first: ArrayLike, second: ArrayLike) -> float:
    one = check_labels(first, "first")
    other = Unique(check_labels(second, "second", one.size)[None, :])
    return float(other.losses(one, terms(loss, one.size), 1.0)[0])
