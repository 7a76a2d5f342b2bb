"""What was seen: trajectories of states, without actions."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from onlooker._validation import Array, as_array, read_only

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = 1
_UNREADABLE = (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


class Demonstrations:
    """Ragged trajectories of states: integers of a finite space, or real vectors.

    Parameters
    ----------
    trajectories
        One array per trajectory: ``(T,)`` integers, or ``(T, d)`` floats (``(T,)`` floats are
        read as ``(T, 1)``), each with at least two states. All must be of the same kind.

    Examples
    --------
    >>> demos = Demonstrations([[0, 1, 1, 2], [2, 0]])
    >>> len(demos), demos.n_transitions
    (2, 4)
    >>> demos[[1]][0]
    array([2, 0])
    """

    def __init__(self, trajectories: Iterable[Any]) -> None:
        if isinstance(trajectories, Demonstrations):
            self._set(trajectories.states, trajectories.offsets)
            return
        _refuse_no_list(trajectories)
        arrays = [_as_trajectory(index, item) for index, item in enumerate(trajectories)]
        if not arrays:
            raise ValueError("trajectories is empty; give at least one trajectory")
        _require_same_kind(arrays)
        lengths = [len(array) for array in arrays]
        self._set(np.concatenate(arrays), np.concatenate([[0], np.cumsum(lengths)]))

    def _set(self, states: Array, offsets: Array) -> None:
        self._states = read_only(states)
        self._offsets = read_only(offsets.astype(np.int64))

    @classmethod
    def _from_flat(cls, states: Array, offsets: Array) -> Self:
        new = cls.__new__(cls)
        new._set(states, offsets)
        return new

    # -- the sequence of trajectories -----------------------------------------------------------

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """``(number of trajectories,)``: what scikit-learn's splitters ask for."""
        return (len(self),)

    def __iter__(self) -> Iterator[Array]:
        for start, stop in zip(self._offsets[:-1], self._offsets[1:], strict=True):
            yield self._states[start:stop]

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Array: ...
    @overload
    def __getitem__(self, index: Any) -> Self: ...

    def __getitem__(self, index: Any) -> Any:
        """One trajectory for an integer; a `Demonstrations` for a slice, a list or a mask."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:
            index = index[0]  # scikit-learn indexes rows as `X[rows, ...]`
        if isinstance(index, int | np.integer):
            return self._trajectory(int(index))
        chosen = np.asarray(np.arange(len(self))[index])
        if chosen.ndim == 0:
            return self._trajectory(int(chosen))
        if chosen.ndim > 1:
            raise IndexError("index trajectories by an integer, a slice, a flat list or a mask")
        if len(chosen) == 0:
            raise IndexError("the index selects no trajectory")
        return self._from_flat(
            np.concatenate([self._trajectory(int(i)) for i in chosen]),
            np.concatenate([[0], np.cumsum(self.lengths[chosen])]),
        )

    def _trajectory(self, index: int) -> Array:
        if not -len(self) <= index < len(self):
            raise IndexError(f"trajectory {index} of {len(self)}")
        index %= len(self)
        return self._states[self._offsets[index] : self._offsets[index + 1]]

    def __repr__(self) -> str:
        kind = "integer states" if self.is_discrete else f"states in {self.n_dims} dimensions"
        return f"Demonstrations({len(self)} trajectories, {len(self._states)} {kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Demonstrations):
            return NotImplemented
        return np.array_equal(self._states, other._states) and np.array_equal(
            self._offsets, other._offsets
        )

    __hash__ = None  # type: ignore[assignment]

    # -- what they hold -------------------------------------------------------------------------

    @property
    def states(self) -> Array:
        """All states, trajectory after trajectory: ``(n,)`` integers or ``(n, d)`` floats."""
        return self._states

    @property
    def offsets(self) -> Array:
        """Where each trajectory starts in `states`, and where the last one ends."""
        return self._offsets

    @property
    def lengths(self) -> Array:
        """Number of states of each trajectory."""
        return np.diff(self._offsets)

    @property
    def is_discrete(self) -> bool:
        """Whether the states are integers."""
        return self._states.ndim == 1

    @property
    def n_dims(self) -> int:
        """Dimension of a real-valued state; 1 for integer states."""
        return 1 if self.is_discrete else self._states.shape[1]

    @property
    def n_transitions(self) -> int:
        """Number of pairs of successive states."""
        return len(self._states) - len(self)

    def transitions(self) -> tuple[Array, Array]:
        """All pairs ``(s_t, s_{t+1})``, pooled, never across two trajectories."""
        starts = self.transition_starts()
        return self._states[starts], self._states[starts + 1]

    def transition_starts(self) -> Array:
        """Index into `states` of the first state of every transition."""
        keep = np.ones(len(self._states), dtype=bool)
        keep[self._offsets[1:] - 1] = False
        return np.flatnonzero(keep)

    def trajectory_of(self) -> Array:
        """The trajectory that each transition belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths - 1)

    def distinct(self) -> tuple[Array, Array]:
        """The distinct states in order of first appearance, and each state's index among them."""
        return distinct_states(self._states)

    # -- in and out -----------------------------------------------------------------------------

    @classmethod
    def from_dataframe(
        cls,
        frame: pd.DataFrame,
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
    ) -> Self:
        """Read trajectories from a table with one state a row.

        Parameters
        ----------
        frame
            The table.
        states
            The column(s) that hold the state. A single integer column gives integer states.
        trajectory
            Column that tells the trajectories apart; without it the table is one trajectory.
            Trajectories keep the order in which they first appear.
        time
            Column to sort each trajectory by: numbers, dates, or text that holds numbers or ISO
            dates; without it, rows are taken in the order they have.

        Notes
        -----
        Error messages count the rows of the table from 0.
        """
        from onlooker._tables import read_table

        return cls(read_table(frame, states, trajectory, time))

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
        **read_csv: Any,
    ) -> Self:
        """Read a CSV file (compressed or not); see `from_dataframe` for the columns."""
        from onlooker._tables import load_csv

        frame = load_csv(path, states, trajectory, time, **read_csv)
        return cls.from_dataframe(frame, states, trajectory, time)

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
    ) -> Self:
        """Read a parquet file (needs the extra ``parquet``); see `from_dataframe`."""
        from onlooker._tables import load_parquet

        frame = load_parquet(path, states, trajectory, time)
        return cls.from_dataframe(frame, states, trajectory, time)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a NumPy archive, under exactly the name given."""
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file, format=np.int64(_FORMAT), states=self._states, offsets=self._offsets
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        name = os.fspath(path)
        with Path(path).open("rb") as file:
            try:
                with np.load(file, allow_pickle=False) as archive:
                    version = int(archive["format"])
                    states, offsets = archive["states"], archive["offsets"]
            except _UNREADABLE as error:
                raise ValueError(
                    f"{name} was not written by Demonstrations.save, or is damaged"
                ) from error
        if version != _FORMAT:
            raise ValueError(f"{name} has format {version}, expected {_FORMAT}")
        if (
            states.ndim == 0
            or offsets.ndim != 1
            or offsets.dtype.kind not in "iu"
            or len(offsets) < 2
            or offsets[0] != 0
            or offsets[-1] != len(states)
        ):
            raise ValueError(f"{name} is damaged: its offsets do not fit its states")
        return cls(np.split(states, offsets[1:-1]))


def _refuse_no_list(trajectories: Any) -> None:
    if isinstance(trajectories, Mapping) or hasattr(trajectories, "columns"):
        raise TypeError(
            f"trajectories must be a list of arrays, got {type(trajectories).__name__}; "
            "read a table by Demonstrations.from_dataframe, a mapping by its values"
        )
    if isinstance(trajectories, np.ndarray) and trajectories.dtype != object:
        raise TypeError(
            "trajectories must be a list of arrays, got one array; "
            "wrap a single trajectory in a list: Demonstrations([trajectory])"
        )
    if not isinstance(trajectories, Iterable):
        raise TypeError(f"trajectories must be a list of arrays, got {type(trajectories).__name__}")


@dataclass(frozen=True)
class _Kind:
    """What two trajectories must share."""

    discrete: bool
    n_dims: int

    def __str__(self) -> str:
        return "integer states" if self.discrete else f"real states of dimension {self.n_dims}"


def _kind(trajectory: Array) -> _Kind:
    return _Kind(trajectory.ndim == 1, 1 if trajectory.ndim == 1 else trajectory.shape[1])


def _require_same_kind(arrays: list[Array]) -> None:
    first = _kind(arrays[0])
    for index, array in enumerate(arrays):
        if _kind(array) != first:
            raise ValueError(
                f"trajectory {index} has {_kind(array)}, but trajectory 0 has {first}; "
                "give all trajectories the same kind of state"
            )


def _as_trajectory(index: int, item: Any) -> Array:
    array = as_array(f"trajectory {index}", item)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"trajectory {index} must hold integers or floats, got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"trajectory {index} must be (T,) or (T, d), got shape {array.shape}; "
            "wrap a single trajectory in a list: Demonstrations([trajectory])"
        )
    if len(array) < 2:
        raise ValueError(
            f"trajectory {index} has {len(array)} state(s); a transition needs two: leave it out"
        )
    if array.ndim == 1 and array.dtype.kind in "iu":
        return _as_integer_states(f"trajectory {index}", array)
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"trajectory {index} has states without any dimension")
    return as_real_states(f"trajectory {index}", array)


def _as_integer_states(name: str, array: Array) -> Array:
    if array.min(initial=0) < 0:
        where = int(np.argmax(array < 0))
        raise ValueError(
            f"{name} holds the negative state {array[where]} at index {where}; "
            "integer states count from 0"
        )
    if array.max(initial=0) > np.iinfo(np.int64).max:
        where = int(np.argmax(array > np.iinfo(np.int64).max))
        raise ValueError(
            f"{name} holds {array[where]} at index {where}, beyond 64-bit integers; "
            "number the states from 0"
        )
    return array.astype(np.int64)


def as_real_states(name: str, array: Array) -> Array:
    """Return ``(n, d)`` floats, refused where not finite."""
    array = array.astype(np.float64)
    if array.ndim == 1:
        array = array[:, None]
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"{name} holds {array[where].tolist()} at index {where}; "
            "leave it out (splitting its trajectory there) or impute the state first"
        )
    return array + 0.0  # -0.0 and 0.0 are one state


def as_states(states: Any, name: str = "states") -> Array:
    """Return query states as ``(n,)`` integers or ``(n, d)`` floats."""
    array = as_array(name, states)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise TypeError(
            f"{name} must be (n,) integers or (n, d) floats, "
            f"got dtype {array.dtype} and shape {array.shape}"
        )
    if array.ndim == 1 and array.dtype.kind in "iu":
        return _as_integer_states(name, array)
    return as_real_states(name, array)


def distinct_states(states: Array) -> tuple[Array, Array]:
    """The distinct rows of `states` in order of first appearance, and each row's index there."""
    if states.ndim == 1:
        order = np.argsort(states, kind="stable")
        ordered = states[order]
        new = np.r_[True, ordered[1:] != ordered[:-1]]
    else:
        order = np.lexsort(states.T[::-1])
        ordered = states[order]
        new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
    group = np.cumsum(new) - 1
    first = order[new]  # both sorts are stable: the first of a group was seen first
    rank = np.empty(len(first), dtype=np.int64)
    by_appearance = np.argsort(first)
    rank[by_appearance] = np.arange(len(first))
    inverse = np.empty(len(states), dtype=np.int64)
    inverse[order] = rank[group]
    return states[first[by_appearance]], inverse
