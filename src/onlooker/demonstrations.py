"""What was seen: trajectories of states, without actions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

import numpy as np

from onlooker.checks import Array, one_of, read_only
from onlooker.reading import unseen
from onlooker.reading.states import (
    as_names,
    as_positions,
    as_real_states,
    as_states,
    as_times,
    as_trajectory,
    distinct_states,
    is_hidden,
    refuse_no_list,
    require_same_kind,
)
from onlooker.reading.tracks import Tracks, time_text

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.reading.tracks import CleaningOptions, ReadingSummary

__all__ = ["Demonstrations", "as_real_states", "as_states", "distinct_states"]

Missing = Literal["error", "infer"]


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
    missing
        ``"error"``: every state must have been seen. ``"infer"``: -1 among integers marks a state
        that was not seen, NaN among floats a coordinate, and inference fills them in
        (`Problem.from_demonstrations`). Unseen states before the first and after the last seen one
        of a trajectory are left out, and so are trajectories with fewer than two seen states.

    Examples
    --------
    >>> demos = Demonstrations([[0, 1, 1, 2], [2, 0]])
    >>> len(demos), demos.n_transitions
    (2, 4)
    >>> demos[[1]][0]
    array([2, 0])
    >>> demos = Demonstrations([[0, -1, 2, 2, -1], [-1, 3]], missing="infer")
    >>> demos
    Demonstrations(1 trajectory, 4 integer states, 25.0 % not seen)
    >>> demos.split()[0]  # what is left without inference
    array([2, 2])
    """

    def __init__(
        self,
        trajectories: Iterable[Any],
        *,
        names: Any = None,
        times: Iterable[Any] | None = None,
        missing: Missing = "error",
    ) -> None:
        infer = one_of("missing", missing, ("error", "infer")) == "infer"
        if isinstance(trajectories, Demonstrations):
            tracks = replace(trajectories._tracks)
        else:
            tracks = _joined(trajectories, infer)
        if names is not None:
            tracks.names = as_names(names, len(tracks.offsets) - 1)
        if times is not None:
            tracks.times = as_times(times, np.diff(tracks.offsets))
        self._set(unseen.trim(tracks) if infer else tracks)

    def _set(self, tracks: Tracks) -> None:
        self._tracks = Tracks(
            read_only(tracks.states),
            read_only(tracks.offsets.astype(np.int64)),
            None if tracks.names is None else read_only(tracks.names),
            None if tracks.times is None else read_only(tracks.times),
            tracks.reading,
            None if tracks.rows is None else read_only(tracks.rows),
        )

    @classmethod
    def from_tracks(cls, tracks: Tracks) -> Self:
        """Take what a reader returned, or arrays that were checked elsewhere; nothing is copied."""
        new = cls.__new__(cls)
        new._set(tracks)
        return new

    # -- the sequence of trajectories -----------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """``(number of trajectories,)``: what scikit-learn's splitters ask for."""
        return (len(self),)

    def __iter__(self) -> Iterator[Array]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.states[start:stop]

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Array: ...
    @overload
    def __getitem__(self, index: Any) -> Self: ...

    def __getitem__(self, index: Any) -> Any:
        """One trajectory for an integer; a `Demonstrations` for a slice, a list or a mask."""
        if isinstance(index, int | np.integer):
            return self._trajectory(int(index))
        chosen = np.asarray(np.arange(len(self))[index])  # scikit-learn writes `X[rows, ...]`
        if chosen.ndim == 0:
            return self._trajectory(int(chosen))
        if chosen.ndim > 1:
            raise IndexError("index trajectories by an integer, a slice, a flat list or a mask")
        if len(chosen) == 0:
            raise IndexError("the index selects no trajectory")
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        times = None if self.times is None else self.times[rows]
        source = None if self.rows is None else self.rows[rows]
        return self.from_tracks(
            Tracks(self.states[rows], offsets, self.names[chosen], times, rows=source)
        )

    def _trajectory(self, index: int) -> Array:
        if not -len(self) <= index < len(self):
            raise IndexError(f"trajectory {index} of {len(self)}")
        index %= len(self)
        return self.states[self.offsets[index] : self.offsets[index + 1]]

    def __repr__(self) -> str:
        kind = "integer states" if self.is_discrete else f"states in {self.n_dims} dimensions"
        unseen = f", {100 * self.hidden.mean():.1f} % not seen" if self.has_unseen else ""
        n = "1 trajectory" if len(self) == 1 else f"{len(self)} trajectories"
        return f"Demonstrations({n}, {len(self.states)} {kind}{unseen})"

    def __eq__(self, other: object) -> bool:
        """Whether the trajectories are the same; names and times do not count."""
        if not isinstance(other, Demonstrations):
            return NotImplemented
        same = np.array_equal(self.states, other.states, equal_nan=not self.is_discrete)
        return same and np.array_equal(self.offsets, other.offsets)

    __hash__ = None  # type: ignore[assignment]

    # -- what they hold -------------------------------------------------------------------------

    @property
    def states(self) -> Array:
        """All states, trajectory after trajectory: ``(n,)`` integers or ``(n, d)`` floats."""
        return self._tracks.states

    @property
    def offsets(self) -> Array:
        """Where each trajectory starts in `states`, and where the last one ends."""
        return self._tracks.offsets

    @property
    def lengths(self) -> Array:
        """Number of states of each trajectory."""
        return np.diff(self.offsets)

    @cached_property
    def names(self) -> Array:
        """Name of each trajectory, as text: ``demos[demos.names == "Lenny"]`` finds one.

        What the table called them, else "0", "1", ... . Pieces of a trajectory that was split
        share its name, so that names serve as the groups of a cross-validation.
        """
        if self._tracks.names is None:
            return read_only(np.arange(len(self)).astype(np.str_))
        return self._tracks.names

    @property
    def times(self) -> Array | None:
        """Time of each state in `states` (numbers, or NumPy dates in UTC), if it is known."""
        return self._tracks.times

    @property
    def rows(self) -> Array | None:
        """Row of each state in the table that was read, from 0; None where states are no rows."""
        return self._tracks.rows

    def place(self, index: int) -> str:
        """Where a state was recorded, such as "elk_07, step 3, 2024-05-03 14:00, row 812".

        `index` is that of the state in `states`; steps and rows count from 0.
        """
        number = int(np.searchsorted(self.offsets, index, side="right")) - 1
        name = str(self.names[number])
        parts = [f"trajectory {name}" if name.isdecimal() else name]
        parts.append(f"step {index - self.offsets[number]}")
        parts += [] if self.times is None else [time_text(self.times[index])]
        parts += [] if self.rows is None else [f"row {self.rows[index]}"]
        return ", ".join(parts)

    @property
    def reading(self) -> ReadingSummary | None:
        """What reading found, dropped and changed; None if they were not read."""
        return self._tracks.reading

    @property
    def is_discrete(self) -> bool:
        """Whether the states are integers."""
        return self.states.ndim == 1

    @property
    def n_dims(self) -> int:
        """Dimension of a real-valued state; 1 for integer states."""
        return 1 if self.is_discrete else self.states.shape[1]

    @property
    def n_transitions(self) -> int:
        """Number of pairs of successive states."""
        return len(self.states) - len(self)

    @cached_property
    def hidden(self) -> Array:
        """``(n,)``: whether a state, or a coordinate of it, was not seen."""
        return read_only(is_hidden(self.states))

    @property
    def has_unseen(self) -> bool:
        """Whether any state was not, or not entirely, seen."""
        return bool(self.hidden.any())

    def require_seen(self) -> Self:
        """The demonstrations as they are; refused where a state was not seen."""
        if self.has_unseen:
            raise ValueError(
                f"{int(self.hidden.sum())} of {len(self.states)} states were not seen: "
                "Problem.from_demonstrations infers them; for anything else use split(), which "
                "keeps the pairs of states that were seen one after the other"
            )
        return self

    def transitions(self) -> tuple[Array, Array]:
        """All pairs ``(s_t, s_{t+1})``, pooled, never across two trajectories."""
        self.require_seen()
        starts = self.transition_starts()
        return self.states[starts], self.states[starts + 1]

    def transition_starts(self) -> Array:
        """Index into `states` of the first state of every transition."""
        keep = np.ones(len(self.states), dtype=bool)
        keep[self.offsets[1:] - 1] = False
        return np.flatnonzero(keep)

    def trajectory_of(self) -> Array:
        """The trajectory that each transition belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths - 1)

    def distinct(self) -> tuple[Array, Array]:
        """The distinct states in order of first appearance, and each state's index among them."""
        self.require_seen()
        return distinct_states(self.states)

    # -- other states ---------------------------------------------------------------------------

    def with_states(self, states: Array) -> Self:
        """The same trajectories, names and times with other states, which are not checked."""
        own = self._tracks
        return self.from_tracks(Tracks(states, own.offsets, own.names, own.times, rows=own.rows))

    def as_positions(self) -> Self:
        """Whole numbers as positions on a line."""
        return self.with_states(as_positions(self.states))

    def hide(self, share: float, random_state: Any = None) -> Self:
        """The demonstrations with this share of their states hidden at random."""
        return self.from_tracks(unseen.hide(self._tracks, share, random_state))

    def split(self) -> Self:
        """Only pairs of states that were seen one after the other: unseen ones break the rest."""
        return self.from_tracks(unseen.split(self._tracks)) if self.has_unseen else self

    def filled(self) -> Self:
        """Unseen coordinates of positions on the straight line between the seen ones."""
        if not self.has_unseen:
            return self
        if self.is_discrete:
            raise ValueError("only positions are filled in; between integers there is nothing")
        return self.with_states(unseen.fill(self._tracks))

    # -- in and out -----------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        states: str | Sequence[str] | None = None,
        trajectory: str | None = None,
        time: str | None = None,
        **options: Any,
    ) -> Self:
        """Read a file of any kind, told by its suffix.

        Parameters
        ----------
        path
            A file ending in csv, tsv (also packed, as csv.gz), parquet (or pq), npz, npy or gpx.
        states, trajectory, time
            Column names as in `from_dataframe`. Tables need `states`; in an npz archive they name
            arrays; npy and gpx have no columns to name.
        **options
            Cleaning as in `from_dataframe`, and the options of the reader.
        """
        from onlooker.reading.kinds import read_tracks

        return cls.from_tracks(read_tracks(path, states, trajectory, time, **options))

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
            `onlooker.reading.Cleaning`. By default nothing is dropped or changed unseen:
            missing values and repeated times are refused, gaps in time are kept with a warning.

        Notes
        -----
        A trajectory of a single row has no transition: it is left out, with a warning. `reading`
        tells all that was found, dropped or changed. Messages count the rows of a data frame
        from 0.
        """
        from onlooker.reading.tables import read_dataframe

        return cls.from_tracks(read_dataframe(frame, states, trajectory, time, cleaning))

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
        from onlooker.reading.csv import read_csv

        return cls.from_tracks(read_csv(path, states, trajectory, time, options))

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
        from onlooker.reading.tables import read_parquet

        return cls.from_tracks(read_parquet(path, states, trajectory, time, cleaning))

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

        return cls.from_tracks(read_npz(path, states, trajectory, time, cleaning))

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

        return cls.from_tracks(read_gpx(path, metres, origin, **cleaning))

    @classmethod
    def from_minari(
        cls,
        dataset: Any,
        observation: str | int | Callable[[Any], Any] | None = None,
        *,
        missing: Missing = "error",
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
        missing
            As in `Demonstrations`.
        """
        from onlooker.reading.episodes import read_minari

        return cls.from_tracks(read_minari(dataset, observation, missing))

    @classmethod
    def from_imitation(
        cls,
        trajs: Iterable[Any],
        observation: str | int | Callable[[Any], Any] | None = None,
        *,
        missing: Missing = "error",
    ) -> Self:
        """Take the observations of trajectories of imitation, or of anything with ``obs``."""
        from onlooker.reading.episodes import read_imitation

        return cls.from_tracks(read_imitation(trajs, observation, missing))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a NumPy archive, under exactly the name given, names and times included."""
        from onlooker.reading.archives import write_archive

        write_archive(path, self._tracks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, or a plain NumPy archive with one array per trajectory."""
        from onlooker.reading.archives import read_archive

        return cls.from_tracks(read_archive(path))


def _joined(trajectories: Iterable[Any], infer: bool) -> Tracks:
    """Checked trajectories, one after the other."""
    refuse_no_list(trajectories)
    arrays = [as_trajectory(index, item, infer=infer) for index, item in enumerate(trajectories)]
    if not arrays:
        raise ValueError("trajectories is empty; give at least one trajectory")
    require_same_kind(arrays)
    lengths = [len(array) for array in arrays]
    return Tracks(np.concatenate(arrays), np.concatenate([[0], np.cumsum(lengths)]))
