"""What comes after sampling, against sampling itself, at the size of the paper's Example 1.

    python benchmarks/bench_posterior.py            # 1,000 draws of 1,000 nodes, 24 actions
    python benchmarks/bench_posterior.py --quick    # 200 draws: for a look

Everything is measured in one run on one core, as a ratio to the time that sampling the same draws
took, because machines differ. Compilation is left out. Processor time is given too: wall time
means little on a busy machine.

Budgets: `policy()` at 10,000 states that are no nodes and the consensus take no longer than
sampling; a store costs at most a tenth of it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onlooker import Posterior, Problem, sample
from onlooker.diagnostics import ConvergenceWarning, check_convergence
from onlooker.partitions import DistanceDependent, Mixing, Potts
from onlooker.partitions.base import PartitionPrior
from onlooker.worlds import CircularMotion

PRIORS: dict[str, PartitionPrior] = {
    "ddCRP": DistanceDependent(),
    "Potts": Potts(8, beta=0.8),
    "mixing": Mixing(8),
}


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of `work`, and its wall and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def report(
    name: str, seconds: tuple[float, float], unit: tuple[float, float], budget: float
) -> None:
    """One line: times, their ratio to sampling, and whether that is within the budget."""
    ratio = seconds[1] / unit[1]
    verdict = "" if budget == np.inf else ("  ok" if ratio <= budget else f"  OVER {budget:g}")
    print(
        f"  {name:34s} wall {seconds[0]:7.2f} s  cpu {seconds[1]:7.2f} s  "
        f"cpu / sampling {ratio:6.3f}{verdict}",
        flush=True,
    )


def after_sampling(name: str, problem: Problem, draws: int) -> None:
    """Predictions, consensus and diagnostics of one prior's draws."""
    options = {"draws": draws, "tune": 0, "chains": 1, "random_state": 0, "progress": False}
    prior = PRIORS[name]
    sample(problem, prior, **options | {"draws": 2})  # compiles
    settled = {"tune": 100}
    run = lambda n: timed(lambda: sample(problem, prior, **options | settled | {"draws": n}))  # noqa: E731
    _, *start = run(1)
    posterior, *whole = run(draws)
    unit = (whole[0] - start[0], whole[1] - start[1])
    print(f"{name}: {draws} draws, {posterior.n_controllers.mean():.1f} controllers")
    report("sampling these draws", unit, unit, np.inf)
    queries = np.random.default_rng(0).uniform(-8.0, 8.0, (10_000, 2))
    strategies = ("map", "local", "average") if name != "mixing" else ("map", "average")
    for strategy in strategies:
        posterior.policy(queries[:2], extrapolate=strategy)
        fresh = Posterior(posterior.plan, _draws(posterior), posterior.chain_ids)
        _, *seconds = timed(lambda s=strategy, p=fresh: p.policy(queries, extrapolate=s))
        default = strategy == ("average" if name == "mixing" else "map")
        title = f"policy, 10,000 states, {strategy}{' (default)' if default else ''}"
        report(title, tuple(seconds), unit, 1.0 if default else np.inf)
    posterior.policy(queries[:2], interval=0.9)
    _, *seconds = timed(lambda: posterior.policy(interval=0.9))
    report("policy with interval at the nodes", tuple(seconds), unit, np.inf)
    Posterior(posterior.plan, _draws(posterior, 20), [0]).partition()
    _, *seconds = timed(posterior.partition)
    report("consensus", tuple(seconds), unit, 1.0)
    _, *seconds = timed(lambda: check_convergence(posterior))
    report("diagnostics", tuple(seconds), unit, np.inf)


def _draws(posterior: Posterior, n: int | None = None) -> Any:
    from onlooker.inference.draws import Draws

    return Draws(
        posterior.labels[:, :n],
        posterior.actions[:, :n],
        posterior.log_joint[:, :n],
        {name: values[:, :n] for name, values in posterior.hyper.items()},
    )


def storing(name: str, problem: Problem, draws: int, repeats: int) -> None:
    """The cost of a store: the least of several runs with and without."""
    options = {"draws": draws, "tune": 100, "chains": 1, "random_state": 0, "progress": False}
    sample(problem, PRIORS[name], **options | {"draws": 2})
    without, with_store = [], []
    for _ in range(repeats):
        without.append(timed(lambda: sample(problem, PRIORS[name], **options))[1:])
        place = Path(tempfile.mkdtemp(prefix="onlooker-"))
        with_store.append(
            timed(lambda p=place: sample(problem, PRIORS[name], store=p, **options))[1:]
        )
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        shutil.rmtree(place)
    unit = tuple(min(run[i] for run in without) for i in range(2))
    stored = tuple(min(run[i] for run in with_store) for i in range(2))
    print(f"{name}: storing {draws} draws, {size / 1e6:.1f} MB in all")
    report("sampling without a store", unit, unit, np.inf)
    extra = (stored[0] - unit[0], stored[1] - unit[1])
    report("the store's share, processor", extra, unit, 0.1)
    print(f"  {'the store’s share, wall':34s} {extra[0] / unit[0]:.3f} of sampling")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description="What comes after sampling, against sampling")
    parser.add_argument("--quick", action="store_true", help="200 draws")
    draws = 200 if parser.parse_args().quick else 1000
    warnings.simplefilter("ignore", ConvergenceWarning)
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    problem = Problem.from_demonstrations(demos, world.dynamics)
    print(f"{problem!r}")
    for name in PRIORS:
        after_sampling(name, problem, draws)
    for name in ("ddCRP", "mixing"):
        storing(name, problem, draws, repeats=7)


if __name__ == "__main__":
    main()
