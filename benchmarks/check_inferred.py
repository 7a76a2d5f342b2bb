"""One configuration for every expert: all hyper-parameters inferred, nothing said about the expert.

Example 2 of the paper with 100 and 1000 trajectories, (a) circling and (b) optimal expert, and
Example 1. ``python -m benchmarks.check_inferred [--runs 5]``
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

from onlooker import Problem, sample
from onlooker.experiments import grid_circular, grid_mdp
from onlooker.experiments.grid import next_state_error
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion, GridWorld

CONFIGS: Any = {"a": grid_circular.Config(), "b": grid_mdp.Config()}
BARS = {("a", 100): 0.52, ("a", 1000): 0.25, ("b", 100): 0.34, ("b", 1000): 0.13}


def problem_of_grid(expert: str, size: int, run: int) -> tuple[GridWorld, Problem]:
    """The world and the data of one run of Example 2."""
    config = CONFIGS[expert]
    world = GridWorld(21, 8, radius=5.0) if expert == "a" else config.rewarded(run)
    demos, _ = world.rollout(size, config.length, config.stream(run, size, 0))
    return world, Problem.from_demonstrations(demos, world.dynamics, nodes="all")


def problem_of_plane(run: int) -> tuple[CircularMotion, Problem]:
    """The world and the data of one run of Example 1."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=run)
    return world, Problem.from_demonstrations(demos, world.dynamics)


def grid(expert: str, size: int, run: int) -> tuple[float, dict[str, float], float]:
    """Error, median hyper-parameters and seconds of one run of Example 2."""
    world, problem = problem_of_grid(expert, size, run)
    prior = DistanceDependent.inferred(coordinates=world.coordinates)
    start = time.perf_counter()
    posterior = sample(problem, prior, CONCENTRATION, random_state=run, progress=False)
    seconds = time.perf_counter() - start
    policy = np.empty((problem.n_nodes, problem.n_actions))
    policy[problem.states] = posterior.policy()
    hyper = {name: float(np.median(draws)) for name, draws in posterior.hyper.items()}
    if expert == "a":
        return float(circular_emd(world.policy(), policy).mean()), hyper, seconds
    states = np.arange(problem.n_nodes)
    true = world.dynamics.next_state_probabilities(states, world.policy())
    error = next_state_error(
        true, world.dynamics, policy, world.coordinates, CONFIGS["b"].tolerance
    )
    return error, hyper, seconds


def plane(run: int) -> tuple[float, Counter[int], dict[str, float]]:
    """Error, numbers of controllers and median hyper-parameters of one run of Example 1."""
    world, problem = problem_of_plane(run)
    prior = DistanceDependent.inferred()
    posterior = sample(problem, prior, CONCENTRATION, random_state=run, progress=False)
    error = float(circular_emd(world.policy(problem.states), posterior.policy()).mean())
    hyper = {name: float(np.median(draws)) for name, draws in posterior.hyper.items()}
    return error, Counter(posterior.n_controllers.ravel().tolist()), hyper


def _listed(hyper: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in hyper.items())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    n_runs = parser.parse_args().runs
    warnings.simplefilter("ignore", ConvergenceWarning)
    for (expert, size), bar in BARS.items():
        results = [grid(expert, size, run) for run in range(n_runs)]
        errors = np.array([error for error, _, _ in results])
        se = errors.std(ddof=1) / np.sqrt(n_runs) if n_runs > 1 else np.nan
        print(
            f"2{expert}, {size} trajectories: {errors.mean():.3f} ± {se:.3f} (wanted {bar}); "
            f"{_listed(results[0][1])}; {results[0][2]:.0f} s",
            flush=True,
        )
    counts: Counter[int] = Counter()
    in_the_plane = []
    for run in range(n_runs):
        error, found, hyper = plane(run)
        in_the_plane.append(error)
        counts += found
    total = sum(counts.values())
    shares = ", ".join(f"{k}: {counts[k] / total:.0%}" for k in sorted(counts))
    print(f"1: {np.mean(in_the_plane):.3f} (fixed: 0.42); controllers {shares}; {_listed(hyper)}")


if __name__ == "__main__":
    main()
