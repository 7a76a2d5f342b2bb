"""What was seen: trajectories of states, without actions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import numpy as np

from onlooker.checks import Array, read_only
from onlooker.reading.states import (
    as_names,
    as_real_states,
    as_states,
    as_times,
    as_trajectory,
    distinct_states,
    refuse_no_list,
    require_same_kind,
)

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.reading.tracks import Account, CleaningOptions, Tracks

__all__ = ["Demonstrations", "as_real_states", "as_states", "distinct_states"]


class Demonstrations:
    """Ragged trajectories of states: integers of a finite space, or real vectors.

    Parameters
    ----------
    trajectories
        One array per trajectory: ``(T,)`` integers, or ``(T, d)`` floats (``(T,)`` floats are
        read as ``(T, 1)``), each with at least two states. All must be of the same kind.
    names
        A name for each trajectory; by default its number.
    times
        One array per trajectory with the time of each of its states.

    Examples
    --------
    >>> demos = Demonstrations([[0, 1, 1, 2], [2, 0]])
    >>> len(demos), demos.n_transitions
    (2, 4)
    >>> demos[[1]][0]
    array([2, 0])
    """

    _names: Array | None
    _times: Array | None
    _account: Account | None

    def __init__(
        self, trajectories: Iterable[Any], *, names: Any = None, times: Iterable[Any] | None = None
    ) -> None:
        if isinstance(trajectories, Demonstrations):
            self._set(trajectories.states, trajectories.offsets)
            self._names, self._times = trajectories._names, trajectories._times
            self._account = trajectories._account
        else:
            refuse_no_list(trajectories)
            arrays = [as_trajectory(index, item) for index, item in enumerate(trajectories)]
            if not arrays:
                raise ValueError("trajectories is empty; give at least one trajectory")
            require_same_kind(arrays)
            lengths = [len(array) for array in arrays]
            self._set(np.concatenate(arrays), np.concatenate([[0], np.cumsum(lengths)]))
        if names is not None:
            self._names = as_names(names, len(self))
        if times is not None:
            self._times = as_times(times, self.lengths)

    def _set(self, states: Array, offsets: Array) -> None:
        self._states = read_only(states)
        self._offsets = read_only(offsets.astype(np.int64))
        self._names = self._times = self._account = None

    @classmethod
    def _from_flat(
        cls,
        states: Array,
        offsets: Array,
        names: Array | None = None,
        times: Array | None = None,
        account: Account | None = None,
    ) -> Self:
        """Trust arrays that were checked elsewhere; nothing is copied."""
        new = cls.__new__(cls)
        new._set(states, offsets)
        new._names = None if names is None else read_only(names)
        new._times = None if times is None else read_only(times)
        new._account = account
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
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self._offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        times = None if self._times is None else self._times[rows]
        return self._from_flat(self._states[rows], offsets, self.names[chosen], times)

    def _trajectory(self, index: int) -> Array:
        if not -len(self) <= index < len(self):
            raise IndexError(f"trajectory {index} of {len(self)}")
        index %= len(self)
        return self._states[self._offsets[index] : self._offsets[index + 1]]

    def __repr__(self) -> str:
        kind = "integer states" if self.is_discrete else f"states in {self.n_dims} dimensions"
        return f"Demonstrations({len(self)} trajectories, {len(self._states)} {kind})"

    def __eq__(self, other: object) -> bool:
        """Whether the trajectories are the same; names and times do not count."""
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

    @cached_property
    def names(self) -> Array:
        """Name of each trajectory, as text: ``demos[demos.names == "Lenny"]`` finds one.

        What the table called them, else "0", "1", ... . Pieces of a trajectory that was split
        share its name, so that names serve as the groups of a cross-validation.
        """
        if self._names is None:
            return read_only(np.arange(len(self)).astype(np.str_))
        return self._names

    @property
    def times(self) -> Array | None:
        """Time of each state in `states` (numbers, or NumPy dates in UTC), if it is known."""
        return self._times

    @property
    def account(self) -> Account | None:
        """What reading found, dropped and changed; None if they were not read."""
        return self._account

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
    def _from_tracks(cls, tracks: Tracks) -> Self:
        return cls._from_flat(
            tracks.states, tracks.offsets, tracks.names, tracks.times, tracks.account
        )

    @classmethod
    def from_dataframe(
        cls,
        frame: pd.DataFrame,
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
        **cleaning: Unpack[CleaningOptions],
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
            Trajectories keep the order in which they first appear, and their `names`.
        time
            Column to sort each trajectory by: numbers, dates, or text that holds numbers or ISO
            dates; without it, rows are taken in the order they have.
        **cleaning
            What to do with missing values, repeated times and gaps: see
            `onlooker.reading.tracks.Cleaning`. By default nothing is dropped or changed unseen:
            missing values and repeated times are refused, gaps in time are kept with a warning.

        Notes
        -----
        A trajectory of a single row has no transition: it is left out, with a warning. `account`
        tells all that was found, dropped or changed. Messages count the rows of a data frame
        from 0.
        """
        from onlooker.reading.cleaning import clean
        from onlooker.reading.tables import read_table
        from onlooker.reading.tracks import Cleaning

        return cls._from_tracks(
            clean(read_table(frame, states, trajectory, time), Cleaning(**cleaning))
        )

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
        **options: Any,
    ) -> Self:
        """Read a CSV file (compressed or not) piece by piece, only the columns needed.

        Columns and cleaning as in `from_dataframe`; other options go to `pandas.read_csv`.
        Trajectories are told apart by the text in their column: "07" is not "7".
        """
        from onlooker.reading.cleaning import clean
        from onlooker.reading.csv import load_csv
        from onlooker.reading.tracks import Cleaning

        cleaning, rest = Cleaning.among(options)
        return cls._from_tracks(clean(load_csv(path, states, trajectory, time, **rest), cleaning))

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str],
        trajectory: str | None = None,
        time: str | None = None,
        **cleaning: Unpack[CleaningOptions],
    ) -> Self:
        """Read a parquet file (needs the extra ``parquet``); see `from_dataframe`."""
        from onlooker.reading.tables import load_parquet

        frame = load_parquet(path, states, trajectory, time)
        return cls.from_dataframe(frame, states, trajectory, time, **cleaning)

    @classmethod
    def from_npz(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str] | None = None,
        trajectory: str | None = None,
        time: str | None = None,
        **cleaning: Unpack[CleaningOptions],
    ) -> Self:
        """Read a NumPy archive.

        Without `states`: one array per trajectory, named by it. With it: arrays as columns, read
        as in `from_dataframe`; `states` may also name a single ``(n, d)`` array.
        """
        from onlooker.reading.archives import read_npz

        return cls._from_tracks(read_npz(path, states, trajectory, time, cleaning))

    @classmethod
    def from_gpx(
        cls,
        path: str | os.PathLike[str],
        *,
        metres: bool = False,
        origin: tuple[float, float] | None = None,
        **cleaning: Unpack[CleaningOptions],
    ) -> Self:
        """Read the track segments of a GPX file: longitude and latitude, with times.

        Parameters
        ----------
        path
            The file. One that declares a document type (DOCTYPE) is refused.
        metres
            Lay the places down in the tangent plane of `origin`: metres east and north of it.
        origin
            Longitude and latitude of the origin; by default the middle of all places.
        """
        from onlooker.reading.gpx import read_gpx

        return cls._from_tracks(read_gpx(path, metres, origin, cleaning))

    @classmethod
    def from_minari(
        cls, dataset: Any, observation: str | int | Callable[[Any], Any] | None = None
    ) -> Self:
        """Take the observations of a Minari data set; its actions are not looked at.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset`, or anything whose ``iterate_episodes()`` gives objects with
            ``observations``.
        observation
            Which part of a dictionary or tuple of observations is the state, by key or number;
            or a function from an episode's observations to ``(T,)`` or ``(T, d)`` states.
        """
        from onlooker.reading.episodes import read_minari

        return cls._from_tracks(read_minari(dataset, observation))

    @classmethod
    def from_imitation(
        cls, trajs: Iterable[Any], observation: str | int | Callable[[Any], Any] | None = None
    ) -> Self:
        """Take the observations of trajectories of imitation, or of anything with ``obs``."""
        from onlooker.reading.episodes import read_imitation

        return cls._from_tracks(read_imitation(trajs, observation))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a NumPy archive, under exactly the name given, names and times included."""
        from onlooker.reading.archives import write_archive

        write_archive(path, self._states, self._offsets, self._names, self._times)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, or a plain NumPy archive with one array per trajectory."""
        from onlooker.reading.archives import read_archive

        return cls._from_tracks(read_archive(path))
