"""Slots are names of clusters: opened, closed, and filled with the counts of nodes."""

from __future__ import annotations

from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Slots


@njit(cache=True, nogil=True, error_model="numpy")
def open_slot(slots: Slots) -> int:
    """Take a free slot into use."""
    k = slots.order[slots.n[0]]
    slots.n[0] += 1
    return k


@njit(cache=True, nogil=True, error_model="numpy")
def close_slot(slots: Slots, k: int) -> None:
    """Give a slot back; the last one in use takes its place in the order."""
    last = slots.n[0] - 1
    position, moved = slots.where[k], slots.order[last]
    slots.order[position], slots.order[last] = moved, k
    slots.where[moved], slots.where[k] = position, last
    slots.n[0] = last


@njit(cache=True, nogil=True, error_model="numpy")
def move_node(i: int, k: int, sign: int, counts: Counts) -> None:
    """Add node i's counts to slot k, or take them out."""
    own = 0
    for j in range(counts.node.shape[1]):
        own += counts.node[i, j]
        counts.cluster[k, j] += sign * counts.node[i, j]
    counts.total[k] += sign * own
    counts.size[k] += sign
