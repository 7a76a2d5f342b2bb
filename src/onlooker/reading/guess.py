"""Columns that look like names of trajectories, where none was named."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.reading.kinds import _kind

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 1 << 16  # that are looked at
_LEAST_ROWS = 5  # of a trajectory, on average
_MOST = 3  # columns that are told


def trajectory_notes(path: Path, used: list[str]) -> list[str]:
    """Which columns besides `used` may tell trajectories apart, by the first rows of a table."""
    try:
        frame, n_more = _first_rows(path, used)
        found = {str(name): _n_names(frame[name]) for name in frame.columns}
    except (ValueError, TypeError, OSError, ImportError):  # columns that nobody asked for
        return []
    where = f" in the first {len(frame):,} rows" if n_more else ""
    return [
        f"column {name!r} has {n_names:,} values{where}; if they are trajectories: --trajectory "
        f"{shlex.quote(name)}"
        for name, n_names in found.items()
        if n_names
    ][:_MOST]


def _first_rows(path: Path, used: list[str]) -> tuple[pd.DataFrame, bool]:
    """The other columns of a table, and whether it has more rows."""
    import pandas as pd

    kind = _kind(path)
    if kind == "parquet":
        return _first_of_parquet(path, used)
    if kind not in ("csv", "tsv"):
        return pd.DataFrame(), False
    frame = pd.read_csv(
        path,
        sep="\t" if kind == "tsv" else ",",
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
    many = len(names) >= 2 and n_values * _LEAST_ROWS <= len(codes)
    return len(names) if together and many else 0
