"""Policies that every method must beat."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.utils.validation import check_is_fitted

from onlooker.baselines.base import (
    Baseline,
    as_demonstrations,
    explained_log_likelihood,
)
from onlooker.checks import Array, positive_integer, positive_number
from onlooker.demonstrations import as_states
from onlooker.progress import make_progress


class UniformPolicy(Baseline):
    """All actions equally likely everywhere: what is known before anything is seen.

    Parameters
    ----------
    dynamics : Dynamics
    """

    def __init__(self, dynamics: Any) -> None:
        self.dynamics = dynamics

    def fit(self, demos: Any = None, y: None = None) -> Self:
        """Learn nothing."""
        self.n_actions_ = int(self.dynamics.n_actions)
        self._report(True, 0, 0.0, "nothing to learn")
        return self

    def predict_proba(self, states: Any) -> Array:
        """``1/A`` everywhere, shape (n, A)."""
        check_is_fitted(self, "n_actions_")
        return np.full((len(as_states(states)), self.n_actions_), 1 / self.n_actions_)


class GlobalMarginal(Baseline):
    """One action distribution for all states, by maximum likelihood.

    Maximises ``Σ_t log Σ_j T(s_{t+1}|s_t, j) p_j`` over ``p``, which is concave, by sequential
    quadratic programming.

    Parameters
    ----------
    dynamics : Dynamics
    tolerance : float
        Stops when the log-likelihood per transition is within this of its maximum.
    max_iter : int
    progress : bool

    Attributes
    ----------
    action_probabilities_ : ndarray of shape (A,)
    convergence_ : Convergence
    """

    def __init__(
        self,
        dynamics: Any,
        *,
        tolerance: float = 1e-5,
        max_iter: int = 1000,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Learn the distribution."""
        tolerance = positive_number("tolerance", self.tolerance)
        max_iter = positive_integer("max_iter", self.max_iter)
        loglik = explained_log_likelihood(self.dynamics, as_demonstrations(demos))
        likelihood = np.exp(loglik - loglik.max(axis=1, keepdims=True))
        with make_progress(self.progress, max_iter, "global marginal", "iterations") as bar:
            p, n_iter = _best_mixture(likelihood, tolerance, max_iter)
            bar.update(n_iter, "")
        # The optimum exceeds the value at p by at most the log of the largest derivative.
        gap = float(np.log(_slope(likelihood, p).max()))
        self.action_probabilities_ = p
        self._report(
            gap <= tolerance,
            n_iter,
            gap,
            f"log-likelihood per transition within {gap:.2g} of its maximum, tolerance "
            f"{tolerance:g}",
            "raise max_iter",
        )
        return self

    def predict_proba(self, states: Any) -> Array:
        """The same distribution for every state, shape (n, A)."""
        check_is_fitted(self, "action_probabilities_")
        return np.tile(self.action_probabilities_, (len(as_states(states)), 1))


def _slope(likelihood: Array, p: Array) -> Array:
    return np.asarray((likelihood / (likelihood @ p)[:, None]).mean(axis=0))


def _best_mixture(likelihood: Array, tolerance: float, max_iter: int) -> tuple[Array, int]:
    """The mixture weights under which the rows of `likelihood` are most likely."""
    n_actions = likelihood.shape[1]

    def loss(p: Array) -> tuple[float, Array]:
        return -float(np.log(likelihood @ p).mean()), -_slope(likelihood, p)

    result = minimize(
        loss,
        np.full(n_actions, 1 / n_actions),
        jac=True,
        method="SLSQP",
        # A trace of every action keeps each transition possible on the way.
        bounds=[(0.1 * tolerance / n_actions, 1.0)] * n_actions,
        constraints={
            "type": "eq",
            "fun": lambda p: p.sum() - 1.0,
            "jac": lambda p: np.ones(n_actions),
        },
        options={"maxiter": max_iter, "ftol": 1e-6 * tolerance},
    )
    p = np.maximum(result.x, 0.0)
    return p / p.sum(), int(result.nit)
