"""A run's store as a reader finds it: absent, tuning, growing, finished or broken."""

from __future__ import annotations

import json
import threading
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onlooker.runs.lock import Lock

if TYPE_CHECKING:
    from onlooker.explorer.study import Study

State = Literal["loading", "missing", "waiting", "broken", "growing", "stopped", "finished"]
_LEAST_PAUSE = 1.0  # seconds between two looks at a store
_MOST_PAUSE = 10.0
_SHARE = 0.35  # of the time that may be spent on reading a store that grows


@dataclass(frozen=True)
class Condition:
    """How a store is, in a word and a sentence."""

    state: State
    text: str

    @property
    def changing(self) -> bool:
        """Whether there is more to come."""
        return self.state in ("loading", "missing", "waiting", "growing")


def look(path: Path) -> tuple[Condition, dict[str, Any] | None]:
    """The condition of a store before its draws are read, and its header."""
    from onlooker.runs.store import read_header

    if path.is_file():
        return Condition("loading", "Reading the draws."), None
    if not path.is_dir():
        return Condition("missing", f"There is no directory {path.name!r} (yet)."), None
    try:
        header = read_header(path)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return Condition("broken", f"This is no readable run: {error}."), None
    if header is None:
        return Condition("missing", f"{path.name!r} holds no run: it has no run.json (yet)."), None
    return Condition("loading", "Reading the draws."), header


def marks(path: Path) -> tuple[Any, ...]:
    """What changes whenever a store gets something new."""
    try:
        parts = sorted(path.glob("chain-*/part-*.npz")) if path.is_dir() else [path]
        writer = Lock(path).writer() is not None if path.is_dir() else False
        header = (path / "run.json").stat().st_mtime_ns if path.is_dir() else 0
        return (writer, header, len(parts), max((p.stat().st_mtime_ns for p in parts), default=0))
    except OSError:  # a part may be overtaken, and a run removed, while we look
        return ()


def drawn(path: Path, header: dict[str, Any]) -> int:
    """Draws that every chain of a store has, by the names of its parts alone."""
    least = header["draws"]
    for chain in range(header["chains"]):
        parts = (path / f"chain-{chain:03d}").glob("part-*.npz")
        sweeps = max((int(part.stem.removeprefix("part-")) for part in parts), default=0)
        done = max(0, sweeps - header["options"]["tune"]) // header["options"]["thin"]
        least = min(least, done)
    return int(least)


def read(path: Path, before: Study | None = None) -> tuple[Condition, Study | None]:
    """Read a store as far as it goes; never raises for what a store may hold."""
    condition, header = look(path)
    if condition.state != "loading":
        return condition, None
    from onlooker.explorer.study import Study
    from onlooker.posterior import Posterior
    from onlooker.runs.store import StoreMismatchError

    growing = path.is_dir() and Lock(path).writer() is not None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            posterior = Posterior.load(path)
            header = header if header is not None else _header_of(path)
            study = Study.of(posterior, header, growing=growing, before=before)
        except StoreMismatchError as error:
            return Condition("broken", f"This run cannot be read: {error}."), None
        except ValueError as error:
            return _without_draws(path, header, growing, error), None
        except Exception as error:  # a store is a file: it may hold anything
            text = f"This run cannot be read: {type(error).__name__}: {error}."
            return Condition("broken", text), None
    study.notes = [str(item.message) for item in told if item.category is RuntimeWarning]
    return _with_draws(study), study


def _header_of(path: Path) -> dict[str, Any]:
    from onlooker.files import read_arrays

    header: dict[str, Any] = json.loads(str(read_arrays(path)["header"]))
    return header


def _without_draws(
    path: Path, header: dict[str, Any] | None, growing: bool, error: ValueError
) -> Condition:
    if header is None or "no draws yet" not in str(error):
        return Condition("broken", f"This run cannot be read: {error}.")
    if growing:
        tune = header["options"]["tune"]
        text = f"The run is still tuning ({tune} sweeps a chain); its first draws are awaited."
        return Condition("waiting", text)
    parts = any(path.glob("chain-*/part-*.npz"))
    why = "its parts cannot be read" if parts else "it was stopped before the first"
    text = f"This run holds no draws: {why}. Sampling with resume=True goes on with it."
    return Condition("broken", text)


def _with_draws(study: Study) -> Condition:
    posterior, planned = study.posterior, study.header["draws"]
    have = f"{posterior.n_draws:,} of {planned:,} draws of {_chains(posterior.n_chains)}"
    if study.growing:
        return Condition("growing", f"Sampling goes on: {have}.")
    if posterior.n_draws < planned or posterior.n_chains < study.header["chains"]:
        text = f"The run was stopped: it holds {have}. Sampling with resume=True goes on with it."
        return Condition("stopped", text)
    return Condition("finished", f"Finished: {have}.")


def _chains(n: int) -> str:
    return "1 chain" if n == 1 else f"{n} chains"


class Watched:
    """A store that is read in the background, and again whenever it has grown.

    `version` goes up with everything that there is to see.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name or str(path)
        self.version = 0
        self.condition = Condition("loading", "Reading the run.")
        self.study: Study | None = None
        self._change = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name=f"watch {self.name}")

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End; a step that is on its way is not waited for."""
        self._stop.set()

    def wait(self, version: int, seconds: float) -> None:
        """Return when there is something newer than `version`, or after some time."""
        with self._change:
            self._change.wait_for(lambda: self.version > version, seconds)

    @property
    def text(self) -> str:
        """The condition in words; of a run that grows, also how far it is by now."""
        study = self.study
        if self.condition.state != "growing" or study is None:
            return self.condition.text
        done, shown = drawn(self.path, study.header), study.posterior.n_draws
        if done <= shown:
            return self.condition.text
        planned = study.header["draws"]
        return (
            f"Sampling goes on: {done:,} of {planned:,} draws a chain; the first {shown:,} of "
            f"{_chains(study.posterior.n_chains)} are shown."
        )

    def _publish(self, condition: Condition, study: Study | None) -> None:
        with self._change:
            self.condition, self.study = condition, study
            self.version += 1
            self._change.notify_all()

    def _watch(self) -> None:
        seen: tuple[Any, ...] | None = None
        while not self._stop.is_set():
            now, began = marks(self.path), time.monotonic()
            if now != seen:
                seen = now
                self._read()
            cost = time.monotonic() - began
            pause = cost / _SHARE if self.condition.changing else 0.0
            self._stop.wait(min(max(_LEAST_PAUSE, pause), _MOST_PAUSE))

    def _read(self) -> None:
        condition, study = read(self.path, before=self.study)
        if study is None and self.study is not None and condition.state in ("missing", "broken"):
            # what was read stays readable when its files go
            condition = replace(condition, text=f"{condition.text} What was read before is shown.")
            self._publish(condition, self.study)
            return
        self._publish(condition, study)
        if study is None:
            return
        from onlooker.explorer.query import warm_up

        try:
            warm_up(study)
            for _ in study.refine():
                if self._stop.is_set():
                    return
                self._publish(condition, study)
        except Exception as error:
            study.notes.append(f"Some findings are missing: {type(error).__name__}: {error}.")
            self._publish(condition, study)
