"""Fixes that cannot be right: no animal, ship or storm gets there in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlooker.checks import Array

Distance = Callable[[Array, Array], Array]
"""``(n, d), (n, d) -> (n,)``: how far places are apart."""
_ROUNDING = 1e-9
_BLOCK = 1024  # fixes looked back at a time


def too_fast(states: Array, clock: Array, limit: float, distance: Distance) -> Array:
    """``(n,)``: fixes of one track to leave out, so that what is left never exceeds `limit`.

    They are as few as can be: the longest chain of fixes of which each is reached from the one
    before in time is kept.
    """
    n = len(states)
    length = np.ones(n, dtype=np.int64)  # of the longest chain that ends at each fix
    longest = np.ones(n, dtype=np.int64)  # of those up to each fix
    before = np.full(n, -1)
    for i in range(1, n):
        stop = i
        while stop > 0 and longest[stop - 1] >= length[i]:
            start = max(0, stop - (1 if stop == i else _BLOCK))
            away = distance(
                states[start:stop], np.broadcast_to(states[i], (stop - start, states.shape[1]))
            )
            near = away <= limit * (clock[i] - clock[start:stop]) * (1 + _ROUNDING)
            reached = np.where(near, length[start:stop], 0)[::-1]
            best = int(np.argmax(reached))  # of equals the last fix
            if reached[best] >= length[i]:
                length[i], before[i] = reached[best] + 1, stop - 1 - best
            stop = start
        longest[i] = max(longest[i - 1], length[i])
    out = np.ones(n, dtype=bool)
    at = int(np.argmax(length))
    while at >= 0:
        out[at] = False
        at = int(before[at])
    return out
