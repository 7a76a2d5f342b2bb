"""The ddCRP's posterior on the paper's Example 1, over simulated data sets.

    python -m benchmarks.check_example1 [--runs 20]

Reference (R = 40): ν 0.024 ± 0.024; P(7, 8, 9, 10, ≥ 11 controllers) = 4, 38, 32, 16, 9 %; error
of the policy averaged over draws 0.42–0.43 rad.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent
from onlooker.worlds import CircularMotion


def one_run(seed: int, draws: int, tune: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Numbers of controllers, ν, and the errors of the policy at and off the trajectories."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=seed)
    problem = Problem.from_demonstrations(demos, world.dynamics)
    posterior = sample(
        problem,
        DistanceDependent(),
        draws=draws,
        tune=tune,
        chains=2,
        random_state=seed,
        progress=False,
    )
    error = circular_emd(posterior.policy(), world.policy(problem.states)).mean()
    distance = np.linalg.norm(world.coordinates[:, None] - problem.states[None], axis=-1)
    near = world.coordinates[distance.min(axis=1) < 1.0]
    off = circular_emd(posterior.policy(near), world.policy(near)).mean()
    return posterior.n_controllers.ravel(), posterior.hyper["nu"].ravel(), error, off


def main(quick: bool = False, runs: int = 20) -> None:
    """Print what came out, beside the reference."""
    warnings.simplefilter("ignore")  # short chains; the figures are averages over data sets
    runs = 3 if quick else runs
    start = time.perf_counter()
    found = [one_run(seed, 500, 200) for seed in range(runs)]
    controllers = np.concatenate([one[0] for one in found])
    nu = np.concatenate([one[1] for one in found])
    errors, off = np.array([one[2] for one in found]), np.array([one[3] for one in found])
    shares = [np.mean(controllers == k) for k in (7, 8, 9, 10)] + [np.mean(controllers >= 11)]
    print_table(
        f"Example 1, ddCRP, {runs} data sets, {time.perf_counter() - start:.0f} s",
        ["what", "found", "reference"],
        [
            ["P(7, 8, 9, 10, ≥ 11 controllers), %", _percent(shares), "4, 38, 32, 16, 9"],
            ["most likely number of controllers", np.bincount(controllers).argmax(), 8],
            ["ν, mean", f"{nu.mean():.4f}", "0.024"],
            ["ν, standard deviation", f"{nu.std():.4f}", "0.024"],
            ["error at trajectory states, rad", _spread(errors), "0.42–0.43"],
            ["error off the trajectories, rad", _spread(off), ""],
        ],
    )


def _percent(shares: list[float]) -> str:
    return ", ".join(f"{100 * share:.0f}" for share in shares)


def _spread(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    main(runs=parser.parse_args().runs)
