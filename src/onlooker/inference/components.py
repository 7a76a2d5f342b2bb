"""Controllers with concentrations of their own: ``θ_k ~ Σ_g w_g Dir(α_g · 1)``.

Which ``g`` a controller has is an unknown like others. Given actions and partition it follows
``p(g_k) ∝ w_g DM_g(ξ_k)``. It is drawn before the steps that are taken given it, and integrated
out where controllers come into being or go: so those steps cost no more than with one α.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.gibbs.categorical import draw_log
from onlooker.gibbs.state import Tables


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm_by_component(counts: Array, n: int, tables: Tables, out: Array) -> float:
    """Fill ``out[g] = ln w_g DM_g(ξ)``, `n` being ``Σ_j ξ_j``; returns ``ln Σ_g w_g DM_g(ξ)``."""
    largest = -np.inf
    for g in range(len(out)):
        value = -tables.total[g, n]
        for j in range(len(counts)):
            if counts[j] > 0:
                value += tables.action[g, counts[j]]
        out[g] = value + tables.log_weight[g]
        largest = max(largest, out[g])
    if len(out) == 1:
        return out[0]
    total = 0.0
    for g in range(len(out)):
        total += np.exp(out[g] - largest)
    return largest + np.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_component(
    counts: Array, n: int, tables: Tables, by_component: Array, rng: np.random.Generator
) -> int:
    """Draw ``g`` with probability ``∝ w_g DM_g(ξ)``; where there is but one, nothing is drawn."""
    if len(by_component) == 1:
        return 0
    log_dm_by_component(counts, n, tables, by_component)
    return draw_log(by_component, len(by_component), rng.random())


@njit(cache=True, nogil=True, error_model="numpy")
def draw_components(counts: Array, totals: Array, tables: Tables, rng: np.random.Generator) -> None:
    """Draw the component of every row of `counts`: of every slot, used or not."""
    by_component = np.empty(len(tables.alpha))
    for k in range(len(totals)):
        tables.component[k] = draw_component(counts[k], totals[k], tables, by_component, rng)


@njit(cache=True, nogil=True, error_model="numpy")
def component_shares(counts: Array, tables: Tables, shares: Array, log_dm: Array) -> None:
    """``p(g | ξ)`` of every row into `shares`, ``ln Σ_g w_g DM_g(ξ)`` into `log_dm`."""
    for k in range(len(counts)):
        n = 0
        for j in range(counts.shape[1]):
            n += counts[k, j]
        log_dm[k] = log_dm_by_component(counts[k], n, tables, shares[k])
        for g in range(shares.shape[1]):
            shares[k, g] = np.exp(shares[k, g] - log_dm[k])


def shares_of(counts: Array, tables: Tables) -> tuple[Array, Array]:
    """``p(g | ξ)``, ``(rows, G)``, and ``ln Σ_g w_g DM_g(ξ)``, ``(rows,)``."""
    shares, log_dm = np.empty((len(counts), len(tables.alpha))), np.empty(len(counts))
    component_shares(counts, tables, shares, log_dm)
    return shares, log_dm


def mixed_policy(counts: Array, shares: Array, alphas: Array) -> Array:
    """``Σ_g p(g | ξ) (ξ + α_g) / (ξ· + Aα_g)`` of every row."""
    total = counts.sum(axis=1)
    scale = shares / (total[:, None] + counts.shape[1] * alphas)
    return np.asarray(counts * scale.sum(axis=1)[:, None] + (scale @ alphas)[:, None])
