"""Tables of states (data frames, CSV, parquet) into trajectories."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlooker._validation import Array

if TYPE_CHECKING:
    import pandas as pd


def _column_names(
    states: str | Sequence[str], trajectory: str | None, time: str | None
) -> tuple[list[Any], list[Any]]:
    several = isinstance(states, Iterable) and not isinstance(states, str)
    state_columns = list(states) if several else [states]
    if not state_columns:
        raise ValueError("states names no column")
    others = [name for name in (trajectory, time) if name is not None]
    for name in state_columns + others:
        if not isinstance(name, Hashable):
            raise TypeError(f"a column is named by one string, got {name!r}")
    return state_columns, others


def read_table(
    frame: pd.DataFrame,
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> list[Array]:
    """Cut `frame` into one array of states per trajectory, in order of first appearance."""
    state_columns, others = _column_names(states, trajectory, time)
    _check_frame(frame, state_columns, others)
    values = _state_values(frame, state_columns)
    groups, names = _groups(frame, trajectory)
    keys: list[Any] = [groups]
    if time is not None:
        keys.insert(0, _time_ranks(frame[time], time))
    order = np.lexsort(keys)
    if time is not None:
        _refuse_repeated_times(groups[order], keys[0][order], order, time)
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    pieces = np.split(values[order], cuts)
    for name, piece, row in zip(names, pieces, order[np.r_[0, cuts]], strict=True):
        if len(piece) < 2:
            raise ValueError(
                f"trajectory {name!r} has only row {row}; "
                "a transition needs two: drop it from the table"
            )
    return pieces


def _check_frame(frame: Any, state_columns: list[Any], others: list[Any]) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"frame must be a pandas DataFrame, got {type(frame).__name__}; convert it first"
        )
    for name in state_columns + others:
        count = list(frame.columns).count(name)
        if count == 0:
            found = ", ".join(map(str, frame.columns))
            raise ValueError(f"the table has no column {name!r}; it has {found}")
        if count > 1:
            raise ValueError(f"the table has {count} columns {name!r}; rename all but one")
    if len(frame) == 0:
        raise ValueError("the table has no rows")
    for name in others:
        missing = frame[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"column {name!r} is missing in row {int(np.argmax(missing))}; "
                "fill it in or drop the row"
            )


def _state_values(frame: pd.DataFrame, columns: list[Any]) -> Array:
    parts = [_numbers(frame[name], name) for name in columns]
    if len(parts) == 1 and parts[0].dtype.kind in "iu":
        return parts[0]
    return np.column_stack([part.astype(np.float64) for part in parts])


def _numbers(column: pd.Series[Any], name: Any) -> Array:
    """The numbers that a column holds, all of them there and finite."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"column {name!r} is missing in row {int(np.argmax(missing))}; "
            "split the trajectory there, fill it in or drop the row"
        )
    if column.dtype.kind not in "iuf":
        raise ValueError(
            f"column {name!r} must hold numbers, got {column.dtype}{_first_text(column)}; "
            "convert it first (for categories: their integer codes)"
        )
    values = column.to_numpy()
    bad = ~np.isfinite(values.astype(np.float64))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"column {name!r} holds {values[row]} in row {row}; "
            "split the trajectory there, fill it in or drop the row"
        )
    return values


def _first_text(column: pd.Series[Any]) -> str:
    """Where a column that should hold numbers does not."""
    import pandas as pd

    bad = pd.to_numeric(column.astype(object), errors="coerce").isna().to_numpy()
    if not bad.any():
        return ""
    row = int(np.argmax(bad))
    return f" ({column.iloc[row]!r} in row {row})"


def _groups(frame: pd.DataFrame, trajectory: str | None) -> tuple[Array, list[Any]]:
    if trajectory is None:
        return np.zeros(len(frame), dtype=np.int64), ["(the whole table)"]
    import pandas as pd

    codes, names = pd.factorize(frame[trajectory])
    return np.asarray(codes), list(names)


def _time_ranks(column: pd.Series[Any], name: Any) -> Array:
    """Ranks, so that dates sort as well as numbers; text would sort "10" before "2"."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        if column.cat.ordered:
            return column.cat.codes.to_numpy()
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
        numbers = pd.to_numeric(column, errors="coerce")
        read = numbers
        if numbers.isna().any():
            text = column.astype(str)
            read = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
        if read.isna().any():
            row = int(np.argmax(read.isna().to_numpy()))
            raise ValueError(
                f"column {name!r} holds {column.iloc[row]!r} in row {row}, neither a number nor "
                "an ISO date; convert the column first (pandas.to_datetime, pandas.to_numeric)"
            )
        column = read
    return column.rank(method="dense").to_numpy()


def _refuse_repeated_times(groups: Array, times: Array, order: Array, time: str) -> None:
    repeated = (groups[1:] == groups[:-1]) & (times[1:] == times[:-1])
    if repeated.any():
        at = int(np.argmax(repeated))
        raise ValueError(
            f"rows {order[at]} and {order[at + 1]} of one trajectory share the same {time!r}; "
            "drop one of them, or name the column that tells trajectories apart (trajectory=)"
        )


def load_csv(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
    **read_csv: Any,
) -> pd.DataFrame:
    """Read only the columns needed from a CSV file."""
    import pandas as pd

    state_columns, others = _column_names(states, trajectory, time)
    wanted = set(state_columns + others)
    name = os.fspath(path)
    for option in ("chunksize", "iterator"):
        if read_csv.get(option):
            raise ValueError(f"{option} reads a CSV file in pieces; leave it out")
    only = {} if "header" in read_csv else {"usecols": lambda column: column in wanted}
    try:
        frame = cast("pd.DataFrame", pd.read_csv(path, **(only | read_csv)))
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{name} is empty") from error
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is not a CSV file: {error}") from error
    missing = [column for column in state_columns + others if column not in frame.columns]
    if missing:
        found = ", ".join(map(str, pd.read_csv(path, **(read_csv | {"nrows": 0})).columns))
        raise ValueError(f"{name} has no column {missing[0]!r}; it has {found}")
    return frame


def load_parquet(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> pd.DataFrame:
    """Read only the columns needed from a parquet file."""
    import pandas as pd

    state_columns, others = _column_names(states, trajectory, time)
    try:
        return pd.read_parquet(path, columns=state_columns + others)
    except ImportError as error:
        raise ImportError(
            "reading parquet needs pyarrow: pip install 'onlooker[parquet]'"
        ) from error
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        for name in state_columns + others:
            if f"FieldRef.Name({name})" in str(error):  # pyarrow's message goes on for lines
                raise ValueError(f"{os.fspath(path)} has no column {name!r}") from error
        raise ValueError(f"cannot read {os.fspath(path)}: {error}") from error
