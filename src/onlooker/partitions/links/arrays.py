"""Links between nodes as arrays: what a chain remembers of them, and similarities."""

from __future__ import annotations

from typing import NamedTuple

from onlooker.checks import Array


class Forest(NamedTuple):
    """Links and what is needed to change one in little time."""

    link: Array
    """``c_i``."""
    siblings: Array
    """``(N, 3)``: a node's first in-link (CHILD; self-links are not listed), and the nodes NEXT
    and PREVIOUS to it that have the same target; -1 for none. Together in memory, since a walk
    reads them together."""
    pool: Array
    """Member lists: slot k's nodes are ``pool[start[k] : start[k] + size[k]]``."""
    start: Array
    capacity: Array
    """How many members slot k's stretch of the pool can hold."""
    at: Array
    """Each node's position in its slot's list."""
    pool_end: Array
    """``pool_end[0]``: where the unused end of the pool begins."""


class Graph(NamedTuple):
    """Similarities, as in `onlooker.partitions.geometry.Similarity`."""

    indptr: Array
    indices: Array
    weights: Array
    offset: float
