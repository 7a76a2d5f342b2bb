"""NumPy archives: those that `Demonstrations.save` writes, and plain ones."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError, one_of, prefixed, stored_offsets
from onlooker.files import DamagedFileError, read_array, read_arrays, write_atomically
from onlooker.reading.cleaning import clean
from onlooker.reading.states import as_trajectory, is_hidden, require_same_kind
from onlooker.reading.tracks import (
    Cleaning,
    Missing,
    ReadingSummary,
    Tracks,
    counted,
    listed,
)
from onlooker.reading.unseen import trim
from onlooker.warnings import TrackWarning, warn

_FORMAT = 1


def write_archive(path: str | os.PathLike[str], tracks: Tracks) -> None:
    """Write trajectories to an archive that appears whole or not at all."""
    arrays = {"format": np.array(_FORMAT), "states": tracks.states, "offsets": tracks.offsets}
    arrays |= {} if tracks.names is None else {"names": tracks.names}
    arrays |= {} if tracks.times is None else {"times": tracks.times}
    if is_hidden(tracks.states).any():
        arrays["missing"] = np.array("infer")
    write_atomically(
        Path(path),
        lambda file: np.savez_compressed(file, **arrays),  # type: ignore[arg-type]
    )


def read_archive(path: str | os.PathLike[str], missing: Missing = "error") -> Tracks:
    """Read an archive of `write_archive`, or one with an array per trajectory."""
    name, arrays = os.fspath(path), _arrays(path)
    if "format" in arrays and "offsets" in arrays:
        return _saved(name, arrays)
    return from_arrays(name, list(arrays.values()), list(arrays), missing)


def read_npz(
    path: str | os.PathLike[str],
    states: str | Sequence[str] | None,
    trajectory: str | None,
    time: str | None,
    cleaning: Mapping[str, Any],
) -> Tracks:
    """Read an archive of any kind; with `states`, its arrays are the columns of a table."""
    if states is not None:
        return clean(_table(path, states, trajectory, time), Cleaning(**cleaning))
    if trajectory is not None or time is not None or set(cleaning) - {"missing"}:
        raise SettingError(
            "without ",
            Setting("states"),
            " every array is a trajectory; name the arrays that hold the states to use "
            "trajectory, time or cleaning",
        )
    return read_archive(path, cleaning.get("missing", "error"))


def read_npy(path: str | os.PathLike[str], missing: Missing = "error", **cleaning: Any) -> Tracks:
    """Read one array: ``(T,)`` or ``(T, d)`` for a trajectory, ``(n, T, d)`` for many."""
    if cleaning:
        raise SettingError("an npy file has nothing to clean; leave out ", Setting(min(cleaning)))
    name = os.fspath(path)
    if zipfile.is_zipfile(path):
        raise ValueError(f"{name} is an archive of arrays; call it .npz")
    array = read_array(path)
    return from_arrays(name, list(array) if array.ndim == 3 else [array], None, missing)


def from_arrays(
    source: str, arrays: Sequence[Any], names: Sequence[str] | None, missing: Missing = "error"
) -> Tracks:
    """One array per trajectory; those with fewer than two states are left out, with a warning."""
    infer = one_of("missing", missing, ("error", "infer")) == "infer"
    names = [str(index) for index in range(len(arrays))] if names is None else names
    if not arrays:
        raise ValueError(f"{source} holds no trajectory")
    lengths = [len(array) if np.ndim(array) else 2 for array in arrays]  # a number is refused below
    short = [index for index, length in enumerate(lengths) if length < 2]
    kept = [index for index, length in enumerate(lengths) if length >= 2]
    summary = ReadingSummary(rows=sum(lengths), trajectories=len(arrays))
    summary.short = sum(lengths[index] for index in short)
    summary.lost = tuple(names[index] for index in short)
    if not kept:
        raise ValueError(f"{source} holds no trajectory with two states")
    try:
        checked = [as_trajectory(repr(names[i]), arrays[i], infer=infer) for i in kept]
        require_same_kind(checked)
    except (ValueError, TypeError) as error:
        raise prefixed(f"{source}: ", error) from error
    if short:
        warn(
            f"left out {counted(len(short), 'trajectory')} of fewer than two states "
            f"({listed(summary.lost, len(short))}): a transition needs two",
            TrackWarning,
        )
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in checked])])
    kept_names = np.array([names[i] for i in kept])
    tracks = Tracks(np.concatenate(checked), offsets, kept_names, None, summary)
    if infer:
        hidden = is_hidden(tracks.states)
        summary.missing, summary.missing_how = int(hidden.sum()), "infer"
        summary.missing_rows = tuple(np.flatnonzero(hidden)[:5].tolist())
        tracks = trim(tracks)
        summary.missing_dropped = summary.missing - int(is_hidden(tracks.states).sum())
        summary.short = summary.rows - len(tracks.states) - summary.missing_dropped
        left = set() if tracks.names is None else set(tracks.names.tolist())
        summary.lost = tuple(name for name in names if name not in left)
    summary.states, summary.pieces = len(tracks.states), len(tracks.offsets) - 1
    return tracks


def _arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    try:
        return read_arrays(path)
    except DamagedFileError as error:
        raise DamagedFileError(
            f"{os.fspath(path)} was not written by Demonstrations.save or numpy.savez, "
            f"or is damaged: {error.__cause__ or error}"
        ) from error


def _saved(name: str, arrays: dict[str, Array]) -> Tracks:
    if arrays["format"].shape != () or arrays["format"].dtype.kind not in "iu":
        raise ValueError(f"{name} was not written by Demonstrations.save, or is damaged")
    if arrays["format"] != _FORMAT:
        raise ValueError(f"{name} has format {arrays['format']}, expected {_FORMAT}")
    states, offsets = arrays.get("states", np.array(0)), arrays["offsets"]
    if states.ndim == 0:
        raise ValueError(f"{name} is damaged: it has no states")
    try:
        stored_offsets("offsets", offsets, len(states))
    except ValueError as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    names, times = arrays.get("names"), arrays.get("times")
    for what, array, length in (
        ("names", names, len(offsets) - 1),
        ("times", times, len(states)),
    ):
        if array is not None and array.shape != (length,):
            raise ValueError(f"{name} is damaged: its {what} do not fit its states")
    if (names is not None and names.dtype.kind != "U") or (
        times is not None and times.dtype.kind not in "iufmM"
    ):
        raise ValueError(f"{name} is damaged: its names are not text, or its times not times")
    infer = "missing" in arrays
    try:
        pieces = enumerate(np.split(states, offsets[1:-1]))
        parts = [as_trajectory(i, part, infer=infer) for i, part in pieces]
    except (ValueError, TypeError) as error:
        raise prefixed(f"{name}: ", error) from error
    return Tracks(np.concatenate(parts), offsets, names, times)


def _table(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
) -> Any:
    import pandas as pd

    from onlooker.reading.tables import column_names, load_dataframe

    name, arrays = os.fspath(path), _arrays(path)
    columns_of_state, others = column_names(states, trajectory, time)
    for column in columns_of_state + others:
        if column not in arrays:
            raise ValueError(f"{name} has no array {column!r}; it has {', '.join(arrays)}")
    if len(columns_of_state) == 1 and arrays[columns_of_state[0]].ndim == 2:
        block = arrays.pop(columns_of_state[0])
        columns_of_state = [f"{columns_of_state[0]}[{dim}]" for dim in range(block.shape[1])]
        arrays |= dict(zip(columns_of_state, block.T, strict=True))
    columns = {column: arrays[column] for column in columns_of_state + others}
    length = len(np.atleast_1d(columns[columns_of_state[0]]))
    for column, array in columns.items():
        if array.shape != (length,):
            raise ValueError(
                f"{name}: {column!r} must be {length} values as {columns_of_state[0]!r} is, "
                f"got shape {array.shape}"
            )
    return load_dataframe(pd.DataFrame(columns), columns_of_state, trajectory, time)
