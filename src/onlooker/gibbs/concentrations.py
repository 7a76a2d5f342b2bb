"""The prior of the controllers given all counts: its concentration, and the masses of its kinds."""

from __future__ import annotations

import math

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit

_MAX_STEPS = 50  # of widening a slice, as in `onlooker.gibbs.slices`


@njit(cache=True, nogil=True, error_model="numpy")
def _log_density(
    x: float, by_kind: Array, n_actions: int, times: Array, totals: Array, form: Array
) -> float:
    """``ln p(ln α) Π_k DM(ξ_k)`` at ``x = ln α``, but for a constant.

    ``times[q, m]``: how many actions of kind q a controller has played m times.
    """
    alpha = np.exp(x)
    if not form[2] <= alpha <= form[3]:
        return -np.inf
    value = (form[0] + 1.0) * x - form[1] * alpha
    total_at_zero = math.lgamma(n_actions * alpha)
    for k in range(len(totals)):
        if totals[k] > 0:
            value += total_at_zero - math.lgamma(n_actions * alpha + totals[k])
    for q in range(len(by_kind)):
        at_zero = math.lgamma(alpha * by_kind[q])
        for m in range(1, times.shape[1]):
            if times[q, m] > 0:
                value += times[q, m] * (math.lgamma(alpha * by_kind[q] + m) - at_zero)
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
    """A new ``ln α`` from the old one, by a step of slice sampling as in `onlooker.gibbs.slices`.

    ``p(α | a, z) ∝ p(α) Π_k DM(ξ_k)`` with the closed `form` of ``p(α)``.
    """
    n, most = len(kind), 0
    for k in range(len(totals)):
        if totals[k] > 0:
            for j in range(n):
                most = max(most, counts[k, j])
    times = np.zeros((len(by_kind), most + 1), dtype=np.int64)
    for k in range(len(totals)):
        if totals[k] > 0:
            for j in range(n):
                times[kind[j], counts[k, j]] += 1
    level = _log_density(x, by_kind, n, times, totals, form) - rng.standard_exponential()
    low = x - rng.random()
    high = low + 1.0
    steps_down = int(_MAX_STEPS * rng.random())
    steps_up = _MAX_STEPS - 1 - steps_down
    while steps_down > 0 and _log_density(low, by_kind, n, times, totals, form) > level:
        low -= 1.0
        steps_down -= 1
    while steps_up > 0 and _log_density(high, by_kind, n, times, totals, form) > level:
        high += 1.0
        steps_up -= 1
    while True:
        candidate = low + (high - low) * rng.random()
        if candidate == x or _log_density(candidate, by_kind, n, times, totals, form) > level:
            return candidate  # x is where a slice ends that has nothing else, or no level
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
    tables = np.zeros(len(masses), dtype=np.int64)
    for k in range(len(counts)):
        if totals[k] == 0:
            continue
        for j in range(counts.shape[1]):
            if counts[k, j] > 0:
                q = kind[j]
                shape = concentration * masses[q] / sizes[q]
                tables[q] += 1
                for seated in range(1, counts[k, j]):
                    if rng.random() * (shape + seated) < shape:
                        tables[q] += 1
    total = 0.0
    for q in range(len(masses)):
        mass = 0.0  # Gamma(1 + tables)
        for _ in range(1 + tables[q]):
            mass += rng.standard_exponential()
        masses[q] = mass
        total += mass
    for q in range(len(masses)):
        masses[q] /= total
