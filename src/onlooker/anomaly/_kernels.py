"""Kernels: statistics of trajectories, for many replicates at once."""

from __future__ import annotations

from onlooker.checks import Array
from onlooker.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def statistics(
    action_surprise: Array,
    noise_surprise: Array,
    scales: Array,
    repeats: Array,
    offsets: Array,
    max_step_score: float,
    slack: float,
    out: Array,
) -> None:
    """Fill `out` ``(R, trajectories, 5)`` with what replicates are ranked by; larger is odder.

    In this order: the sum of `action_surprise`; minus the sum of `noise_surprise` and that sum;
    the higher of the two CUSUMs ``C_t = max(0, C_{t-1} + x_t / scale_t − slack)``; the most
    repeats in a row.

    Parameters
    ----------
    action_surprise, noise_surprise
        ``(R, n)``: both parts of the surprise less their expectation.
    scales
        ``(2, n)``: their standard deviations.
    repeats
        ``(R, n)``: whether the step ends where it began.
    offsets
        Where each trajectory's steps begin, and where the last ones end.
    max_step_score
        Most that a step may add to the first sum and to the CUSUMs, in its scale.
    slack
        What the CUSUMs forgive a step.
    """
    for r in range(action_surprise.shape[0]):
        for i in range(len(offsets) - 1):
            odd, noisy, highest = 0.0, 0.0, 0.0
            first, second = 0.0, 0.0
            run, longest = 0, 0
            for t in range(offsets[i], offsets[i + 1]):
                x = min(action_surprise[r, t] / scales[0, t], max_step_score)
                y = min(noise_surprise[r, t] / scales[1, t], max_step_score)
                odd += x * scales[0, t]
                noisy += noise_surprise[r, t]
                first = max(0.0, first + x - slack)
                second = max(0.0, second + y - slack)
                highest = max(highest, first, second)
                run = run + 1 if repeats[r, t] else 0
                longest = max(longest, run)
            out[r, i, 0] = odd
            out[r, i, 1] = -noisy
            out[r, i, 2] = noisy
            out[r, i, 3] = highest
            out[r, i, 4] = longest


@njit(cache=True, nogil=True, error_model="numpy")
def peaks(standardised: Array, offsets: Array, slack: float, height: Array, end: Array) -> None:
    """How high each trajectory's CUSUM gets, and at which step first; -1 if it stays at 0."""
    for i in range(len(offsets) - 1):
        level = 0.0
        height[i] = 0.0
        end[i] = -1
        for t in range(offsets[i], offsets[i + 1]):
            level = max(0.0, level + standardised[t] - slack)
            if level > height[i]:
                height[i] = level
                end[i] = t - offsets[i]
