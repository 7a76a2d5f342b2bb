"""Chains on a Dask cluster: block after block, each a task that any worker may take.

A task gets the chain's state and gives it back with its draws, so a worker that is lost costs no
more than the block it was at: the scheduler gives the same task to another, with the same bits.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from onlooker.gibbs.state import State
from onlooker.inference.draws import Draws
from onlooker.inference.runner import Runner, Schedule, Sink, out_of_time, progress_of
from onlooker.inference.target import Binder, Target
from onlooker.progress import Progress

_FIRST = 4  # sweeps of a chain's first block, which also compiles
_SECONDS = 1.0  # that a block should take


@dataclass
class Task:
    """What is sampled, and what a worker prepares once for all its blocks."""

    target: Target

    @cached_property
    def bind(self) -> Binder:
        """Makes the bound prior of a chain."""
        return Binder(self.target)


def advance(
    task: Task, schedule: Schedule, index: int, state: State[Any] | None, sweeps: int, n_sweeps: int
) -> tuple[Draws, State[Any], int, float]:
    """One block of a chain: draws, state, sweeps done in all, and the time it took."""
    began = time.monotonic()
    if state is not None:
        state = state.copy()  # a task may run again; its input must stay as it was
    runner = Runner(index, schedule, task.bind, state, sweeps)
    runner.advance(sweeps=n_sweeps)
    return runner.draws, _bare(runner.chain.state), runner.sweeps, time.monotonic() - began


def _bare(state: State[Any]) -> State[Any]:
    """The state without what follows from it, which need not travel."""
    return replace(state, data=None, tables=None)  # type: ignore[arg-type]


@contextlib.contextmanager
def _connected(client: Any) -> Iterator[Any]:
    """The client itself, or one for the address of a scheduler."""
    if not isinstance(client, str):
        yield client
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "a Dask scheduler needs the extra dask: pip install 'onlooker[dask]'"
        ) from error
    with Client(client) as made:  # type: ignore[no-untyped-call]
        yield made


Run = Callable[[list[Runner], Sink | None, Progress, float], None]
"""Advances all chains to the end of their schedule, or until a deadline."""


@contextlib.contextmanager
def workers(client: Any, target: Target) -> Iterator[Run]:
    """Send the target, once, to those who will sample it."""
    with _connected(client) as connection:
        with warnings.catch_warnings():  # a large problem is sent once; that is as it should be
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            sent = connection.submit(Task, target, pure=False)
        yield partial(_run, connection, sent)


def _run(
    connection: Any,
    sent: Any,
    runners: list[Runner],
    sink: Sink | None,
    progress: Progress,
    deadline: float,
) -> None:
    """Advance all `runners` on the cluster; they take over what comes back."""
    from distributed import as_completed

    block = {runner.index: _FIRST for runner in runners}
    waiting: dict[Any, Runner] = {}

    def submit(runner: Runner) -> Any:
        state = _bare(runner.chain.state) if runner.started or runner.sweeps else None
        where = (runner.schedule, runner.index, state, runner.sweeps, block[runner.index])
        future = connection.submit(advance, sent, *where, pure=False)
        waiting[future] = runner
        return future

    todo = [submit(runner) for runner in runners if not runner.done and runner.error is None]
    finished: Any = as_completed(todo)  # type: ignore[no-untyped-call]
    try:
        for future in finished:
            runner = waiting.pop(future)
            try:
                draws, state, sweeps, seconds = future.result()
            except Exception as error:
                runner.error = error
                continue
            runner.absorb(draws, state, sweeps)
            if sink is not None:
                sink.offer(runner, force=False)
            block[runner.index] = _next_block(block[runner.index], seconds)
            if not (runner.done or out_of_time(runners, deadline)):
                finished.add(submit(runner))
            progress.update(*progress_of(runners))
    finally:
        connection.cancel(list(waiting))


def _next_block(n_sweeps: int, seconds: float) -> int:
    """As many sweeps as take about the time a block should, changing by no more than 4 times."""
    suited = n_sweeps * _SECONDS / max(seconds, 1e-6)
    return max(1, round(min(max(suited, n_sweeps / 4), n_sweeps * 4)))
