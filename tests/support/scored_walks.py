"""Tracks in the plane that mostly go east, and their scores."""

import numpy as np

from onlooker import Demonstrations
from onlooker.anomaly import score_policy
from onlooker.dynamics import DisplacementDynamics

COMPASS = DisplacementDynamics.compass(8, sigma=0.15)


class Simulated:
    """Dynamics without the means to sum over next states."""

    def __init__(self, dynamics):
        self.n_actions = dynamics.n_actions
        self.log_likelihood = dynamics.log_likelihood
        self.sample = dynamics.sample


def walk(actions, seed=0, sigma=0.15):
    """A track in the plane that takes these actions of the compass."""
    rng = np.random.default_rng(seed)
    steps = COMPASS.steps[np.asarray(actions)] + rng.normal(0, sigma, (len(actions), 2))
    return np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])


def eastward(n_steps, n_tracks=1, seed=0):
    """Tracks that go east, or a little beside it."""
    rng = np.random.default_rng(seed)
    return [
        walk(rng.choice([7, 0, 1], size=n_steps, p=[0.2, 0.6, 0.2]), rng) for _ in range(n_tracks)
    ]


def east(states):
    """The policy, the same everywhere."""
    policy = np.full(8, 0.01)
    policy[[7, 0, 1]] = [0.2, 0.55, 0.2]
    return np.tile(policy, (len(states), 1))


def score_east(tracks, **options):
    demos = tracks if isinstance(tracks, Demonstrations) else Demonstrations(tracks)
    options = {"n_replicates": 200, "max_replicates": 200, "random_state": 0} | options
    return score_policy(east, COMPASS, demos, **options)
