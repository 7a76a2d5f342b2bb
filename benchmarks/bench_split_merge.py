"""Split–merge moves: do chains from different starts agree sooner, and what does a draw cost?

    python -m benchmarks.bench_split_merge

Four chains start with one, a few or many clusters. Effective samples (bulk, rank-normalised) are
over processor seconds; R-hat is the worst of number of controllers, largest cluster, log joint and
policies. Chains that stick in modes of their own have few effective samples, however many draws.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.partitions import ChineseRestaurant, Mixing, PartitionPrior, Potts
from onlooker.partitions.partition import PartitionSampler, Start
from onlooker.worlds import CircularMotion, GridWorld

GRID = GridWorld()
PRIORS: dict[str, PartitionPrior] = {
    "CRP": ChineseRestaurant(1.0),
    "mixing, K = 16": Mixing(16),
    "Potts, K = 16, β = 0.8": Potts(16, beta=0.8),
}
PROBLEMS = ("Example 1", "Example 1, 200 states", "Example 2a, 1,000 trajectories")


def make_problem(name: str) -> Problem:
    """Simulated data."""
    if name == "Example 1":
        world = CircularMotion()
        demos, _ = world.rollout(10, 100, random_state=0)
        return Problem.from_demonstrations(demos, world.dynamics)
    if name == "Example 1, 200 states":
        world = CircularMotion()
        demos, _ = world.rollout(10, 20, random_state=0)
        return Problem.from_demonstrations(demos, world.dynamics)
    demos, _ = GRID.rollout(1_000, 10, random_state=0)
    return Problem.from_demonstrations(demos, GRID.dynamics, nodes="all")


def scattered(prior: PartitionPrior) -> PartitionPrior:
    """The same prior, whose chains start with 1, 4 or all of its (or 64) clusters."""

    def sampler(problem: Problem) -> PartitionSampler:
        made: Any = type(prior).sampler(prior, problem)
        start, most = made.start, 64 if isinstance(prior, ChineseRestaurant) else made.n_slots
        if isinstance(prior, ChineseRestaurant):
            made.n_slots = most + 1

        def begin(rng: np.random.Generator) -> Start:
            few = int(rng.choice([1, 4, most]))
            if isinstance(prior, ChineseRestaurant):
                made.n_start = few
                return start(rng)  # type: ignore[no-any-return]
            labels, arrays, hyper = start(rng)
            return labels % few, arrays, hyper

        made.start = begin
        return made  # type: ignore[no-any-return]

    copied = replace(prior)  # type: ignore[type-var]
    copied.sampler = sampler  # type: ignore[attr-defined,method-assign]
    return copied


def measure(problem: Problem, prior: PartitionPrior, alpha: float, draws: int) -> list[object]:
    """Effective samples a second of four scalars, worst R-hat, mean log joint."""
    options: dict[str, Any] = {"concentration": alpha, "progress": False, "n_jobs": 1}
    sample(problem, prior, draws=2, tune=0, chains=1, random_state=1, **options)
    start = time.process_time()
    posterior = sample(
        problem, scattered(prior), draws=draws, tune=draws, chains=4, random_state=0, **options
    )
    seconds = time.process_time() - start
    table = posterior.summary()
    table = table.drop(index=["alpha", "beta", "gamma"], errors="ignore").dropna()
    policies = table[[str(name).startswith("policy") for name in table.index]]

    def rate(ess: Any) -> str:
        return f"{np.exp(np.log(np.maximum(ess, 1.0)).mean()) / seconds:.1f}"

    controllers = table["ess_bulk"].get("n_controllers")
    return [
        f"{seconds / (8e-3 * draws):.2f}",
        rate(table.loc[["log_joint"], "ess_bulk"]),
        "–" if controllers is None else rate(np.array([controllers])),
        rate(policies["ess_bulk"]),
        f"{float(table['r_hat'].max()):.2f}",
        f"{float(table['mean']['log_joint']):,.0f}",
    ]


def main(quick: bool = False) -> None:
    """Print a table for each problem."""
    warnings.simplefilter("ignore")  # some of these do not converge: that is the point
    draws = 100 if quick else 500
    for name in PROBLEMS[: 1 if quick else None]:
        problem = make_problem(name)
        rows = []
        for label, prior in PRIORS.items():
            if isinstance(prior, Potts) and name.startswith("Example 2a"):
                prior = replace(prior, coordinates=GRID.coordinates)
            for alpha in (1.0, 0.1):
                for moves in (0, 3):
                    moved = replace(prior, split_merge=moves)  # type: ignore[type-var]
                    cells = measure(problem, moved, alpha, draws)
                    rows.append([f"{label}, α = {alpha:g}", moves, *cells])
        print_table(
            f"{name}: 4 chains of {draws:,} draws after as many",
            [
                "model",
                "moves a sweep",
                "ms a sweep",
                "log joint, ESS/s",
                "controllers, ESS/s",
                "policies, ESS/s",
                "worst R-hat",
                "mean log joint",
            ],
            rows,
        )


if __name__ == "__main__":
    main("--quick" in sys.argv)
