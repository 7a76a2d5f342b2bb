"""Hyper-parameters: slice sampling on the logarithm, and the densities it needs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.hyper import Prior

_STEPS = 50  # of widening a slice; a prior that needs more is broken


def slice_sample_log(
    log_density: Callable[[float], float],
    value: float,
    rng: np.random.Generator,
    width: float = 1.0,
) -> float:
    """One slice-sampling step (Neal 2003) for a positive `value`, on its logarithm.

    `log_density` is that of the value itself; the Jacobian of the logarithm is added here.
    """

    def target(x: float) -> float:
        return log_density(math.exp(x)) + x

    x = math.log(value)
    level = target(x) - rng.standard_exponential()
    low = x - width * rng.random()
    high = low + width
    steps_down = int(_STEPS * rng.random())
    steps_up = _STEPS - 1 - steps_down
    while steps_down > 0 and target(low) > level:
        low -= width
        steps_down -= 1
    while steps_up > 0 and target(high) > level:
        high += width
        steps_up -= 1
    while True:
        candidate = low + (high - low) * rng.random()
        if target(candidate) > level:
            return math.exp(candidate)
        if candidate < x:
            low = candidate
        else:
            high = candidate


def start_of(value: float | Prior) -> float:
    """Where a chain starts: at the number, or at the prior's mean."""
    return value.mean if isinstance(value, Prior) else float(value)


def metropolis_from_prior(
    log_likelihood: Callable[[float], float],
    value: float,
    prior: Prior,
    rng: np.random.Generator,
) -> float:
    """One independence Metropolis–Hastings step with the prior as proposal, as in the paper."""
    candidate = prior.sample(rng)
    if candidate <= 0:
        return value
    gain = log_likelihood(candidate) - log_likelihood(value)
    return candidate if math.log1p(-rng.random()) < gain else value


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
def log_link_normaliser(nu: float, row_sums: Array) -> float:
    """``Σ_i ln(ν + Σ_{j ≠ i} f(d_ij))``; factors are multiplied up to save logarithms."""
    total = 0.0
    product = 1.0
    for i in range(len(row_sums)):
        product *= nu + row_sums[i]
        if product > 1e150 or product < 1e-150:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)
