"""When did a trajectory stop being nominal?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array

SLACK = 0.5  # of the CUSUM, in standard deviations: half the shift that it finds soonest
_SHIFT = 3.0  # prior standard deviation of the shift, in those of a step


class Changes(NamedTuple):
    """For each trajectory, steps counted from its first; -1 if it never exceeded its slack."""

    onset: Array
    low: Array
    high: Array
    end: Array
    part: Array
    """0 if it is about actions, 1 if about noise."""


def locate(action_surprise: Array, noise_surprise: Array, offsets: Array, level: float) -> Changes:
    """The most probable onset of each trajectory's worst stretch, with a credible interval.

    The stretch ends where the CUSUM is highest. That it began at step τ has the posterior

        p(τ) ∝ ∫ Π_{t ≥ τ} N(x_t; δ, 1) / N(x_t; 0, 1) · N(δ; 0, 3²) dδ

    with a uniform prior over the steps up to its end; x is the standardised excess of that part of
    the surprise whose CUSUM gets higher.
    """
    from onlooker.anomaly import _kernels

    height = np.empty((2, len(offsets) - 1))
    ends = np.empty(height.shape, dtype=np.int64)
    for row, series in enumerate((action_surprise, noise_surprise)):
        _kernels.peaks(series, offsets, SLACK, height[row], ends[row])
    part = height.argmax(axis=0)
    end = np.take_along_axis(ends, part[None], axis=0)[0]
    onset, low, high = (np.full(len(end), -1) for _ in range(3))
    for i in np.flatnonzero(end >= 0):
        series = noise_surprise if part[i] else action_surprise
        weights = onset_posterior(series[offsets[i] : offsets[i] + end[i] + 1])
        below = np.cumsum(weights)
        onset[i] = int(weights.argmax())
        low[i] = int(np.searchsorted(below, (1 - level) / 2))
        high[i] = min(int(np.searchsorted(below, (1 + level) / 2)), int(end[i]))
    return Changes(onset, np.minimum(low, onset), np.maximum(high, onset), end, part)


def onset_posterior(standardised: Array) -> Array:
    """Probability that the shift began at each step, given that it lasts to the last of them."""
    n = np.arange(len(standardised), 0, -1)
    total = np.maximum(np.cumsum(standardised[::-1])[::-1], 0.0)
    spread = 1 + n * _SHIFT**2
    log_weights = 0.5 * (total * _SHIFT) ** 2 / spread - 0.5 * np.log(spread)
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())
