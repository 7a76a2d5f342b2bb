"""One writer at a time: a lock that the system holds for as long as its process lives."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from onlooker.files import read_json

_NAME = "lock"
_TRIES, _WAIT = 5, 0.02  # seconds
_ITSELF = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, no waiting


class StoreLockedError(RuntimeError):
    """Another process writes to the store."""


class Lock:
    """The right to write into a directory, held by an open file that names the process.

    The system gives the lock back when the process ends, however it ends: nothing is left to be
    cleaned up after a dead writer.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / _NAME
        self._handle: int | None = None

    def __enter__(self) -> Lock:
        for _ in range(_TRIES):
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | _ITSELF, 0o644)
            # a file that its last holder has just removed is no lock
            if _try_lock(handle) and _is_at(handle, self._path):
                self._handle = handle
                os.truncate(handle, 0)
                mine = {"pid": os.getpid(), "host": socket.gethostname()}
                os.write(handle, json.dumps(mine).encode())
                return self
            os.close(handle)
            time.sleep(_WAIT)  # it may have been someone who only looked
        holder = _read(self._path)
        raise StoreLockedError(
            f"{self._directory} is being written by process {holder['pid']} on "
            f"{holder['host']}; wait for it, or choose another store"
        )

    def __exit__(self, *error: Any) -> None:
        assert self._handle is not None
        if os.name != "nt":  # an open file cannot be removed there
            self._path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None

    def writer(self) -> dict[str, Any] | None:
        """Who holds the lock now (``pid``, ``host``); None: nobody."""
        try:
            handle = os.open(self._path, os.O_RDONLY | _ITSELF)
        except OSError:
            return None
        try:
            return None if _try_lock(handle, shared=True) else _read(self._path)
        finally:
            os.close(handle)


def _try_lock(handle: int, shared: bool = False) -> bool:
    """Lock an open file if no writer does; closing it gives the lock back.

    Where the file system knows no locks, nobody is kept out.
    """
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _read(path: Path) -> dict[str, Any]:
    """Who wrote the file; a writer may not have come to that yet."""
    try:
        holder = read_json(path)
        return {"pid": holder["pid"], "host": holder["host"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"pid": "?", "host": "?"}
