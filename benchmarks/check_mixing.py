"""Do chains from different starts agree, and after how many sweeps?

    python -m benchmarks.check_mixing [--sweeps 8000] [--reassign 1] [--only "2a, 1000"]

Examples 1 and 2 with all hyper-parameters inferred. Of four chains, one starts with every node by
itself, one with all nodes in one cluster, one with every node linked to its nearest, one with links
at random; ν, scale and offset start at draws from their priors. R-hat (split, rank-normalised) is
the worst of all that `Posterior.summary` watches: number of controllers, largest cluster, log
joint, hyper-parameters, policies. It is shown for growing numbers of sweeps after the first eighth,
which is thrown away, with the processor time that they took.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Problem, sample
from onlooker.checks import Array
from onlooker.diagnostics import scalar_row, scalars
from onlooker.experiments import grid_circular, grid_mdp
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import DistanceDependent
from onlooker.partitions.base import Start
from onlooker.partitions.links.arrays import Forest
from onlooker.partitions.links.forest import make_forest
from onlooker.worlds import CircularMotion, GridWorld

SHARES = (1 / 8, 1 / 4, 1 / 2, 1)
PROBLEMS = ("1", "2a, 100", "2a, 1000", "2b, 100", "2b, 1000")


def problem_of_grid(expert: str, size: int) -> tuple[GridWorld, Problem]:
    """Data of the first run of Example 2 (a) or (b); all states are nodes."""
    config: Any = grid_circular.Config() if expert == "a" else grid_mdp.Config()
    world = GridWorld(21, 8, radius=5.0) if expert == "a" else config.with_reward(0)
    demos, _ = world.rollout(size, config.length, config.stream(0, size, 0))
    return world, Problem.from_demonstrations(demos, world.dynamics, nodes="all")


@dataclass(eq=False)
class Scattered(DistanceDependent):
    """The prior, whose chains start at places that have little in common."""

    def bind(self, problem: Problem) -> Any:
        """The usual bound prior, but for its start."""
        made: Any = super().bind(problem)
        usual, scales = made.start, made.similarities.scales

        def start(rng: np.random.Generator) -> Start[Forest]:
            forest, labels, slots = make_forest(_links(rng, usual(rng).partition.link))
            hyper = {"nu": self.self_link.sample(rng)}  # type: ignore[union-attr]
            scale = self.decay.scale.sample(rng)  # type: ignore[union-attr]
            hyper["scale"] = scales.scale(scales.index(scale))
            hyper["offset"] = self.decay.offset.sample(rng)  # type: ignore[union-attr]
            return Start(labels, slots, forest, hyper)

        made.start = start
        return made


def _links(rng: np.random.Generator, nearest: Array) -> Array:
    """To itself, to the one before, to the nearest, or to any, by the number of the chain."""
    every = np.arange(len(nearest))
    which = rng.bit_generator.seed_seq.spawn_key[-1] % 4  # type: ignore[attr-defined]
    if which == 3:
        return rng.integers(len(nearest), size=len(nearest))
    return (every, np.maximum(every - 1, 0), nearest)[which]


def measure(name: str, sweeps: int, reassign: int) -> list[list[object]]:
    """Worst R-hat and least effective sample size after parts of the sweeps."""
    if name == "1":
        circle = CircularMotion()
        demos, _ = circle.rollout(10, 100, random_state=0)
        problem = Problem.from_demonstrations(demos, circle.dynamics)
        places = None
    else:
        expert, size = name.removeprefix("2").split(", ")
        world, problem = problem_of_grid(expert, int(size))
        places = world.coordinates
    inferred = DistanceDependent.inferred(coordinates=places)
    prior = Scattered(**(vars(inferred) | {"reassign": reassign}))
    thin = 2
    began = time.process_time()
    posterior = sample(
        problem,
        prior,
        CONCENTRATION,
        draws=sweeps // thin,
        thin=thin,
        tune=0,
        random_state=0,
        progress=False,
    )
    seconds = time.process_time() - began
    values = scalars(posterior)
    rows: list[list[object]] = []
    for share in SHARES:
        n = int(share * posterior.n_draws)
        found = {key: scalar_row(x[:, n // 8 : n]) for key, x in values.items()}
        worst = max(found, key=lambda key: np.nan_to_num(found[key]["r_hat"]))
        least = min(found, key=lambda key: np.nan_to_num(found[key]["ess_bulk"], nan=np.inf))
        rows.append(
            [
                name,
                reassign,
                f"{n * thin:,}",
                f"{share * seconds:.0f}",
                f"{found[worst]['r_hat']:.3f} ({worst})",
                f"{found[least]['ess_bulk']:.0f} ({least})",
            ]
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Chains from different starts.")
    parser.add_argument("--sweeps", type=int, default=8_000)
    parser.add_argument("--reassign", type=int, nargs="+", default=[0, 1], help="passes a sweep")
    parser.add_argument("--only", choices=PROBLEMS, nargs="+", default=PROBLEMS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # some of these do not converge: that is the point
    header = ["example", "passes", "sweeps", "s, 4 chains", "worst R-hat", "least ESS"]
    rows = []
    for name in options.only:
        for reassign in options.reassign:
            rows += measure(name, options.sweeps, reassign)
            print(*rows[-1], flush=True)
    print_table("Four chains from different starts, all hyper-parameters inferred", header, rows)


if __name__ == "__main__":
    main()
