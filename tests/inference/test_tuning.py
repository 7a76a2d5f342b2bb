"""What a chain learns during tuning, it keeps afterwards."""

import numpy as np
from small_runs import plane_problem

from onlooker.hyper import CONCENTRATION
from onlooker.inference.runner import Runner, Schedule
from onlooker.inference.target import Binder, Target
from onlooker.partitions import Regions


def test_updates_learn_during_tuning_and_never_after():
    target = Target(plane_problem(), Regions.inferred(1.0), CONCENTRATION)
    schedule = Schedule(draws=10, tune=20, chains=1, thin=1, seed=0, end="draws")
    runner = Runner(0, schedule, Binder(target), None, 0)
    learnt = [runner.chain.state.partition.adapted.copy()]
    for _ in range(30):
        runner.sweep()
        learnt.append(runner.chain.state.partition.adapted.copy())
    assert not np.array_equal(learnt[0], learnt[20])
    np.testing.assert_array_equal(learnt[20:], np.tile(learnt[20], (11, 1)))
