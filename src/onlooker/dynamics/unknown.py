"""The likelihood of the transitions as a function of what is unknown about the dynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.dynamics.base import TransitionLikelihood, Values

_EXACT = 1e-24  # a sum of squared residuals that is nothing but rounding, relative to the moves'


def likelihood_of(dynamics: Any, states: Array, next_states: Array) -> TransitionLikelihood:
    """The dynamics' own fast likelihood, or one that computes whole tables."""
    if hasattr(dynamics, "transition_likelihood"):
        own: TransitionLikelihood = dynamics.transition_likelihood(states, next_states)
        return own
    return AnyLikelihood(dynamics, states, next_states)


class AnyLikelihood:
    """Of any uncertain dynamics: every evaluation costs a whole table."""

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
    """``N(s' - s | μ · steps[j], (σ · spread[j])²)``; given the actions, a few sums say it all.

    Parameters
    ----------
    moves
        ``(M, d)``: what was seen, ``s' - s``.
    steps
        ``(A, d)``, before they are multiplied by μ; a known μ is 1.
    spread
        ``(A, d)``: the noise where it is known; 1 where σ is not.
    """

    def __init__(self, moves: Array, steps: Array, spread: Array) -> None:
        self.moves = np.array(moves)
        self._steps = np.array(steps)  # kernels are compiled for writable arrays
        self._spread = np.array(spread)

    def given(self, actions: Array) -> Callable[[Values], float]:
        """``-Σ ln(σ spread √(2π)) - (R + (μ - μ̂)² S) / 2σ²``, with ``R`` left at the best ``μ̂``."""
        sums = displacement_sums(self.moves, self._steps, self._spread, actions)
        best, left, curvature, whole, log_spread = sums
        n = self.moves.size

        def log_density(values: Values) -> float:
            sigma, step = values.get("sigma", 1.0), values.get("step", 1.0)
            squares = left + (step - best) ** 2 * curvature
            if "sigma" in values and squares <= _EXACT * whole:
                raise ValueError(
                    "every step is exactly what some action does, so the noise sigma could be "
                    "anything down to 0: fix it to a number"
                )
            log_sigma = n * math.log(sigma * math.sqrt(2 * math.pi)) + log_spread
            return -log_sigma - 0.5 * squares / sigma**2

        return log_density

    def fill(self, values: Values, likelihood: Array) -> None:
        """Write the scaled table."""
        sigma, step = values.get("sigma", 1.0), values.get("step", 1.0)
        fill_displacement(self.moves, self._steps, self._spread, step, sigma, likelihood)


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
    moves: Array, steps: Array, spread: Array, actions: Array
) -> tuple[float, float, float, float, float]:
    """``μ̂``, ``Σ|Δ_t - μ̂ u_t|²``, ``Σ|u_t|²``, ``Σ|Δ_t|²`` and ``Σ ln spread``.

    ``u_t`` is the step of ``a_t``; squares are in units of its spread. The residuals are summed
    about the best ``μ̂``, so that nothing cancels when they are small.
    """
    along, curvature, whole, log_spread = 0.0, 0.0, 0.0, 0.0
    for t in range(len(moves)):
        for d in range(moves.shape[1]):
            width = spread[actions[t], d]
            step, move = steps[actions[t], d] / width, moves[t, d] / width
            along += move * step
            curvature += step * step
            whole += move * move
            log_spread += np.log(width)
    best = along / curvature if curvature > 0.0 else 1.0
    left = 0.0
    for t in range(len(moves)):
        for d in range(moves.shape[1]):
            width = spread[actions[t], d]
            left += ((moves[t, d] - best * steps[actions[t], d]) / width) ** 2
    return best, left, curvature, whole, log_spread


@njit(cache=True, nogil=True, error_model="numpy")
def fill_displacement(
    moves: Array, steps: Array, spread: Array, mu: float, sigma: float, likelihood: Array
) -> None:
    """``exp(-|Δ_t - μ u_j|² / 2σ²)`` in units of the spread, each row scaled to a maximum of 1."""
    n_actions, n_dims = steps.shape
    means, weights = np.empty((n_actions, n_dims)), np.empty((n_actions, n_dims))
    peak = np.zeros(n_actions)
    for j in range(n_actions):
        for d in range(n_dims):
            means[j, d] = mu * steps[j, d]
            weights[j, d] = 0.5 / (sigma * spread[j, d]) ** 2
            peak[j] += np.log(spread[j, d])
    for t in range(len(moves)):
        row = likelihood[t]
        lowest = np.inf
        for j in range(n_actions):
            square = peak[j]
            for d in range(n_dims):
                square += weights[j, d] * (moves[t, d] - means[j, d]) ** 2
            row[j] = square
            lowest = min(lowest, square)
        for j in range(n_actions):
            row[j] = np.exp(lowest - row[j])


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
