"""From a table as it was read to clean trajectories."""

from __future__ import annotations

from itertools import pairwise
from typing import NoReturn

import numpy as np

from onlooker.checks import Array, Setting, SettingError
from onlooker.geography import arc_of, in_space
from onlooker.reading.interpolation import PeriodicAxes, between
from onlooker.reading.speed import too_fast
from onlooker.reading.states import UNSEEN, between_seen, is_hidden
from onlooker.reading.tracks import (
    Cleaning,
    Missing,
    ReadingSummary,
    Table,
    Tracks,
    as_duration,
    counted,
    listed,
    time_text,
)
from onlooker.warnings import TrackWarning, warn

_GAP = 1.5  # times the median step
_BRIDGE = 3.0  # times the step of the grid
_OFF = 0.1  # of the median step
_IRREGULAR = 0.01  # share of such steps that is worth a warning
_MIN_STEPS = 3  # in time; with fewer, none is the usual one
_ROUNDING = 1e-9
_MAX_FAST = 0.5  # share of steps that may be too fast: with more, the limit is likely wrong
_MAX_PLACES = 5


def clean(table: Table, cleaning: Cleaning) -> Tracks:
    """Sort, thin, fill and split the rows of `table` as `cleaning` says, with a summary."""
    cleaner = _Cleaner(table, cleaning)
    cleaner.drop_unplaced()
    cleaner.sort()
    cleaner.drop_repeats()
    cleaner.find_too_fast()
    cleaner.fill_missing()
    cleaner.check_intervals()
    return cleaner.finish()


