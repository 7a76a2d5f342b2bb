"""Run chains side by side and gather their draws."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from onlooker.checks import positive_integer
from onlooker.diagnostics import check_convergence
from onlooker.hyper import Prior
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Plan, Runner, seed_of
from onlooker.progress import Progress, make_progress
from onlooker.runs.store import Store, read_header
from onlooker.warnings import ChainFailedWarning, warn

if TYPE_CHECKING:
    from onlooker.partitions.base import PartitionPrior
    from onlooker.posterior import Posterior
    from onlooker.problem.problem import Problem

_SLICE = 0.25  # seconds that a chain runs before another one may have its thread
_POLL = 0.05  # seconds between two looks at the chains


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
        α of the controllers' Dirichlet prior: a number fixes it, a prior infers it.
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
        problem=problem,
        prior=prior,
        concentration=concentration,
        collapsed=collapsed,
        draws=draws,
        tune=tune,
        thin=thin,
        chains=chains,
        seed=_stored_seed(random_state, store, resume),
    )
    if resume and store is None:
        raise ValueError("resume=True needs a store to go on with")
    n_threads = _n_threads(n_jobs, plan.chains)
    with contextlib.ExitStack() as stack:
        opened = None if store is None else stack.enter_context(Store(store, plan, resume))
        run = _Run(plan, opened)
        try:
            with make_progress(progress, plan.n_sweeps * plan.chains) as shown:
                if client is None:
                    run.in_threads(n_threads, shown)
                else:
                    from onlooker.inference.cluster import run_on_cluster

                    run_on_cluster(client, plan, run.runners, run.flush, shown)
        except KeyboardInterrupt:
            run.flush_all()
            print(run.how_to_go_on(), file=sys.stderr)
            raise
    posterior = run.gather()
    check_convergence(posterior)
    return posterior


def _stored_seed(random_state: Any, store: str | os.PathLike[str] | None, resume: bool) -> int:
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


class _Run:
    """All chains of a run, with what the store held of them before."""

    def __init__(self, plan: Plan, store: Store | None) -> None:
        self.plan = plan
        self.store = store
        self.before: list[Draws | None] = [None] * plan.chains
        self.runners = []
        sampler = plan.prior.sampler(plan.problem)
        for chain in range(plan.chains):
            where = None
            if store is not None:
                self.before[chain], where = store.folders[chain].read(repair=True)
            self.runners.append(Runner(chain, plan, sampler, *(where or (None, 0))))

    def flush(self, runner: Runner, force: bool = False) -> None:
        """Store what a chain has drawn, if it is time to; never what an error left behind."""
        if self.store is not None and runner.error is None:
            self.store.folders[runner.index].offer(runner, force)

    def flush_all(self) -> None:
        """Store everything at once."""
        for runner in self.runners:
            if runner.started:
                self.flush(runner, force=True)

    def in_threads(self, n_threads: int, shown: Progress) -> None:
        """Run all chains, a slice of time each in turn, so that they advance side by side."""
        waiting: queue.SimpleQueue[Runner] = queue.SimpleQueue()
        unfinished = [runner for runner in self.runners if not runner.done]
        if unfinished:  # kernels are compiled here, before threads could do so twice
            shown.prepare()
            self._advance(unfinished[0], sweeps=1)
        shown.start(how_far(self.runners)[0])
        for runner in unfinished:
            if runner.error is None:
                waiting.put(runner)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                try:
                    runner = waiting.get_nowait()
                except queue.Empty:
                    return
                self._advance(runner, seconds=_SLICE)
                if not runner.done and runner.error is None:
                    waiting.put(runner)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(_POLL)
                shown.update(*how_far(self.runners))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        shown.update(*how_far(self.runners))

    def _advance(
        self, runner: Runner, seconds: float = math.inf, sweeps: int | None = None
    ) -> None:
        """Advance a chain; its death must not take the others with it."""
        try:
            runner.advance(seconds, sweeps)
            if sweeps is not None:
                runner.compile()
            self.flush(runner)
        except BaseException as error:
            runner.error = error
            if not isinstance(error, Exception):
                raise

    def how_to_go_on(self) -> str:
        """What to tell someone who stopped the run."""
        done, _ = how_far(self.runners)
        stopped = f"stopped after {done} of {self.plan.n_sweeps * self.plan.chains} sweeps"
        if self.store is None:
            return f"{stopped}; nothing is kept: with store='some/directory' it could be resumed"
        path = str(self.store.path)
        return f"{stopped}; go on with the same call and store={path!r}, resume=True"

    def gather(self) -> Posterior:
        """The draws of all chains that live."""
        from onlooker.posterior import Posterior

        alive = [runner for runner in self.runners if runner.error is None]
        dead = [runner for runner in self.runners if runner.error is not None]
        again = "" if self.store is None else "; resume=True tries again from where it was stored"
        for runner in dead:
            warn(
                f"chain {runner.index} died after {runner.sweeps} sweeps ({runner.error!r}); "
                f"{len(alive)} of {len(self.runners)} chains are kept{again}",
                ChainFailedWarning,
            )
        if not alive:
            raise RuntimeError(f"every chain died; the first of {dead[0].error!r}") from dead[
                0
            ].error
        chains = [self._draws(runner) for runner in alive]
        return Posterior(self.plan, join(chains, axis="chain"), [runner.index for runner in alive])

    def _draws(self, runner: Runner) -> Draws:
        before = self.before[runner.index]
        if before is not None and len(before) >= self.plan.draws:
            return before[: self.plan.draws]
        return runner.draws if before is None else join([before, runner.draws])


def how_far(runners: list[Runner]) -> tuple[int, str]:
    """Sweeps done by all chains, and what to say of them."""
    done = sum(min(runner.sweeps, runner.plan.n_sweeps) for runner in runners)
    counts = [n for runner in runners if (n := runner.n_controllers) is not None]
    if not counts:
        return done, ""
    low, high = min(counts), max(counts)
    return done, f"{low} controllers" if low == high else f"{low} to {high} controllers"
