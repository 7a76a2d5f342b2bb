"""What scoring costs: 10,000 steps, 16 actions, 100 replicates.

    python -m benchmarks anomaly

Seconds of processor time, since machines are shared; the last column is the ratio to the time
that one pass over all steps and replicates takes the dynamics alone (`sample` and
`log_likelihood`), which differs less between machines. Simulating whole tracks takes a dozen such
passes, and the policy at every state that they come to.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.anomaly import score, score_policy
from onlooker.partitions import DistanceDependent
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion, GridWorld

N_REPLICATES = 100
_TRACKS = {False: "no tracks simulated", True: "whole tracks simulated"}


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of the second call; the first may compile."""
    run()
    began = time.process_time()
    run()
    return time.process_time() - began


def main(quick: bool = False) -> None:
    """Measure."""
    world = CircularMotion(16)
    n_replicates = 20 if quick else N_REPLICATES
    demos, _ = world.rollout(10 if quick else 100, 101, random_state=1)
    states, _ = demos.transitions()
    rng = np.random.default_rng(0)

    def dynamics_alone() -> None:
        for _ in range(n_replicates):
            actions = rng.integers(16, size=len(states))
            world.dynamics.log_likelihood(states, world.dynamics.sample(states, actions, rng))

    unit = seconds(dynamics_alone)
    rows: list[list[object]] = []

    def report(name: str, took: float) -> None:
        rows.append([name, f"{took:.2f}", f"{took / unit:.1f}"])

    report("the dynamics alone, one pass", unit)
    for simulate in (False, True):
        took = seconds(
            lambda simulate=simulate: score_policy(  # type: ignore[misc]
                world.policy, world.dynamics, demos, simulate=simulate, random_state=0,
                n_replicates=n_replicates, max_replicates=n_replicates,
            )
        )  # fmt: skip
        report(f"known policy, {_TRACKS[simulate]}", took)
    train, _ = world.rollout(20, 101, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = sample(
            Problem.from_demonstrations(train, world.dynamics, repertoire=[Actions()]),
            DistanceDependent(),
            draws=100, tune=100, chains=2, random_state=0, progress=False,
        )  # fmt: skip
    for simulate in (False, True):
        took = seconds(
            lambda simulate=simulate: score(  # type: ignore[misc]
                posterior, demos[:10], simulate=simulate, random_state=0,
                n_replicates=n_replicates, max_replicates=n_replicates,
            )
        )  # fmt: skip
        report(f"posterior of 200 draws, a tenth of the steps, {_TRACKS[simulate]}", took)
    grid = GridWorld()
    walks, _ = grid.rollout(10 if quick else 200, 51, random_state=0)
    took = seconds(lambda: score_policy(grid.policy, grid.dynamics, walks, random_state=0))
    report(f"441 states, expectations summed, {_TRACKS[True]}", took)
    print_table(
        f"Scoring {demos.n_transitions:,} steps, 16 actions, {n_replicates} replicates",
        ["what", "seconds", "passes of the dynamics"],
        rows,
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
