"""Tracks as they are recorded: what may be wrong with them, what to do, and what was done."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Self, TypedDict, get_args

import numpy as np

from onlooker.checks import Array, Setting, SettingError, Wording, boolean, one_of, positive_number
from onlooker.reading.states import as_positions

Missing = Literal["error", "drop", "split", "interpolate", "infer"]
Duplicates = Literal["error", "first", "last", "mean"]
Gaps = Literal["keep", "split", "resample", "error"]
Duration = float | str | timedelta | np.timedelta64

_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}
_SHOWN = 5  # how many rows or names a message lists


class CleaningOptions(TypedDict, total=False):
    """The options of `Cleaning`, as keyword arguments of the readers."""

    missing: Missing
    duplicates: Duplicates
    gaps: Gaps
    gap: Duration | None
    interval: Duration | None
    max_gap: Duration | None
    max_speed: float | None
    periodic: Mapping[Any, float] | None
    geographic: bool


@dataclass(frozen=True)
class Cleaning:
    """What to do with what is wrong with recorded tracks.

    Parameters
    ----------
    missing : "error", "drop", "split", "interpolate" or "infer"
        What to do with rows whose state is not a finite number: refuse, leave them out, split
        the trajectory there, fill them in linearly in time (in rows, without a time), or keep
        them as unseen states, which inference fills in (those before the first and after the last
        seen state of a trajectory are left out). A row without a trajectory or a time has no
        place: it is refused ("error") or dropped (else).
    duplicates : "error", "first", "last" or "mean"
        What to do with rows of one trajectory that share a time.
    gaps : "keep", "split", "resample" or "error"
        What to do where successive states are further apart in time than is usual. "keep"
        leaves them together and warns; "resample" interpolates linearly onto an even grid.
    gap
        A longer step in time is a gap; by default 1.5 times the median step.
    interval
        Step of the even grid; by default the median step.
    max_gap
        Longest gap that is interpolated; a longer one splits. By default 3 times `interval` for
        ``gaps="resample"``, without limit for ``missing="interpolate"``.
    max_speed
        A state that cannot be reached at this speed, from the states around it that stay, is
        treated as missing: the fewest states that must go, in the way that `missing` says.
    periodic
        Period of each column that wraps round, such as ``{"turn": 360}``.
    geographic
        Whether states are longitude and latitude in degrees, which wrap round and are km apart.

    Notes
    -----
    `gap`, `interval` and `max_gap` are in the unit of the time column; for dates text such as
    "6h" or "1.5 d", a timedelta, or seconds. `max_speed` is in units of the states (km if
    `geographic`) per unit of the time column, per hour for dates, per row without a time.
    """

    missing: Missing = "error"
    duplicates: Duplicates = "error"
    gaps: Gaps = "keep"
    gap: Duration | None = None
    interval: Duration | None = None
    max_gap: Duration | None = None
    max_speed: float | None = None
    periodic: Mapping[Any, float] | None = None
    geographic: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("missing", Missing), ("duplicates", Duplicates), ("gaps", Gaps)):
            one_of(name, getattr(self, name), get_args(choices))
        if self.max_speed is not None:
            positive_number("max_speed", self.max_speed)
        boolean("geographic", self.geographic)
        resample = Setting("gaps", ("resample",))
        if self.interval is not None and self.gaps != "resample":
            raise SettingError("interval is the step of the even grid: it needs ", resample)
        if self.max_gap is not None and self.gaps != "resample" and self.missing != "interpolate":
            interpolate = Setting("missing", ("interpolate",))
            raise SettingError(
                "max_gap limits what is interpolated: it needs ", resample, " or ", interpolate
            )

    @classmethod
    def among(cls, options: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """Split `options` into a `Cleaning` and the rest."""
        own = {f.name for f in dataclasses.fields(cls)}
        mine = {name: value for name, value in options.items() if name in own}
        return cls(**mine), {name: v for name, v in options.items() if name not in own}


@dataclass
class Table:
    """One state a row, as read: nothing sorted, dropped or filled in yet.

    Attributes
    ----------
    states : (n,) integers or (n, d) floats, not finite where missing
    missing : (n,), True where a state is not finite, or not there
    groups : (n,) number of the trajectory in order of appearance, -1 where it is missing
    names : the name of each trajectory
    times : (n,) numbers or NumPy dates or durations, if there is a time
    timeless : (n,), True where the time is missing
    where : says where row i is, for messages
    columns : names of the state's dimensions
    trajectory, time : names of these columns
    ordinal : whether times have an order but no distance
    """

    states: Array
    missing: Array
    groups: Array
    names: list[str]
    times: Array | None
    timeless: Array | None
    columns: list[Any]
    where: Callable[[int], str]
    trajectory: Any = None
    time: Any = None
    ordinal: bool = False
    notes: list[str] = field(default_factory=list)

    def pop(self, name: str) -> Any:
        """Give an array away, so that its memory can be freed."""
        value = getattr(self, name)
        setattr(self, name, None)
        return value


@dataclass
class Tracks:
    """Trajectories one after the other, as every reader returns them."""

    states: Array
    offsets: Array
    names: Array | None = None
    times: Array | None = None
    reading: ReadingSummary | None = None
    rows: Array | None = None
    """The row of the source that each state stands in, from 0; None where states are no rows."""

    def as_positions(self) -> Self:
        """Whole numbers as positions on a line."""
        return dataclasses.replace(self, states=as_positions(self.states))


@dataclass
class ReadingSummary:
    """What reading found, dropped and changed: ``str()`` in words, `to_dict` in numbers.

    Unless tracks were resampled, ``rows == states + dropped``.
    """

    rows: int = 0
    """Rows (or points, or observations) in the source."""
    trajectories: int = 0
    """Trajectories in the source."""
    states: int = 0
    """States kept."""
    pieces: int = 0
    """Trajectories kept, pieces of those that were split included."""
    without_trajectory: int = 0
    """Rows dropped because they name no trajectory."""
    without_time: int = 0
    """Rows dropped because they have no time."""
    sorted: int = 0
    """Trajectories whose rows were not in the order of time."""
    duplicates: int = 0
    """Rows dropped because another one has the same time."""
    duplicates_how: str = "error"
    too_fast: int = 0
    """Rows that were reached faster than `Cleaning.max_speed` allows."""
    too_fast_places: tuple[str, ...] = ()
    """Where the first of them are, and how fast they were reached."""
    missing: int = 0
    """Rows with a missing or infinite state, and those that were reached too fast."""
    missing_rows: tuple[int, ...] = ()
    """The first of them."""
    missing_dropped: int = 0
    """Those of them that were dropped."""
    missing_how: str = "error"
    step: float | None = None
    """The median step in time (for dates in seconds)."""
    off_step: int = 0
    """Steps in time that differ from it by more than a tenth and are no gaps."""
    gaps: int = 0
    """Steps in time above `gap_threshold`."""
    gap_threshold: float | None = None
    gap_longest: float | None = None
    gap_place: str = ""
    """Where the longest gap is."""
    gaps_how: str = "keep"
    splits: int = 0
    """Places where a trajectory was split."""
    resampled: int | None = None
    """States before resampling."""
    interval: float | None = None
    """Step of the even grid."""
    short: int = 0
    """Rows dropped because they were alone in their trajectory or piece."""
    lost: tuple[str, ...] = ()
    """Trajectories of which nothing is left."""
    notes: tuple[str, ...] = ()
    dates: bool = False
    """Whether times are dates or durations, in seconds here."""

    @property
    def dropped(self) -> int:
        """Rows that were dropped for any reason."""
        unplaced = self.without_trajectory + self.without_time
        return unplaced + self.duplicates + self.missing_dropped + self.short

    @property
    def untouched(self) -> bool:
        """Whether all rows are in the trajectories as they were read."""
        filled = self.missing - self.missing_dropped
        return not (self.dropped or filled or self.splits or self.resampled is not None)

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, text and lists that JSON can hold."""
        content = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }
        return content | {"dropped": self.dropped, "untouched": self.untouched}

    def __str__(self) -> str:
        return self.describe()

    def describe(self, wording: Wording = str) -> str:
        """In words, one finding per line; settings are written by `wording`."""
        first = (
            f"Read {counted(self.rows, 'row')} of {counted(self.trajectories, 'trajectory')}; kept "
            f"{counted(self.states, 'state')} in {counted(self.pieces, 'trajectory')}."
        )
        return "\n  ".join([first, *self._findings(wording), *self.notes])

    def _findings(self, wording: Wording) -> list[str]:
        found = []
        if self.without_trajectory:
            found.append(f"Dropped {counted(self.without_trajectory, 'row')} without trajectory.")
        if self.without_time:
            found.append(f"Dropped {counted(self.without_time, 'row')} without time.")
        if self.sorted:
            found.append(f"Sorted {counted(self.sorted, 'trajectory')} by time.")
        if self.duplicates:
            found.append(
                f"Dropped {counted(self.duplicates, 'row')} that repeated a time "
                f"({wording(Setting('duplicates', (self.duplicates_how,)))})."
            )
        if self.too_fast:
            more = f" and {self.too_fast - _SHOWN:,} more" if self.too_fast > _SHOWN else ""
            found.append(
                f"{counted(self.too_fast, 'row')} reached too fast, taken as missing: "
                f"{'; '.join(self.too_fast_places)}{more}."
            )
        if self.missing:
            kept = self.missing - self.missing_dropped
            how = "to be inferred" if self.missing_how == "infer" else "filled in"
            found.append(
                f"{counted(self.missing, 'row')} with a missing"
                f"{' or ' if self.too_fast == 0 else ', too fast or '}infinite state (first "
                f"{listed(self.missing_rows, self.missing)}): {kept:,} {how}, "
                f"{self.missing_dropped:,} dropped "
                f"({wording(Setting('missing', (self.missing_how,)))})."
            )
        found += self._time_findings(wording)
        if self.splits:
            found.append(f"Split at {counted(self.splits, 'place')}.")
        if self.short:
            found.append(f"Dropped {counted(self.short, 'row')} alone in a trajectory or piece.")
        if self.lost:
            found.append(
                f"Nothing is left of {counted(len(self.lost), 'trajectory')}: "
                f"{listed(self.lost, len(self.lost))}."
            )
        return found

    def _time_findings(self, wording: Wording) -> list[str]:
        found = []
        if self.gaps or self.off_step:
            chosen = wording(Setting("gaps", (self.gaps_how,)))
            found.append(f"{self.describe_steps()} ({chosen}).")
        if self.resampled is not None and self.interval is not None:
            found.append(
                f"Resampled {counted(self.resampled, 'state')} to {self.states:,}, "
                f"one every {self._span(self.interval)}."
            )
        return found

    def describe_steps(self) -> str:
        """What is irregular about the times, in words."""
        assert self.step is not None
        parts = []
        if self.gaps:
            assert self.gap_threshold is not None
            assert self.gap_longest is not None
            parts.append(
                f"{counted(self.gaps, 'gap')} longer than {self._span(self.gap_threshold)}, "
                f"the longest {self._span(self.gap_longest)} {self.gap_place}"
            )
        if self.off_step:
            parts.append(f"{counted(self.off_step, 'other step')} more than a tenth off")
        return f"Times step by {self._span(self.step)} (median) with {', and '.join(parts)}"

    def _span(self, value: float) -> str:
        return span(value) if self.dates else f"{value:g}"


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural where it is one."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"


