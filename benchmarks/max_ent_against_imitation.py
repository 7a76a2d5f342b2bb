"""Maximum causal entropy on the paper's grid: `onlooker` against `imitation`'s ``MCEIRL``.

    python benchmarks/max_ent_against_imitation.py

Both fit a reward per state for plans of ten states without discount, to the same visits:

- "exact": the expected visits of a soft expert, which some policy has, so that both can match them;
  both stop when no visit is off by more than 1e-3, imitation's own criterion;
- "sampled": 1000 trajectories of the optimal expert, whose visits no policy has; ours has a small
  penalty, imitation stops after its steps.

``imitation`` (with torch) is wanted in the same environment; without it only our side is measured.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from onlooker._transition_matrices import _transition_matrices
from onlooker.baselines import MaximumEntropyIRL
from onlooker.baselines._base import discounted_visits
from onlooker.baselines.maximum_entropy import _Episodic, _lbfgs
from onlooker.metrics import total_variation
from onlooker.planning import soft_value_iteration, state_visitation
from onlooker.worlds import GridWorld

LENGTH = 10


def plan(world: GridWorld, reward: Any) -> Any:
    """The soft policies of each step; the last state's value is its reward: no action follows."""
    return soft_value_iteration(
        world.dynamics, reward, 1.0, horizon=LENGTH - 1, initial=reward
    ).policy


def ours_exact(world: GridWorld, visits: Any, starts: Any, tolerance: float) -> Any:
    """Seconds, and the policies of each step; what `fit` does, given visits instead of data."""
    begin = time.perf_counter()
    some_demos = world.rollout(1, LENGTH, random_state=0)[0]
    objective = _Episodic(some_demos, _transition_matrices(world.dynamics), 1.0, "causal")
    objective.seen, objective.starts = visits, {LENGTH: starts}

    def loss(reward: Any) -> tuple[float, Any]:
        value, slope = objective(reward)
        return -value, -slope

    reward = _lbfgs(loss, len(visits), tolerance, 1000, lambda done, note: None).x
    return time.perf_counter() - begin, plan(world, reward)


def ours_sampled(world: GridWorld, demos: Any, l2: float) -> Any:
    """Seconds, and the policies of each step."""
    begin = time.perf_counter()
    model = MaximumEntropyIRL(world.dynamics, discount=1.0, horizon="length", l2=l2).fit(demos)
    return time.perf_counter() - begin, plan(world, model.reward_)


def theirs(world: GridWorld, visits: Any, starts: Any, steps: int) -> Any:
    """The same for ``imitation``."""
    import torch
    from imitation.algorithms import mce_irl
    from imitation.rewards import reward_nets
    from seals import base_envs

    torch.manual_seed(0)
    env = base_envs.TabularModelPOMDP(
        transition_matrix=world.dynamics.toarray(),
        observation_matrix=np.eye(441, dtype=np.float32),
        reward_matrix=np.zeros(441),
        horizon=LENGTH - 1,
        initial_state_dist=starts,
    )
    net = reward_nets.BasicRewardNet(
        env.observation_space,
        env.action_space,
        hid_sizes=[],
        use_action=False,
        use_done=False,
        use_next_state=False,
    )
    learner = mce_irl.MCEIRL(
        visits,
        env,
        net,
        np.random.default_rng(0),
        optimizer_kwargs={"lr": 1e-2},
        discount=1.0,
        log_interval=None,
    )
    begin = time.perf_counter()
    learner.train(max_iter=steps)
    seconds = time.perf_counter() - begin
    return seconds, learner.policy.pi


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of imitation, at most")
    options = parser.parse_args()
    world = GridWorld.rewarded(1)

    def report(name: str, result: Any, expert: Any, visits: Any, starts: Any) -> None:
        seconds, policies = result
        expected = state_visitation(world.dynamics, policies, starts, horizon=LENGTH)
        print(
            f"  {name:26s} {seconds:7.2f} s   visits off by {np.abs(expected - visits).max():.1e}"
            f"   first policy off by {total_variation(expert, policies[0]).mean():.3f}"
        )

    def rival(expert: Any, visits: Any, starts: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = theirs(world, visits, starts, options.steps)
        except ImportError as missing:
            print(f"  imitation is left out: {missing}")
        else:
            report(f"imitation, {options.steps} steps", result, expert, visits, starts)

    print("exact")
    policies = plan(world, 30.0 * world.reward)
    starts = np.full(441, 1 / 441)
    visits = state_visitation(world.dynamics, policies, starts, horizon=LENGTH)
    for tolerance in (1e-3, 1e-5):
        result = ours_exact(world, visits, starts, tolerance)
        report(f"onlooker, tolerance {tolerance:g}", result, policies[0], visits, starts)
    rival(policies[0], visits, starts)

    print("sampled")
    demos, _ = world.rollout(1000, LENGTH, random_state=0)
    starts = np.bincount(demos.states[demos.offsets[:-1]], minlength=441) / len(demos)
    visits = discounted_visits(demos, 441, 1.0)
    for l2 in (4e-3, 1e-4):
        result = ours_sampled(world, demos, l2)
        report(f"onlooker, l2 {l2:g}", result, world.policy(), visits, starts)
    rival(world.policy(), visits, starts)


if __name__ == "__main__":
    main()
