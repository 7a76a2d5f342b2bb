"""A codebook of steps with Gaussian noise."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from onlooker._validation import (
    Array,
    as_array,
    finite_array,
    positive_integer,
    read_only,
)
from onlooker.demonstrations import as_real_states
from onlooker.dynamics.base import TransitionLikelihood, Values, check_actions
from onlooker.hyper import Prior, check_hyper


class DisplacementDynamics:
    """``s' = s + steps[a] + N(0, sigma² I)``: each action is a step, blurred by noise.

    Parameters
    ----------
    steps
        ``(A, d)``: the mean displacement of each action.
    sigma
        Standard deviation of the noise in every dimension: a number fixes it, a prior infers it.
    step
        A length that all `steps` are multiplied by; a prior infers it.

    Notes
    -----
    With a prior, draws are found in ``posterior.hyper`` under ``"sigma"`` and ``"step"``; the
    dynamics by itself is the one at the priors' means.

    Examples
    --------
    >>> dynamics = DisplacementDynamics.compass(4, step=1.0, sigma=0.2)
    >>> dynamics.log_likelihood([[0.0, 0.0]], [[0.0, 0.9]]).argmax()  # a step along y
    np.int64(1)
    """

    def __init__(self, steps: Any, sigma: float | Prior, step: float | Prior = 1.0) -> None:
        steps = np.array(finite_array("steps", steps, ndim=2))  # a copy: the caller's may change
        if 0 in steps.shape:
            raise ValueError(f"steps must be (A, d) with A, d > 0, got shape {steps.shape}")
        self.parameters: dict[str, Prior] = {}
        for name, value in (("sigma", sigma), ("step", step)):
            check_hyper(name, value)
            if isinstance(value, Prior):
                self.parameters[name] = value
        self.unit_steps = read_only(steps if isinstance(step, Prior) else float(step) * steps)
        self.steps = read_only(step.mean * steps) if isinstance(step, Prior) else self.unit_steps
        self.sigma = sigma.mean if isinstance(sigma, Prior) else float(sigma)

    @classmethod
    def compass(
        cls,
        n_directions: int = 24,
        step: float | Prior = 1.0,
        sigma: float | Prior = 0.2,
        *,
        stay: bool = False,
    ) -> Self:
        """Steps of one length in `n_directions` directions, from the x axis counter-clockwise.

        With ``stay=True`` one more action, the last, stands still.
        """
        n_directions = positive_integer("n_directions", n_directions)
        angles = 2 * np.pi * np.arange(n_directions) / n_directions
        steps = np.column_stack([np.cos(angles), np.sin(angles)])
        if stay:
            steps = np.vstack([steps, np.zeros(2)])
        return cls(steps, sigma, step)

    def at(self, values: Values) -> DisplacementDynamics:
        """The dynamics with known noise and step length."""
        return DisplacementDynamics(
            self.unit_steps, values.get("sigma", self.sigma), values.get("step", 1.0)
        )

    def transition_likelihood(self, states: Any, next_states: Any) -> TransitionLikelihood:
        """The likelihood of transitions as a function of noise and step length."""
        from onlooker.inference.likelihoods import DisplacementLikelihood

        moves = self._check("next_states", next_states) - self._check("states", states)
        return DisplacementLikelihood(moves, self.unit_steps, self.sigma)

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return len(self.steps)

    @property
    def n_dims(self) -> int:
        """Dimension of the state."""
        return int(self.steps.shape[1])

    def __repr__(self) -> str:
        told = {"sigma": f"{self.sigma:g}"} | {k: repr(v) for k, v in self.parameters.items()}
        return (
            f"DisplacementDynamics({self.n_actions} actions in {self.n_dims} dimensions, "
            f"{', '.join(f'{name}={value}' for name, value in told.items())})"
        )

    def _check(self, name: str, states: Any) -> Array:
        array = as_array(name, states)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
        if array.ndim != 2 or array.shape[1] != self.n_dims:
            kind = "integer states" if array.dtype.kind in "iu" else "states"
            raise ValueError(
                f"{name} must be (n, {self.n_dims}) like the steps, got {kind} of shape "
                f"{array.shape}; give DisplacementDynamics steps of that dimension, or use "
                "TabularDynamics for a finite space"
            )
        return as_real_states(name, array)

    @property
    def angles(self) -> Array:
        """Direction of every action in the plane, counter-clockwise from the x axis."""
        if self.n_dims != 2:
            raise ValueError(f"angles are for the plane; these steps have {self.n_dims} dimensions")
        return np.arctan2(self.steps[:, 1], self.steps[:, 0]) % (2 * np.pi)

    def misfit(self, loglik: Array) -> Array:
        """How far each transition is from the nearest action's mean, in sigma."""
        peak = self.n_dims * (math.log(self.sigma) + 0.5 * math.log(2 * math.pi))
        return np.sqrt(np.maximum(-2 * (loglik.max(axis=1) + peak), 0.0))

    def log_likelihood(self, states: Any, next_states: Any) -> Array:
        """Return ``ln N(s' | s + steps[j], sigma² I)`` as ``(n, A)``."""
        states, next_states = self._check("states", states), self._check("next_states", next_states)
        if len(states) != len(next_states):
            raise ValueError(f"{len(states)} states but {len(next_states)} next_states")
        squared = np.zeros((len(states), self.n_actions))
        with np.errstate(over="ignore"):  # too far for a float is -inf, never NaN
            for dim in range(self.n_dims):  # one dimension at a time: no (n, A, d) array
                moves = next_states[:, dim] - states[:, dim]
                squared += ((moves[:, None] - self.steps[None, :, dim]) / self.sigma) ** 2
        squared *= -0.5
        squared -= self.n_dims * (math.log(self.sigma) + 0.5 * math.log(2 * math.pi))
        return squared

    def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array:
        """Draw the next states."""
        states = self._check("states", states)
        actions = check_actions(actions, self.n_actions, len(states))
        moved: Array = states + self.steps[actions]
        moved += rng.normal(0.0, self.sigma, size=moved.shape)
        return moved
