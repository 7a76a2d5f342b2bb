"""Kernels: statistics of trajectories, for many replicates at once."""

from __future__ import annotations

from numba import njit

from onlooker._validation import Array


@njit(cache=True, nogil=True, error_model="numpy")
def statistics(
    excess: Array,
    scale: Array,
    fit: Array,
    repeats: Array,
    offsets: Array,
    slack: float,
    out: Array,
) -> None:
    """Fill `out` ``(R, trajectories, 4)``: sums of excess and of fit, CUSUM, longest standstill.

    Parameters
    ----------
    excess
        ``(R, n)``: surprise less its expectation, limited.
    scale
        ``(n,)``: what the CUSUM divides it by.
    fit
        ``(R, n)``: how well the best action explains the step.
    repeats
        ``(R, n)``: whether the step ends where it began.
    offsets
        Where each trajectory's steps begin, and where the last ones end.
    slack
        What the CUSUM ``C_t = max(0, C_{t-1} + excess_t / scale_t − slack)`` forgives a step.
    """
    for r in range(excess.shape[0]):
        for i in range(len(offsets) - 1):
            total, fitted, level, highest = 0.0, 0.0, 0.0, 0.0
            run, longest = 0, 0
            for t in range(offsets[i], offsets[i + 1]):
                total += excess[r, t]
                fitted += fit[r, t]
                level = max(0.0, level + excess[r, t] / scale[t] - slack)
                highest = max(highest, level)
                run = run + 1 if repeats[r, t] else 0
                longest = max(longest, run)
            out[r, i, 0] = total
            out[r, i, 1] = fitted
            out[r, i, 2] = highest
            out[r, i, 3] = longest


@njit(cache=True, nogil=True, error_model="numpy")
def peaks(standardised: Array, offsets: Array, slack: float, end: Array) -> None:
    """The step where each trajectory's CUSUM is highest, the first of them; -1 if it stays at 0."""
    for i in range(len(offsets) - 1):
        level, highest = 0.0, 0.0
        end[i] = -1
        for t in range(offsets[i], offsets[i + 1]):
            level = max(0.0, level + standardised[t] - slack)
            if level > highest:
                highest = level
                end[i] = t - offsets[i]
