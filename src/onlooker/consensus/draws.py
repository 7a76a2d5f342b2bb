"""Partitions of the same nodes, one a draw: checked, numbered alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onlooker.consensus import pair_kernels as kernels

Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class Unique:
    """Distinct draws in a fixed order, so that results depend on the set of draws alone."""

    def __init__(self, labels: Ints32) -> None:
        keys = [row.tobytes() for row in labels]
        first = {key: b for b, key in reversed(list(enumerate(keys)))}
        number = {key: u for u, key in enumerate(sorted(first))}
        self.inverse = np.array([number[key] for key in keys])
        self.labels = np.ascontiguousarray(labels[[first[key] for key in number]])
        self.counts = np.bincount(self.inverse)
        members, start, offset = kernels.index_draws(self.labels)
        self.index = kernels.PartitionDraws(members, start, offset, self.counts / self.counts.sum())


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


def count_pairs(labels: Ints32) -> Ints32:
    """How often each two nodes are together, ``(N, N)``."""
    # Narrow labels let one instruction compare many draws.
    narrow = np.uint8 if labels.max() < 256 else np.uint16 if labels.max() < 65536 else np.int32
    pairs: Ints32 = kernels.count_pairs(np.ascontiguousarray(labels.T.astype(narrow)))
    return pairs


def check_draws(draws: ArrayLike) -> Ints32:
    """Draws of all chains as the rows of a canonical array."""
    given = np.asarray(draws)
    if given.ndim not in (2, 3):
        raise ValueError(
            f"draws must have shape (n_draws, N) or (n_chains, n_draws, N), got {given.shape}; "
            "a single partition is draws[None, :]"
        )
    return canonical_rows(given, "draws")


def check_labels(labels: ArrayLike, name: str, n: int | None = None) -> Ints32:
    """One canonical partition, of `n` nodes if given."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one partition of shape (N,), got shape {given.shape}")
    if n is not None and given.size != n:
        raise ValueError(f"{name} has {given.size} nodes but {n} are needed; give every node one")
    return canonical_rows(given[None, :], name)[0]


def canonical_rows(given: NDArray[Any], name: str) -> Ints32:
    """Validated partitions along the last axis as the rows of a canonical array."""
    if given.ndim == 0 or given.size == 0:
        raise ValueError(
            f"{name} is empty (shape {given.shape}); give at least one draw of at least one node"
        )
    if not np.issubdtype(given.dtype, np.integer):
        raise TypeError(
            f"{name} must hold integers, got dtype {given.dtype}; convert by {name}.astype(int)"
        )
    if given.min() < 0:
        where = tuple(int(i) for i in np.unravel_index(given.argmin(), given.shape))
        raise ValueError(
            f"{name}{list(where)} is {given.min()}: labels must not be negative; shift them by "
            f"{name} - {name}.min()"
        )
    rows = np.ascontiguousarray(given.reshape(-1, given.shape[-1]))
    n_values = int(rows.max()) + 1
    if n_values > 4 * rows.shape[1] + 1024:  # too wide for a table of labels
        values, inverse = np.unique(rows, return_inverse=True)
        rows, n_values = inverse.reshape(rows.shape), values.size
    out: Ints32 = kernels.canonical_rows(rows.astype(np.int64, copy=False), n_values)
    return out


def check_count(value: int, name: str, least: int) -> int:
    """An integer that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)
