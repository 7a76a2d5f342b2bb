"""Recorded behaviour from elsewhere: files by their suffix, and other libraries' episodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

__all__ = ["read"]

_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")
_KINDS = "csv, tsv (also packed as .gz), parquet, npz, npy and gpx"


def read(
    path: str | os.PathLike[str],
    states: str | Sequence[str] | None = None,
    trajectory: str | None = None,
    time: str | None = None,
    **options: Any,
) -> Demonstrations:
    """Read demonstrations from a file of any kind, told by its suffix.

    Parameters
    ----------
    path
        A file ending in csv, tsv (also packed, as csv.gz), parquet (or pq), npz, npy or gpx.
    states, trajectory, time
        Column names as in `Demonstrations.from_dataframe`. Tables need `states`; in an npz
        archive they name arrays; npy and gpx have no columns to name.
    **options
        Cleaning as in `Demonstrations.from_dataframe`, and the options of the reader.
    """
    from onlooker.demonstrations import Demonstrations

    kind = _kind(path)
    if kind in ("csv", "tsv", "parquet"):
        if states is None:
            raise ValueError(
                f"{os.fspath(path)} is a table: name the columns of the state, states="
            )
        if kind == "parquet":
            return Demonstrations.from_parquet(path, states, trajectory, time, **options)
        if kind == "tsv":
            options.setdefault("sep", "\t")
        return Demonstrations.from_csv(path, states, trajectory, time, **options)
    if kind == "npz":
        return Demonstrations.from_npz(path, states, trajectory, time, **options)
    named = [n for n, v in (("states", states), ("trajectory", trajectory), ("time", time)) if v]
    if named:
        raise ValueError(f"a {kind} file has no columns to name; leave out {named[0]}")
    if kind == "gpx":
        return Demonstrations.from_gpx(path, **options)
    if options:
        raise ValueError(f"an npy file has nothing to clean; leave out {next(iter(options))}")
    from onlooker.reading.archives import read_npy

    return Demonstrations._from_tracks(read_npy(path))


def _kind(path: str | os.PathLike[str]) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    last = suffixes[-2 if packed else -1 :][:1]
    kind = {".pq": ".parquet", ".txt": ".csv"}.get(last[0], last[0])[1:] if last else ""
    if kind in ("csv", "tsv") or (not packed and kind in ("parquet", "npz", "npy", "gpx")):
        return kind
    what = f"ends in {''.join(suffixes[-2:])!r}" if suffixes else "has no suffix"
    raise ValueError(f"{os.fspath(path)} {what}; onlooker reads {_KINDS}: convert or rename it")
