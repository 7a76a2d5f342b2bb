"""Tracks with states that were not seen: trimmed, hidden, split or filled in."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.reading.states import UNSEEN, between_seen, is_hidden
from onlooker.reading.tracks import Tracks


def trim(tracks: Tracks) -> Tracks:
    """Without unseen states at the ends, and trajectories with fewer than two seen ones."""
    keep = between_seen(tracks.states, tracks.offsets)
    if not keep.any():
        raise ValueError("no trajectory has two seen states; nothing can be inferred")
    ends = np.concatenate([[0], np.cumsum(keep)])[tracks.offsets]
    some = np.diff(ends) > 0
    return replace(
        tracks,
        states=tracks.states[keep],
        offsets=np.concatenate([[0], ends[1:][some]]),
        names=_names(tracks)[some],
        times=None if tracks.times is None else tracks.times[keep],
        rows=None if tracks.rows is None else tracks.rows[keep],
    )


def hide(tracks: Tracks, share: float, random_state: Any) -> Tracks:
    """This share of the states hidden at random."""
    if not 0 <= share < 1:
        raise ValueError(f"share must be at least 0 and below 1, got {share!r}")
    rng = np.random.default_rng(random_state)
    states = np.array(tracks.states)
    states[rng.random(len(states)) < share] = UNSEEN if states.ndim == 1 else np.nan
    return trim(replace(tracks, states=states))


def split(tracks: Tracks) -> Tracks:
    """Only pairs of states that were seen one after the other."""
    hidden = is_hidden(tracks.states)
    breaks = np.flatnonzero(hidden)  # a hidden state is a piece of its own
    starts = np.unique(np.concatenate([tracks.offsets[:-1], breaks, breaks + 1]))
    lengths = np.diff(starts, append=len(hidden))
    starts, lengths = starts[lengths >= 2], lengths[lengths >= 2]
    if not len(starts):
        raise ValueError("no two states were seen one after the other")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    number = np.searchsorted(tracks.offsets, starts, side="right") - 1
    return Tracks(
        tracks.states[rows],
        offsets,
        _names(tracks)[number],
        None if tracks.times is None else tracks.times[rows],
        rows=None if tracks.rows is None else tracks.rows[rows],
    )


def _names(tracks: Tracks) -> Array:
    """Names of the trajectories; without any their numbers, which pieces and the rest keep."""
    if tracks.names is not None:
        return tracks.names
    return np.arange(len(tracks.offsets) - 1).astype(np.str_)


def fill(tracks: Tracks) -> Array:
    """``(n, d)``: unseen coordinates on the straight line between the seen ones."""
    filled = np.array(tracks.states)
    for number, (start, stop) in enumerate(pairwise(tracks.offsets)):
        for dim in range(filled.shape[1]):
            column = filled[start:stop, dim]
            seen = np.flatnonzero(~np.isnan(column))
            if len(seen) == 0:
                name = number if tracks.names is None else repr(str(tracks.names[number]))
                raise ValueError(
                    f"coordinate {dim} was never seen in trajectory {name} (of those with two "
                    "seen states); leave the trajectory out"
                )
            column[:] = np.interp(np.arange(stop - start), seen, column[seen])
    return filled + 0.0  # -0.0 and 0.0 are one state
