"""Progress that behaves: a bar in a terminal, a line in a notebook, a few lines in a log file."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol, TextIO

_FIRST_LINE = 5.0  # seconds until a log file hears of a run; then ever less often
_COMPILED = 1.0  # preparations that took longer than this were a compilation


class Progress(Protocol):
    """Told by the main thread alone how far the chains are."""

    def __enter__(self) -> Progress: ...

    def __exit__(self, *error: Any) -> None: ...

    def prepare(self) -> None:
        """The first sweep begins; it compiles what has never been compiled before."""

    def start(self) -> None:
        """Preparations are over."""

    def update(self, done: int, note: str) -> None:
        """So many sweeps of all chains are done; `note` says what is going on."""


class Silence:
    """No progress at all."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def prepare(self) -> None:
        """Say nothing."""

    def start(self) -> None:
        """Say nothing."""

    def update(self, done: int, note: str) -> None:
        """Say nothing."""


class Bar:
    """A bar that redraws itself, for terminals."""

    def __init__(self, total: int, file: TextIO | None = None, **console: Any) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("sweeps"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(file=file or sys.stderr, **console),
        )
        self._total = total

    def __enter__(self) -> Bar:
        self._bar.start()
        self._task = self._bar.add_task("preparing", total=self._total, note="")
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.stop()

    def prepare(self) -> None:
        """Tell why nothing moves."""
        self._bar.update(self._task, description="compiling, once")

    def start(self) -> None:
        """The bar runs from here."""
        self._bar.update(self._task, description="sampling")

    def update(self, done: int, note: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, note=note)


class Line:
    """One line of text in the output of a notebook cell, replaced in place; no widgets needed."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __enter__(self) -> Line:
        from IPython.display import display  # type: ignore[import-not-found]

        self._began = time.monotonic()
        self._handle = display({"text/plain": "preparing"}, raw=True, display_id=True)
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def _show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    def prepare(self) -> None:
        """Tell why nothing moves."""
        self._show("compiling, once")

    def start(self) -> None:
        """The clock for what is left runs from here."""
        self._began = time.monotonic()

    def update(self, done: int, note: str) -> None:
        """Replace the line."""
        self._show(_line(done, self._total, time.monotonic() - self._began, note))


class Log:
    """Whole lines, each twice as late as the one before, for files and pipes."""

    def __init__(self, total: int, file: TextIO | None = None, first: float = _FIRST_LINE) -> None:
        self._total = total
        self._file = file
        self._wait = first
        self._over = False

    def __enter__(self) -> Log:
        self._began = self._prepared = time.monotonic()
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def _print(self, text: str) -> None:
        print(text, file=self._file or sys.stderr, flush=True)

    def prepare(self) -> None:
        """Take the time: only a slow preparation was a compilation."""
        self._prepared = time.monotonic()

    def start(self) -> None:
        """Tell of a slow start."""
        self._began = time.monotonic()
        took = self._began - self._prepared
        if took > _COMPILED:
            self._print(f"compiling, once: took {took:.1f} s; later runs find it on disk")

    def update(self, done: int, note: str) -> None:
        """Print if it is time to, or if all is done."""
        elapsed = time.monotonic() - self._began
        if self._over or (done < self._total and elapsed < self._wait):
            return
        self._over = done >= self._total
        self._wait = 2 * elapsed
        self._print(_line(done, self._total, elapsed, note))


def _line(done: int, total: int, elapsed: float, note: str) -> str:
    text = f"{done}/{total} sweeps ({done / max(total, 1):.0%}), {_clock(elapsed)}"
    if 0 < done < total:
        text += f", {_clock(elapsed * (total - done) / done)} left"
    return f"{text}; {note}" if note else text


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def in_notebook() -> bool:
    """Whether output goes to a notebook cell."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # type: ignore[import-not-found]

    return getattr(get_ipython(), "kernel", None) is not None


def make_progress(wanted: bool, total: int) -> Progress:
    """The progress that suits where standard error goes."""
    if not wanted:
        return Silence()
    if in_notebook():
        return Line(total)
    if sys.stderr is not None and sys.stderr.isatty():
        return Bar(total)
    return Log(total) if sys.stderr is not None else Silence()
