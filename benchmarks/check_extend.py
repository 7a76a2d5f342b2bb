"""How much sooner chains that go on with added data are at their goal than chains that start over.

    python -m benchmarks.check_extend [--runs 5]

Example 1, with the last of ten trajectories added to the other nine. Counted are the sweeps until
the log joint first enters the middle 90 % of where a long run of all the data keeps it.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.partitions import DistanceDependent
from onlooker.worlds import CircularMotion


def one_run(seed: int, n_trajectories: int, length: int, draws: int) -> list[float]:
    """Sweeps of fresh chains (from nearest links and from self-links), and of extended ones."""
    world = CircularMotion()
    demos, _ = world.rollout(n_trajectories, length, random_state=seed)
    old, whole = (Problem.from_demonstrations(some, world.dynamics) for some in (demos[:-1], demos))
    options: dict[str, Any] = {"chains": 2, "random_state": seed, "progress": False}
    start = {name: DistanceDependent(start=name) for name in ("nearest", "self")}
    first = sample(old, start["nearest"], draws=draws, tune=300, **options)
    fresh = [sample(whole, prior, draws=draws, tune=0, **options) for prior in start.values()]
    longer = first.extend(demos[-1:], draws=draws, tune=0, random_state=seed, progress=False)
    goal = np.quantile(fresh[0].log_joint[:, draws // 2 :], [0.05, 0.95])
    return [_sweeps_to(goal, posterior.log_joint) for posterior in [*fresh, longer]]


def _sweeps_to(goal: np.ndarray, log_joint: np.ndarray) -> float:
    there = (goal[0] <= log_joint) & (log_joint <= goal[1])
    return float(1 + there.argmax(axis=1).mean())


def main(quick: bool = False, runs: int = 5) -> None:
    """Print the sweeps."""
    warnings.simplefilter("ignore")
    runs, size = (2, (4, 30, 200)) if quick else (runs, (10, 100, 600))
    found = np.array([one_run(seed, *size) for seed in range(runs)])
    names = ["fresh, linked to the nearest", "fresh, linked to themselves", "extended"]
    print_table(
        f"Example 1, one trajectory added to {size[0] - 1}: sweeps to the goal, {runs} data sets",
        ["chains", "mean", "least", "most"],
        [
            [name, f"{values.mean():.1f}", values.min(), values.max()]
            for name, values in zip(names, found.T, strict=True)
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    main(runs=parser.parse_args().runs)
