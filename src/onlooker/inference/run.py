"""Run chains side by side and gather their draws."""

from __future__ import annotations

import os
import queue
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from onlooker._validation import positive_integer
from onlooker.hyper import Prior
from onlooker.inference.draws import join
from onlooker.inference.progress import Progress, make_progress
from onlooker.inference.runner import Plan, Runner, seed_of

if TYPE_CHECKING:
    from onlooker.inference.problem import Problem
    from onlooker.partitions.base import PartitionPrior
    from onlooker.posterior import Posterior

_SLICE = 0.25  # seconds that a chain runs before another one may have its thread
_POLL = 0.05  # seconds between two looks at the chains


class ChainFailedWarning(UserWarning):
    """A chain died; the others were kept."""


def sample(
    problem: Problem,
    prior: PartitionPrior,
    concentration: float | Prior = 1.0,
    collapsed: bool = True,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    *,
    blocked: bool = False,
    resume: bool = False,
    client: Any = None,
) -> Posterior:
    """Draw from the posterior over actions, partitions and hyper-parameters.

    Parameters
    ----------
    problem
        Nodes, transitions and likelihoods.
    prior
        Which partitions are believable.
    concentration
        α of the controllers' Dirichlet prior.
    collapsed
        Integrate the controllers out (faster mixing) rather than draw them.
    draws, tune, chains, thin
        Draws to keep of each chain; sweeps to discard before; chains; sweeps from one kept draw to
        the next.
    random_state
        Seed (or a generator to draw one from). The same seed gives the same bits, whatever
        `n_jobs`, `progress`, `store` and `client` are.
    n_jobs
        Threads; None or -1: one a chain, as far as there are cores.
    progress
        Show how far the chains are, on standard error.
    store
        A directory that draws are written to while sampling goes on; a killed run can be resumed.
    blocked
        Draw indicator and action of single-transition nodes together: same target, faster mixing.
    resume
        Go on with what `store` holds, be it a broken run or a finished one that is to get more
        draws or chains; starts anew where there is nothing yet.
    client
        A ``distributed.Client``, or the address of a Dask scheduler, to run the chains there.

    Warns
    -----
    ConvergenceWarning
        If R-hat exceeds 1.01 or a chain has an effective sample size below 100.
    ChainFailedWarning
        If a chain died; the others are kept.
    """
    plan = Plan(
        problem, prior, concentration, collapsed, blocked, draws, tune, thin, chains,
        seed_of(random_state),
    )  # fmt: skip
    n_threads = _n_threads(n_jobs, chains)
    sampler = prior.sampler(problem)
    runners = [Runner(index, plan, sampler) for index in range(chains)]
    with make_progress(progress, plan.n_sweeps * chains) as shown:
        _run_threads(runners, n_threads, shown)
    return _gather(plan, runners)


def _n_threads(n_jobs: int | None, chains: int) -> int:
    if n_jobs is None or n_jobs == -1:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return min(chains, cores or 1)
    return min(chains, positive_integer("n_jobs", n_jobs))


def _run_threads(runners: list[Runner], n_threads: int, shown: Progress) -> None:
    """Run all chains, a slice of time each in turn, so that they advance side by side."""
    waiting: queue.SimpleQueue[Runner] = queue.SimpleQueue()
    unfinished = [runner for runner in runners if not runner.done]
    if unfinished:  # kernels are compiled here, before threads could do so twice
        shown.prepare()
        _guarded(unfinished[0], sweeps=1)
    shown.start()
    for runner in unfinished:
        waiting.put(runner)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                runner = waiting.get_nowait()
            except queue.Empty:
                return
            _guarded(runner, seconds=_SLICE)
            if not runner.done and runner.error is None:
                waiting.put(runner)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(_POLL)
            shown.update(sum(runner.sweeps for runner in runners), _note(runners))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _guarded(runner: Runner, seconds: float = float("inf"), sweeps: int | None = None) -> None:
    """Advance a chain; its death must not take the others with it."""
    try:
        runner.advance(seconds, sweeps)
        if sweeps is not None:
            runner.compile()
    except Exception as error:
        runner.error = error


def _note(runners: list[Runner]) -> str:
    counts = [n for runner in runners if (n := runner.n_controllers) is not None]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return f"{low} controllers" if low == high else f"{low} to {high} controllers"


def _gather(plan: Plan, runners: list[Runner]) -> Posterior:
    from onlooker.diagnostics import check_convergence
    from onlooker.posterior import Posterior

    alive = [runner for runner in runners if runner.error is None]
    dead = [runner for runner in runners if runner.error is not None]
    for runner in dead:
        warnings.warn(
            f"chain {runner.index} died after {runner.sweeps} sweeps ({runner.error!r}); "
            f"{len(alive)} of {len(runners)} chains are kept",
            ChainFailedWarning,
            stacklevel=3,
        )
    if not alive:
        raise RuntimeError("every chain died") from dead[0].error
    posterior = Posterior(
        plan,
        join([runner.draws for runner in alive], axis="chain"),
        [runner.index for runner in alive],
    )
    check_convergence(posterior, stacklevel=4)
    return posterior
