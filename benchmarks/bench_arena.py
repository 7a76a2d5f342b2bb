"""Speed of distances, planners and simulators.

python -m benchmarks arena
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._measure import print_table, processor_seconds
from onlooker.metrics import circular_emd, planar_emd
from onlooker.planning import policy_iteration, soft_value_iteration, value_iteration
from onlooker.worlds import CircularMotion, GridWorld


def seconds(run: Callable[[], Any]) -> float:
    """Processor time, the best of two."""
    return processor_seconds(run, 2)


def slippery_grid(side: int) -> list[sparse.csr_array]:
    """Four moves; a fifth of the time a random one happens instead."""
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    moves = []
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        target = np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1)
        moves.append(sparse.csr_array((np.ones(n), (np.arange(n), target)), shape=(n, n)))
    return [sparse.csr_array(0.8 * move + 0.05 * sum(moves)) for move in moves]


def main(quick: bool = False) -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    rows: list[list[object]] = []
    n = 100_000 if quick else 1_000_000
    p, q = rng.dirichlet(np.ones(24), size=(2, n))
    took = seconds(lambda: circular_emd(p, q))
    rows.append([f"circular EMD, {n:,} pairs of 24 bins", f"{took:.2f} s"])
    world = GridWorld.with_reward(0)
    states = np.arange(441)
    expert = world.dynamics.next_state_probabilities(states, world.policy())
    flat = world.dynamics.next_state_probabilities(states, np.full((441, 8), 1 / 8))
    took = seconds(lambda: planar_emd(expert, flat, world.coordinates))
    rows.append(["planar EMD, 441 states of the grid", f"{took:.2f} s"])
    side = 100 if quick else 317
    T, n = slippery_grid(side), side**2
    reward = np.where(rng.random(n) < 0.01, rng.normal(size=n), 0.0)
    for discount in (0.9, 0.99):
        for planner in (value_iteration, policy_iteration, soft_value_iteration):
            took = seconds(lambda: planner(T, reward, discount))  # noqa: B023
            name = planner.__name__.replace("_", " ")
            rows.append([f"{name}, {n:,} states, γ = {discount}, to 1e-6", f"{took:.2f} s"])
    circular = CircularMotion()
    took = seconds(lambda: circular.rollout(20_000, 100, random_state=0))
    rows.append(
        ["`CircularMotion`, 100 states each", f"{20_000 / took:,.0f} trajectories a second"]
    )
    took = seconds(lambda: world.rollout(50_000, 10, random_state=0))
    rows.append(["`GridWorld`, 10 states each", f"{50_000 / took:,.0f} trajectories a second"])
    print_table("Distances, planners, simulators", ["what", "measured"], rows)


if __name__ == "__main__":
    main("--quick" in sys.argv)
