"""Files that appear whole or not at all, and objects as JSON and arrays for them."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from onlooker.checks import Array, SettingError


def write_atomically(
    path: Path, write: Callable[[IO[bytes]], object], *, named_by_user: bool = True
) -> None:
    """Let `write` fill a file that appears under `path` whole or not at all.

    Links are followed, and a file that is replaced keeps its mode. What is no regular file (a
    device, a FIFO) cannot be replaced: it is written to as it is. Of a name that is not the user's
    but ours, a link is replaced itself: whoever sent a run may have put it there.
    """
    if named_by_user:
        if path.exists() and not path.is_file():
            with _naming(path), path.open("wb") as file:
                write(file)
            return
        path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {path.parent} to write {path.name} to")
    mode = stat.S_IMODE(path.stat().st_mode) if path.is_file() and not path.is_symlink() else None
    temporary = path.with_name(f".{path.name[:50]}.{os.getpid()}.tmp")  # names have a longest, too
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # of a dead process that had our number, or a trap
    try:
        create = partial(os.open, mode=mode or 0o666)
        with _naming(path), open(temporary, "xb", opener=create) as file:
            if mode is not None:
                temporary.chmod(mode)  # the mask for new files does not apply
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # on a disk that is full, half a file is in the way
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


_NO_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)  # as some network disks say of directories


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A disk that is full does not say what was being written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Write a NumPy archive of a run."""
    write = partial(np.savez, **arrays)  # type: ignore[arg-type]
    write_atomically(path, write, named_by_user=False)


def write_json(path: Path, value: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Write a JSON file of a run."""
    text = json.dumps(value, indent=1, default=default).encode()
    write_atomically(path, lambda file: file.write(text), named_by_user=False)


# -- reading: a file may hold anything -------------------------------------------------------------

_MAX_UNPACKED = 1 << 30  # bytes; files that unpack to more must be large themselves
_MAX_RATIO = 200
_MAX_DEPTH = 32  # of JSON and TOML
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class DamagedFileError(ValueError):
    """A file is damaged, or holds what it must not."""


@contextlib.contextmanager
def refusing_damage(path: str | os.PathLike[str], what: str = "is damaged") -> Iterator[None]:
    """Whatever fails within is due to what the file at `path` holds; the error says so."""
    try:
        yield
    except (DamagedFileError, FileNotFoundError, SettingError):
        raise
    except Exception as error:  # of any library that trusts what it is given
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DamagedFileError(
            f"{os.fspath(path)} {what}: {reason or type(error).__name__}"
        ) from error


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to be read; what may never end or begin (a device, a FIFO) is refused."""
    flags = getattr(os, "O_NONBLOCK", 0)
    file = open(  # noqa: SIM115
        path, "rb", opener=lambda name, usual: os.open(name, usual | flags)
    )
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DamagedFileError(f"{os.fspath(path)} is not a regular file")
    return file


def refuse_endless(path: str | os.PathLike[str]) -> None:
    """Refuse what is read once only or never ends, where a file is opened by a library."""
    if os.path.exists(path) and not os.path.isdir(path):
        open_regular(path).close()


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file that is not nested deeply."""
    with open_regular(path) as file:
        return parse_json(file.read().decode())


def read_arrays(
    path: str | os.PathLike[str], prefixes: tuple[str, ...] = ("",)
) -> dict[str, Array]:
    """Read the arrays of a NumPy archive, or those whose names start in one of some ways.

    Nothing is unpacked before sizes, types and shapes have been looked at: an archive of a few
    kilobytes may claim to hold terabytes.
    """
    with open_regular(path) as file, refusing_damage(path), zipfile.ZipFile(file) as archive:
        members = [item for item in archive.infolist() if item.filename.startswith(prefixes)]
        names = [item.filename.removesuffix(".npy") for item in members]
        if len(set(names)) < len(names):
            raise ValueError("two of its arrays have the same name")
        refuse_unpacked(sum(item.file_size for item in members), os.fstat(file.fileno()).st_size)
        return {
            name: _read_member(archive, item) for name, item in zip(names, members, strict=True)
        }


def refuse_unpacked(n_bytes: int, size: int) -> None:
    """Refuse to unpack so many bytes from a file of such a size."""
    limit = max(_MAX_UNPACKED, _MAX_RATIO * size)
    if n_bytes > limit:
        raise ValueError(
            f"it would unpack to {n_bytes / 2**30:.1f} GiB, which is refused above "
            f"{limit / 2**30:.1f} GiB for a file of its size"
        )


class Unpacked(io.RawIOBase):
    """What a packed file holds, as it is unpacked; refused where it is too much."""

    def __init__(self, unpacking: IO[bytes], path: str | os.PathLike[str]) -> None:
        self._unpacking, self._path = unpacking, path
        self._size, self._n = os.path.getsize(path), 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack some more."""
        with refusing_damage(self._path, "cannot be unpacked"):
            data = self._unpacking.read(len(buffer))
            self._n += len(data)
            refuse_unpacked(self._n, self._size)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the packed file."""
        self._unpacking.close()
        super().close()


def _read_member(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Array:
    with archive.open(item) as member:
        _check_npy(member, item.filename, item.file_size)
    with archive.open(item) as member:
        return _plain(np.lib.format.read_array(member, allow_pickle=False))


def read_array(path: str | os.PathLike[str]) -> Array:
    """Read an ``npy`` file."""
    what = "is not a NumPy array, or is damaged"
    with open_regular(path) as file, refusing_damage(path, what):
        _check_npy(file, "the file", os.fstat(file.fileno()).st_size)
        file.seek(0)
        return _plain(np.lib.format.read_array(file, allow_pickle=False))


def _check_npy(file: IO[bytes], name: str, size: int) -> None:
    """Refuse what is no array of numbers, dates or text, or not as long as it says."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"{name} has version {version} of the npy format")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.kind not in "biufUSmM" or dtype.itemsize == 0:
        raise ValueError(f"{name} has dtype {dtype}, which is not read")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"{name} does not hold as much as its shape {shape} says")


def _plain(array: Array) -> Array:
    """In the byte order of this machine, row after row, as kernels expect it."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def parse_json(text: str) -> Any:
    """JSON that is not nested deeply."""
    try:
        return refuse_deep(json.loads(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def refuse_deep(value: Any) -> Any:
    """The lists and dictionaries themselves; refused where they nest beyond any use of ours."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = [item for item in level if isinstance(item, list | dict)]
        if not nested:
            return value
        level = [
            inner
            for item in nested
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")


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
