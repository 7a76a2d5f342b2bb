"""How well a policy is recognised when part of the states was not seen.

    python -m benchmarks.check_missing [--runs 3]

Example 2 (a): a circling expert in the 21×21 grid, 1000 trajectories of 10 states. Unseen states
are imputed within the sampler, or dropped: their trajectories are split there. The error is the
circular EMD of the action probabilities over all states, in rad.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem
from onlooker.hyper import Exponential
from onlooker.incomplete import IncompleteDemonstrations
from onlooker.inference.chain import Chain
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.worlds import GridWorld

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def error_of(world: GridWorld, demos, alpha: float, sweeps: int, seed: int) -> float:
    """Error of the posterior mean policy, from the second half of one chain."""
    problem = Problem.from_demonstrations(demos, world.dynamics, nodes="all")
    prior = DistanceDependent(
        Exponential(0.1), GaussianDecay(1.0, 0.01), coordinates=world.coordinates, start="self"
    )
    rng = np.random.default_rng(seed)
    chain = Chain(problem, prior.sampler(problem), alpha=alpha, collapsed=True, rng=rng)
    total = 0.0
    for sweep in range(sweeps):
        chain.sweep()
        if sweep >= sweeps // 2:
            total = total + chain.policy()
    return float(circular_emd(world.policy(), total / (sweeps - sweeps // 2)).mean())


def one_run(seed: int, size: int, n_trajectories: int, sweeps: int) -> list[list[float]]:
    """For every share of hidden states, the errors with imputation and with splitting."""
    world = GridWorld(size)
    demos, _ = world.rollout(n_trajectories, 10, random_state=seed)
    rows = []
    for share in SHARES:
        seen = IncompleteDemonstrations.hiding(demos, share, seed)
        rows.append([error_of(world, data, 0.1, sweeps, seed) for data in (seen, seen.split())])
    return rows


def main(quick: bool = False, runs: int = 3) -> None:
    """Print the errors."""
    warnings.simplefilter("ignore")
    runs, size = (1, (9, 200, 60)) if quick else (runs, (21, 1000, 300))
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
