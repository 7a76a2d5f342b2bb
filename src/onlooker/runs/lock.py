"""One writer at a time: a lock file that outlives its process only until the next one looks."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onlooker.checks import Advice, Setting

_NAME = "lock"


class StoreLockedError(Advice, RuntimeError):
    """Another process writes to the store."""


class Lock:
    """The right to write into a directory, held by a file that names the process.

    A lock whose process is dead is taken over. The start of a process is noted too, since process
    ids are used again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / _NAME
        self._mine = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": _started(os.getpid()),
        }

    def __enter__(self) -> Lock:
        with _critical(self._directory):
            holder = self.writer()
            if holder is not None:
                raise StoreLockedError(
                    f"{self._directory} is being written by process {holder['pid']} on "
                    f"{holder['host']}; wait for it, or choose another ",
                    Setting("store"),
                    f" (if that machine is gone, remove {self._path})",
                )
            self._path.write_text(json.dumps(self._mine))
        return self

    def __exit__(self, *error: Any) -> None:
        with _critical(self._directory):
            if self._holder() == self._mine:
                self._path.unlink()

    def writer(self) -> dict[str, Any] | None:
        """Who holds the lock now (``pid``, ``host``); None: nobody that lives."""
        holder = self._holder()
        return holder if holder is not None and _alive(holder) else None

    def _holder(self) -> dict[str, Any] | None:
        try:
            holder = json.loads(self._path.read_text())
            return holder if {"pid", "host", "started"} <= set(holder) else None
        except (FileNotFoundError, ValueError, TypeError):
            return None  # a torn lock was never held: its process died while writing it


_GATE = ".gate"


@contextlib.contextmanager
def _critical(directory: Path) -> Iterator[None]:
    """Look at the lock and take it without anyone in between, where the system can do that."""
    try:
        import fcntl
    except ImportError:  # Windows: two processes in the same millisecond might both get in
        yield
        return
    # a file open for writing: network file systems lock nothing else
    handle = os.open(directory / _GATE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _started(pid: int) -> str:
    """When a process started, as text that no other process with this id shares."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # the name of the program, in brackets, may hold spaces
        return f"{boot} {Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[19]}"
    except (OSError, IndexError):
        return ""


def _alive(holder: dict[str, Any]) -> bool:
    """Whether the process that wrote the lock still runs; another machine's is taken to."""
    if holder["host"] != socket.gethostname():
        return True
    pid = int(holder["pid"])
    if os.name == "nt":  # os.kill would end the process there
        return pid == os.getpid() or _exists_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, under another user
    return bool(_started(pid) == holder["started"])


def _exists_on_windows(pid: int) -> bool:
    import ctypes

    query = 0x1000
    handle = ctypes.windll.kernel32.OpenProcess(query, False, pid)  # type: ignore[attr-defined]
    if handle:
        ctypes.windll.kernel32.CloseHandle(handle)  # type: ignore[attr-defined]
    return bool(handle)
