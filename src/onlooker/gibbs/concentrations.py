"""The prior of the controllers given all counts: its concentration, and the masses of its kinds."""

from __future__ import annotations

import math

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit

_MAX_STEPS = 50  # of widening a slice, as in `onlooker.gibbs.slices`


@njit(cache=True, nogil=True, error_model="numpy")
def _tally(counts: Array, totals: Array, kind: Array, n_kinds: int) -> Array:
    """Rows of a kind, a count above 0 and how often it occurs among those of the kind."""
    times = np.zeros((n_kinds, totals.max() + 1), dtype=np.int64)
    most = 0
    for k in range(len(counts)):
        if totals[k] > 0:
            for j in range(counts.shape[1]):
                times[kind[j], counts[k, j]] += 1
                most = max(most, counts[k, j])
    found, n = np.empty((n_kinds * most, 3), dtype=np.int64), 0
    for q in range(n_kinds):
        for m in range(1, most + 1):
            if times[q, m] > 0:
                found[n, 0], found[n, 1], found[n, 2] = q, m, times[q, m]
                n += 1
    return found[:n]


@njit(cache=True, nogil=True, error_model="numpy")
def _log_density(
    x: float, by_kind: Array, n_actions: int, found: Array, totals: Array, form: Array
) -> float:
    """``ln p(ln α) Π_k DM(ξ_k)`` at ``x = ln α``, but for a constant."""
    alpha = np.exp(x)
    if not form[2] <= alpha <= form[3]:
        return -np.inf
    value = (form[0] + 1.0) * x - form[1] * alpha
    total_at_zero = math.lgamma(n_actions * alpha)
    for k in range(len(totals)):
        if totals[k] > 0:
            value += total_at_zero - math.lgamma(n_actions * alpha + totals[k])
    at_zero, last = 0.0, -1
    for p in range(len(found)):
        q = found[p, 0]
        if q != last:
            at_zero, last = math.lgamma(alpha * by_kind[q]), q
        value += found[p, 2] * (math.lgamma(alpha * by_kind[q] + found[p, 1]) - at_zero)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def draw_log_alpha(
    x: float,
    by_kind: Array,
    kind: Array,
    counts: Array,
    totals: Array,
    form: Array,
    rng: np.random.Generator,
) -> float:
    """``ln α`` by a step of slice sampling, as in `onlooker.gibbs.slices`, from another one.

    ``p(α | a, z) ∝ p(α) Π_k DM(ξ_k)`` with the closed `form` of ``p(α)``.
    """
    found, n = _tally(counts, totals, kind, len(by_kind)), len(kind)
    level = _log_density(x, by_kind, n, found, totals, form) - rng.standard_exponential()
    low = x - rng.random()
    high = low + 1.0
    steps_down = int(_MAX_STEPS * rng.random())
    steps_up = _MAX_STEPS - 1 - steps_down
    while steps_down > 0 and _log_density(low, by_kind, n, found, totals, form) > level:
        low -= 1.0
        steps_down -= 1
    while steps_up > 0 and _log_density(high, by_kind, n, found, totals, form) > level:
        high += 1.0
        steps_up -= 1
    while True:
        candidate = low + (high - low) * rng.random()
        if _log_density(candidate, by_kind, n, found, totals, form) > level:
            return candidate
        if candidate < x:
            low = candidate
        else:
            high = candidate


@njit(cache=True, nogil=True, error_model="numpy")
def draw_masses(
    masses: Array,
    counts: Array,
    totals: Array,
    kind: Array,
    sizes: Array,
    concentration: float,
    rng: np.random.Generator,
) -> None:
    """Draw the masses of kinds, ``w ~ Dir(1)`` given ``Π_k DM(ξ_k)``, in place.

    ``Γ(s + n) / Γ(s) = Σ_m |S(n, m)| s^m``: given the m of every count, tables of a Chinese
    restaurant that n customers share, masses are ``Dir(1 + tables of each kind)``. Most counts have
    one table, for most shapes are small, so little is lost by drawing the tables first.
    """
    tables = np.ones(len(masses))
    shapes = concentration * masses / sizes
    for k in range(len(counts)):
        if totals[k] == 0:
            continue
        for j in range(counts.shape[1]):
            if counts[k, j] > 0:
                shape = shapes[kind[j]]
                tables[kind[j]] += 1.0
                for seated in range(1, counts[k, j]):
                    if rng.random() * (shape + seated) < shape:
                        tables[kind[j]] += 1.0
    total = 0.0
    for q in range(len(masses)):
        masses[q] = rng.standard_gamma(tables[q])
        total += masses[q]
    for q in range(len(masses)):
        masses[q] /= total