def listed(items: Any, total: int) -> str:
    """The first few of many."""
    shown = [str(item) for item in items[:_SHOWN]]
    return ", ".join(shown) + (", ..." if total > len(shown) else "")


def span(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for unit in ("d", "h", "min"):
        if abs(seconds) >= _SECONDS[unit] * (2 if unit == "d" else 1):
            return f"{seconds / _SECONDS[unit]:.6g} {unit}"
    return f"{seconds:.6g} s"


def time_text(time: Any) -> str:
    """A time of a row: a date without seconds that are 0, or a number."""
    if isinstance(time, np.datetime64):
        text = str(time.astype("datetime64[s]")).replace("T", " ")
        return text.removesuffix(":00") if len(text) > len("0000-00-00 00:00") else text
    if isinstance(time, np.timedelta64):
        return span(float(time / np.timedelta64(1, "s")))
    return f"time {time}"


def as_duration(name: str, value: Duration, *, dates: bool) -> float:
    """A duration in the unit of the times: seconds for dates."""
    if isinstance(value, str) and not dates:
        raise ValueError(
            f"{name}={value!r} needs a time column of dates; give a number in the column's unit"
        )
    if isinstance(value, str):
        parts = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]+)\s*", value.lower())
        if parts is None or parts[2] not in _SECONDS or parts[1].count(".") > 1:
            units = ", ".join(_SECONDS)
            raise ValueError(f"{name}={value!r} is no duration; write it like '6h' ({units})")
        value = float(parts[1]) * _SECONDS[parts[2]]
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    elif isinstance(value, np.timedelta64):
        value = float(value / np.timedelta64(1, "s"))
    return positive_number(name, value)
