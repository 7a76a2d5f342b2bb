"""Tables of states (data frames, CSV, parquet) as arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError, require_memory
from onlooker.reading.cleaning import clean
from onlooker.reading.tracks import Cleaning, Table, Tracks

if TYPE_CHECKING:
    import pandas as pd

_CELL = 32  # bytes of a cell, while it is read
_LARGEST = np.iinfo(np.int64).max


def column_names(
    states: str | Sequence[str], trajectory: str | None, time: str | None
) -> tuple[list[Any], list[Any]]:
    """The columns of the state, and those of trajectory and time where given."""
    several = isinstance(states, Iterable) and not isinstance(states, str)
    state_columns = list(states) if several else [states]
    if not state_columns:
        raise ValueError("states names no column")
    others = [name for name in (trajectory, time) if name is not None]
    for name in state_columns + others:
        if not isinstance(name, Hashable):
            raise TypeError(f"a column is named by one string, got {name!r}")
    twice = next((name for k, name in enumerate(state_columns) if name in state_columns[:k]), None)
    if twice is not None:
        raise SettingError(Setting("states"), f" names column {twice!r} twice")
    if trajectory in state_columns and trajectory is not None:
        raise ValueError(
            f"column {trajectory!r} tells trajectories apart: as a part of the state it would be "
            "constant along each; leave it out of states"
        )
    return state_columns, others


def read_dataframe(
    frame: pd.DataFrame,
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
    cleaning: Mapping[str, Any],
) -> Tracks:
    """Read and clean the columns of a data frame."""
    return clean(load_dataframe(frame, states, trajectory, time), Cleaning(**cleaning))


def read_parquet(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
    cleaning: Mapping[str, Any],
) -> Tracks:
    """Read and clean the columns of a parquet file."""
    return clean(load_parquet(path, states, trajectory, time), Cleaning(**cleaning))


def load_dataframe(
    frame: pd.DataFrame, states: str | Sequence[str], trajectory: str | None, time: str | None
) -> Table:
    """The columns of a data frame as arrays."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"frame must be a pandas DataFrame, got {type(frame).__name__}; convert it first"
        )
    reader = TableReader(states, trajectory, time, where=lambda row: f"row {row}")
    reader.add(frame)
    return reader.table()


