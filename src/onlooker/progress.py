"""One progress bar on standard error: live in a terminal or a notebook, a few lines in a log."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from typing import Any, Self

_FIRST_LINE = 2.0  # seconds until a log gets its first line; then ever less often
_RAREST = 30.0  # seconds between two lines at most
_BEAT = 0.5  # seconds between two looks whether there is something to say
_JUDGED, _LONG = 10.0, 120.0  # seconds until the time left is judged, and what of it is long
_EARLY = 0.01  # of all that is to be done: before it, the time left is anybody's guess
_MARKS, _APART = 5, 1.2  # moments that are remembered: the speed is that of the last half
_COMPILED = 1.0  # preparations that took longer than this were a compilation
_FORMAT = "{desc} {bar} {n}/{total} {unit} ({percentage:.0f} %), {elapsed}{postfix}"


class Progress:
    """Told by the main thread how far a task is; this one shows nothing.

    `hint` is said once where much time is left; what is `brief` leaves no trace if it soon ends.
    """

    def __init__(
        self,
        total: int = 0,
        description: str = "",
        unit: str = "",
        hint: str = "",
        brief: bool = False,
    ) -> None:
        self.total, self.description, self.unit = total, description, unit
        self.hint, self.brief = hint, brief
        self._restart(0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.close(failed=error[0] is not None)

    def prepare(self) -> None:
        """The first sweep begins; it compiles what was never compiled before."""

    def start(self, done: int = 0) -> None:
        """The clock runs from here, where so much is `done` already."""
        self._restart(done)

    def _restart(self, done: int) -> None:
        self.done = self._first = done
        self._began = time.monotonic()
        self._marks = deque([(0.0, done)], maxlen=_MARKS)

    def update(self, done: int, note: str = "") -> None:
        """So much is `done` in all; `note` says what is going on."""
        self.done = done
        elapsed = time.monotonic() - self._began
        if elapsed >= _APART * self._marks[-1][0]:
            self._marks.append((elapsed, done))

    def remark(self, text: str, total: int) -> None:
        """Say what has just been found; from now on, `total` is what is to be done in all."""
        self.total = total

    def advance(self, more: int, note: str = "") -> None:
        """So much is done since the last time."""
        self.update(self.done + more, note)

    def _hint_if_long(self) -> str | None:
        """The hint, once, if it is needed."""
        left = self._left()
        if not self.hint or left is None or time.monotonic() - self._began < _JUDGED:
            return None
        hint, self.hint = self.hint, ""  # judged once: early estimates are the least certain
        return f"{self.description}: about {_clock(left)} left; {hint}" if left > _LONG else None

    def _left(self) -> float | None:
        """Seconds, at the speed of late: the first sweeps of a chain are often its slowest.

        None while too little is done to tell.
        """
        (since, before), more = self._marks[0], self.total - self._first
        if not self._first + _EARLY * more <= self.done < self.total or self.done <= before:
            return None
        elapsed = time.monotonic() - self._began
        return (elapsed - since) * (self.total - self.done) / (self.done - before)

    def close(self, failed: bool = False) -> None:
        """No more updates follow."""


class Live(Progress):
    """Says that it is alive where nobody tells it anything, as while one long step is done."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._over = threading.Event()
        self._pulse = threading.Thread(target=self._beat, daemon=True)
        self._pulse.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._over.set()
        self._pulse.join()
        super().__exit__(*error)

    def _beat(self) -> None:
        while not self._over.wait(_BEAT):
            self.wait()

    def wait(self) -> None:
        """Some time has gone by; told by a thread of its own."""


