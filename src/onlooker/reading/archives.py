"""NumPy archives: those that `Demonstrations.save` writes, and plain ones."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.files import write_atomically
from onlooker.reading.cleaning import clean
from onlooker.reading.states import as_trajectory, require_same_kind
from onlooker.reading.tracks import (
    Account,
    Cleaning,
    CleaningOptions,
    Tracks,
    counted,
    listed,
)
from onlooker.warnings import TrackWarning, warn

_FORMAT = 1
_UNREADABLE = (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def write_archive(
    path: str | os.PathLike[str],
    states: Array,
    offsets: Array,
    names: Array | None,
    times: Array | None,
) -> None:
    """Write trajectories to an archive that appears whole or not at all."""
    arrays = {"format": np.array(_FORMAT), "states": states, "offsets": offsets}
    arrays |= {} if names is None else {"names": names}
    arrays |= {} if times is None else {"times": times}
    write_atomically(
        Path(path),
        lambda file: np.savez_compressed(file, **arrays),  # type: ignore[arg-type]
    )


def read_archive(path: str | os.PathLike[str]) -> Tracks:
    """Read an archive of `write_archive`, or one with an array per trajectory."""
    name, arrays = os.fspath(path), _arrays(path)
    if "format" in arrays and "offsets" in arrays:
        return _saved(name, arrays)
    return from_arrays(name, list(arrays.values()), list(arrays))


def read_npz(
    path: str | os.PathLike[str],
    states: str | Sequence[str] | None,
    trajectory: str | None,
    time: str | None,
    cleaning: CleaningOptions,
) -> Tracks:
    """Read an archive of any kind; with `states`, its arrays are the columns of a table."""
    if states is not None:
        return clean(_table(path, states, trajectory, time), Cleaning(**cleaning))
    if trajectory is not None or time is not None or cleaning:
        raise ValueError(
            "states is not given, so every array is a trajectory; name the arrays that hold the "
            "states to use trajectory, time or cleaning"
        )
    return read_archive(path)


def read_npy(path: str | os.PathLike[str]) -> Tracks:
    """Read one array: ``(T,)`` or ``(T, d)`` for a trajectory, ``(n, T, d)`` for many."""
    name = os.fspath(path)
    with Path(path).open("rb") as file:
        try:
            array = np.load(file, allow_pickle=False)
        except _UNREADABLE as error:
            raise ValueError(f"{name} is not a NumPy array, or is damaged: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is an archive of arrays; call it .npz")
    return from_arrays(name, list(array) if array.ndim == 3 else [array], None)


def from_arrays(source: str, arrays: Sequence[Any], names: Sequence[str] | None) -> Tracks:
    """One array per trajectory; those with fewer than two states are left out, with a warning."""
    names = [str(index) for index in range(len(arrays))] if names is None else names
    if not arrays:
        raise ValueError(f"{source} holds no trajectory")
    lengths = [len(array) if np.ndim(array) else 2 for array in arrays]  # a number is refused below
    short = [index for index, length in enumerate(lengths) if length < 2]
    kept = [index for index, length in enumerate(lengths) if length >= 2]
    account = Account(rows=sum(lengths), trajectories=len(arrays))
    account.short = sum(lengths[index] for index in short)
    account.lost = tuple(names[index] for index in short)
    if not kept:
        raise ValueError(f"{source} holds no trajectory with two states")
    try:
        checked = [as_trajectory(repr(names[index]), arrays[index]) for index in kept]
        require_same_kind(checked)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{source}: {error}") from error
    if short:
        warn(
            f"left out {counted(len(short), 'trajectory')} of fewer than two states "
            f"({listed(account.lost, len(short))}): a transition needs two",
            TrackWarning,
        )
    states = np.concatenate(checked)
    account.states, account.pieces = len(states), len(checked)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in checked])])
    return Tracks(states, offsets, np.array([names[i] for i in kept]), None, account)


def _arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (*_UNREADABLE, AttributeError) as error:
            raise ValueError(
                f"{os.fspath(path)} was not written by Demonstrations.save or numpy.savez, "
                "or is damaged"
            ) from error


def _saved(name: str, arrays: dict[str, Array]) -> Tracks:
    if arrays["format"].shape != () or arrays["format"].dtype.kind not in "iu":
        raise ValueError(f"{name} was not written by Demonstrations.save, or is damaged")
    if arrays["format"] != _FORMAT:
        raise ValueError(f"{name} has format {arrays['format']}, expected {_FORMAT}")
    states, offsets = arrays.get("states", np.array(0)), arrays["offsets"]
    if (
        states.ndim == 0
        or offsets.ndim != 1
        or offsets.dtype.kind not in "iu"
        or len(offsets) < 2
        or offsets[0] != 0
        or offsets[-1] != len(states)
    ):
        raise ValueError(f"{name} is damaged: its offsets do not fit its states")
    names, times = arrays.get("names"), arrays.get("times")
    for what, array, length in (
        ("names", names, len(offsets) - 1),
        ("times", times, len(states)),
    ):
        if array is not None and array.shape != (length,):
            raise ValueError(f"{name} is damaged: its {what} do not fit its states")
    parts = [as_trajectory(i, part) for i, part in enumerate(np.split(states, offsets[1:-1]))]
    return Tracks(np.concatenate(parts), offsets, names, times)


def _table(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> Any:
    import pandas as pd

    from onlooker.reading.tables import column_names, read_table

    name, arrays = os.fspath(path), _arrays(path)
    wanted, others = column_names(states, trajectory, time)
    for column in wanted + others:
        if column not in arrays:
            raise ValueError(f"{name} has no array {column!r}; it has {', '.join(arrays)}")
    if len(wanted) == 1 and arrays[wanted[0]].ndim == 2:
        block = arrays.pop(wanted[0])
        wanted = [f"{wanted[0]}[{dim}]" for dim in range(block.shape[1])]
        arrays |= dict(zip(wanted, block.T, strict=True))
    columns = {column: arrays[column] for column in wanted + others}
    length = len(np.atleast_1d(columns[wanted[0]]))
    for column, array in columns.items():
        if array.shape != (length,):
            raise ValueError(
                f"{name}: {column!r} must be {length} values as {wanted[0]!r} is, "
                f"got shape {array.shape}"
            )
    return read_table(pd.DataFrame(columns), wanted, trajectory, time)
