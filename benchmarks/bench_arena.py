"""Speed of distances, planners and simulators.

python benchmarks/bench_arena.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from onlooker.metrics import circular_emd, planar_emd
from onlooker.planning import policy_iteration, soft_value_iteration, value_iteration
from onlooker.worlds import CircularMotion, GridWorld


def seconds(run: Callable[[], Any]) -> float:
    """The best of three."""
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return float(best)


def slippery_grid(side: int) -> list[sparse.csr_array]:
    """Four moves; a fifth of the time a random one happens instead."""
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    moves = []
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        target = np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1)
        moves.append(sparse.csr_array((np.ones(n), (np.arange(n), target)), shape=(n, n)))
    return [sparse.csr_array(0.8 * move + 0.05 * sum(moves)) for move in moves]


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(24), size=(2, 1_000_000))
    print(f"circular EMD, 10⁶ pairs of 24 bins   {seconds(lambda: circular_emd(p, q)):8.2f} s")
    world = GridWorld.rewarded(0)
    states = np.arange(441)
    expert = world.dynamics.next_state_probabilities(states, world.policy())
    flat = world.dynamics.next_state_probabilities(states, np.full((441, 8), 1 / 8))
    took = seconds(lambda: planar_emd(expert, flat, world.coordinates))
    print(f"planar EMD, 441 states of the grid   {took:8.2f} s")
    T = slippery_grid(317)
    n = 317**2
    reward = np.where(rng.random(n) < 0.01, rng.normal(size=n), 0.0)
    for discount in (0.9, 0.95, 0.99):
        for planner in (value_iteration, policy_iteration, soft_value_iteration):
            took = seconds(lambda: planner(T, reward, discount))  # noqa: B023
            print(f"{n} states, γ={discount:4}, {planner.__name__:20s} {took:6.2f} s to 1e-6")
    circular = CircularMotion()
    took = seconds(lambda: circular.rollout(20_000, 100, random_state=0))
    print(f"CircularMotion, 100 states each      {20_000 / took:8.0f} trajectories a second")
    took = seconds(lambda: world.rollout(50_000, 10, random_state=0))
    print(f"GridWorld, 10 states each            {50_000 / took:8.0f} trajectories a second")


if __name__ == "__main__":
    main()
