"""Sample: run chains side by side, store their draws, and wrap them in a posterior."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from onlooker.checks import positive_integer
from onlooker.diagnostics import check_convergence
from onlooker.inference import threads
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Runner, Schedule, progress_of, seed_of
from onlooker.inference.target import Binder, Target
from onlooker.posterior import Posterior
from onlooker.progress import make_progress
from onlooker.runs.store import Store, read_header
from onlooker.warnings import ChainFailedWarning, warn

if TYPE_CHECKING:
    from onlooker.partitions.base import Hyper, PartitionPrior
    from onlooker.problem import Problem


def sample(
    problem: Problem,
    prior: PartitionPrior[Any],
    concentration: Hyper = 1.0,
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

    Warns
    -----
    ConvergenceWarning
        If R-hat exceeds 1.01 or a chain has an effective sample size below 100.
    ChainFailedWarning
        If a chain failed; the others are kept.
    """
    target = Target(problem, prior, concentration, collapsed)
    seed = stored_seed(random_state, store, resume)
    schedule = Schedule(draws=draws, tune=tune, chains=chains, thin=thin, seed=seed)
    if resume and store is None:
        raise ValueError("resume=True needs a store to go on with")
    n_threads = _n_threads(n_jobs, chains)
    with contextlib.ExitStack() as stack:
        sink = None
        if store is not None:
            sink = stack.enter_context(Store(store, target, schedule, resume))
        bind = Binder(target)
        before: list[Draws | None] = []
        runners = []
        for chain in range(chains):
            kept, state, sweeps = (None, None, 0) if sink is None else sink.stored(chain)
            before.append(kept)
            runners.append(Runner(chain, schedule, bind, state, sweeps))
        bind(0)  # whatever the prior refuses is refused here, before any sampling
        try:
            with make_progress(progress, schedule.n_sweeps * chains) as shown:
                if client is None:
                    threads.run(runners, n_threads, sink, shown)
                else:
                    from onlooker.inference import cluster

                    cluster.run(client, cluster.Task(target, schedule), runners, sink, shown)
        except KeyboardInterrupt as interrupt:
            for runner in runners:
                if sink is not None and runner.started:
                    sink.offer(runner, force=True)
            raise KeyboardInterrupt(_resume_hint(runners, sink)) from interrupt
    posterior = _collect(target, schedule, runners, before, store is not None)
    check_convergence(posterior)
    return posterior


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
    """What to tell someone who stopped the run."""
    done, _ = progress_of(runners)
    stopped = f"stopped after {done} of {runners[0].schedule.n_sweeps * len(runners)} sweeps"
    if store is None:
        return f"{stopped}; nothing is kept: with store='some/directory' it could be resumed"
    return f"{stopped}; go on with the same call and store={str(store.path)!r}, resume=True"


def _collect(
    target: Target,
    schedule: Schedule,
    runners: list[Runner],
    before: list[Draws | None],
    is_stored: bool,
) -> Posterior:
    """The draws of all chains that did not fail."""
    alive = [runner for runner in runners if runner.error is None]
    failed = [runner for runner in runners if runner.error is not None]
    again = "; resume=True tries again from where it was stored" if is_stored else ""
    for runner in failed:
        warn(
            f"chain {runner.index} failed after {runner.sweeps} sweeps ({runner.error!r}); "
            f"{len(alive)} of {len(runners)} chains are kept{again}",
            ChainFailedWarning,
        )
    if not alive:
        error = failed[0].error
        raise RuntimeError(f"every chain failed; the first with {error!r}") from error
    chains = [_all_draws(runner, before[runner.index]) for runner in alive]
    return Posterior(
        target, schedule, join(chains, axis="chain"), [runner.index for runner in alive]
    )


def _all_draws(runner: Runner, before: Draws | None) -> Draws:
    n_draws = runner.schedule.draws
    if before is not None and len(before) >= n_draws:
        return before[:n_draws]
    return runner.draws if before is None else join([before, runner.draws])
