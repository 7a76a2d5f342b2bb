"""Unseen and noisily seen positions: drawn whole trajectories at a time, given the actions."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def draw_positions(
    positions: Array,
    observed: Array,
    offsets: Array,
    drift: Array,
    sigma: float,
    noise: float,
    rng: np.random.Generator,
) -> None:
    """Draw ``x`` given ``x_{i+1} ~ N(x_i + drift_i, σ²)`` and ``y_i ~ N(x_i, noise²)``.

    A Kalman filter forwards and draws backwards, one coordinate at a time; `observed` is NaN where
    nothing was seen, and nothing is assumed about where a trajectory starts. With ``noise = 0``
    seen coordinates stay as they are.
    """
    step, blur = sigma * sigma, noise * noise
    longest = 0
    for k in range(len(offsets) - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    mean, variance = np.empty(longest), np.empty(longest)
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        for d in range(positions.shape[1]):
            seen = start
            while np.isnan(observed[seen, d]):
                seen += 1
            mean[seen - start], variance[seen - start] = observed[seen, d], blur
            for i in range(seen + 1, stop):
                m = mean[i - 1 - start] + drift[i - 1, d]
                v = variance[i - 1 - start] + step
                if not np.isnan(observed[i, d]):
                    gain = v / (v + blur)
                    m = observed[i, d] if blur == 0.0 else m + gain * (observed[i, d] - m)
                    v = blur * gain
                mean[i - start], variance[i - start] = m, v
            last = stop - 1
            positions[last, d] = mean[last - start]
            positions[last, d] += np.sqrt(variance[last - start]) * rng.standard_normal()
            for i in range(last - 1, start - 1, -1):
                back = positions[i + 1, d] - drift[i, d]
                if i < seen:
                    positions[i, d] = back + sigma * rng.standard_normal()
                    continue
                m, v = mean[i - start], variance[i - start]
                gain = v / (v + step)
                m += gain * (back - m)
                positions[i, d] = m + np.sqrt(step * gain) * rng.standard_normal()
