"""The local controllers: ``θ_k ~ Dir(ξ_k + α)``, and ``ln DM`` with them integrated out."""

from __future__ import annotations

import math

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Tables

LOST = 900.0
"""Exponentials of minus that are 0, also beside a gamma draw of any likely size."""


@njit(cache=True, nogil=True, error_model="numpy")
def dirichlet(
    out: Array, counts: Array, alpha: float, share: Array, rng: np.random.Generator
) -> None:
    """Draw ``out ~ Dir(counts + α share)``.

    In logarithms, ``ln Gamma(a) = ln Gamma(a + 1) + ln(U) / a``: for small α the plain gamma
    draws would all underflow to zero.
    """
    largest = -np.inf
    for j in range(len(out)):
        shape = counts[j] + alpha * share[j]
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
    controllers: Array, cluster_counts: Array, tables: Tables, rng: np.random.Generator
) -> None:
    """Draw the controller of every slot."""
    for k in range(len(controllers)):
        dirichlet(controllers[k], cluster_counts[k], tables.alpha, tables.share, rng)


def controllers_for(n_slots: int, counts: Array, tables: Tables, rng: np.random.Generator) -> Array:
    """The same for the first slots alone, with nothing to be compiled.

    Gamma draws that are lost beside the largest one, as most are for a small α, are not made.
    """
    shape = counts[:n_slots] + tables.alpha * tables.share
    less = rng.standard_exponential(shape.shape) / shape
    seen = less <= less.min(axis=1, keepdims=True) + LOST
    logs = np.full(shape.shape, -np.inf)
    logs[seen] = np.log(rng.standard_gamma(shape[seen] + 1.0)) - less[seen]
    drawn = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm(alpha: float, share: Array, counts: Array, totals: Array) -> float:
    """``Σ_k ln DM(ξ_k)`` of all clusters; an empty one contributes nothing."""
    n_actions = counts.shape[1]
    total_at_zero = math.lgamma(n_actions * alpha)
    at_zero = np.empty(n_actions)
    for j in range(n_actions):
        same = j > 0 and share[j] == share[j - 1]
        at_zero[j] = at_zero[j - 1] if same else math.lgamma(alpha * share[j])
    value = 0.0
    for k in range(len(totals)):
        if totals[k] == 0:
            continue
        value += total_at_zero - math.lgamma(n_actions * alpha + totals[k])
        for j in range(n_actions):
            if counts[k, j] > 0:
                value += math.lgamma(alpha * share[j] + counts[k, j]) - at_zero[j]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm_of(counts: Array, n: int, tables: Tables) -> float:
    """``ln DM(ξ)`` of one row of counts, `n` in all, from the tables."""
    value = -tables.total[n]
    for j in range(len(counts)):
        if counts[j] > 0:
            value += tables.action[tables.kind[j], counts[j]]
    return value
