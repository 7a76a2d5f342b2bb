"""Draw one of several outcomes, never one of weight zero."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def invert(running: Array, n: int, uniform: float) -> int:
    """The first of `n` running sums beyond ``uniform · total``, never one of weight zero."""
    total = running[n - 1]
    target = uniform * total
    if target >= total:
        target = np.nextafter(total, 0.0)
    k = 0
    while k < n - 1 and running[k] <= target:
        k += 1
    return k


@njit(cache=True, nogil=True, error_model="numpy")
def draw_log(log_weights: Array, n: int, uniform: float) -> int:
    """Draw an index below `n` with log-weights (overwritten), never one of weight zero."""
    largest = -np.inf
    for k in range(n):
        largest = max(largest, log_weights[k])
    total = 0.0
    for k in range(n):
        total += np.exp(log_weights[k] - largest)
        log_weights[k] = total
    return invert(log_weights, n, uniform)
