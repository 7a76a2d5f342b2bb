"""Columns that look like names of trajectories, or like places on Earth, where none was named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.reading.kinds import csv_options, file_kind

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 1 << 16  # that are looked at
_MIN_ROWS = 5  # of a trajectory, on average
_MAX_COLUMNS = 3
_LONGITUDE = re.compile(r"(^|[^a-z])(lon|lng|long|longitude)([^a-z]|$)", re.IGNORECASE)
_LATITUDE = re.compile(r"(^|[^a-z])(lat|latitude)([^a-z]|$)", re.IGNORECASE)


class TrajectoryColumn(NamedTuple):
    """A column that may tell trajectories apart."""

    name: str
    n_values: int
    n_rows: int | None
    """The rows that were looked at, if the table has more."""


def geographic_columns(columns: list[str], states: Array) -> list[str] | None:
    """Columns that look like longitude and latitude in degrees, in this order; else None."""
    if len(columns) != 2 or states.ndim != 2 or not np.isfinite(states).any(axis=0).all():
        return None
    low, high = np.nanmin(states, axis=0), np.nanmax(states, axis=0)
    for lon, lat in ((0, 1), (1, 0)):
        named = _LONGITUDE.search(columns[lon]) and _LATITUDE.search(columns[lat])
        inside = low[lon] >= -180 and high[lon] <= 360 and low[lat] >= -90 and high[lat] <= 90
        if named and inside:
            return [columns[lon], columns[lat]]
    return None


def trajectory_columns(
    path: Path, used: list[str], encoding: str | None = None
) -> list[TrajectoryColumn]:
    """Which columns besides `used` may tell trajectories apart, by the first rows of a table."""
    try:
        frame, has_more = _first_rows(path, used, encoding)
        n_names = {str(name): _n_names(frame[name]) for name in frame.columns}
    except (ValueError, TypeError, OSError, ImportError):  # columns that nobody asked for
        return []
    n_rows = len(frame) if has_more else None
    columns = [TrajectoryColumn(name, n, n_rows) for name, n in n_names.items() if n]
    return columns[:_MAX_COLUMNS]


def _first_rows(path: Path, used: list[str], encoding: str | None) -> tuple[pd.DataFrame, bool]:
    """The other columns of a table, and whether it has more rows."""
    import pandas as pd

    kind = file_kind(path)
    if kind == "parquet":
        return _first_of_parquet(path, used)
    if kind not in ("csv", "tsv"):
        return pd.DataFrame(), False
    frame = pd.read_csv(
        path,
        **csv_options(path, {} if encoding is None else {"encoding": encoding}).options,
        usecols=lambda name: name not in used,
        nrows=_ROWS + 1,
        dtype_backend="numpy_nullable",
        low_memory=False,
    )
    return frame[:_ROWS], len(frame) > _ROWS


def _first_of_parquet(path: Path, used: list[str]) -> tuple[pd.DataFrame, bool]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        others = [name for name in file.schema_arrow.names if name not in used]
        frame = next(file.iter_batches(_ROWS, columns=others)).to_pandas()
        return frame, file.metadata.num_rows > len(frame)


def _n_names(column: pd.Series[Any]) -> int:
    """How many names a column holds; 0 if it does not look as if it held names.

    Names are text or whole numbers; all rows of one stand together, and they are many.
    """
    import pandas as pd

    dtype = column.dtype
    text = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(column)
    if not text and dtype.kind not in "iu":
        return 0
    codes, names = pd.factorize(column)
    n_values = len(names) + bool((codes < 0).any())  # rows without a name stand together too
    together = 1 + np.count_nonzero(np.diff(codes)) == n_values
    many = len(names) >= 2 and n_values * _MIN_ROWS <= len(codes)
    return len(names) if together and many else 0
