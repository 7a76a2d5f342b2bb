"""Kernels: statistics of trajectories, for many replicates at once."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def statistics(
    action_excess: Array,
    noise_excess: Array,
    action_sd: Array,
    noise_sd: Array,
    repeats: Array,
    offsets: Array,
    max_step_score: float,
    slack: float,
    out: Array,
) -> None:
    """Fill `out` ``(R, trajectories, 4)`` with what trajectories are compared by.

    In this order: ``Σ x_t σ_t / √Σ σ_t²`` of both parts of the surprise; the highest of the two
    CUSUMs ``C_t = max(0, C_{t-1} + x_t − slack)`` less the ``ln n`` by which it grows with the
    number of steps; the most repeats in a row.

    Parameters
    ----------
    action_excess, noise_excess
        ``(R, n)``: both parts of the surprise less their expectation, ``x_t σ_t``.
    action_sd, noise_sd
        ``(R, n)``: their standard deviations ``σ_t``.
    repeats
        ``(R, n)``: whether the step ends where it began.
    offsets
        Where each trajectory's steps begin, and where the last ones end.
    max_step_score
        Most that ``x_t`` counts for, in the first sum and in the CUSUMs.
    slack
        What the CUSUMs forgive a step.
    """
    for r in range(action_excess.shape[0]):
        for i in range(len(offsets) - 1):
            odd, noisy, highest = 0.0, 0.0, 0.0
            odd_variance, noisy_variance = 0.0, 0.0
            first, second = 0.0, 0.0
            run, longest = 0, 0
            for t in range(offsets[i], offsets[i + 1]):
                x = min(action_excess[r, t] / action_sd[r, t], max_step_score)
                y = min(noise_excess[r, t] / noise_sd[r, t], max_step_score)
                odd += x * action_sd[r, t]
                noisy += noise_excess[r, t]
                odd_variance += action_sd[r, t] ** 2
                noisy_variance += noise_sd[r, t] ** 2
                first = max(0.0, first + x - slack)
                second = max(0.0, second + y - slack)
                highest = max(highest, first, second)
                run = run + 1 if repeats[r, t] else 0
                longest = max(longest, run)
            out[r, i, 0] = odd / np.sqrt(odd_variance)
            out[r, i, 1] = noisy / np.sqrt(noisy_variance)
            out[r, i, 2] = highest - np.log(offsets[i + 1] - offsets[i])
            out[r, i, 3] = longest


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
