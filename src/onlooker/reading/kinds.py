"""Files of recorded behaviour, told apart by their suffix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from onlooker.checks import ChoiceError, Setting, SettingError, prefixed
from onlooker.files import refuse_endless
from onlooker.reading.archives import read_npy, read_npz
from onlooker.reading.csv import read_csv, refuse_other_kinds
from onlooker.reading.gpx import read_gpx
from onlooker.reading.sniff import Sniffed, sniff
from onlooker.reading.tables import read_parquet
from onlooker.reading.tracks import Tracks

Kind = Literal["csv", "tsv", "parquet", "npz", "npy", "gpx"]

_PACKED = (".gz", ".bz2", ".xz", ".zip")
_KINDS = "csv, tsv (also packed as .gz), parquet, npz, npy and gpx"


def read_tracks(
    path: str | os.PathLike[str],
    states: str | Sequence[str] | None = None,
    trajectory: str | None = None,
    time: str | None = None,
    **options: Any,
) -> Tracks:
    """Read a file of any kind; see `Demonstrations.read`. Errors name the file."""
    try:
        return _read(path, states, trajectory, time, options)
    except ChoiceError:  # of an argument
        raise
    except (ValueError, TypeError) as error:
        raise prefixed("" if Path(path).name in str(error) else f"{path}: ", error) from error


def _read(
    path: str | os.PathLike[str],
    states: str | Sequence[str] | None,
    trajectory: str | None,
    time: str | None,
    options: dict[str, Any],
) -> Tracks:
    kind = file_kind(path)
    if kind in ("csv", "tsv", "parquet"):
        if states is None:
            if kind != "parquet":
                refuse_other_kinds(os.fspath(path), csv_options(path, options).options)
            if os.path.exists(path) and os.path.getsize(path) == 0:
                raise ValueError(f"{os.fspath(path)} is empty")
            columns = table_columns(path)
            listed = f"; its columns: {', '.join(columns)}" if columns else ""
            raise SettingError(
                f"{os.fspath(path)} is a table: name the columns of the state by ",
                Setting("states"),
                listed,
            )
        if kind == "parquet":
            return read_parquet(path, states, trajectory, time, options)
        own, notes = csv_options(path, options)
        tracks = read_csv(path, states, trajectory, time, own)
        if tracks.reading is not None:
            tracks.reading.notes += tuple(notes)
        return tracks
    if kind == "npz":
        return read_npz(path, states, trajectory, time, options)
    for name, column in (("states", states), ("trajectory", trajectory), ("time", time)):
        if column is not None:
            raise SettingError(f"a {kind} file has no columns to name; leave out ", Setting(name))
    return read_gpx(path, **options) if kind == "gpx" else read_npy(path, **options)


def csv_options(path: str | os.PathLike[str], given: dict[str, Any]) -> Sniffed:
    """How a CSV file is read: as is `given`, else as its beginning asks for; and what to say."""
    separator = {"sep": "\t"} if file_kind(path) == "tsv" else {}
    found = sniff(Path(path), separator | given)
    return Sniffed(separator | found.options | given, found.notes)


def table_columns(path: str | os.PathLike[str]) -> list[str]:
    """Names of the columns of a table; none where it cannot be read."""
    import pandas as pd

    try:
        if file_kind(path) == "parquet":
            import pyarrow.parquet

            return list(pyarrow.parquet.read_schema(path).names)
        return [str(name) for name in pd.read_csv(path, nrows=0, **csv_options(path, {}).options)]
    except (ValueError, OSError, ImportError, EOFError):  # reading says what is wrong
        return []


def file_kind(path: str | os.PathLike[str]) -> Kind:
    """What a file holds by its suffix; others than onlooker reads are refused."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    last = suffixes[-2 if packed else -1 :][:1]
    kind = {".pq": ".parquet", ".txt": ".csv"}.get(last[0], last[0])[1:] if last else ""
    if kind in ("csv", "tsv") or (not packed and kind in ("parquet", "npz", "npy", "gpx")):
        refuse_endless(path)
        return cast("Kind", kind)
    what = f"ends in {''.join(suffixes[-2:])!r}" if suffixes else "has no suffix"
    raise ValueError(f"{os.fspath(path)} {what}; onlooker reads {_KINDS}: convert or rename it")
