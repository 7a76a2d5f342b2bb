"""What inferring hyper-parameters costs, as a share of a sweep.

    python -m benchmarks.check_hyper_cost [--sweeps 400]

Examples 1 and 2 with α, ν, scale and offset all inferred. The steps that draw them are timed where
they are made, within sweeps, in processor time: first while the graphs of new scales are still
being made, then later on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from chains import make_chain

from benchmarks._measure import print_table
from benchmarks.bench_inferred import problem_of_grid, problem_of_plane
from onlooker import Problem
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import DistanceDependent

STEPS = {"α": "_draw_alpha", "ν": "_draw_nu", "offset": "_draw_offset", "scale": "_draw_scale"}


def timed(owner: Any, method: str, spent: dict[str, float], name: str) -> None:
    """Add up the processor time of a method's calls."""
    call: Callable[..., Any] = getattr(owner, method)

    def wrapped(*arguments: Any) -> Any:
        start = time.thread_time()
        result = call(*arguments)
        spent[name] += time.thread_time() - start
        return result

    setattr(owner, method, wrapped)


def measure(problem: Problem, places: Any, reassign: int, sweeps: int) -> list[list[object]]:
    """Shares of the first sweeps, and of later ones."""
    prior = DistanceDependent.inferred(coordinates=places, reassign=reassign)
    sampler = prior.sampler(problem)
    rng = np.random.default_rng(0)
    chain = make_chain(problem, prior, bound=sampler, alpha=CONCENTRATION, rng=rng)
    chain.sweep()  # compiles
    spent = dict.fromkeys(STEPS, 0.0)
    for name, method in STEPS.items():
        timed(chain if name == "α" else sampler, method, spent, name)
    rows: list[list[object]] = []
    for stage in ("first", "later"):
        for name in spent:
            spent[name] = 0.0
        start = time.thread_time()
        for _ in range(sweeps):
            chain.sweep()
        total = time.thread_time() - start
        shares = [f"{spent[name] / total:.1%}" for name in STEPS]
        every = sum(spent.values()) / total
        rows.append([reassign, stage, f"{1e3 * total / sweeps:.2f}", *shares, f"{every:.1%}"])
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What inferring hyper-parameters costs.")
    parser.add_argument("--sweeps", type=int, default=400)
    sweeps = parser.parse_args().sweeps
    rows = []
    for name in ("1", "2a, 100", "2a, 1000"):
        world: Any
        if name == "1":
            world, problem = problem_of_plane(0)
            places = None
        else:
            world, problem = problem_of_grid("a", int(name.split(", ")[1]), 0)
            places = world.coordinates
        for reassign in (0, 1):
            rows += [[name, *row] for row in measure(problem, places, reassign, sweeps)]
    header = ["example", "passes", "sweeps", "ms a sweep", *STEPS, "all"]
    print_table(f"Share of a sweep, {sweeps} sweeps each", header, rows)


if __name__ == "__main__":
    main()