class TableReader:
    """Collects the columns of a table that comes in one or many parts.

    What a column holds is decided over all parts, so that where they were cut does not matter.
    """

    def __init__(
        self,
        states: str | Sequence[str],
        trajectory: str | None,
        time: str | None,
        where: Callable[[int], str],
    ) -> None:
        self.columns, others = column_names(states, trajectory, time)
        self.wanted = self.columns + others
        self.trajectory, self.time, self.where = trajectory, time, where
        self.n_rows = 0
        self._states: list[Array] = []
        self._missing: list[Array] = []
        self._groups: list[Array] = []
        self._names: dict[Any, int] = {}
        self._times: list[tuple[Array, Array]] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Take in the next rows."""
        self._check_columns(frame)
        parts = [self._numbers(frame[name], name) for name in self.columns]
        missing = np.logical_or.reduce([gone for _, gone in parts])
        if len(parts) == 1 and parts[0][0].dtype.kind == "i":
            self._states.append(parts[0][0])
        else:
            states = np.empty((len(frame), len(parts)))
            for dim, (values, gone) in enumerate(parts):
                states[:, dim] = values
                if values.dtype.kind == "i":
                    states[gone, dim] = np.nan
            self._states.append(states)
        self._missing.append(missing)
        self._groups.append(self._group(frame))
        if self.time is not None:
            self._times.append(self._clock(frame[self.time]))
        self.n_rows += len(frame)
        _refuse_many_rows(self.n_rows, len(self.wanted))

    def table(self) -> Table:
        """All that was taken in."""
        if self.n_rows == 0:
            raise ValueError("the table has no rows")
        times, timeless = self._all_times()
        missing = np.concatenate(self._missing)
        names = ["0"] if self.trajectory is None else [str(name) for name in self._names]
        return Table(
            states=self._all_states(),
            missing=missing,
            groups=_joined(self._groups),
            names=names,
            times=times,
            timeless=timeless,
            columns=self.columns,
            where=self.where,
            trajectory=self.trajectory,
            time=self.time,
            ordinal=self._ordinal,
        )

    _ordinal = False

    def _check_columns(self, frame: pd.DataFrame) -> None:
        for name in self.wanted:
            count = list(frame.columns).count(name)
            if count == 0:
                found = ", ".join(map(str, frame.columns))
                raise ValueError(f"the table has no column {name!r}; it has {found}")
            if count > 1:
                raise ValueError(f"the table has {count} columns {name!r}; rename all but one")

    # -- states -------------------------------------------------------------------------------

    def _numbers(self, column: pd.Series[Any], name: Any) -> tuple[Array, Array]:
        """Integers or floats, and which of them are missing or not finite."""
        import pandas as pd

        missing = column.isna().to_numpy(dtype=bool)
        if missing.all():
            return np.zeros(len(column), dtype=np.int64), missing
        if column.dtype.kind not in "iuf":
            text = pd.api.types.is_string_dtype(column) or column.dtype.kind == "O"
            raise ValueError(
                f"column {name!r} must hold numbers, got {'text' if text else column.dtype}"
                f"{self._first_text(column, missing)}; convert it first (for categories: their "
                "integer codes)"
            )
        if column.dtype.kind == "f":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return values, ~np.isfinite(values)
        if column.dtype.kind == "u" and column.max() > _LARGEST:
            row = int(np.argmax((column > _LARGEST).to_numpy(dtype=bool, na_value=False)))
            raise ValueError(
                f"column {name!r} holds {column.iloc[row]} in {self.where(self.n_rows + row)}, "
                "beyond 64-bit integers; number the states from 0"
            )
        if missing.any():
            return column.to_numpy(dtype=np.int64, na_value=0), missing
        return column.to_numpy(dtype=np.int64), missing

    def _first_text(self, column: pd.Series[Any], missing: Array) -> str:
        """Where a column that should hold numbers does not."""
        import pandas as pd

        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        bad = numbers.isna().to_numpy(dtype=bool) & ~missing
        if not bad.any():
            return ""
        row = int(np.argmax(bad))
        return f" ({column.iloc[row]!r} in {self.where(self.n_rows + row)})"

    def _all_states(self) -> Array:
        parts, self._states = self._states, []
        if all(part.ndim == 1 for part in parts):
            return _joined(parts)
        for index, missing in enumerate(self._missing):
            if parts[index].ndim == 1:  # integers after all among floats
                parts[index] = np.where(missing, np.nan, parts[index])[:, None]
        return _joined(parts)

    # -- trajectories -------------------------------------------------------------------------

    def _group(self, frame: pd.DataFrame) -> Array:
        if self.trajectory is None:
            self._names.setdefault(None, 0)
            return np.zeros(len(frame), dtype=np.int32)
        import pandas as pd

        codes, found = pd.factorize(frame[self.trajectory])
        number = [self._names.setdefault(name, len(self._names)) for name in found]
        return np.array([*number, -1], dtype=np.int32)[codes]  # -1, for missing, is the last

    # -- times --------------------------------------------------------------------------------

    def _clock(self, column: pd.Series[Any]) -> tuple[Array, Array]:
        """Numbers or dates that sort as what they mean, and which of them are missing."""
        import pandas as pd

        missing = column.isna().to_numpy(dtype=bool)
        if isinstance(column.dtype, pd.CategoricalDtype):
            if column.cat.ordered:
                self._ordinal = True
                return column.cat.codes.to_numpy().astype(np.int64), missing
            column = column.astype(column.cat.categories.dtype)
        if isinstance(column.dtype, pd.PeriodDtype):
            column = column.dt.to_timestamp()
        if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
            column = self._from_text(column, missing)
        if column.dtype.kind == "M":
            if getattr(column.dtype, "tz", None) is not None:
                column = column.dt.tz_convert("UTC").dt.tz_localize(None)
            return self._nanoseconds(column, "datetime64[ns]"), missing
        if column.dtype.kind == "m":
            return self._nanoseconds(column, "timedelta64[ns]"), missing
        if column.dtype.kind not in "iuf":
            raise ValueError(
                f"column {self.time!r} holds {column.dtype}, neither numbers nor dates; "
                "convert it first"
            )
        if column.dtype.kind == "f":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return values, ~np.isfinite(values)
        if missing.any():
            return column.to_numpy(dtype=np.int64, na_value=0), missing
        return column.to_numpy(dtype=np.int64), missing

    def _nanoseconds(self, column: pd.Series[Any], dtype: str) -> Array:
        try:
            return column.to_numpy().astype(dtype)
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"column {self.time!r} holds dates beyond what nanoseconds can count (1678 to "
                f"2261); give it as numbers ({error})"
            ) from error

    def _from_text(self, column: pd.Series[Any], missing: Array) -> pd.Series[Any]:
        """Numbers if all are, else ISO dates if all are; text would sort "10" before "2"."""
        import pandas as pd

        numbers = pd.to_numeric(column, errors="coerce")
        bad = numbers.isna().to_numpy(dtype=bool) & ~missing
        if not bad.any():
            return numbers
        kind = "neither a number nor a date such as 2024-05-03 14:00"
        if not (bad | missing).all():
            kind = "not a number as the others"
        else:
            text = column.astype(str).where(~missing)
            dates = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
            bad = dates.isna().to_numpy(dtype=bool) & ~missing
            if not bad.any():
                return dates
        row = int(np.argmax(bad))
        raise ValueError(
            f"column {self.time!r} holds {column.iloc[row]!r} in {self.where(self.n_rows + row)}, "
            f"{kind}; convert the column first"
        )

    def _all_times(self) -> tuple[Array | None, Array | None]:
        if self.time is None:
            return None, None
        values = [part for part, _ in self._times]
        gone = [missing for _, missing in self._times]
        self._times = []
        timeless = np.concatenate(gone)
        if timeless.all():
            raise ValueError(f"column {self.time!r} has no value in any row")
        some = [k for k, missing in enumerate(gone) if not missing.all()]
        kinds = {values[k].dtype.kind.replace("i", "f") for k in some}
        if len(kinds) > 1:
            other = next(k for k in some if values[k].dtype.kind != values[some[0]].dtype.kind)
            row = sum(len(part) for part in values[:other]) + int(np.argmin(gone[other]))
            raise ValueError(
                f"column {self.time!r} holds numbers and dates; in {self.where(row)} they change: "
                "convert the column first"
            )
        dtype = np.result_type(*(values[k].dtype for k in some))
        for k, part in enumerate(values):
            if part.dtype != dtype:
                values[k] = np.zeros(len(part), dtype) if gone[k].all() else part.astype(dtype)
        return _joined(values), timeless


def _joined(parts: list[Array]) -> Array:
    """All parts in one array; a single one is not copied unless it is the caller's."""
    whole = np.concatenate(parts) if len(parts) > 1 else np.array(parts[0])
    parts.clear()
    return whole


