"""Sample: run chains side by side, store their draws, and wrap them in a posterior."""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from onlooker.checks import Setting, positive_integer, positive_number
from onlooker.diagnostics import check_convergence, settled, summary
from onlooker.inference import threads
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import End, Runner, Schedule, progress_of, require_room, seed_of
from onlooker.inference.target import Binder, Target
from onlooker.posterior import Posterior
from onlooker.progress import Progress, make_progress
from onlooker.runs.header import read_header
from onlooker.runs.store import Store
from onlooker.stopping import terminable
from onlooker.warnings import ChainFailedWarning, warn

if TYPE_CHECKING:
    from onlooker.hyper import TotalMass
    from onlooker.partitions.base import Hyper, PartitionPrior
    from onlooker.problem import Problem

_SHORTER = "fewer draws, fewer sweeps to discard (tune) or fewer chains take less time"
_FIRST_LOOK = 250  # draws of each chain at which convergence is checked; then twice as many


def sample(
    problem: Problem,
    prior: PartitionPrior[Any],
    concentration: Hyper | TotalMass = 1.0,
    collapsed: bool = True,
    draws: int | Literal["auto"] = 1000,
    tune: int = 500,
    chains: int = 4,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    client: Any = None,
    max_minutes: float = 30.0,
) -> Posterior:
    """Draw from the posterior over actions, partitions and hyper-parameters.

    Parameters
    ----------
    problem
        Nodes, transitions and likelihoods.
    prior
        Which partitions are believable.
    concentration
        α of the controllers' Dirichlet prior: a number fixes it, a prior infers it;
        `hyper.TotalMass` puts the prior on ``Aα``, whatever the number of actions is.
    collapsed
        Integrate the controllers out (faster mixing) rather than draw them.
    draws, tune, chains, thin
        Draws to keep of each chain; sweeps to discard before; chains; sweeps from one kept draw to
        the next. With ``draws="auto"`` chains go on until they have converged (R-hat at most 1.01
        and an effective sample size of at least 400 for everything in `Posterior.summary`) or
        `max_minutes` are over; `Posterior.ended` says which.
    random_state
        Seed (or a generator to draw one from). The same seed gives the same bits, whatever
        `n_jobs`, `progress`, `store` and `client` are.
    n_jobs
        Threads; None or -1: one per chain, as far as there are cores.
    progress
        Show how far the chains are, on standard error.
    store
        A directory that draws are written to while sampling goes on; a killed run can be resumed.
    resume
        Go on with what `store` holds, be it a broken run or a finished one that is to get more
        draws or chains; starts anew where there is nothing yet.
    client
        A ``distributed.Client``, or the address of a Dask scheduler, to run the chains there.
    max_minutes
        How long ``draws="auto"`` may take, tuning included; each chain gets at least 10 draws.
        Convergence is checked after 250, 500, 1000, ... draws, so that the draws follow from the
        seed, unless time cuts them short.

    Warns
    -----
    ConvergenceWarning
        If R-hat exceeds 1.01 or the effective sample size is below 400, with what has settled.
    ChainFailedWarning
        If a chain failed; the others are kept.
    """
    target = Target(problem, prior, concentration, collapsed)
    auto, deadline = draws == "auto", math.inf
    if auto:
        deadline = time.monotonic() + 60 * positive_number("max_minutes", max_minutes)
    elif isinstance(draws, str):
        raise ValueError(f"draws must be a number or 'auto', got {draws!r}")
    schedule = Schedule(
        draws=_FIRST_LOOK if auto else draws,  # type: ignore[arg-type]
        tune=tune,
        chains=chains,
        thin=thin,
        seed=stored_seed(random_state, store, resume),
        end="auto" if auto else "draws",
    )
    if resume and store is None:
        raise ValueError("resume=True needs a store to continue")
    require_room(target, schedule)
    n_threads = _n_threads(n_jobs, chains)
    with contextlib.ExitStack() as stack:
        sink = None
        if store is not None:
            sink = stack.enter_context(Store(store, target, schedule, resume))
        run = _Run(target, schedule, sink)
        if auto:
            run.plan(_next_look(max(runner.kept for runner in run.runners)), "auto")
        advance: Any = partial(threads.run, n_threads)
        if client is not None:
            from onlooker.inference import cluster

            advance = stack.enter_context(cluster.workers(client, target))
        hint = "" if auto else _SHORTER
        try:
            with terminable(), make_progress(progress, run.n_sweeps, hint=hint) as shown:
                shown.start(progress_of(run.runners)[0])
                if auto:
                    _until_converged(run, advance, shown, deadline)
                else:
                    advance(run.runners, sink, shown, deadline)
        except KeyboardInterrupt as interrupt:
            run.store()
            raise type(interrupt)(_resume_hint(run.runners, sink)) from interrupt
        run.store()
    run.tell_failures()
    posterior = run.posterior()
    with make_progress(progress, 1, "diagnostics", "steps", brief=True):
        check_convergence(posterior)
    return posterior


