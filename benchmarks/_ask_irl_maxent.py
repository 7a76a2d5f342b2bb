"""Runs where ``irl-maxent`` is installed: fits it to given trajectories. See `_peers.ask`."""

import itertools
import sys
import time

import numpy as np
from irl_maxent import maxent, optimizer
from irl_maxent.trajectory import Trajectory


class Enough(Exception):
    """The seconds are spent."""


class Watched:
    """An optimiser that knows where it is when time is up."""

    def __init__(self, inner, until: float) -> None:
        self.inner, self.until, self.steps = inner, until, 0

    def reset(self, parameters) -> None:
        """Begin."""
        self.inner.reset(parameters)

    def step(self, grad) -> None:
        """One step, unless time is up."""
        if time.process_time() > self.until:
            raise Enough
        self.inner.step(grad)
        self.steps += 1


def main(given: str, found: str) -> None:
    """Fit, and save the seconds, the steps made, whether it converged, and the policy."""
    with np.load(given) as arrays:
        table, states, lengths = (arrays[name] for name in ("table", "states", "lengths"))
        goal, discount = int(arrays["goal"]), float(arrays["discount"])
        seconds, entropy = float(arrays["seconds"]), str(arrays["entropy"])
        start = float(arrays["start"])
    p_transition = np.ascontiguousarray(table.transpose(0, 2, 1))
    walks = np.split(states, np.cumsum(lengths)[:-1])
    trajectories = [
        Trajectory([(int(s), 0, int(then)) for s, then in itertools.pairwise(walk)])
        for walk in walks
    ]
    rate = optimizer.linear_decay(lr0=0.2)  # as its README has it
    inner = optimizer.ExpSga(lr=rate) if start > 0 else optimizer.Sga(lr=rate)
    began = time.process_time()
    watched = Watched(inner, began + seconds)
    features = np.eye(len(table))
    kept = {}

    def init(n: int) -> np.ndarray:
        kept["theta"] = np.full(n, start)
        return kept["theta"]

    converged = True
    try:
        if entropy == "causal":
            reward = maxent.irl_causal(
                p_transition, features, [goal], trajectories, watched, init, discount
            )
        else:
            reward = maxent.irl(p_transition, features, [goal], trajectories, watched, init)
    except Enough:
        converged, reward = False, kept["theta"]
    spent = time.process_time() - began
    if entropy == "causal":
        policy = maxent.local_causal_action_probabilities(p_transition, [goal], reward, discount)
    else:
        policy = maxent.local_action_probabilities(p_transition, [goal], reward)
    np.savez(found, seconds=spent, steps=watched.steps, converged=converged, policy=policy)


if __name__ == "__main__":
    main(*sys.argv[1:])
