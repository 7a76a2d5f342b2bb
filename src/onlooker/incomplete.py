"""Trajectories with states that were not seen, or seen through noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from onlooker.checks import Array, as_array, read_only
from onlooker.demonstrations import Demonstrations
from onlooker.hyper import Prior

UNSEEN = -1
"""Marks an unseen state among integers; among floats it is NaN."""


class IncompleteDemonstrations:
    """Trajectories with states that were not seen; inference fills them in.

    Unseen states before the first or after the last seen one of a trajectory are cut off: the
    latter say nothing about the policy, the former nothing without a model of where trajectories
    start. A trajectory with fewer than two seen states is left out.

    Parameters
    ----------
    trajectories
        One array per trajectory: ``(T,)`` integers, -1 where the state was not seen, or ``(T, d)``
        floats (``(T,)`` floats are read as ``(T, 1)``), NaN where a coordinate was not seen.

    Examples
    --------
    >>> demos = IncompleteDemonstrations([[0, -1, 2, 2, -1], [-1, 3]])
    >>> demos
    IncompleteDemonstrations(1 trajectories, 4 states, 25.0% not seen)
    >>> demos.split()[0]  # what is left without inference
    array([2, 2])
    """

    def __init__(self, trajectories: Iterable[Any]) -> None:
        arrays = [_as_incomplete(index, item) for index, item in enumerate(trajectories)]
        if len({array.shape[1:] for array in arrays}) > 1:
            raise ValueError("trajectories differ in their kind of state; give them all the same")
        kept = [trimmed for array in arrays if len(trimmed := _trimmed(array)) >= 2]
        if not kept:
            raise ValueError("no trajectory has two seen states; nothing can be inferred")
        lengths = [len(array) for array in kept]
        self._set(np.concatenate(kept), np.concatenate([[0], np.cumsum(lengths)]))

    def _set(self, states: Array, offsets: Array) -> None:
        self.states = read_only(states)
        """All states, trajectory after trajectory, unseen ones marked."""
        self.offsets = read_only(offsets.astype(np.int64))
        """Where each trajectory starts in `states`, and where the last one ends."""

    @classmethod
    def hiding(cls, demos: Demonstrations, share: float, random_state: Any = None) -> Self:
        """Complete demonstrations with this share of their states hidden at random."""
        if not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1, got {share!r}")
        rng = np.random.default_rng(random_state)
        states = np.array(demos.states)
        states[rng.random(len(states)) < share] = UNSEEN if demos.is_discrete else np.nan
        return cls(np.split(states, demos.offsets[1:-1]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Array]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.states[start:stop]

    def __repr__(self) -> str:
        return (
            f"IncompleteDemonstrations({len(self)} trajectories, {len(self.states)} states, "
            f"{self.hidden.mean():.1%} not seen)"
        )

    @property
    def is_discrete(self) -> bool:
        """Whether the states are integers."""
        return self.states.ndim == 1

    @cached_property
    def hidden(self) -> Array:
        """``(n,)``: whether a state, or a coordinate of it, was not seen."""
        return _hidden(self.states)

    def split(self) -> Demonstrations:
        """Only pairs of states that were seen one after the other: unseen ones break the rest."""
        pieces = []
        for trajectory in self:
            breaks = np.flatnonzero(_hidden(trajectory))
            for piece in np.split(trajectory, np.unique(np.r_[breaks, breaks + 1])):
                if len(piece) >= 2 and not _hidden(piece).any():
                    pieces.append(np.array(piece))
        if not pieces:
            raise ValueError("no two states were seen one after the other")
        return Demonstrations(pieces)

    def filled(self) -> Array:
        """``(n, d)``: unseen coordinates on the straight line between the seen ones."""
        filled = np.array(self.states)
        for number, (start, stop) in enumerate(
            zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ):
            for dim in range(filled.shape[1]):
                column = filled[start:stop, dim]
                seen = np.flatnonzero(~np.isnan(column))
                if len(seen) == 0:
                    raise ValueError(
                        f"coordinate {dim} was never seen in trajectory {number} (of those with "
                        "two seen states); leave the trajectory out"
                    )
                column[:] = np.interp(np.arange(stop - start), seen, column[seen])
        return filled + 0.0  # -0.0 and 0.0 are one state


@dataclass(frozen=True)
class Incomplete:
    """What of a problem's trajectories was seen."""

    observed: Array
    """All states, unseen ones marked."""
    offsets: Array
    noise: float | Prior = 0.0
    """Standard deviation of Gaussian noise on every seen coordinate."""

    @cached_property
    def hidden(self) -> Array:
        """Indices of states that were not, or not entirely, seen."""
        return np.flatnonzero(_hidden(self.observed))

    @cached_property
    def starts(self) -> Array:
        """Index of the first state of every transition."""
        keep = np.ones(len(self.observed), dtype=bool)
        keep[self.offsets[1:] - 1] = False
        return np.flatnonzero(keep)


def _hidden(states: Array) -> Array:
    marked = states == UNSEEN if states.ndim == 1 else np.isnan(states).any(axis=1)
    return np.asarray(marked)


def _as_incomplete(index: int, item: Any) -> Array:
    array = as_array(f"trajectory {index}", item)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise TypeError(
            f"trajectory {index} must be (T,) integers or (T, d) floats, got dtype {array.dtype} "
            f"and shape {array.shape}"
        )
    if array.ndim == 1 and array.dtype.kind in "iu":
        array = array.astype(np.int64)
        bad = array < UNSEEN
        if bad.any():
            where = int(np.argmax(bad))
            raise ValueError(
                f"trajectory {index} holds {array[where]} at index {where}; states count from 0, "
                "and -1 marks an unseen one"
            )
        return array
    array = array.astype(np.float64)
    array = array[:, None] if array.ndim == 1 else array
    infinite = np.isinf(array)
    if infinite.any():
        where = int(np.argwhere(infinite)[0, 0])
        raise ValueError(
            f"trajectory {index} holds {array[where].tolist()} at index {where}; mark what was "
            "not seen by NaN"
        )
    return array


def _trimmed(array: Array) -> Array:
    """Without leading and trailing states of which nothing was seen."""
    seen = array != UNSEEN if array.ndim == 1 else ~np.isnan(array).all(axis=1)
    where = np.flatnonzero(seen)
    return array[where[0] : where[-1] + 1] if len(where) >= 2 else array[:0]
