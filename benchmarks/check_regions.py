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
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from benchmarks.check_mixing import problem_of, world_of
from onlooker import sample
from onlooker.experiments.grid import next_state_error
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd

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


def error_of(name: str, run: int) -> tuple[float, float]:
    """The error of the posterior mean policy, and the mean number of controllers."""
    problem, prior = problem_of(name, run)
    posterior = sample(
        problem,
        prior,
        CONCENTRATION,
        draws=500,
        tune=500,
        chains=2,
        random_state=run,
        progress=False,
    )
    world: Any = world_of(name, run)
    if name == "1":
        error = circular_emd(world.policy(problem.states), posterior.policy()).mean()
    else:
        policy = np.empty((problem.n_nodes, problem.n_actions))
        policy[problem.states] = posterior.policy()
        if name.startswith("2a"):
            error = circular_emd(world.policy(), policy).mean()
        else:
            states = np.arange(world.n_states)
            true = world.dynamics.next_state_probabilities(states, world.policy())
            error = next_state_error(true, world.dynamics, policy, world.coordinates, 1e-6)
    return float(error), float(posterior.n_controllers.mean())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Errors of regions that share controllers.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--only", choices=CELLS, nargs="+", default=list(CELLS))
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
        mean, sd = found[:, 0].mean(), found[:, 0].std(ddof=1) / np.sqrt(options.runs)
        rows.append(
            [name, f"{mean:.3f}", f"{sd:.3f}", CELLS[name], f"{found[:, 1].mean():.1f}",
             f"{seconds:.1f}"]
        )  # fmt: skip
        print(*rows[-1], flush=True)
    print_table("Errors of regions that share controllers", header, rows)


if __name__ == "__main__":
    main()
