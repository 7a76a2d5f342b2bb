"""The search for the partition with the least expected loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.consensus import kernels
from onlooker.consensus.draws import (
    Floats,
    Ints32,
    Unique,
    check_count,
    check_draws,
    count_pairs,
)
from onlooker.consensus.losses import TOLERANCE, Loss, LossOf, check_loss, terms
from onlooker.consensus.pair_kernels import PartitionDraws, companions
from onlooker.progress import Progress

_MAX_PAIRED = 6_000  # nodes whose pairs are counted: 144 MB, and as much again for a tree
_RANKING_BUDGET = 4 * 10**7  # labels read to rank draws as starting points: about 0.1 s


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


def consensus(
    draws: ArrayLike,
    loss: Loss = "vi",
    *,
    max_clusters: int | None = None,
    restarts: int = 16,
    random_state: int | np.random.Generator | None = None,
    progress: Progress | None = None,
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
    random_state : int, numpy.random.Generator, optional
        The result is the same for the same seed, however the draws are ordered and labelled.
    progress : onlooker.progress.Progress, optional
        Advanced by 1 for every search, `n_searches` in all.
    """
    shown = Progress() if progress is None else progress
    every = check_draws(draws)
    unique, n = Unique(every), every.shape[1]
    check_loss(loss)
    restarts = check_count(restarts, "restarts", 1)
    most = n if max_clusters is None else check_count(max_clusters, "max_clusters", 1)
    rng = np.random.default_rng(random_state)

    f = terms(loss, n)
    step = np.append(np.diff(f), 0.0) - (f[1] - f[0])  # the last entry is never read
    options = kernels.SearchOptions(step, min(most, n), TOLERANCE)
    pairs = count_pairs(every) if n <= _MAX_PAIRED else None
    summary = summarise(loss, pairs, unique)
    value = LossOf(loss, unique)
    found: dict[bytes, tuple[float, Ints32]] = {}
    reached = []
    for start in starting_labels(value, pairs, options.max_clusters, restarts, rng):
        loss_there, labels = value(kernels.search(start, summary, options, False, rng))
        found[labels.tobytes()] = loss_there, labels
        reached.append(labels.tobytes())
        shown.advance(1, "consensus")
    best_ones = sorted(found, key=lambda key: found[key][0])[: n_searches(restarts) - restarts]
    for key in best_ones:
        start = found[key][1].astype(np.int64)
        found[key] = value(kernels.search(start, summary, options, True, rng))
        shown.advance(1, "consensus")
    shown.advance(n_searches(restarts) - restarts - len(best_ones), "consensus")
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


def n_searches(restarts: int = 16) -> int:
    """Searches that `consensus` makes: so many, and the best of them once more."""
    return restarts + max(1, restarts // 4)


def summarise(loss: Loss, pairs: Ints32 | None, unique: Unique) -> kernels.DrawSummary:
    """Pairs suffice for Binder's loss, and take less time than the draws."""
    if pairs is None:
        return kernels.DrawSummary(unique.index, np.empty((0, 0), np.int32), 0.0)
    if loss == "vi":
        return kernels.DrawSummary(unique.index, pairs, 0.0)
    none = np.empty(0, np.int64)
    draws = PartitionDraws(np.empty(0, np.int32), none, none, np.empty(0))
    return kernels.DrawSummary(draws, pairs, 2.0 / (unique.counts.sum() * pairs.size))


def starting_labels(
    value: LossOf, pairs: Ints32 | None, most: int, restarts: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Starting labels of each search; -1 leaves a node to be placed."""
    draws = value.unique.labels
    n = draws.shape[1]
    n_clusters = draws.max(axis=1) + 1
    allowed = np.flatnonzero(n_clusters <= most)
    affordable = max(16, _RANKING_BUDGET // draws.size)
    if allowed.size > affordable:
        allowed = allowed[np.linspace(0, allowed.size - 1, affordable).astype(int)]
    ranked = sorted((value(draws[b]) for b in allowed), key=lambda pair: pair[0])
    if restarts > 1 and n > 1 and pairs is not None:
        ranked.insert(1, _best_cut(value, pairs, np.minimum(n_clusters, most), most))
    starts: list[NDArray[np.int64]] = []
    while len(starts) < restarts:
        if len(starts) % 4 == 3:
            starts.append(np.full(n, -1, np.int64))
        elif ranked:
            starts.append(ranked.pop(0)[1].astype(np.int64))
        else:
            k = rng.integers(1, min(most, n_clusters.max()) + 1)
            starts.append(rng.integers(0, k, n))
    return starts


def _best_cut(
    value: LossOf, pairs: Ints32, n_clusters: NDArray[Any], most: int
) -> tuple[float, Ints32]:
    """The best level of the tree of average linkage: joins clusters as no node's move can."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n_draws, n = pairs[0, 0], len(pairs)
    tree = linkage(1.0 - pairs[np.triu_indices(n, 1)] / n_draws, "average")
    levels: dict[int, tuple[float, Ints32]] = {}

    def look(at: NDArray[Any]) -> int:
        for k in set(at.astype(int).tolist()) - levels.keys():
            levels[k] = value(fcluster(tree, k, "maxclust"))
        return min(sorted(levels), key=lambda k: levels[k][0])

    grid = np.append(np.geomspace(1, most, 16), np.quantile(n_clusters, [0, 0.25, 0.5, 0.75, 1]))
    k = look(grid)
    below = max((m for m in levels if m < k), default=k)
    above = min((m for m in levels if m > k), default=k)
    return levels[look(np.linspace(below, above, 16))]


def membership(labels: Ints32, unique: Unique) -> Floats:
    """How certain each node's place is."""
    together, alone = companions(labels, unique.index)
    size = np.bincount(labels)[labels]
    share = np.where(size > 1, together / np.maximum(size - 1, 1), alone)
    return np.minimum(share, 1.0)  # the weights may sum to a little more than one
