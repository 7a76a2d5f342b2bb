"""What any model of the world must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onlooker.checks import Array, as_array
from onlooker.hyper import Prior

Values = Mapping[str, float]
"""Values of the unknown parameters of a dynamics."""


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


@runtime_checkable
class UncertainDynamics(Dynamics, Protocol):
    """A dynamics with unknown parameters, which are inferred jointly with the policy.

    What it does as a `Dynamics` is what it does at the means of the parameters' priors. It may
    have a method ``transition_likelihood(states, next_states)`` that returns a quick
    `TransitionLikelihood`; without one, its `at` is asked for a whole table again and again.
    """

    @property
    def parameters(self) -> Mapping[str, Prior]:
        """The unknown parameters and their priors; none if all is known."""

    def at(self, values: Values) -> Dynamics:
        """The dynamics with these values of the parameters."""


class TransitionLikelihood(Protocol):
    """How likely some transitions are, as a function of unknown parameters."""

    def given(self, actions: Array) -> Callable[[Values], float]:
        """``ln p(s' | s, a)`` of all transitions, as a function of the parameters."""

    def fill(self, values: Values, likelihood: Array) -> None:
        """Write ``T(s' | s, j)``, ``(M, A)``, each row scaled to a maximum of 1."""


def unknown_parameters(dynamics: Any) -> dict[str, Prior]:
    """What is to be inferred about a dynamics; empty if all is known."""
    return dict(dynamics.parameters) if isinstance(dynamics, UncertainDynamics) else {}


def position_dynamics(dynamics: Any) -> Any:
    """What moves positions: the dynamics itself, or the one below features."""
    return getattr(dynamics, "dynamics", dynamics)


def steps_between(dynamics: Any, positions: Array, next_positions: Array) -> Array:
    """The displacement from each position to the next, ``(n, d)``, in the dynamics' own units."""
    measure = getattr(dynamics, "displacements", None)
    if measure is None:
        return np.asarray(next_positions - positions)
    return np.asarray(measure(positions, next_positions))


def check_actions(actions: Array, n_actions: int, n_states: int) -> Array:
    """Return `actions` as ``(n,)`` integers below `n_actions`."""
    actions = as_array("actions", actions)
    if actions.dtype.kind not in "iu" or actions.shape != (n_states,):
        raise ValueError(
            f"actions must be {n_states} integers, one per state, "
            f"got dtype {actions.dtype} and shape {actions.shape}"
        )
    bad = (actions < 0) | (actions >= n_actions)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"actions holds {actions[where]} at index {where}; there are {n_actions} actions"
        )
    return actions
