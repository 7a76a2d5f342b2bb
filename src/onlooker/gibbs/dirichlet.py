"""The local controllers: ``θ_k ~ Dir(ξ_k + α)``, and ``ln DM`` with them integrated out."""

from __future__ import annotations

import math

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Tables


@njit(cache=True, nogil=True, error_model="numpy")
def dirichlet(out: Array, counts: Array, alpha: float, rng: np.random.Generator) -> None:
    """Draw ``out ~ Dir(counts + α)``.

    In logarithms, ``ln Gamma(a) = ln Gamma(a + 1) + ln(U) / a``: for small α the plain gamma
    draws would all underflow to zero.
    """
    largest = -np.inf
    for j in range(len(out)):
        shape = counts[j] + alpha
        if shape >= 1.0:
            out[j] = np.log(rng.standard_gamma(shape))
        else:
            out[j] = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random()) / shape
        largest = max(largest, out[j])
    total = 0.0
    for j in range(len(out)):
        out[j] = np.exp(out[j] - largest)
        total += out[j]
    for j in range(len(out)):
        out[j] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def draw_controllers(
    controllers: Array, cluster_counts: Array, alpha: float, rng: np.random.Generator
) -> None:
    """Draw the controller of every slot."""
    for k in range(len(controllers)):
        dirichlet(controllers[k], cluster_counts[k], alpha, rng)


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm(alpha: float, counts: Array, totals: Array) -> float:
    """``Σ_k ln DM(ξ_k)`` of all clusters; an empty one contributes nothing."""
    n_actions = counts.shape[1]
    at_zero, total_at_zero = math.lgamma(alpha), math.lgamma(n_actions * alpha)
    value = 0.0
    for k in range(len(totals)):
        if totals[k] == 0:
            continue
        value += total_at_zero - math.lgamma(n_actions * alpha + totals[k])
        for j in range(n_actions):
            if counts[k, j] > 0:
                value += math.lgamma(alpha + counts[k, j]) - at_zero
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm_of(counts: Array, n: int, tables: Tables) -> float:
    """``ln DM(ξ)`` of one row of counts, `n` in all, from the tables."""
    value = -tables.total[n]
    for j in range(len(counts)):
        if counts[j] > 0:
            value += tables.action[counts[j]]
    return value
