"""Do chains from different starts agree after the default number of draws?

    python -m benchmarks.check_mixing [--seeds 5] [--draws 1500] [--only "2a, 1000"]

Examples 1 and 2, `Regions.inferred` with bare actions; the four chains start scattered. For each
data set: the worst R-hat (split, rank-normalised) and the least effective sample size per chain,
bulk or tails, of all that `Posterior.summary` watches.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.experiments import grid_circular, grid_mdp
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import Regions
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion, GridWorld

BARE = [Actions()]
PROBLEMS = ("1", "2a, 100", "2a, 1000", "2b, 100", "2b, 1000")


def world_of(name: str, run: int) -> CircularMotion | GridWorld:
    """The world of a data set."""
    if name == "1":
        return CircularMotion()
    return GridWorld(21, 8, radius=5.0) if "a" in name else grid_mdp.Config().with_reward(run)


def problem_of(name: str, run: int, repertoire: Any = BARE) -> tuple[Problem, Regions]:
    """A data set of an example, such as "2a, 100", and the prior; on grids all states are nodes."""
    world = world_of(name, run)
    if isinstance(world, CircularMotion):
        demos, _ = world.rollout(10, 100, random_state=run)
        problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=repertoire)
        return problem, Regions.inferred(1.0)
    config: Any = grid_circular.Config() if "a" in name else grid_mdp.Config()
    size = int(name.split(", ")[1])
    demos, _ = world.rollout(size, config.length, config.stream(run, size, 0))
    problem = Problem.from_demonstrations(demos, world.dynamics, nodes="all", repertoire=repertoire)
    return problem, Regions.inferred(1.0, coordinates=world.coordinates)


def measure(name: str, seed: int, draws: int) -> list[object]:
    """Worst R-hat and least effective sample size of one data set."""
    problem, prior = problem_of(name, seed)
    began = time.process_time()
    posterior = sample(
        problem, prior, CONCENTRATION, draws=draws, tune=500, random_state=seed, progress=False
    )
    seconds = time.process_time() - began
    table = posterior.summary()
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1) / posterior.n_chains
    return [
        name,
        seed,
        f"{seconds:.0f}",
        f"{1e3 * seconds / posterior.n_chains / (draws + 500):.1f}",
        f"{table['r_hat'].max():.4f} ({table['r_hat'].idxmax()})",
        f"{ess.min():.0f} ({ess.idxmin()})",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Chains from different starts.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1500)
    parser.add_argument("--only", choices=PROBLEMS, nargs="+", default=PROBLEMS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what has not converged is in the table
    header = [
        "example",
        "seed",
        "s, 4 chains",
        "ms per sweep",
        "worst R-hat",
        "least ESS per chain",
    ]
    rows = []
    for name in options.only:
        for seed in range(options.seeds):
            rows.append(measure(name, seed, options.draws))
            print(*rows[-1], flush=True)
    print_table("Four chains from different starts, all hyper-parameters inferred", header, rows)


if __name__ == "__main__":
    main()
