"""Files that appear whole or not at all, and objects as JSON and arrays for them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

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


class CannotDecode(ValueError):
    """Something is code of the user's own, which is not stored."""


def encode(value: Any, name: str, arrays: dict[str, Array], classes: Mapping[str, type]) -> Any:
    """Turn a parameter into JSON; arrays go to `arrays` under a name that starts with `name`.

    Dataclasses are stored with their fields; `classes` are those that `decode` can rebuild.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        params = {
            field.name: encode(getattr(value, field.name), f"{name}.{field.name}", arrays, classes)
            for field in dataclasses.fields(value)
        }
        known = classes.get(type(value).__name__) is type(value)
        return {"class" if known else "opaque": type(value).__qualname__, "params": params}
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            arrays[name] = array
            return {"array": name}
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {"opaque": f"{kind.__module__}.{kind.__qualname__}"}


def decode(value: Any, arrays: dict[str, Array], classes: Mapping[str, type]) -> Any:
    """Undo `encode`; raises `CannotDecode` where code of the user's own would be needed."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "float" in value:
        return float(value["float"])
    if "opaque" in value:
        raise CannotDecode(value["opaque"])
    kind: Any = classes.get(value["class"])
    if kind is None:
        raise CannotDecode(value["class"])
    params = {name: decode(inner, arrays, classes) for name, inner in value["params"].items()}
    unknown = params.keys() - {field.name for field in dataclasses.fields(kind)}
    if unknown:  # written by another version
        raise CannotDecode(f"{value['class']}({', '.join(sorted(unknown))}=...)")
    return kind(**params)
