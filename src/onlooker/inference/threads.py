"""Chains in threads, side by side: kernels release the interpreter's lock."""

from __future__ import annotations

import math
import queue
import threading

from onlooker.inference.runner import Runner, Sink, out_of_time, progress_of
from onlooker.progress import Progress

_SLICE = 0.25  # seconds that a chain runs before another one may have its thread
_POLL = 0.05  # seconds between two looks at the chains


def run(
    n_threads: int,
    runners: list[Runner],
    sink: Sink | None,
    progress: Progress,
    deadline: float = math.inf,
) -> None:
    """Run all chains, a slice of time each in turn, so that they advance side by side."""
    waiting: queue.SimpleQueue[Runner] = queue.SimpleQueue()
    unfinished = [runner for runner in runners if not runner.done and runner.error is None]
    if unfinished and not any(runner.started for runner in runners):
        progress.prepare()  # kernels are compiled here, before threads could do so twice
        _advance(unfinished[0], sink, sweeps=1)
        progress.start(progress_of(runners)[0])
    for runner in unfinished:
        if runner.error is None:
            waiting.put(runner)
    stop = threading.Event()

    def work() -> None:
        while not (stop.is_set() or out_of_time(runners, deadline)):
            try:
                runner = waiting.get_nowait()
            except queue.Empty:
                return
            _advance(runner, sink, seconds=_SLICE)
            if not runner.done and runner.error is None:
                waiting.put(runner)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
    try:
        for thread in threads:
            thread.start()  # Ctrl-C may come before the last of them
        for thread in threads:
            while thread.is_alive():
                thread.join(_POLL)  # no longer than until it ends: short runs do not wait
                progress.update(*progress_of(runners))
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:  # one that starts later ends at once
                thread.join()
    progress.update(*progress_of(runners))


def _advance(
    runner: Runner, sink: Sink | None, seconds: float = math.inf, sweeps: int | None = None
) -> None:
    """Advance a chain; its failure must not take the others with it."""
    try:
        runner.advance(seconds, sweeps)
        if sweeps is not None:
            runner.compile()
        if sink is not None:
            sink.offer(runner, force=False)
    except BaseException as error:
        runner.error = error
        if not isinstance(error, Exception):
            raise
