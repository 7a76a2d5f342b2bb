"""The likelihood of the transitions as a function of what is unknown about the dynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from onlooker._validation import Array
from onlooker.dynamics.base import TransitionLikelihood, Values

_EXACT = 1e-24  # a sum of squared residuals that is nothing but rounding, relative to the moves'


def likelihood_of(dynamics: Any, states: Array, next_states: Array) -> TransitionLikelihood:
    """The dynamics' own quick likelihood, or one that asks for whole tables."""
    if hasattr(dynamics, "transition_likelihood"):
        made: TransitionLikelihood = dynamics.transition_likelihood(states, next_states)
        return made
    return AnyLikelihood(dynamics, states, next_states)


class AnyLikelihood:
    """Of any uncertain dynamics: every question costs a whole table."""

    def __init__(self, dynamics: Any, states: Array, next_states: Array) -> None:
        self._dynamics = dynamics
        self._states = states
        self._next_states = next_states

    def _table(self, values: Values) -> Array:
        world = self._dynamics.at(values)
        return np.asarray(world.log_likelihood(self._states, self._next_states), dtype=np.float64)

    def given(self, actions: Array) -> Callable[[Values], float]:
        """``ln p(s' | s, a)``."""

        def log_density(values: Values) -> float:
            return float(np.take_along_axis(self._table(values), actions[:, None], axis=1).sum())

        return log_density

    def fill(self, values: Values, likelihood: Array) -> None:
        """Write the scaled table."""
        table = self._table(values)
        np.exp(table - table.max(axis=1, keepdims=True), out=likelihood)


class DisplacementLikelihood:
    """``N(s' - s | μ · steps[j], σ² I)``; given the actions, three sums say it all.

    Parameters
    ----------
    moves
        ``(M, d)``: what was seen, ``s' - s``.
    steps
        ``(A, d)``, before they are multiplied by μ.
    sigma
        σ, where it is known; a known μ is 1.
    """

    def __init__(self, moves: Array, steps: Array, sigma: float) -> None:
        self._moves = np.ascontiguousarray(moves)
        self._steps = np.array(steps)  # kernels are compiled for writable arrays
        self._sigma = sigma

    def given(self, actions: Array) -> Callable[[Values], float]:
        """``-M d ln σ√(2π) - (R + (μ - μ̂)² S) / 2σ²``, with ``R`` left at the best ``μ̂``."""
        best, left, curvature, whole = displacement_sums(self._moves, self._steps, actions)
        n = self._moves.size

        def log_density(values: Values) -> float:
            sigma, step = values.get("sigma", self._sigma), values.get("step", 1.0)
            squares = left + (step - best) ** 2 * curvature
            if squares <= _EXACT * whole:
                raise ValueError(
                    "every step is exactly what some action does, so the noise sigma could be "
                    "anything down to 0: fix it to a number"
                )
            return -n * math.log(sigma * math.sqrt(2 * math.pi)) - 0.5 * squares / sigma**2

        return log_density

    def fill(self, values: Values, likelihood: Array) -> None:
        """Write the scaled table."""
        sigma, step = values.get("sigma", self._sigma), values.get("step", 1.0)
        fill_displacement(self._moves, self._steps, step, sigma, likelihood)


class MixtureLikelihood:
    """``p · intended + (1 - p) · slip``, ``(M, A)`` each, with the unknown ``p`` "success"."""

    def __init__(self, intended: Array, slip: Array) -> None:
        self._intended = intended
        self._slip = slip

    def given(self, actions: Array) -> Callable[[Values], float]:
        """``Σ_t ln(p · intended_t + (1 - p) · slip_t)``."""
        rows = np.arange(len(actions))
        intended, slip = self._intended[rows, actions], self._slip[rows, actions]
        return lambda values: log_mixture(values["success"], intended, slip)

    def fill(self, values: Values, likelihood: Array) -> None:
        """Write the scaled table."""
        fill_mixture(values["success"], self._intended, self._slip, likelihood)


@njit(cache=True, nogil=True, error_model="numpy")
def displacement_sums(
    moves: Array, steps: Array, actions: Array
) -> tuple[float, float, float, float]:
    """``μ̂``, ``Σ|Δ_t - μ̂ u_t|²``, ``Σ|u_t|²`` and ``Σ|Δ_t|²``, ``u_t`` being the step of ``a_t``.

    The residuals are summed about the best ``μ̂``, so that nothing cancels when they are small.
    """
    along, curvature, whole = 0.0, 0.0, 0.0
    for t in range(len(moves)):
        for d in range(moves.shape[1]):
            step = steps[actions[t], d]
            along += moves[t, d] * step
            curvature += step * step
            whole += moves[t, d] * moves[t, d]
    best = along / curvature if curvature > 0.0 else 1.0
    left = 0.0
    for t in range(len(moves)):
        for d in range(moves.shape[1]):
            left += (moves[t, d] - best * steps[actions[t], d]) ** 2
    return best, left, curvature, whole


@njit(cache=True, nogil=True, error_model="numpy")
def fill_displacement(
    moves: Array, steps: Array, mu: float, sigma: float, likelihood: Array
) -> None:
    """``exp(-|Δ_t - μ u_j|² / 2σ²)``, each row scaled to a maximum of 1."""
    n_actions, n_dims = steps.shape
    half = 0.5 / (sigma * sigma)
    for t in range(len(moves)):
        row = likelihood[t]
        least = np.inf
        for j in range(n_actions):
            square = 0.0
            for d in range(n_dims):
                square += (moves[t, d] - mu * steps[j, d]) ** 2
            row[j] = square
            least = min(least, square)
        for j in range(n_actions):
            row[j] = np.exp(half * (least - row[j]))


@njit(cache=True, nogil=True, error_model="numpy")
def fill_mixture(p: float, intended: Array, slip: Array, likelihood: Array) -> None:
    """``p · intended + (1 - p) · slip``, each row scaled to a maximum of 1."""
    for t in range(len(likelihood)):
        row = likelihood[t]
        largest = 0.0
        for j in range(len(row)):
            row[j] = p * intended[t, j] + (1.0 - p) * slip[t, j]
            largest = max(largest, row[j])
        for j in range(len(row)):
            row[j] /= largest


@njit(cache=True, nogil=True, error_model="numpy")
def log_mixture(p: float, intended: Array, slip: Array) -> float:
    """``Σ_t ln(p · intended_t + (1 - p) · slip_t)``; factors are multiplied to save logarithms."""
    total = 0.0
    product = 1.0
    for t in range(len(intended)):
        product *= p * intended[t] + (1.0 - p) * slip[t]
        if product < 1e-150:
            if product == 0.0:
                return -np.inf
            total += np.log(product)
            product = 1.0
    return total + np.log(product)
