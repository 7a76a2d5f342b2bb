"""Where the search for a consensus starts, and what it knows of the draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.consensus import kernels
from onlooker.consensus.draws import Floats, Ints32, Loss, Unique, canonical_rows
from onlooker.consensus.pair_kernels import Draws, companions

_RANKING_BUDGET = 4 * 10**7  # labels read to rank draws as starting points: about 0.1 s


def make_evidence(loss: Loss, pairs: Ints32 | None, unique: Unique) -> kernels.Evidence:
    """Pairs suffice for Binder's loss, and take less time than the draws."""
    if pairs is None:
        return kernels.Evidence(unique.index, np.empty((0, 0), np.int32), 0.0)
    if loss == "vi":
        return kernels.Evidence(unique.index, pairs, 0.0)
    none = np.empty(0, np.int64)
    draws = Draws(np.empty(0, np.int32), none, none, np.empty(0))
    return kernels.Evidence(draws, pairs, 2.0 / (unique.counts.sum() * pairs.size))


class Valued:
    """Labels -> (expected loss, canonical labels)."""

    def __init__(self, unique: Unique, f: Floats, a: float) -> None:
        self.unique, self.f, self.a = unique, f, a

    def __call__(self, labels: NDArray[np.int64]) -> tuple[float, Ints32]:
        rows = canonical_rows(labels[None, :], "labels")
        return self.unique.expected_loss(rows[0], self.f, self.a), rows[0]


def starting_labels(
    value: Valued, pairs: Ints32 | None, most: int, restarts: int, rng: np.random.Generator
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
    value: Valued, pairs: Ints32, n_clusters: NDArray[Any], most: int
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
