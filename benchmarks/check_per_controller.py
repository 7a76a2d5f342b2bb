"""One α for all controllers against one for each, where only half of the expert is deterministic.

A grid whose left half always plays the same action (or one in each of four regions), and whose
right half draws one of three actions, or of all eight. The policy's error is the total variation
distance to the expert's, averaged over all states. ``python -m benchmarks.check_per_controller``
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.checks import Array
from onlooker.hyper import LogUniform, PerController
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import GridWorld

PRIOR = LogUniform(0.02, 10.0)
CHOICES: dict[str, Any] = {
    "fixed, 0.05": 0.05,
    "fixed, 0.3": 0.3,
    "fixed, 1": 1.0,
    "fixed, 3": 3.0,
    "one, inferred": PRIOR,
    "one each": PerController(PRIOR, n=6),
}
SIZE, LENGTH = 12, 10
WORLDS = [(1, 3), (4, 3), (1, 8), (4, 8)]
"""Deterministic regions, and actions of the stochastic half."""


def make_world(n_regions: int, n_random: int) -> tuple[GridWorld, Array]:
    """The world, and which of its states are deterministic."""
    x, y = GridWorld(SIZE, 8).coordinates.T
    expert = np.zeros((SIZE**2, 8))
    right = x > 0
    expert[np.ix_(right, [1, 4, 6] if n_random == 3 else range(n_random))] = 1 / n_random
    region = np.minimum(((y + SIZE / 2) / SIZE * n_regions).astype(int), n_regions - 1)
    action = np.array([0, 5, 2, 7])[region]
    expert[~right, action[~right]] = 1.0
    return GridWorld(SIZE, 8, sigma=0.5, expert=expert), ~right


def one_run(
    world: GridWorld, certain: Array, size: int, choice: Any, run: int, draws: int
) -> list[float]:
    """Error in all, in either half, controllers, and the mean α of either half."""
    demos, _ = world.rollout(size, LENGTH, random_state=run)
    problem = Problem.from_demonstrations(demos, world.dynamics, nodes="all")
    prior = DistanceDependent(decay=GaussianDecay(1.0, offset=0.01), coordinates=world.coordinates)
    posterior = sample(
        problem, prior, choice, draws=draws, tune=draws, chains=2, random_state=run, progress=False
    )
    order = problem.states
    error = 0.5 * np.abs(posterior.policy() - world.policy()[order]).sum(axis=1)
    alpha = posterior.concentration()
    inside = certain[order]
    return [
        error.mean(),
        error[inside].mean(),
        error[~inside].mean(),
        posterior.n_controllers.mean(),
        alpha[inside].mean(),
        alpha[~inside].mean(),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100, 300])
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    header = ["α", "error (against one each)", "left", "right", "controllers", "α left", "α right"]
    for n_regions, n_random in WORLDS:
        world, certain = make_world(n_regions, n_random)
        for size in options.sizes:
            results = {
                name: np.array(
                    [
                        one_run(world, certain, size, choice, run, options.draws)
                        for run in range(options.runs)
                    ]
                )
                for name, choice in CHOICES.items()
            }
            best = results["one each"][:, 0]
            rows = []
            for name, found in results.items():
                mean = found.mean(axis=0)
                gap = found[:, 0] - best
                error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
                rows.append(
                    [
                        name,
                        f"{mean[0]:.3f} ({gap.mean():+.3f} ± {error:.3f})",
                        *(f"{value:.3f}" for value in mean[1:3]),
                        f"{mean[3]:.1f}",
                        *(f"{value:.2g}" for value in mean[4:]),
                    ]
                )
            title = f"{n_regions} action(s) left, any of {n_random} right; {size} trajectories"
            print_table(f"{title}, {options.runs} runs", header, rows)


if __name__ == "__main__":
    main()