def load_parquet(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> Table:
    """The columns of a parquet file as arrays; others are not read."""
    import pandas as pd

    state_columns, others = column_names(states, trajectory, time)
    columns = list(dict.fromkeys(state_columns + others))
    try:
        _refuse_many_rows(_parquet_rows(path), len(columns))
        frame = pd.read_parquet(path, columns=columns)
    except ImportError as error:
        raise ImportError(
            "reading parquet needs pyarrow: pip install 'onlooker[parquet]'"
        ) from error
    except (ValueError, OSError, KeyError, TypeError) as error:  # the last two of damaged notes
        if isinstance(error, FileNotFoundError):
            raise
        for name in columns:
            if f"FieldRef.Name({name})" in str(error):  # pyarrow's message goes on for lines
                found = ", ".join(_parquet_columns(path))
                raise ValueError(
                    f"{os.fspath(path)} has no column {name!r}; it has {found}"
                ) from error
        raise ValueError(f"cannot read {os.fspath(path)}: {error}") from error
    return load_dataframe(frame, states, trajectory, time)


def _refuse_many_rows(n_rows: int, n_columns: int) -> None:
    """Refuse more rows than fit into memory: a few kilobytes may unpack to billions."""
    require_memory(
        n_rows * n_columns * _CELL, f"its {n_rows:,} rows", "split the file into several"
    )


def _parquet_rows(path: str | os.PathLike[str]) -> int:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


def _parquet_columns(path: str | os.PathLike[str]) -> list[str]:
    import pyarrow.parquet

    return list(pyarrow.parquet.read_schema(path).names)
