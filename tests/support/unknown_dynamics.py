"""Dynamics with unknown parameters, and five transitions of them."""

import numpy as np
from small_runs import ring_dynamics

from onlooker import Problem
from onlooker.hyper import Exponential, LogUniform

STEPS = np.array([[1.0, 0.0], [-0.5, 0.9], [0.0, -1.0]])

STATES = np.array([[0.0, 0.0], [1.3, 0.2], [0.4, 1.1], [2.0, 1.5], [0.1, 0.6]])

NODE_OF = np.array([0, 1, 1, 2, 3])

MOVES = np.array([[0.8, 0.3], [-0.2, 1.2], [0.9, -0.4], [0.2, -0.7], [0.3, 0.4]])

NEXT = STATES[NODE_OF] + MOVES

SIGMA, STEP = LogUniform(0.2, 3.0), LogUniform(0.4, 2.5)


def problem_of(dynamics, next_states=NEXT, states=STATES):
    """Five transitions between given nodes: trajectories would add a node for each end."""
    loglik = dynamics.log_likelihood(states[NODE_OF], next_states)
    problem = Problem(NODE_OF, loglik, states)
    problem.set_world(dynamics, next_states)
    return problem


INTENDED = ring_dynamics(5).toarray()[:, :, :]

SLIP = np.full_like(INTENDED, 0.2)


class Biased:
    """A user's own uncertain dynamics, with nothing but the protocol."""

    n_actions = 3
    parameters = {"drift": Exponential(0.5)}  # noqa: RUF012

    def __init__(self, drift=0.5):
        self.drift = drift

    def at(self, values):
        return Biased(values["drift"])

    def log_likelihood(self, states, next_states):
        moves = np.asarray(next_states) - np.asarray(states)
        away = (moves[:, None] - STEPS[None] - self.drift) / 0.6
        return -0.5 * (away**2).sum(axis=-1) - 2 * np.log(0.6 * np.sqrt(2 * np.pi))

    def sample(self, states, actions, rng):
        return states + STEPS[actions] + self.drift + rng.normal(0, 0.6, np.shape(states))
