"""Effective samples a second: collapsed and ordinary schemes on Example 1.

    python -m benchmarks mixing

Effective samples (bulk, rank-normalised, over chains from different starts) of the log joint and
of the policies at a few states, the geometric mean of the latter; over processor seconds of
sampling. Chains that have not found the same mode count for little, as they should.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    Mixing,
    PartitionPrior,
    Potts,
)
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion

CASES: dict[str, tuple[PartitionPrior, dict[str, bool]]] = {
    "mixing, ordinary": (Mixing(8), {"collapsed": False}),
    "mixing, collapsed": (Mixing(8), {}),
    "CRP, collapsed": (ChineseRestaurant(1.0), {}),
    "Potts β=0.8, ordinary": (Potts(8, beta=0.8), {"collapsed": False}),
    "Potts β=0.8, collapsed": (Potts(8, beta=0.8), {}),
    "ddCRP": (DistanceDependent(), {}),
}


def measure(problem: Problem, name: str, draws: int) -> list[object]:
    """One row of the table."""
    prior, scheme = CASES[name]
    options = {"progress": False, "n_jobs": 1, "random_state": 0, **scheme}
    sample(problem, prior, draws=2, tune=0, chains=1, **options)  # type: ignore[arg-type]
    start = time.process_time()
    posterior = sample(problem, prior, draws=draws, tune=draws // 2, chains=4, **options)  # type: ignore[arg-type]
    seconds = time.process_time() - start
    ess = posterior.summary()["ess_bulk"]
    policies = ess[[str(row).startswith("policy") for row in ess.index]].dropna()
    log_joint = float(ess["log_joint"])
    return [
        name,
        f"{seconds:.1f}",
        f"{log_joint / seconds:.1f}",
        f"{np.exp(np.log(policies).mean()) / seconds:.1f}",
    ]


def main(quick: bool = False) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")  # some of these do not converge: that is the point
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])
    draws = 300 if quick else 2_000
    print_table(
        f"Effective samples a second, Example 1, 4 chains of {draws:,} draws",
        ["model", "seconds", "log joint", "policies"],
        [measure(problem, name, draws) for name in CASES],
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
