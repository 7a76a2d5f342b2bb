"""Tables of states (data frames, CSV, parquet) into trajectories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlooker._validation import Array

if TYPE_CHECKING:
    import pandas as pd


def _column_names(
    states: str | Sequence[str], trajectory: str | None, time: str | None
) -> tuple[list[str], list[str]]:
    state_columns = [states] if isinstance(states, str) else list(states)
    if not state_columns:
        raise ValueError("states names no column")
    others = [name for name in (trajectory, time) if name is not None]
    return state_columns, others


def read_table(
    frame: pd.DataFrame,
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> list[Array]:
    """Cut `frame` into one array of states per trajectory, in order of first appearance."""
    state_columns, others = _column_names(states, trajectory, time)
    for name in state_columns + others:
        if name not in frame.columns:
            raise ValueError(
                f"the table has no column {name!r}; it has {', '.join(map(str, frame.columns))}"
            )
    if len(frame) == 0:
        raise ValueError("the table has no rows")
    for name in others:
        missing = frame[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"column {name!r} is missing in row {int(np.argmax(missing))}; "
                "fill it in or drop the row"
            )
    values = _state_values(frame, state_columns)
    groups, names = _groups(frame, trajectory)
    keys: list[Any] = [groups]
    if time is not None:
        # ranks, so that dates and strings sort as well as numbers
        keys.insert(0, frame[time].rank(method="dense").to_numpy())
    order = np.lexsort(keys)
    if time is not None:
        _refuse_repeated_times(groups[order], keys[0][order], order, time)
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    pieces = np.split(values[order], cuts)
    for piece, name in zip(pieces, names, strict=True):
        if len(piece) < 2:
            raise ValueError(
                f"trajectory {name!r} has one row; a transition needs two: drop it from the table"
            )
    return pieces


def _state_values(frame: pd.DataFrame, columns: list[str]) -> Array:
    parts = []
    for name in columns:
        column = frame[name]
        if column.dtype.kind not in "iuf":
            raise ValueError(
                f"column {name!r} must hold numbers, got {column.dtype}; "
                "convert it first (for categories: their integer codes)"
            )
        values = column.to_numpy()
        if values.dtype.kind == "f":
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(np.argmax(bad))
                raise ValueError(
                    f"column {name!r} holds {values[row]} in row {row}; "
                    "split the trajectory there, fill it in or drop the row"
                )
        parts.append(values)
    if len(parts) == 1 and parts[0].dtype.kind in "iu":
        return parts[0].astype(np.int64)
    return np.column_stack(parts).astype(np.float64)


def _groups(frame: pd.DataFrame, trajectory: str | None) -> tuple[Array, list[Any]]:
    if trajectory is None:
        return np.zeros(len(frame), dtype=np.int64), ["(the whole table)"]
    import pandas as pd

    codes, names = pd.factorize(frame[trajectory])
    return np.asarray(codes), list(names)


def _refuse_repeated_times(groups: Array, times: Array, order: Array, time: str) -> None:
    repeated = (groups[1:] == groups[:-1]) & (times[1:] == times[:-1])
    if repeated.any():
        at = int(np.argmax(repeated))
        raise ValueError(
            f"rows {order[at]} and {order[at + 1]} of one trajectory share the same {time!r}; "
            "drop one of them"
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
    try:
        frame = pd.read_csv(path, usecols=lambda column: column in wanted, **read_csv)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{name} is empty") from error
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is not a CSV file: {error}") from error
    missing = [column for column in state_columns + others if column not in frame.columns]
    if missing:
        found = ", ".join(pd.read_csv(path, nrows=0, **read_csv).columns)
        raise ValueError(f"{name} has no column {missing[0]!r}; it has {found}")
    return cast("pd.DataFrame", frame)


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
        raise ValueError(f"cannot read {os.fspath(path)}: {error}") from error
