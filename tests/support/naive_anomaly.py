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


def statistics(
    action_excess, noise_excess, action_sd, noise_sd, repeats, offsets, max_step_score, slack
):
    """Twin of `_kernels.statistics`."""
    out = np.empty((len(action_excess), len(offsets) - 1, 4))
    for r in range(len(action_excess)):
        for i, (start, stop) in enumerate(itertools.pairwise(offsets)):
            t = slice(start, stop)
            x = np.minimum(action_excess[r, t] / action_sd[r, t], max_step_score)
            y = np.minimum(noise_excess[r, t] / noise_sd[r, t], max_step_score)
            out[r, i, 0] = sum(x * action_sd[r, t]) / np.sqrt(sum(action_sd[r, t] ** 2))
            out[r, i, 1] = sum(noise_excess[r, t]) / np.sqrt(sum(noise_sd[r, t] ** 2))
            out[r, i, 2] = max(cusum(x, slack) + cusum(y, slack)) - np.log(stop - start)
            out[r, i, 3] = longest_run(repeats[r, t])
    return out


def peaks(values, offsets, slack):
    """Twin of `_kernels.peaks`."""
    height, end = [], []
    for start, stop in itertools.pairwise(offsets):
        levels = cusum(values[start:stop], slack)
        height.append(max(levels))
        end.append(int(np.argmax(levels)) if max(levels) > 0 else -1)
    return height, end


def rank(observed, pool):
    """Twin of `_replicates.rank`, for one track."""
    tracks = [list(observed), *map(list, pool)]
    columns = list(zip(*tracks, strict=True))
    first, standing_out = [], []
    for track in tracks:
        places = [sum(o >= x for o in c) for x, c in zip(track, columns, strict=True)]
        first.append(min(places))
        finite = [(max(min(x, 1e9), -1e9), np.clip(c, -1e9, 1e9))
                  for x, c in zip(track, columns, strict=True)]  # fmt: skip
        standing_out.append(max((x - c.mean()) / max(c.std(), 1e-9) for x, c in finite))
    as_odd = sum((f, -s) <= (first[0], -standing_out[0])
                 for f, s in zip(first, standing_out, strict=True))  # fmt: skip
    places = [sum(o >= x for o in c) for x, c in zip(tracks[0], columns, strict=True)]
    return [count / len(tracks) for count in (*places, as_odd)]


def rank_among(mine, length, pool, lengths):
    """Twin of `AnomalyScores._rank_among`, for one track: p-values among others of any length.

    What the model misses per step, on average over all of them, is taken out of the scores, which
    are sums over the square root of the length.
    """
    tracks, n = np.array([mine, *pool]), np.array([length, *lengths])
    for column in (0, 1):
        per_step = sum(tracks[:, column] * np.sqrt(n)) / sum(n)
        tracks[:, column] -= per_step * np.sqrt(n)
    odd = [(score, -noise, noise, change, stop) for score, noise, change, stop in tracks]
    return rank(odd[0], odd[1:])
