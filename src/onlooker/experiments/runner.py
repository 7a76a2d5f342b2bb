"""Monte Carlo runs, each stored as soon as it is finished."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlooker.experiments.experiment import Config, Experiment, Row
from onlooker.files import write_atomically
from onlooker.progress import make_progress


@dataclass(frozen=True)
class Finished:
    """What became of a run."""

    run: int
    rows: list[Row] | None
    seconds: float | None
    """Processor time; None if it was not recorded."""
    error: str = ""
    """The traceback, if it failed."""


def execute(run_one: Callable[[Any, int], list[Row]], config: Config, run: int) -> Finished:
    """One run, wherever it takes place; a failure is a result too."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from onlooker.warnings import ConvergenceWarning

    began = time.thread_time()  # whatever else the machine is doing
    try:
        # One thread: matrix products would else depend, in the last digit, on the machine's cores.
        with threadpool_limits(1), warnings.catch_warnings():
            # Chains have the paper's length, converged or not; rows say which baselines did.
            warnings.simplefilter("ignore", ConvergenceWarning)
            rows = run_one(config, run)
    except Exception:
        return Finished(run, None, time.thread_time() - began, traceback.format_exc())
    return Finished(run, rows, time.thread_time() - began)


class Store:
    """Finished runs of one configuration, a file each."""

    def __init__(self, folder: Path, experiment: Experiment, config: Config) -> None:
        self.folder = folder / "runs" / config.fingerprint(experiment.name)

    def path(self, run: int) -> Path:
        """Where a run is kept."""
        return self.folder / f"run-{run:05d}.json"

    def put(self, finished: Finished) -> None:
        """Keep a run; its file appears whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {"run": finished.run, "processor": finished.seconds, "rows": finished.rows}
        text = json.dumps(record).encode()
        write_atomically(self.path(finished.run), lambda file: file.write(text))

    def get(self, run: int) -> Finished | None:
        """A run that was kept, to the last digit; None if there is none that can be read."""
        try:
            record = json.loads(self.path(run).read_text(encoding="utf-8"))
            return Finished(record["run"], record["rows"], record.get("processor"))
        except (OSError, ValueError, KeyError):
            return None

    def forget(self) -> None:
        """Remove all runs."""
        for path in self.folder.glob("run-*.json"):
            path.unlink()


def run_all(
    experiment: Experiment,
    config: Config,
    folder: Path,
    *,
    jobs: int = 1,
    progress: bool = True,
    fresh: bool = False,
) -> list[Finished]:
    """All runs of `config`, in order, those that failed included.

    Parameters
    ----------
    folder
        Finished runs are kept below it; those found there are not repeated.
    jobs
        Processes on this machine.
    fresh
        Forget the runs that are kept.
    """
    store = Store(folder, experiment, config)
    if fresh:
        store.forget()
    finished = {run: found for run in range(config.runs) if (found := store.get(run))}
    with make_progress(progress, config.runs, experiment.name, "runs") as bar:
        bar.start(len(finished))
        todo = [run for run in range(config.runs) if run not in finished]
        for one in _results(experiment, config, todo, jobs):
            finished[one.run] = one
            if one.rows is not None:
                store.put(one)
            bar.advance(1)
    return [finished[run] for run in range(config.runs)]


def _results(
    experiment: Experiment, config: Config, todo: list[int], jobs: int
) -> Iterator[Finished]:
    if jobs == 1:
        for run in todo:
            yield execute(experiment.run_one, config, run)
    elif todo:
        yield from _in_processes(experiment, config, todo, jobs)


def _in_processes(
    experiment: Experiment, config: Config, todo: list[int], jobs: int
) -> Iterator[Finished]:
    """Runs side by side; if a process is lost, what is left one by one, to find out whose fault."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    workers = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    left = dict.fromkeys(todo)
    try:
        for one in workers(delayed(execute)(experiment.run_one, config, run) for run in todo):
            del left[one.run]
            yield one
    except TerminatedWorkerError:
        for run in left:
            try:
                yield from workers([delayed(execute)(experiment.run_one, config, run)])
            except TerminatedWorkerError:
                lost = "its process was lost: out of memory, or killed"
                yield Finished(run, None, 0.0, lost)