class _Cleaner:
    """The rows on their way; each step drops rows or marks starts of pieces."""

    def __init__(self, table: Table, cleaning: Cleaning) -> None:
        self.table, self.cleaning = table, cleaning
        # taken out of the table, which would keep them alive while new ones are made
        self.states, self.missing = table.pop("states"), table.pop("missing")
        self.groups, self.times = table.pop("groups"), table.pop("times")
        self.timeless = table.pop("timeless")
        small = len(self.groups) < 2**31
        self.rows = np.arange(len(self.groups), dtype=np.int32 if small else np.int64)
        self.starts = np.zeros(0, dtype=bool)  # of pieces, once `fill_missing` has found them
        self.dates = self.times is not None and self.times.dtype.kind in "mM"
        self.summary = ReadingSummary(
            rows=len(self.groups),
            trajectories=len(table.names),
            duplicates_how=cleaning.duplicates,
            missing_how=cleaning.missing,
            gaps_how=cleaning.gaps,
            notes=tuple(table.notes),
            dates=self.dates,
        )
        self._check_choices()
        periodic = cleaning.periodic
        if cleaning.geographic and periodic is None:
            periodic = {table.columns[0]: 360.0}
        self.axes = PeriodicAxes.of_columns(self.states, periodic, table.columns)

    def _check_choices(self) -> None:
        discrete, choice = self.states.ndim == 1, self.cleaning
        for name, value in (
            ("missing", "interpolate"),
            ("duplicates", "mean"),
            ("gaps", "resample"),
        ):
            if discrete and getattr(choice, name) == value:
                raise SettingError(
                    Setting(name, (value,)),
                    " needs real states: between integer states there is nothing",
                )
        if discrete and choice.max_speed is not None:
            raise SettingError(
                Setting("max_speed"), " needs real states: integer states have no distance"
            )
        if choice.geographic and (discrete or self.states.shape[1] != 2):
            raise SettingError(
                Setting("geographic", (True,)),
                f" needs two columns, longitude and latitude; states has {len(self.table.columns)}",
            )
        if choice.missing == "infer" and choice.gaps == "resample":
            raise SettingError(
                Setting("gaps", ("resample",)),
                " interpolates, which needs states that were seen: choose ",
                Setting("missing", ("interpolate", "split", "drop")),
            )
        if not self._timed:
            given = {"gap": choice.gap, "max_gap": choice.max_gap}
            needing = [Setting(name) for name, value in given.items() if value is not None]
            if choice.gaps != "keep":
                needing.insert(0, Setting("gaps", (choice.gaps,)))
            if needing:
                time = Setting("time")
                raise SettingError(
                    needing[0], " needs a column of times (", time, "), as numbers or dates"
                )

    # -- one step each --------------------------------------------------------------------------

    def drop_unplaced(self) -> None:
        """Rows without trajectory or time have no place."""
        homeless = self.groups < 0
        timeless = np.zeros(len(homeless), dtype=bool) if self.timeless is None else self.timeless
        for lost, column in ((homeless, self.table.trajectory), (timeless, self.table.time)):
            if self.cleaning.missing == "error" and lost.any():
                raise SettingError(
                    f"no value of {column!r} in {self._rows(np.flatnonzero(lost))}; fill it in, or "
                    "choose ",
                    Setting("missing", ("drop",)),
                    " to drop the row",
                )
        self.summary.without_trajectory = int(homeless.sum())
        self.summary.without_time = int((timeless & ~homeless).sum())
        self.timeless = None
        self._keep(~(homeless | timeless))
        self.single = np.bincount(self.groups, minlength=len(self.table.names)) == 1

    def sort(self) -> None:
        """Trajectory by trajectory, by time where there is one, else in the order of the rows."""
        same = self.groups[1:] == self.groups[:-1]
        ordered = bool((self.groups[1:] >= self.groups[:-1]).all())
        if ordered and self.times is not None:
            ordered = not (same & (self.times[1:] < self.times[:-1])).any()
        if ordered:
            return
        order = np.lexsort([self.groups] if self.times is None else [self.times, self.groups])
        self._take(order)
        turned = (order[1:] < order[:-1]) & (self.groups[1:] == self.groups[:-1])
        self.summary.sorted = len(np.unique(self.groups[1:][turned]))

    def drop_repeats(self) -> None:
        """One row per trajectory and time."""
        repeats = self._repeats()
        if repeats is None:
            return
        if self.cleaning.duplicates == "error":
            at = int(np.argmax(repeats))
            raise SettingError(
                f"{self.table.where(int(self.rows[at - 1]))} and "
                f"{self.table.where(int(self.rows[at]))} of trajectory "
                f"{self.table.names[self.groups[at]]!r} share the same {self.table.time!r}, "
                f"{self._time(at)} ({counted(int(repeats.sum()), 'row')} in all repeat one); "
                "choose ",
                Setting("duplicates", ("first", "last", "mean")),
                ", or name the column that tells trajectories apart by ",
                Setting("trajectory"),
            )
        before = len(self.rows)
        # a row without state gives way to one of the same time that has one
        run = np.cumsum(~repeats) - 1
        stated = np.bincount(run, weights=~self.missing) > 0
        self._keep(~(self.missing & stated[run]))
        repeats = self._repeats()
        if repeats is not None:
            if self.cleaning.duplicates == "mean":
                self._average(repeats)
            last = self.cleaning.duplicates == "last"
            self._keep(~(np.r_[repeats[1:], False] if last else repeats))
        self.summary.duplicates = before - len(self.rows)

    def _repeats(self) -> Array | None:
        """Which rows have the time of the row before; None if none has."""
        if self.times is None:
            return None
        same = (self.groups[1:] == self.groups[:-1]) & (self.times[1:] == self.times[:-1])
        return np.r_[False, same] if same.any() else None

    def _average(self, repeats: Array) -> None:
        """Put the mean of the rows of one time into the first of them."""
        run = np.cumsum(~repeats) - 1
        first = np.flatnonzero(~repeats)
        with np.errstate(invalid="ignore"):  # several infinities have no mean: they stay missing
            away = self.axes.nearest(self.states - self.states[first][run])
        counts = np.bincount(run)
        sums = np.column_stack([np.bincount(run, weights=column) for column in away.T])
        several = counts > 1
        shift = sums[several] / counts[several, None]
        self.states[first[several]] = self.axes.wrap(self.states[first[several]] + shift)

    def find_too_fast(self) -> None:
        """States that cannot be reached in time; they count as missing from here on."""
        limit = self.cleaning.max_speed
        if limit is None:
            return
        rows = np.flatnonzero(~self.missing)
        same = self.groups[rows[1:]] == self.groups[rows[:-1]]
        fast = self._speeds(rows[:-1], rows[1:]) > limit * (1 + _ROUNDING)
        fast &= same
        if fast.sum() > _MAX_FAST * same.sum():
            raise SettingError(
                f"{fast.sum():,} of {counted(int(same.sum()), 'step')} are faster than ",
                Setting("max_speed", (limit,)),
                f": it is in {self._speed_unit()}; give a higher one",
            )
        bad = []
        for group in np.unique(self.groups[rows[1:][fast]]):
            own = rows[self.groups[rows] == group]
            out = too_fast(
                self.states[own],
                self._elapsed(np.full(len(own), own[0]), own) / self._hour,
                limit,
                self._distance,
            )
            bad.append(own[out])
        if not bad:
            return
        found = np.concatenate(bad)
        places = [self._how_fast(int(at)) for at in found[:_MAX_PLACES]]
        if self.cleaning.missing == "error":
            more = f" ({counted(len(found), 'row')} in all)" if len(found) > 1 else ""
            raise SettingError(
                f"{places[0]}, faster than ",
                Setting("max_speed", (limit,)),
                f"{more}; correct it or drop the row yourself, or choose ",
                Setting("missing", ("split", "drop", "interpolate", "infer")),
            )
        self.summary.too_fast, self.summary.too_fast_places = len(found), tuple(places)
        self.states[found], self.missing[found] = np.nan, True

    @property
    def _timed(self) -> bool:
        return self.times is not None and not self.table.ordinal

    @property
    def _hour(self) -> float:
        """An hour in the unit of `_elapsed`, where times are dates; speeds are per hour then."""
        return 3600.0 if self.dates else 1.0

    def _speed_unit(self) -> str:
        unit = "km" if self.cleaning.geographic else "units of the states"
        per = "hour" if self.dates else f"unit of {self.table.time!r}" if self._timed else "row"
        return f"{unit} per {per}"

    def _speeds(self, left: Array, right: Array) -> Array:
        gone = self._elapsed(left, right) / self._hour
        with np.errstate(divide="ignore", invalid="ignore"):  # from one trajectory to the next
            return np.abs(self._distance(self.states[left], self.states[right]) / gone)

    def _distance(self, start: Array, end: Array) -> Array:
        if self.cleaning.geographic:
            return arc_of(np.linalg.norm(in_space(end) - in_space(start), axis=1))
        return np.asarray(np.linalg.norm(self.axes.nearest(end - start), axis=1))

    def _how_fast(self, at: int) -> str:
        """Where a row is, and how fast it was reached or, at the start of a track, left."""
        own = np.flatnonzero((self.groups == self.groups[at]) & ~self.missing)
        k = int(np.searchsorted(own, at))
        beside = own[k - 1] if k > 0 else own[k + 1]
        speed = self._speeds(np.array([min(at, beside)]), np.array([max(at, beside)]))[0]
        name = self.table.names[self.groups[at]]
        when = f", {time_text(self.times[at])}" if self.times is not None else ""
        verb = "reached" if k > 0 else "left"
        where = self.table.where(int(self.rows[at]))
        text = f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
        return f"{name}{when}, {where} is {verb} at {text} {self._speed_unit()}"

    def fill_missing(self) -> None:
        """States that are not there."""
        self.starts = _changes(self.groups)
        summary, how = self.summary, self.cleaning.missing
        if how == "infer" and self.states.ndim == 1:
            self.missing |= self.states == UNSEEN  # a file may mark them as arrays do
        summary.missing = int(self.missing.sum())
        if summary.missing:
            where = self.rows[self.missing]
            if how == "error":
                self._refuse_missing(where)
            summary.missing_rows = tuple(np.sort(where)[:5].tolist())
            if how == "infer":
                self._mark_unseen()
            else:
                self._leave_out_missing(how)
        self.missing = np.zeros(0, dtype=bool)

    def _mark_unseen(self) -> None:
        if self.states.ndim == 1:
            self.states[self.missing] = UNSEEN
        else:
            self.states[~np.isfinite(self.states)] = np.nan

    def _leave_out_missing(self, how: Missing) -> None:
        if how == "interpolate":
            self._interpolate()
        self.summary.missing_dropped = int(self.missing.sum())
        keep = ~self.missing
        holes = np.cumsum(self.missing)[keep]
        self._keep(keep)
        self.starts = _changes(self.groups)
        if how != "drop":
            self._split(np.flatnonzero(_changes(holes) & ~self.starts))

    def _refuse_missing(self, where: Array) -> NoReturn:
        at = int(np.flatnonzero(self.missing)[np.argmin(where)])
        column, value = self.table.columns[0], np.nan
        if self.states.ndim == 2:
            dim = int(np.argmin(np.isfinite(self.states[at])))
            column, value = self.table.columns[dim], self.states[at, dim]
        what = f"no value of {column!r}" if np.isnan(value) else f"column {column!r} holds {value}"
        choices = ("split", "drop", *(("interpolate",) if self.states.ndim == 2 else ()), "infer")
        raise SettingError(
            f"{what} in {self._rows(np.sort(where))}; fill it in or drop the row yourself, or "
            "choose ",
            Setting("missing", choices),
        )

    def _interpolate(self) -> None:
        """Fill in what lies between two states, unless they are too far apart."""
        holes, left, right = between(self.missing, self.groups)
        width, gone = self._elapsed(left, right), self._elapsed(left, holes)
        if self.cleaning.max_gap is not None:
            limit = as_duration("max_gap", self.cleaning.max_gap, dates=self.dates)
            near = width <= limit * (1 + _ROUNDING)
            holes, left, right, width, gone = (a[near] for a in (holes, left, right, width, gone))
        self.axes.fill(self.states, holes, left, right, gone / width)
        self.missing[holes] = False

    def check_intervals(self) -> None:
        """Steps in time that are not like the others."""
        if self.times is None or self.table.ordinal:
            return
        steps = np.diff(self.times)
        steps = steps / np.timedelta64(1, "s") if self.dates else steps.astype(float, copy=False)
        steps[self.starts[1:]] = np.nan  # from one trajectory to the next
        usual = steps[~self.starts[1:]]
        choice, summary = self.cleaning, self.summary
        if len(usual) < _MIN_STEPS and choice.gap is None and choice.interval is None:
            if choice.gaps == "resample":
                raise SettingError(
                    "too few steps in time to tell the usual one; give ", Setting("interval")
                )
            return
        if len(usual) == 0:
            return
        summary.step = float(np.median(usual, overwrite_input=True))
        del usual
        summary.gap_threshold = _GAP * summary.step
        if choice.gap is not None:
            summary.gap_threshold = as_duration("gap", choice.gap, dates=self.dates)
        long = steps > summary.gap_threshold * (1 + _ROUNDING)
        summary.gaps = int(long.sum())
        low, high = (1 - _OFF) * summary.step, (1 + _OFF) * summary.step
        summary.off_step = int((((steps < low) | (steps > high)) & ~long).sum())
        if summary.gaps:
            self._name_longest(steps)
        self._treat_gaps(steps, long)

    def _name_longest(self, steps: Array) -> None:
        at = int(np.nanargmax(steps))
        self.summary.gap_longest = float(steps[at])
        name = self.table.names[self.groups[at]]
        self.summary.gap_place = (
            f"in trajectory {name!r} from {self._time(at)} to {self._time(at + 1)}"
        )

    def _treat_gaps(self, steps: Array, long: Array) -> None:
        choice, summary = self.cleaning, self.summary
        irregular = choice.gap is None and summary.off_step > _IRREGULAR * len(steps)
        if choice.gaps == "resample":
            self._resample(steps)
        elif choice.gaps == "split":
            self._split(np.flatnonzero(long) + 1)
        elif choice.gaps == "error" and summary.gaps:
            raise SettingError(
                f"{summary.describe_steps()}; choose ",
                Setting("gaps", ("keep", "split", "resample")),
            )
        elif choice.gaps == "keep" and (summary.gaps or irregular):
            warn(
                TrackWarning(
                    f"{summary.describe_steps()}; every step counts as one transition all the "
                    "same: choose ",
                    Setting("gaps", ("split", "resample")),
                    " where that is wrong",
                )
            )

    def _split(self, at: Array) -> None:
        self.starts[at] = True
        self.summary.splits += len(at)

    def _resample(self, steps: Array) -> None:
        """Put every piece on an even grid that starts with it."""
        summary, choice = self.summary, self.cleaning
        assert summary.step is not None
        summary.interval = summary.step
        if choice.interval is not None:
            summary.interval = as_duration("interval", choice.interval, dates=self.dates)
        max_gap = _BRIDGE * summary.interval
        if choice.max_gap is not None:
            max_gap = as_duration("max_gap", choice.max_gap, dates=self.dates)
        self._split(np.flatnonzero(steps > max_gap * (1 + _ROUNDING)) + 1)
        self._drop_short()  # a lone state has no grid
        summary.resampled = len(self.rows)
        if not len(self.rows):
            return
        cuts = np.r_[np.flatnonzero(self.starts), len(self.rows)]
        parts = [self._on_grid(start, stop, summary.interval) for start, stop in pairwise(cuts)]
        lengths = [len(states) for states, _ in parts]
        self.groups = np.repeat(self.groups[cuts[:-1]], lengths)
        self.rows = np.repeat(self.rows[cuts[:-1]], lengths)
        self.states = np.concatenate([states for states, _ in parts])
        self.times = np.concatenate([times for _, times in parts])
        self.starts = np.zeros(len(self.rows), dtype=bool)
        self.starts[np.cumsum([0, *lengths[:-1]])] = True

    def _on_grid(self, start: int, stop: int, interval: float) -> tuple[Array, Array]:
        """States and times of one piece on its grid."""
        assert self.times is not None
        rows = np.arange(start, stop)
        since = self._elapsed(np.full(len(rows), start), rows)
        grid = interval * np.arange(int(since[-1] / interval + _ROUNDING) + 1)
        states = self.axes.along(self.states[start:stop], since, grid)
        gone = (grid * 1e9).round().astype("timedelta64[ns]") if self.dates else grid
        return states, self.times[start] + gone

    def _drop_short(self) -> None:
        alone = self.starts & np.r_[self.starts[1:], True][: len(self.starts)]
        self.summary.short += int(alone.sum())
        self._keep(~alone)

    def _trim_unseen(self) -> None:
        """Leave out unseen ends of pieces, and pieces with fewer than two seen states."""
        keep = between_seen(self.states, np.r_[np.flatnonzero(self.starts), len(self.rows)])
        hidden = is_hidden(self.states)
        self.summary.missing_dropped += int((hidden & ~keep).sum())
        self.summary.short += int((~hidden & ~keep).sum())
        pieces = np.cumsum(self.starts)[keep]
        self._keep(keep)
        self.starts = _changes(pieces)

    def finish(self) -> Tracks:
        """Drop lone states, check the rest and count."""
        if self.cleaning.missing == "infer":
            self._trim_unseen()
        self._drop_short()
        summary, names = self.summary, self.table.names
        offsets = np.r_[np.flatnonzero(self.starts), len(self.rows)]
        of_piece = self.groups[offsets[:-1]]
        left = np.zeros(len(names), dtype=bool)
        left[of_piece] = True
        summary.states, summary.pieces = len(self.rows), len(of_piece)
        summary.lost = tuple(names[i] for i in np.flatnonzero(~left))
        if not summary.pieces:
            raise ValueError(f"no trajectory with two states is left. {summary}")
        self._warn_of_single()
        self._check_integers()
        if self.states.ndim == 2:
            self.states += 0.0  # -0.0 and 0.0 are one state
        return Tracks(
            self.states,
            offsets,
            np.array(names, dtype=np.str_)[of_piece],
            self.times,
            summary,
            self.rows if summary.resampled is None else None,
        )

    def _warn_of_single(self) -> None:
        names = [self.table.names[i] for i in np.flatnonzero(self.single)]
        if names:
            warn(
                f"left out {counted(len(names), 'trajectory')} of a single row "
                f"({listed(names, len(names))}): a transition needs two states",
                TrackWarning,
            )

    def _check_integers(self) -> None:
        if self.states.ndim == 1:
            bad = self.states < (UNSEEN if self.cleaning.missing == "infer" else 0)
            if not bad.any():
                return
            at = int(np.argmax(bad))
            raise ValueError(
                f"column {self.table.columns[0]!r} holds the negative state {self.states[at]} in "
                f"{self.table.where(int(self.rows[at]))}; integer states count from 0"
            )

    # -- what the steps share -------------------------------------------------------------------

    def _keep(self, mask: Array) -> None:
        if not mask.all():
            self._take(mask)

    def _take(self, index: Array) -> None:
        """Reorder or thin all arrays, one at a time so that each old one is freed."""
        self.states = self.states[index]
        if len(self.missing):
            self.missing = self.missing[index]
        self.groups = self.groups[index]
        self.rows = self.rows[index]
        if self.times is not None:
            self.times = self.times[index]
        if len(self.starts):
            self.starts = self.starts[index]

    def _elapsed(self, left: Array, right: Array) -> Array:
        """Time from one row to another, in seconds for dates, in rows without a time."""
        if not self._timed:
            return (right - left).astype(np.float64)
        assert self.times is not None
        gone = self.times[right] - self.times[left]
        return gone / np.timedelta64(1, "s") if self.dates else gone.astype(np.float64)

    def _time(self, at: int) -> str:
        assert self.times is not None
        return time_text(self.times[at]).removeprefix("time ")

    def _rows(self, rows: Array) -> str:
        first = self.table.where(int(rows[0]))
        if len(rows) == 1:
            return first
        return f"{first} ({counted(len(rows), 'row')} in all: {listed(rows.tolist(), len(rows))})"


def _changes(values: Array) -> Array:
    """Where a value differs from the one before; the first does."""
    changes = np.ones(len(values), dtype=bool)
    changes[1:] = values[1:] != values[:-1]
    return changes