def short_run(target: Target, schedule: Schedule, n_jobs: int | None = None) -> Posterior:
    """The same without a store, a progress bar, or a look at convergence."""
    run = _Run(target, schedule, None)
    threads.run(_n_threads(n_jobs, schedule.chains), run.runners, None, Progress())
    run.tell_failures()
    return run.posterior()


class _Run:
    """All chains of a run, what they drew before, and where their draws go."""

    def __init__(self, target: Target, schedule: Schedule, sink: Store | None) -> None:
        self.target, self.schedule, self.sink = target, schedule, sink
        self.runners: list[Runner] = []
        self._before: list[Draws | None] = []
        bind = Binder(target)
        for chain in range(schedule.chains):
            kept, state, sweeps = None, None, 0
            if sink is not None:
                kept, state, sweeps = sink.stored(chain, bind(chain))
            self._before.append(kept)
            self.runners.append(Runner(chain, schedule, bind, state, sweeps))
        bind(0)  # whatever the prior refuses is refused here, before any sampling

    @property
    def alive(self) -> list[Runner]:
        """Chains that have not failed."""
        return [runner for runner in self.runners if runner.error is None]

    @property
    def n_sweeps(self) -> int:
        """Sweeps of all chains together."""
        return self.schedule.n_sweeps * len(self.runners)

    def plan(self, n_draws: int, end: End) -> None:
        """Want so many draws of each chain from now on, and say so in the store."""
        self.schedule = replace(self.schedule, draws=n_draws, end=end)
        for runner in self.runners:
            runner.schedule = self.schedule
        if self.sink is not None:
            self.sink.plan(self.schedule)

    def store(self) -> None:
        """Write whatever was drawn since the last part."""
        if self.sink is not None:
            self.sink.finish(self.runners)

    def tell_failures(self) -> None:
        """Warn of chains that failed; raise if all did."""
        failed = [runner for runner in self.runners if runner.error is not None]
        again: tuple[Any, ...] = ()
        if self.sink is not None:
            again = "; ", Setting("resume", (True,)), " tries again from where it was stored"
        for runner in failed:
            warn(
                ChainFailedWarning(
                    f"chain {runner.index} failed after {runner.sweeps} sweeps "
                    f"({runner.error!r}); {len(self.alive)} of {len(self.runners)} chains are kept",
                    *again,
                )
            )
        if not self.alive:
            error = failed[0].error
            raise RuntimeError(f"every chain failed; the first with {error!r}") from error

    def posterior(self) -> Posterior:
        """The draws of all chains that have not failed, as many as the schedule says."""
        chains = [self._draws(runner)[: self.schedule.draws] for runner in self.alive]
        numbers = [runner.index for runner in self.alive]
        return Posterior(self.target, self.schedule, join(chains, axis="chain"), numbers)

    def _draws(self, runner: Runner) -> Draws:
        before = self._before[runner.index]
        if before is None or len(before) < self.schedule.draws:
            return runner.draws if before is None else join([before, runner.draws])
        return before


def _until_converged(run: _Run, advance: Any, progress: Progress, deadline: float) -> None:
    """Draw until everything has settled, or until the deadline.

    Looks are taken after 250, 500, 1000, ... draws, so that what is drawn depends on the seed
    alone, if time does not cut it short.
    """
    while True:
        n_draws = run.schedule.draws
        advance(run.runners, run.sink, progress, deadline)
        if not run.alive:
            return
        if not all(runner.done for runner in run.alive):
            run.store()
            n_draws = min(runner.kept for runner in run.alive)
            break
        found = settled(summary(run.posterior()))
        if found.all:
            run.plan(n_draws, "converged")
            progress.remark(f"converged after {n_draws:,} draws per chain", progress.done)
            return
        if time.monotonic() >= deadline:
            break
        run.plan(2 * n_draws, "auto")
        progress.remark(f"{n_draws:,} draws per chain. {found.sentence}", run.n_sweeps)
    run.plan(n_draws, "time")
    progress.remark(f"out of time after {n_draws:,} draws per chain", progress.done)


def _next_look(n_draws: int) -> int:
    """The first look that a chain with so many draws has not gone past."""
    return _FIRST_LOOK << max(0, math.ceil(math.log2(max(n_draws, 1) / _FIRST_LOOK)))


def stored_seed(random_state: Any, store: str | os.PathLike[str] | None, resume: bool) -> int:
    """The seed; without one, a stored run goes on with its own."""
    if random_state is None and store is not None and resume:
        header = read_header(store)
        if header is not None:
            return int(header["seed"])
    return seed_of(random_state)


def _n_threads(n_jobs: int | None, chains: int) -> int:
    if n_jobs is None or n_jobs == -1:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return min(chains, cores or 1)
    return min(chains, positive_integer("n_jobs", n_jobs))


def _resume_hint(runners: list[Runner], store: Store | None) -> str:
    """What to tell someone who stopped the run, by Ctrl-C or by SIGTERM."""
    done, _ = progress_of(runners)
    stopped = f"stopped after {done} of {runners[0].schedule.n_sweeps * len(runners)} sweeps"
    if store is None:
        return f"{stopped}; nothing is kept: with store='some/directory' it could be resumed"
    return f"{stopped}; continue with the same call and store={str(store.path)!r}, resume=True"