class Bar(Live):
    """A bar that redraws itself; in notebooks a widget where ipywidgets is installed."""

    def __init__(self, total: int, description: str, unit: str, hint: str, brief: bool) -> None:
        super().__init__(total, description, unit, hint, brief)
        passing = {"delay": 1.0, "leave": False} if brief else {}
        self._lock = threading.RLock()
        self._bar = _tqdm()(
            total=total, desc=description, unit=unit, file=sys.stderr, bar_format=_FORMAT,
            dynamic_ncols=True, miniters=0, **passing,
        )  # fmt: skip

    def prepare(self) -> None:
        self._bar.set_description_str("compiling, once")

    def start(self, done: int = 0) -> None:
        super().start(done)
        self._bar.set_description_str(self.description, refresh=False)
        if not self.brief:  # resetting would show it at once
            self._bar.reset()
        self._bar.initial = self._bar.n = self._bar.last_print_n = done
        if not self.brief:
            self._bar.refresh()

    def update(self, done: int, note: str = "") -> None:
        super().update(done, note)
        with self._lock:
            left = self._left()
            parts = [] if left is None else [f"{_clock(left)} left"]
            self._bar.set_postfix_str("; ".join([*parts, *[note] * bool(note)]), refresh=False)
            self._bar.update(done - self._bar.n)
        if hint := self._hint_if_long():
            self._bar.write(hint, file=sys.stderr)

    def remark(self, text: str, total: int) -> None:
        super().remark(text, total)
        self._bar.write(f"{self.description}: {text}", file=sys.stderr)
        self._bar.total = total
        self._bar.refresh()

    def wait(self) -> None:
        with self._lock:
            self._bar.update(0)  # the clock goes on

    def close(self, failed: bool = False) -> None:
        self._bar.close()


class Log(Live):
    """Whole lines, at first each twice as late as the one before, for files and pipes."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._lock = threading.RLock()
        self._prepared = math.inf
        self._silent = True

    def prepare(self) -> None:
        with self._lock:
            self._prepared, self._wait = time.monotonic(), _FIRST_LINE

    def start(self, done: int = 0) -> None:
        with self._lock:
            super().start(done)
            self._printed, self._note, self._wait = done, "", _FIRST_LINE
            took, self._prepared = self._began - self._prepared, math.inf
            if took > _COMPILED:
                self._print(f"compiling, once: took {took:.1f} s; later runs find it on disk")

    def update(self, done: int, note: str = "") -> None:
        with self._lock:
            super().update(done, note)
            self._note = note
            elapsed = time.monotonic() - self._began
            if hint := self._hint_if_long():
                self._print(hint)
            ended = self._printed < self.total <= done and not (self.brief and self._silent)
            if ended or (done != self._printed and elapsed >= self._wait):
                self._wait = elapsed + min(elapsed, _RAREST)
                self._line(elapsed)

    def wait(self) -> None:
        with self._lock:
            compiling = self._prepared < math.inf
            elapsed = time.monotonic() - (self._prepared if compiling else self._began)
            if elapsed < self._wait:
                return
            self._wait = elapsed + min(elapsed, _RAREST)
            if compiling:
                self._print(f"compiling, once: {_clock(elapsed)} so far")
            else:
                self._line(elapsed)

    def remark(self, text: str, total: int) -> None:
        self.close()
        super().remark(text, total)
        self._print(f"{self.description}: {text}")

    def close(self, failed: bool = False) -> None:
        if not failed and self.done != self._printed and not (self.brief and self._silent):
            self._line(time.monotonic() - self._began)

    def _line(self, elapsed: float) -> None:
        self._printed, self._silent = self.done, False
        share = self.done / max(self.total, 1)
        text = f"{self.description}: {self.done}/{self.total} {self.unit} ({100 * share:.0f} %)"
        text += f", {_clock(elapsed)}"
        if (left := self._left()) is not None:
            text += f", {_clock(left)} left"
        self._print(f"{text}; {self._note}" if self._note else text)

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _tqdm() -> Any:
    if in_notebook():
        try:
            import ipywidgets  # type: ignore[import-not-found]  # noqa: F401
        except ImportError:
            pass
        else:
            from tqdm.notebook import tqdm as widget

            return widget
    from tqdm import tqdm

    return tqdm


def in_notebook() -> bool:
    """Whether output goes to a notebook cell."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # type: ignore[import-not-found]

    return getattr(get_ipython(), "kernel", None) is not None


def in_terminal() -> bool:
    """Whether someone may be watching standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


def make_progress(
    show: bool,
    total: int,
    description: str = "sampling",
    unit: str = "sweeps",
    hint: str = "",
    brief: bool = False,
) -> Progress:
    """The progress that suits where standard error goes; none unless `show`."""
    if not show or sys.stderr is None:
        return Progress()
    kind = Bar if in_terminal() or in_notebook() else Log
    return kind(total, description, unit, hint, brief)
