"""Bellman's equation and the linear ones below it, for transitions as one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


def back_up(q: Floats, temperature: float) -> Floats:
    """``max_a Q``, or ``τ log Σ_a exp(Q/τ)`` at a temperature above 0."""
    top = q.max(axis=-1)
    if temperature == 0.0:
        return np.asarray(top)
    spread = np.exp((q - top[..., None]) / temperature).sum(axis=-1)
    return np.asarray(top + temperature * np.log(spread))


def macqueen_bounds(step: Floats, gamma: float) -> tuple[float, float]:
    """How far the solution may lie below and above the iterate after this step."""
    scale = gamma / (1.0 - gamma)
    return scale * float(step.min()), scale * float(step.max())


def evaluate(P: Any, gain: Floats, gamma: float, tolerance: float, initial: Floats) -> Floats:
    """Solve ``V = gain + γ P V``, sparse `P` by iteration from `initial`."""
    if not sparse.issparse(P):
        return np.asarray(np.linalg.solve(np.eye(len(gain)) - gamma * P, gain))
    values = initial
    # Rounding keeps the bounds from closing below a few units in the last place.
    floor = 64 * np.finfo(float).eps / (1.0 - gamma) ** 2 * float(np.abs(gain).max())
    while True:
        new = gain + gamma * (P @ values)
        low, high = macqueen_bounds(new - values, gamma)
        values = new
        if 0.5 * (high - low) <= max(tolerance, floor):
            return np.asarray(values + 0.5 * (low + high))


def visit_forever(P: Any, start: Floats, gamma: float, tolerance: float) -> Floats:
    """Solve ``D = start + γ Pᵀ D``."""
    if not sparse.issparse(P):
        return np.asarray(np.linalg.solve(np.eye(len(start)) - gamma * P.T, start))
    backwards = P.T.tocsr()
    now, total, mass = start, start.copy(), 1.0
    while mass > tolerance:
        now = gamma * (backwards @ now)
        total += now
        mass *= gamma
    return total


def check_discount(discount: float, finite: bool = False) -> float:
    """Refuse a discount for which values may be infinite."""
    if not (0.0 <= discount < 1.0 or (finite and discount == 1.0)):
        remedy = "" if finite else "; without discounting, give a horizon"
        raise ValueError(f"discount must be in [0, 1), got {discount!r}{remedy}")
    return float(discount)
