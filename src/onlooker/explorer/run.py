"""A run that may still grow: absent, tuning, growing, finished or broken, and read again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onlooker.findings.opened import OpenedRun
from onlooker.reading.tracks import counted
from onlooker.runs.header import HEADER
from onlooker.runs.loading import NoDrawsYet
from onlooker.runs.lock import Lock
from onlooker.runs.store import folder_of, parts_of

if TYPE_CHECKING:
    from onlooker.explorer.view import RunView

State = Literal["loading", "missing", "waiting", "broken", "growing", "stopped", "finished"]
_MIN_PAUSE = 1.0  # seconds between two looks at a store
_MAX_PAUSE = 10.0
_SHARE = 0.35  # of the time that may be spent on reading a store that grows


@dataclass(frozen=True)
class RunStatus:
    """How a run is, in a word and a sentence."""

    state: State
    text: str

    @property
    def changing(self) -> bool:
        """Whether there is more to come."""
        return self.state in ("loading", "missing", "waiting", "growing")


def probe(path: Path) -> RunStatus:
    """The status of a run before its draws are read."""
    if not path.exists():
        return RunStatus("missing", f"There is no run {path.name!r} (yet).")
    if path.is_dir() and not (path / HEADER).exists():
        return RunStatus("missing", f"{path.name!r} holds no run: it has no {HEADER} (yet).")
    return RunStatus("loading", "Reading the draws.")


def read(path: Path, before: RunView | None = None) -> tuple[RunStatus, RunView | None]:
    """Read a run as far as it goes; never raises for what a store may hold."""
    status = probe(path)
    if status.state != "loading":
        return status, None
    from onlooker.explorer.view import RunView

    try:
        view = RunView(OpenedRun.read(path), before)
    except NoDrawsYet as error:
        waiting = Lock(path).writer() is not None
        return RunStatus("waiting" if waiting else "broken", f"{error}."), None
    except Exception as error:  # a store is a file: it may hold anything
        return RunStatus("broken", f"This run cannot be read: {error}."), None
    return RunStatus(view.run.state, view.run.progress), view


def file_stamps(path: Path) -> tuple[Any, ...]:
    """What changes whenever a store gets something new."""
    try:
        parts = sorted(path.glob("chain-*/part-*.npz")) if path.is_dir() else [path]
        writer = Lock(path).writer() is not None if path.is_dir() else False
        header = (path / HEADER).stat().st_mtime_ns if path.is_dir() else 0
        return (writer, header, len(parts), max((p.stat().st_mtime_ns for p in parts), default=0))
    except OSError:  # a part may be overtaken, and a run removed, while we look
        return ()


def drawn(path: Path, header: dict[str, Any]) -> int:
    """Draws that every chain of a store has, by the names of its parts alone."""
    least = header["draws"]
    for chain in range(header["chains"]):
        if least == 0:
            break
        parts = parts_of(folder_of(path, chain))
        sweeps = int(parts[-1].stem[5:]) if parts else 0
        done = max(0, sweeps - header["options"]["tune"]) // header["options"]["thin"]
        least = min(least, done)
    return int(least)


class RunWatcher:
    """A run that is read in the background, and again whenever it has grown.

    `version` goes up with everything that there is to see.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name or str(path)
        self.version = 0
        self.status = RunStatus("loading", "Reading the run.")
        self.view: RunView | None = None
        self._change = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name=f"watch {self.name}")

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End; a step that is under way is not waited for."""
        self._stop.set()

    def wait(self, version: int, seconds: float) -> None:
        """Return when there is something newer than `version`, or after some time."""
        with self._change:
            self._change.wait_for(lambda: self.version > version, seconds)

    @property
    def text(self) -> str:
        """The status in words; of a run that grows, also how far it is by now."""
        if self.status.state != "growing" or self.view is None:
            return self.status.text
        header, posterior = self.view.run.header, self.view.posterior
        done, shown = drawn(self.path, header), posterior.n_draws
        if done <= shown:
            return self.status.text
        return (
            f"Sampling goes on: {done:,} of {header['draws']:,} draws per chain; the first "
            f"{shown:,} of {counted(posterior.n_chains, 'chain')} are shown."
        )

    def _publish(self, status: RunStatus, view: RunView | None) -> None:
        with self._change:
            self.status, self.view = status, view
            self.version += 1
            self._change.notify_all()

    def _watch(self) -> None:
        seen: tuple[Any, ...] | None = None
        while not self._stop.is_set():
            now, began = file_stamps(self.path), time.monotonic()
            if now != seen:
                seen = now
                self._read()
            cost = time.monotonic() - began
            pause = cost / _SHARE if self.status.changing else 0.0
            self._stop.wait(min(max(_MIN_PAUSE, pause), _MAX_PAUSE))

    def _read(self) -> None:
        status, view = read(self.path, before=self.view)
        if view is None and self.view is not None and status.state in ("missing", "broken"):
            # what was read stays readable when its files go
            status = replace(status, text=f"{status.text} What was read before is shown.")
            self._publish(status, self.view)
            return
        self._publish(status, view)
        if view is None:
            return
        from onlooker.explorer.query import warm_up

        try:
            warm_up(view)
            for _ in view.refine():
                if self._stop.is_set():
                    return
                self._publish(status, view)
        except Exception as error:
            view.fail(error)
            self._publish(status, view)
