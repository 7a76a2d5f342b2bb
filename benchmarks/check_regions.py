"""How near regions that share controllers come to the expert.

    python -m benchmarks.check_regions [--runs 10] [--first 0] [--only 1 "2a, 100"]

`Regions.inferred` with bare actions and everything inferred: one configuration for all examples.
Errors are those of the paper's experiments: at the nodes of Example 1 and over all states of 2 (a)
the circular EMD of action probabilities, in rad; over all states of 2 (b) the Euclidean EMD of
next-state distributions. ``--first 1000`` takes data sets that nothing was ever tried on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from benchmarks.check_mixing import BARE, problem_of, world_of
from onlooker import Posterior, Problem, sample
from onlooker.checks import Array
from onlooker.dynamics import TabularDynamics
from onlooker.experiments.grid import next_state_error
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.partitions import Regions
from onlooker.worlds import GridWorld

CELLS = {
    "1": 0.12,
    "2a, 30": 0.64,
    "2a, 100": 0.49,
    "2a, 1000": 0.15,
    "2b, 10": 0.60,
    "2b, 100": 0.26,
    "2b, 1000": 0.04,
}
"""What is to be reached."""


def posterior_of(problem: Problem, prior: Regions, seed: int) -> Posterior:
    """Two short chains."""
    return sample(
        problem, prior, CONCENTRATION, draws=500, tune=500, chains=2, random_state=seed,
        progress=False,
    )  # fmt: skip


def at_states(posterior: Posterior) -> Array:
    """The posterior mean policy at all states of a finite space, all of which are nodes."""
    policy = np.empty((posterior.problem.n_nodes, posterior.problem.n_actions))
    policy[posterior.problem.states] = posterior.policy()
    return policy


def next_state_error_of(world: GridWorld, model: TabularDynamics, policy: Array) -> float:
    """Of next-state distributions under `model`, in grid steps."""
    true = world.dynamics.next_state_probabilities(np.arange(world.n_states), world.policy())
    return next_state_error(true, model, policy, world.coordinates, 1e-6)


def error_of(name: str, run: int, repertoire: Any = BARE) -> tuple[float, float]:
    """The error of the posterior mean policy, and the mean number of controllers."""
    problem, prior = problem_of(name, run, repertoire)
    posterior = posterior_of(problem, prior, run)
    world: Any = world_of(name, run)
    if name == "1":
        error = circular_emd(world.policy(problem.states), posterior.policy()).mean()
    elif name.startswith("2a"):
        error = circular_emd(world.policy(), at_states(posterior)).mean()
    else:
        error = next_state_error_of(world, world.dynamics, at_states(posterior))
    return float(error), float(posterior.n_controllers.mean())


def main(
    title: str,
    cells: Mapping[str, float],
    error_of: Callable[[str, int], tuple[float, float]],
) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--only", choices=cells, nargs="+", default=list(cells))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    header = [
        "example",
        "error",
        "standard error",
        "to be reached",
        "controllers",
        "s per data set",
    ]
    rows = []
    for name in options.only:
        began = time.perf_counter()
        found = np.array([error_of(name, options.first + run) for run in range(options.runs)])
        seconds = (time.perf_counter() - began) / options.runs
        sd = found[:, 0].std(ddof=1) / np.sqrt(options.runs) if options.runs > 1 else np.nan
        rows.append(
            [name, f"{found[:, 0].mean():.3f}", f"{sd:.3f}", cells[name],
             f"{found[:, 1].mean():.1f}", f"{seconds:.1f}"]
        )  # fmt: skip
        print(*rows[-1], flush=True)
    print_table(title, header, rows)


if __name__ == "__main__":
    main("Errors of regions that share controllers", CELLS, error_of)
