"""What any model of the world must offer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from onlooker._validation import Array, as_array


@runtime_checkable
class Dynamics(Protocol):
    """A model of how each action moves the system, T(s' | s, a).

    Any object with these members will do; inheriting from this class is not needed.
    """

    @property
    def n_actions(self) -> int:
        """Number of candidate actions, A."""

    def log_likelihood(self, states: Array, next_states: Array) -> Array:
        """Return ``ln T(s' | s, j)`` as ``(n, A)``; ``-inf`` where an action cannot do it."""

    def sample(self, states: Array, actions: Array, rng: np.random.Generator) -> Array:
        """Draw a next state for every pair of state and action."""


def check_actions(actions: Array, n_actions: int, n_states: int) -> Array:
    """Return `actions` as ``(n,)`` integers below `n_actions`."""
    actions = as_array("actions", actions)
    if actions.dtype.kind not in "iu" or actions.shape != (n_states,):
        raise ValueError(
            f"actions must be {n_states} integers, one a state, "
            f"got dtype {actions.dtype} and shape {actions.shape}"
        )
    bad = (actions < 0) | (actions >= n_actions)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"actions holds {actions[where]} at index {where}; there are {n_actions} actions"
        )
    return actions
