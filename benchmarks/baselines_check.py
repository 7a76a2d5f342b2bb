"""Do the baselines give the published figures on the paper's Example 2?

    python benchmarks/baselines_check.py --runs 4 --trajectories 100 1000

(a) circling expert: circular EMD of the action distributions; (b) optimal expert of random sparse
rewards: Euclidean EMD of the next-state distributions; both over all 441 states.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from onlooker.baselines import (
    BayesianNonparametricIRL,
    BehavioralCloning,
    ExpectationMaximization,
    GlobalMarginal,
    MaximumEntropyIRL,
    MaximumMarginIRL,
    Uniform,
)
from onlooker.metrics import circular_emd, planar_emd
from onlooker.worlds import GridWorld

SIZES = (10, 30, 100, 300, 1000, 3000)
# An independent reproduction of the paper's Figure 5: R = 12 runs for (a), R = 10 for (b).
REFERENCE = {
    ("a", "uniform"): [1.047] * 6,
    ("a", "EM β=1.6"): [1.099, 0.918, 0.821, 0.656, 0.559, 0.531],
    ("a", "max-margin"): [1.550, 1.542, 1.502, 1.509, 1.535, 1.523],
    ("a", "max-ent greedy"): [1.566, 1.528, 1.482, 1.451, 1.441, 1.431],
    ("a", "max-ent soft"): [1.324, 1.176, 1.057, 1.002, 0.990, 0.983],
    ("b", "uniform"): [0.976] * 6,
    ("b", "EM β=1.6"): [0.640, 0.599, 0.348, 0.154, 0.047, 0.011],
    ("b", "EM β=3.2"): [0.446, 0.332, 0.206, 0.101, 0.032, 0.008],
    ("b", "max-margin"): [0.489, 0.417, 0.313, 0.246, 0.164, 0.109],
    ("b", "max-ent greedy"): [0.472, 0.330, 0.214, 0.140, 0.109, 0.091],
    ("b", "max-ent soft"): [0.506, 0.425, 0.365, 0.345, 0.333, 0.327],
}
METHODS: dict[str, Callable[[GridWorld, int], Any]] = {
    "uniform": lambda w, seed: Uniform(w.dynamics),
    "EM β=1.6": lambda w, seed: ExpectationMaximization(
        w.dynamics, 8, 1.6, coordinates=w.coordinates, random_state=seed
    ),
    "EM β=3.2": lambda w, seed: ExpectationMaximization(
        w.dynamics, 8, 3.2, coordinates=w.coordinates, random_state=seed
    ),
    "max-margin": lambda w, seed: MaximumMarginIRL(w.dynamics),
    "max-ent greedy": lambda w, seed: MaximumEntropyIRL(w.dynamics, policy="greedy"),
    "max-ent soft": lambda w, seed: MaximumEntropyIRL(w.dynamics),
}
MORE: dict[str, Callable[[GridWorld, int], Any]] = {
    "marginal": lambda w, seed: GlobalMarginal(w.dynamics),
    "cloning": lambda w, seed: BehavioralCloning(
        w.dynamics, coordinates=w.coordinates, random_state=seed
    ),
    "BNIRL": lambda w, seed: BayesianNonparametricIRL(w.dynamics, random_state=seed),
}


def error(kind: str, world: GridWorld, policy: Any) -> float:
    """The figure's measure, averaged over the states."""
    expert = world.policy()
    if kind == "a":
        return float(circular_emd(expert, policy).mean())
    states = np.arange(world.n_states)
    true = world.dynamics.next_state_probabilities(states, expert)
    learned = world.dynamics.next_state_probabilities(states, policy)
    return float(planar_emd(true, learned, world.coordinates, 1e-9).mean())


def measure(
    kind: str, methods: dict[str, Any], n: int, runs: int, seed: int
) -> Iterator[tuple[str, list[float], float, int]]:
    """Per method: errors, seconds a fit, and how many fits did not converge."""
    for name, make in methods.items():
        errors, seconds, failed = [], 0.0, 0
        for run in range(runs):
            world = GridWorld() if kind == "a" else GridWorld.rewarded(seed + run)
            demos, _ = world.rollout(n, 10, random_state=10_000 + seed + run)
            begin = time.perf_counter()
            model = make(world, run).fit(demos)
            seconds += time.perf_counter() - begin
            failed += not model.convergence_.converged
            errors.append(error(kind, world, model.predict_proba(np.arange(world.n_states))))
        yield name, errors, seconds / runs, failed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--trajectories", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="also those without published figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # counted in the table instead
    methods = METHODS | (MORE if options.all else {})
    console = Console(width=100)
    for kind in "ab":
        table = Table(title=f"Example 2({kind}), {options.runs} runs, seed {options.seed}")
        for column in (
            "trajectories",
            "method",
            "error",
            "± sd",
            "reference",
            "s/fit",
            "unfinished",
        ):
            table.add_column(column)
        for n in options.trajectories:
            for name, errors, seconds, failed in measure(
                kind, methods, n, options.runs, options.seed
            ):
                known = REFERENCE.get((kind, name)) if n in SIZES else None
                table.add_row(
                    str(n),
                    name,
                    f"{np.mean(errors):.3f}",
                    f"{np.std(errors):.3f}",
                    f"{known[SIZES.index(n)]:.3f}" if known else "–",
                    f"{seconds:.2f}",
                    f"{failed}/{options.runs}",
                )
        console.print(table)


if __name__ == "__main__":
    main()
