"""Regions that share controllers: their sweep beside the ddCRP's, growth, behaviours, compilation.

python -m benchmarks regions

Everything is inferred. Growth is at one point a unit of area with one transition each, each size in
a process of its own. Behaviours: 9,000 transitions of an optimal expert on the paper's grid, under
actions, blurs and 441 goals. Compilation is timed with an empty cache of numba, from the start of
the process to the end of two sweeps of one chain, beside the same with kernels from the cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from typing import Any

import numpy as np

from benchmarks._measure import (
    in_fresh_process,
    keep,
    peak_memory,
    print_table,
    processor_seconds,
)
from benchmarks._models import plane
from benchmarks.bench_start import run
from onlooker import Problem
from onlooker.hyper import CONCENTRATION
from onlooker.inference.chain import Chain
from onlooker.inference.target import Target
from onlooker.partitions import DistanceDependent, PartitionPrior, Regions
from onlooker.repertoire import Actions, Blurs, Goals
from onlooker.worlds import CircularMotion, GridWorld

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FIRST_SWEEPS = """
import warnings; warnings.simplefilter("ignore")
import numpy as np
from onlooker import Problem, sample
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import Regions
from onlooker.repertoire import Actions, Blurs
from onlooker.worlds import CircularMotion
world = CircularMotion()
demos, _ = world.rollout(2, 50, random_state=0)
problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions(), Blurs()])
sample(problem, Regions.inferred(1.0), CONCENTRATION, draws=1, tune=1, chains=1,
       random_state=0, progress=False)
"""


def settled(problem: Problem, prior: PartitionPrior[Any], alpha: Any, sweeps: int) -> Chain:
    """A chain past its first sweeps, tuned."""
    target = Target(problem, prior, alpha)
    chain = Chain(target, prior.bind(problem), index=1, rng=np.random.default_rng(0))
    for _ in range(sweeps):
        chain.sweep()
        chain.adapt()
    return chain


# -- beside the ddCRP ------------------------------------------------------------------------------


def beside_the_ddcrp(repeats: int) -> list[list[object]]:
    """Example 1: 1,000 nodes, 24 actions. Means, since every other sweep has a carry."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])
    chains = {
        "regions, all inferred": settled(problem, Regions.inferred(1.0), CONCENTRATION, 500),
        "ddCRP, all inferred": settled(problem, DistanceDependent.inferred(), CONCENTRATION, 200),
        "ddCRP, the paper's settings": settled(problem, DistanceDependent(), 1.0, 200),
    }
    seconds: dict[str, list[float]] = {name: [] for name in chains}
    for _ in range(repeats):
        for name, chain in chains.items():
            seconds[name].append(processor_seconds(chain.sweep, 1))
    mean = {name: float(np.mean(found)) for name, found in seconds.items()}
    ours = mean["regions, all inferred"]
    return [
        [name, f"{1e3 * found:.2f}", f"{min(seconds[name]) * 1e3:.2f}", f"{ours / found:.2f}×"]
        for name, found in mean.items()
    ]


# -- growth ----------------------------------------------------------------------------------------


def _grow(n_nodes: int) -> None:
    problem = plane(n_nodes)
    chain = settled(problem, Regions.inferred(1.0), CONCENTRATION, 30 if n_nodes < 1e6 else 10)
    repeats = 100 if n_nodes <= 1_000 else 20 if n_nodes <= 10_000 else 10
    seconds = [processor_seconds(chain.sweep, 1) for _ in range(repeats)]
    found = {
        "n": n_nodes,
        "cost": float(np.mean(seconds)) / n_nodes,
        "memory": peak_memory(),
        "controllers": int(chain.state.n_used),
        "scale": chain.state.hyper["scale"],
    }
    print(json.dumps(found))


def growth(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Cost per node at constant density."""
    return [in_fresh_process("benchmarks.bench_regions", "--grow", str(n)) for n in sizes]


def growth_rows(found: list[dict[str, float]]) -> list[list[object]]:
    """The same as rows of a table."""
    return [
        [
            f"{one['n']:,}",
            f"{one['cost'] * 1e6:.1f}",
            f"{one['cost'] / found[0]['cost']:.2f}×",
            f"{one['memory']:.2f}",
            f"{one['controllers']:,}",
            f"{one['scale']:.2f}",
        ]
        for one in found
    ]


# -- hundreds of behaviours ------------------------------------------------------------------------


def with_behaviours(repeats: int) -> list[object]:
    """One row: what a sweep costs, and what its updates do."""
    world = GridWorld.with_reward(3)
    demos, _ = world.rollout(1000, 10, random_state=0)
    problem = Problem.from_demonstrations(
        demos, world.dynamics, repertoire=[Actions(), Blurs(), Goals()]
    )
    prior = Regions.inferred(1.0, coordinates=world.coordinates)
    chain = settled(problem, prior, CONCENTRATION, 200)
    sweeps = [processor_seconds(chain.sweep, 1) for _ in range(repeats)]
    return [
        f"{problem.n_transitions:,}",
        f"{problem.n_behaviours:,}",
        f"{1e3 * float(np.mean(sweeps)):.1f}",
    ]


# -- compilation -----------------------------------------------------------------------------------


def compilation() -> list[list[object]]:
    """Wall and processor seconds to the end of the first sweeps, cold and warm."""
    with tempfile.TemporaryDirectory() as cache:
        cold = run(["-c", FIRST_SWEEPS], cache)
        warm = min(run(["-c", FIRST_SWEEPS], cache) for _ in range(3))
    rows = {"cold": cold, "warm": warm}
    rows["compilation"] = cold[0] - warm[0], cold[1] - warm[1]
    return [[name, f"{wall:.1f}", f"{processor:.1f}"] for name, (wall, processor) in rows.items()]


def main(quick: bool = False) -> None:
    """Print all tables."""
    print_table(
        "A sweep of Example 1 (N = 1,000, A = 24), all in one run",
        ["model", "mean, ms", "least, ms", "regions against it"],
        beside_the_ddcrp(50 if quick else 300),
    )
    print_table(
        "Hundreds of behaviours: Example 2b, 1,000 trajectories",
        ["transitions", "behaviours", "mean sweep, ms"],
        [with_behaviours(30 if quick else 100)],
    )
    found = growth(SIZES[:2] if quick else SIZES)
    print_table(
        "Cost at constant density (A = 8), everything inferred",
        ["nodes", "µs per node", "against 1,000", "peak memory, GB", "controllers", "scale"],
        growth_rows(found),
    )
    keep("growth", found)
    print_table(
        "To the end of the first sweeps, blurs and masses of kinds included",
        ["", "wall, s", "processor, s"],
        compilation(),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--grow", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.grow:
        _grow(arguments.grow)
    else:
        main(arguments.quick)
