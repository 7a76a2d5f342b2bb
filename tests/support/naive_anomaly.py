"""Slow, readable twins of the kernels of `onlooker.anomaly`."""

import itertools

import numpy as np


def cusum(values, slack):
    """Levels ``C_t = max(0, C_{t-1} + x_t − slack)``."""
    levels = [0.0]
    for value in values:
        levels.append(max(0.0, levels[-1] + value - slack))
    return levels[1:]


def longest_run(flags):
    """Most true values in a row."""
    return max(len(run) for run in "".join("x" if flag else " " for flag in flags).split(" "))


def statistics(action_surprise, noise_surprise, scales, repeats, offsets, max_step_score, slack):
    """Twin of `_kernels.statistics`."""
    out = np.empty((len(action_surprise), len(offsets) - 1, 5))
    for r in range(len(action_surprise)):
        for i, (start, stop) in enumerate(itertools.pairwise(offsets)):
            x = np.minimum(action_surprise[r, start:stop] / scales[0, start:stop], max_step_score)
            y = np.minimum(noise_surprise[r, start:stop] / scales[1, start:stop], max_step_score)
            out[r, i, 0] = sum(x * scales[0, start:stop])
            out[r, i, 1] = -sum(noise_surprise[r, start:stop])
            out[r, i, 2] = sum(noise_surprise[r, start:stop])
            out[r, i, 3] = max(cusum(x, slack) + cusum(y, slack))
            out[r, i, 4] = longest_run(repeats[r, start:stop])
    return out


def peaks(values, offsets, slack):
    """Twin of `_kernels.peaks`."""
    height, end = [], []
    for start, stop in itertools.pairwise(offsets):
        levels = cusum(values[start:stop], slack)
        height.append(max(levels))
        end.append(int(np.argmax(levels)) if max(levels) > 0 else -1)
    return height, end
