"""How well a policy is recognised when part of the states was not seen.

    python -m benchmarks.check_missing [--runs 3]

Example 2 (a): a circling expert in the 21×21 grid, 1000 trajectories of 10 states. Unseen states
are imputed within the sampler, or dropped: their trajectories are split there. The error is the
circular EMD of the action probabilities over all states, in rad. Where nothing is hidden the two
columns are runs with the same data and other random numbers.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.partitions import Regions
from onlooker.repertoire import Actions
from onlooker.worlds import GridWorld

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def error_of(world: GridWorld, demos: Any, draws: int, seed: int) -> float:
    """Error of the posterior mean policy, all hyper-parameters inferred."""
    problem = Problem.from_demonstrations(
        demos, world.dynamics, nodes="all", repertoire=[Actions()]
    )
    prior = Regions.inferred(coordinates=world.coordinates)
    posterior = sample(
        problem,
        prior,
        CONCENTRATION,
        draws=draws,
        tune=draws,
        chains=2,
        random_state=seed,
        progress=False,
    )
    return float(circular_emd(world.policy(), posterior.policy()).mean())


def one_run(seed: int, size: int, n_trajectories: int, draws: int) -> list[list[float]]:
    """For every share of hidden states, the errors with imputation and with splitting."""
    world = GridWorld(size)
    demos, _ = world.rollout(n_trajectories, 10, random_state=seed)
    rows = []
    for share in SHARES:
        seen = demos.hide(share, seed)
        rows.append([error_of(world, data, draws, seed) for data in (seen, seen.split())])
        print(seed, share, *(f"{error:.3f}" for error in rows[-1]), flush=True)
    return rows


def main(quick: bool = False, runs: int = 3) -> None:
    """Print the errors."""
    warnings.simplefilter("ignore")
    runs, size = (1, (9, 200, 60)) if quick else (runs, (21, 1000, 400))
    began = time.perf_counter()
    found = np.array([one_run(seed, *size) for seed in range(runs)])
    mean, spread = found.mean(axis=0), found.std(axis=0)
    print_table(
        f"Example 2 (a), {size[1]} trajectories, {runs} data sets, error ± sd, "
        f"{time.perf_counter() - began:.0f} s",
        ["hidden", "imputed", "dropped"],
        [
            [f"{share:.0%}"] + [f"{mean[k, m]:.3f} ± {spread[k, m]:.3f}" for m in (0, 1)]
            for k, share in enumerate(SHARES)
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    main(runs=parser.parse_args().runs)
