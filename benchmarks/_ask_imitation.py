"""Runs where ``imitation`` is installed: fits its ``MCEIRL`` to given visits. See `_peers.ask`."""

import sys
import time

import numpy as np
import torch
from imitation.algorithms import mce_irl
from imitation.rewards import reward_nets
from seals import base_envs


def main(given: str, found: str) -> None:
    """Fit, and save the seconds and the policies of each step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with np.load(given) as arrays:
        table, visits, starts = (arrays[name] for name in ("table", "visits", "starts"))
        length, steps = int(arrays["length"]), int(arrays["steps"])
    n = len(starts)
    env = base_envs.TabularModelPOMDP(
        transition_matrix=table,
        observation_matrix=np.eye(n, dtype=np.float32),
        reward_matrix=np.zeros(n),
        horizon=length - 1,
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
    began = time.process_time()
    learner.train(max_iter=steps)
    np.savez(found, seconds=time.process_time() - began, policies=learner.policy.pi)


if __name__ == "__main__":
    main(*sys.argv[1:])
