"""Does the noise of the actions fit the steps?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlooker.choosing.left_out import Gain, Shares, known_folds

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


class NoiseFit(NamedTuple):
    """Another noise, and how much better left-out steps are explained by it."""

    factor: float
    """Of the noise; 1: it fits."""
    gain: Gain


def fit_of_noise(demos: Demonstrations, dynamics: Any, random_state: Any = 0) -> NoiseFit | None:
    """Look whether a quarter to four times the noise explains left-out trajectories better.

    By one policy for all states, and by more than two standard errors; None where it cannot be
    told: without actions that are steps with a noise that is known.
    """
    sigma = getattr(dynamics, "sigma", None)
    if sigma is None or not hasattr(dynamics, "at"):
        return None
    folds = known_folds(demos, dynamics, random_state)
    if folds is None:
        return None
    before, after = (part[folds.kept] for part in demos.transitions())
    base = np.full(dynamics.n_actions, 1 / dynamics.n_actions)
    scores = {}
    for factor in _FACTORS:
        loglik = dynamics.at({"sigma": np.multiply(sigma, factor)}).log_likelihood(before, after)
        shift = loglik.max(axis=1)
        if np.isfinite(shift).all():
            scores[factor] = Shares(loglik, shift, base, folds.pairs).overall
    best = max(scores, key=lambda factor: float(scores[factor].mean()))
    gain = folds.gain(scores[best], scores[1.0])
    return NoiseFit(best, gain) if gain.clearly else NoiseFit(1.0, Gain(0.0, 0.0))
