"""What comes after sampling, against sampling itself, at the size of the paper's Example 1.

    python -m benchmarks posterior

Everything is measured in one run on one core, in processor time, as a ratio to the time that
sampling the same draws took, because machines differ. Compilation is left out.

Budgets: `policy()` at 10,000 states that are no nodes and the consensus take no longer than
sampling; a store costs at most a tenth of it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.diagnostics import check_convergence
from onlooker.partitions import DistanceDependent, Mixing, Potts
from onlooker.partitions.base import PartitionPrior
from onlooker.repertoire import Actions
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion

PRIORS: dict[str, PartitionPrior] = {
    "ddCRP": DistanceDependent(),
    "Potts": Potts(8, beta=0.8),
    "mixing": Mixing(8),
}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of `work`, and its processor time."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def row_of(prior: str, what: str, seconds: float, unit: float, budget: float) -> list[object]:
    """One row: seconds, their ratio to sampling, and whether that is within the budget."""
    ratio = seconds / unit
    verdict = "" if budget == np.inf else f"{'within' if ratio <= budget else 'OVER'} {budget:g}"
    return [prior, what, f"{seconds:.2f}", f"{ratio:.3f}", verdict]


def after_sampling(name: str, problem: Problem, draws: int) -> list[list[object]]:
    """Predictions, consensus and diagnostics of one prior's draws."""
    options: dict[str, Any] = {
        "draws": draws,
        "tune": 0,
        "chains": 1,
        "random_state": 0,
        "progress": False,
    }
    prior = PRIORS[name]
    sample(problem, prior, **options | {"draws": 2})  # compiles
    settled = {"tune": 100}
    run = lambda n: timed(lambda: sample(problem, prior, **options | settled | {"draws": n}))  # noqa: E731
    _, start = run(1)
    posterior, whole = run(draws)
    unit = whole - start
    rows = []

    def report(what: str, seconds: float, budget: float = np.inf) -> None:
        rows.append(row_of(name, what, seconds, unit, budget))

    report("sampling these draws", unit)
    queries = np.random.default_rng(0).uniform(-8.0, 8.0, (10_000, 2))
    strategies = ("map", "local", "average") if name != "mixing" else ("map", "average")
    for strategy in strategies:
        posterior.policy(queries[:2], extrapolate=strategy)
        fresh = posterior.thin(1)  # nothing is kept of earlier answers
        _, seconds = timed(lambda s=strategy, p=fresh: p.policy(queries, extrapolate=s))
        default = strategy == ("average" if name == "mixing" else "map")
        title = f"policy, 10,000 unseen states, {strategy}{' (default)' if default else ''}"
        report(title, seconds, 1.0 if default else np.inf)
    posterior.policy(queries[:2], interval=0.9)
    report("policy with interval at the nodes", timed(lambda: posterior.policy(interval=0.9))[1])
    posterior.thin(-(-posterior.n_draws // 20)).partition()
    report("consensus (VI, 16 restarts)", timed(posterior.partition)[1], 1.0)
    report("diagnostics", timed(lambda: check_convergence(posterior))[1])
    return rows


def storing(name: str, problem: Problem, draws: int, repeats: int) -> list[object]:
    """The cost of a store: the least of several runs with and without."""
    options: dict[str, Any] = {
        "draws": draws,
        "tune": 100,
        "chains": 1,
        "random_state": 0,
        "progress": False,
    }
    sample(problem, PRIORS[name], **options | {"draws": 2})
    without, with_store = [], []
    for _ in range(repeats):
        without.append(timed(lambda: sample(problem, PRIORS[name], **options))[1])
        place = Path(tempfile.mkdtemp(prefix="onlooker-"))
        with_store.append(
            timed(lambda p=place: sample(problem, PRIORS[name], store=p, **options))[1]
        )
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        shutil.rmtree(place)
    extra = max(0.0, min(with_store) - min(without))
    return row_of(name, f"storing while sampling ({size / 1e6:.1f} MB)", extra, min(without), 0.1)


def main(quick: bool = False) -> None:
    """Run all."""
    draws = 200 if quick else 1000
    warnings.simplefilter("ignore", ConvergenceWarning)
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])
    rows = [row for name in PRIORS for row in after_sampling(name, problem, draws)]
    rows += [storing(name, problem, draws, 3 if quick else 7) for name in ("ddCRP", "mixing")]
    print_table(
        f"What comes after sampling {draws:,} draws of Example 1",
        ["prior", "what", "seconds", "of the sampling", "budget"],
        rows,
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
