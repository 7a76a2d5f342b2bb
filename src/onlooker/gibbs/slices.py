"""Steps of one number: slice sampling on its logarithm, and Metropolis–Hastings from its prior."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onlooker.hyper import Prior

_MAX_STEPS = 50  # of widening a slice; a prior that needs more is broken


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
    steps_down = int(_MAX_STEPS * rng.random())
    steps_up = _MAX_STEPS - 1 - steps_down
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


def scattered_start_of(value: float | Prior, rng: np.random.Generator) -> float:
    """The number, or a draw from the prior, at most ten times its mean and at least a tenth.

    A draw far out in a tail would take a chain out of reach of what it can draw.
    """
    if not isinstance(value, Prior):
        return float(value)
    return min(max(value.sample(rng), value.mean / 10), value.mean * 10)


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
