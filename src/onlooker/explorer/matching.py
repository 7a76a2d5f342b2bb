"""Names for the clusters of every draw, so that colours stay where they are from draw to draw.

Labels mean nothing across draws. Here each cluster of a draw is named after the cluster of a
reference partition that it shares the most nodes with: its parent ``c``. Of several with the same
parent, the one that shares the most is "c itself", level 0, the others are its splinters, levels 1,
2, ... The name is ``level · K + c`` for K reference clusters. No draw depends on another, so any
block of draws can be named by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.consensus.pair_kernels import rank_descending

_MOST_NAMES = 1 << 16
_BLOCK_NAMES = 1 << 18


def block_size(n_nodes: int) -> int:
    """Draws that are sent at a time."""
    return max(1, _BLOCK_NAMES // n_nodes)


@njit(cache=True, nogil=True, error_model="numpy")
def _name_clusters(
    labels: Array, order: Array, starts: Array, first: Array, most: int, names: Array
) -> None:
    """Fill `names`, one for each cluster of each draw, rows ``first[b]`` and on.

    `order` holds the nodes, reference cluster after reference cluster; those of cluster ``c`` are
    ``order[starts[c]:starts[c + 1]]``.
    """
    n_reference, n_nodes = len(starts) - 1, labels.shape[1]
    widest = 0
    for b in range(len(labels)):
        widest = max(widest, first[b + 1] - first[b])
    count = np.zeros(widest, dtype=np.int64)
    shared = np.zeros(widest, dtype=np.int64)
    parent = np.zeros(widest, dtype=np.int64)
    rank, by_rank = np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.int64)
    level = np.zeros(n_reference, dtype=np.int64)
    for b in range(len(labels)):
        n_used = first[b + 1] - first[b]
        for k in range(n_used):
            shared[k] = 0
        for c in range(n_reference):
            level[c] = 0
        for c in range(n_reference):
            for p in range(starts[c], starts[c + 1]):
                count[labels[b, order[p]]] += 1
            for p in range(starts[c], starts[c + 1]):
                k = labels[b, order[p]]
                if count[k] > shared[k]:
                    shared[k] = count[k]
                    parent[k] = c
                count[k] = 0
        rank_descending(shared, n_used, n_nodes, rank)
        for k in range(n_used):
            by_rank[rank[k]] = k
        for r in range(n_used):
            k = by_rank[r]
            c = parent[k]
            names[first[b] + k] = min(level[c], most) * n_reference + c
            level[c] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _take_names(labels: Array, first: Array, names: Array, reference: Array, out: Array) -> None:
    """``out[b, i]``: the name of node i's cluster in draw b, exclusive-or that in the reference."""
    for b in range(len(labels)):
        for i in range(labels.shape[1]):
            out[b, i] = names[first[b] + labels[b, i]] ^ reference[i]


@dataclass(frozen=True)
class Names:
    """The named clusters of draws, chains one after the other.

    Attributes
    ----------
    reference
        ``(N,)``: the partition that gives the names, numbered from 0 without gaps.
    n_reference
        Its clusters, K.
    labels
        ``(B, N)``: labels as drawn.
    first
        ``(B + 1,)``: where the clusters of each draw start in `names`.
    names
        ``level · K + parent`` of every cluster of every draw.
    """

    reference: Array
    n_reference: int
    labels: Array
    first: Array
    names: Array

    @classmethod
    def of(cls, labels: Array, reference: Array) -> Names:
        """Name the clusters of `labels`, ``(B, N)`` numbered without gaps, after `reference`."""
        n_reference = int(reference.max()) + 1
        n_used = labels.max(axis=1).astype(np.int64) + 1
        first = np.concatenate([[0], np.cumsum(n_used)])
        order = np.argsort(reference, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(reference, minlength=n_reference))])
        names = np.empty(first[-1], dtype=np.int64)
        most = max(_MOST_NAMES // n_reference - 1, 0)  # what 16 bits can name
        _name_clusters(np.ascontiguousarray(labels), order, starts, first, most, names)
        return cls(np.asarray(reference, dtype=np.int64), n_reference, labels, first, names)

    @property
    def parents(self) -> Array:
        """The reference cluster that each cluster is named after."""
        return self.names % self.n_reference

    def encode(self, draws: slice | Array) -> bytes:
        """Names at every node, exclusive-or the reference: mostly zeros, which pack well."""
        chosen = np.arange(len(self.labels))[draws]
        out = np.empty((len(chosen), self.labels.shape[1]), dtype="<u2")
        # a draw at a time has its own `first`; gathering keeps the kernel simple
        n_used = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(n_used)])
        rows = np.repeat(self.first[:-1][chosen] - first[:-1], n_used) + np.arange(first[-1])
        labels = np.ascontiguousarray(self.labels[chosen])
        _take_names(labels, first, self.names[rows], self.reference, out)
        return out.tobytes()


def aligned(labels: Array, before: Array) -> Array:
    """Renumber `labels` so that clusters keep the numbers that they have in `before`.

    The largest overlaps go first; numbers that nobody claims go to the rest, largest first.
    """
    n, m = int(labels.max()) + 1, int(before.max()) + 1
    overlap = np.zeros((n, m), dtype=np.int64)
    np.add.at(overlap, (labels, before), 1)
    number = np.full(n, -1)
    taken: set[int] = set()
    for flat in np.argsort(-overlap, axis=None, kind="stable"):
        k, c = divmod(int(flat), m)
        if overlap[k, c] == 0:
            break
        if number[k] < 0 and c not in taken and c < n:
            number[k] = c
            taken.add(c)
    free = iter(sorted(set(range(n)) - taken))
    sizes = np.bincount(labels, minlength=n)
    for k in sorted(np.flatnonzero(number < 0).tolist(), key=lambda k: (-sizes[k], k)):
        number[k] = next(free)
    return np.asarray(number[labels])
