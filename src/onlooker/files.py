"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from onlooker.checks import Array


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a file that appears under `path` whole or not at all."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {path.parent} to write {path.name} to")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Write a NumPy archive."""
    write_atomically(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def read_arrays(path: Path, prefixes: tuple[str, ...] = ("",)) -> dict[str, Array]:
    """Read the arrays of a NumPy archive, or those whose names start in one of some ways."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name.startswith(prefixes)}


def within(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names start with `prefix`, without it."""
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
