"""What is sampled is bound chain by chain, and travels without what follows from it."""

import pickle

import numpy as np
import pytest
from small_runs import plane_problem, quick

from onlooker import Problem
from onlooker.inference.cluster import Task, advance
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Runner, Schedule
from onlooker.inference.target import Binder, Target
from onlooker.partitions import DistanceDependent, Mixing

PROBLEM = plane_problem()


class PerChain(Problem):
    """A problem whose chains see other likelihoods each."""

    def for_chain(self, chain, places):
        if not hasattr(self, "seen"):
            self.seen = {}
        if chain not in self.seen:
            self.seen[chain] = Problem(self.node_of, self.loglik * (1 + chain), self.states)
        return self.seen[chain]


def test_chains_that_see_the_same_problem_share_one_bound_prior():
    bind = Binder(Target(PROBLEM, DistanceDependent()))
    assert bind(0) is bind(1)


def test_each_chain_is_bound_to_the_problem_that_it_sees():
    problem = PerChain(PROBLEM.node_of, PROBLEM.loglik, PROBLEM.states)
    bind = Binder(Target(problem, DistanceDependent()))
    assert bind(0) is not bind(1)
    assert bind(0) is bind(0)
    for chain in (0, 1):
        runner = Runner(chain, Schedule(draws=2, chains=2), bind)
        runner.advance()
        assert runner.chain.bound.layout.problem is problem.seen[chain]
        scale = runner.chain.state.data.log_scale
        order = runner.chain.state.data.order
        np.testing.assert_allclose(scale, (problem.loglik * (1 + chain)).max(axis=1)[order])


def test_parts_without_draws_do_not_lose_the_reports_of_the_others():
    drawn = quick(PROBLEM, Mixing(3), chains=1).draws.arrays
    one = Draws({name: values[0] for name, values in drawn.items()})
    bare = {name: values for name, values in one.arrays.items() if not name.startswith("info.")}
    empty = Draws(bare)[:0]
    assert join([empty, one]).info.keys() == one.info.keys() == {"indicators.moved"}
    assert len(join([empty, empty])) == 0


@pytest.mark.parametrize("prior", [Mixing(3), DistanceDependent()], ids=["mixing", "ddcrp"])
def test_a_state_travels_without_data_and_tables_and_goes_on_with_the_same_bits(prior):
    task, schedule = Task(Target(PROBLEM, prior)), Schedule(draws=6, seed=5)
    _, state, sweeps, _ = advance(task, schedule, 0, None, 0, 3)
    assert state.data is None
    assert state.tables is None
    sent = pickle.loads(pickle.dumps(state))
    rest, *_ = advance(task, schedule, 0, sent, sweeps, 3)
    whole, *_ = advance(task, schedule, 0, None, 0, 6)
    for name, values in rest.arrays.items():
        np.testing.assert_array_equal(values, whole.arrays[name][3:], err_msg=name)
