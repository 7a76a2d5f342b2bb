"""Processor time of a sweep with hundreds of behaviours, and of planning all goals.

    python -m benchmarks.check_behaviours

9,000 transitions of an optimal expert on the paper's 21 × 21 grid; actions, blurs and 441 goals.
"""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

from onlooker import Problem
from onlooker.hyper import CONCENTRATION
from onlooker.inference.chain import Chain
from onlooker.inference.target import Target
from onlooker.partitions import Regions
from onlooker.planning import goal_actions
from onlooker.repertoire import Actions, Blurs, Goals
from onlooker.worlds import GridWorld

TUNE, SWEEPS = 200, 100


def main() -> None:
    world = GridWorld.with_reward(3)
    demos, _ = world.rollout(1000, 10, random_state=0)
    began = time.process_time()
    goal_actions(world.dynamics, np.arange(world.n_states), 0.9)
    print(f"{world.n_states} goals planned in {time.process_time() - began:.2f} s")
    problem = Problem.from_demonstrations(
        demos, world.dynamics, repertoire=[Actions(), Blurs(), Goals()]
    )
    prior = Regions.inferred(1.0, coordinates=world.coordinates)
    target = Target(problem, prior, CONCENTRATION)
    chain = Chain(target, prior.bind(problem), index=1, rng=np.random.default_rng(0))
    for _ in range(TUNE):
        chain.sweep()
        chain.adapt()
    spent: dict[str, float] = defaultdict(float)
    sweeps = []
    for _ in range(SWEEPS):
        start = time.process_time()
        for update in chain.updates:
            before = time.process_time()
            update(chain.state)
            spent[update.name] += time.process_time() - before
        sweeps.append(time.process_time() - start)
    print(f"{problem!r}: median sweep {1e3 * float(np.median(sweeps)):.1f} ms")
    print({name: f"{1e3 * total / SWEEPS:.2f} ms" for name, total in sorted(spent.items())})


if __name__ == "__main__":
    main()
