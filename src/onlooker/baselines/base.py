"""What the baselines share: the estimator's face, counts of the demonstrations, reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as SklearnWarning
from sklearn.utils.validation import check_is_fitted

from onlooker.checks import Array, finite_array
from onlooker.demonstrations import Demonstrations, as_states
from onlooker.dynamics.tabular import TabularDynamics
from onlooker.planning.transitions import Transitions, as_transitions
from onlooker.warnings import ConvergenceWarning, warn


@dataclass(frozen=True)
class Convergence:
    """How a fit ended.

    Attributes
    ----------
    converged : whether the method's own criterion was met
    n_iter : iterations done
    residual : what the criterion measures, at the end
    message : the same in words
    """

    converged: bool
    n_iter: int
    residual: float
    message: str


class BaselineWarning(ConvergenceWarning, SklearnWarning):  # type: ignore[misc]
    """A baseline has not converged: ours to filter, and scikit-learn's."""


class Baseline(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator of a policy from state-only demonstrations.

    Subclasses take the dynamics as their first argument, store their arguments untouched, and
    offer `fit` and `predict_proba`.
    """

    dynamics: Any
    convergence_: Convergence

    @abstractmethod
    def fit(self, demos: Any, y: None = None) -> Self:
        """Learn from demonstrations; `y` is ignored, as scikit-learn wants it."""

    @abstractmethod
    def predict_proba(self, states: Any) -> Array:
        """Action probabilities, shape (n, A)."""

    def predict(self, states: Any) -> Array:
        """The most probable action at each state, shape (n,)."""
        return np.asarray(self.predict_proba(states).argmax(axis=1))

    def score(self, demos: Any, y: None = None) -> float:
        """Mean log predictive probability per transition, ``log Σ_j T(s'|s, j) π(j|s)``."""
        demos = as_demonstrations(demos)
        states, next_states = demos.transitions()
        policy = self.predict_proba(states)
        loglik = self.dynamics.log_likelihood(states, next_states)
        return float(np.mean(log_mix(loglik, policy)))

    def _report(
        self, converged: bool, n_iter: int, residual: float, message: str, remedy: str = ""
    ) -> None:
        if not converged:
            message = f"not converged: {message}; {remedy}"
            warn(f"{type(self).__name__}: {message}", BaselineWarning)
        self.convergence_ = Convergence(bool(converged), int(n_iter), float(residual), message)


class TabularBaseline(Baseline):
    """A baseline whose result is a table: `policy_`, shape (S, A)."""

    policy_: Array

    def predict_proba(self, states: Any) -> Array:
        """Action probabilities, shape (n, A)."""
        check_is_fitted(self, "policy_")
        states = as_states(states)
        n_states = len(self.policy_)
        if states.ndim != 1:
            raise TypeError("states must be (n,) integers: the dynamics are a table")
        if len(states) and states.max() >= n_states:
            where = int(np.argmax(states >= n_states))
            raise ValueError(
                f"states holds {states[where]} at index {where}; there are {n_states} states"
            )
        return np.asarray(self.policy_[states])

    def _start(self, demos: Any) -> tuple[Demonstrations, Transitions]:
        """Check the demonstrations against the table; return both in working form."""
        if not isinstance(self.dynamics, TabularDynamics):
            raise TypeError(
                f"{type(self).__name__} plans, so it needs TabularDynamics; "
                f"got {type(self.dynamics).__name__}"
            )
        demos = as_demonstrations(demos)
        explained_log_likelihood(self.dynamics, demos)
        return demos, as_transitions(self.dynamics)


def as_demonstrations(demos: Any) -> Demonstrations:
    """Return `demos` as `Demonstrations`, every state of which was seen."""
    return Demonstrations(demos).require_seen()


def explained_log_likelihood(dynamics: Any, demos: Demonstrations) -> Array:
    """``ln T(s'|s, j)`` of every transition; refused where no action explains one."""
    loglik = np.asarray(dynamics.log_likelihood(*demos.transitions()))
    impossible = ~np.isfinite(loglik).any(axis=1)
    if impossible.any():
        raise ValueError(
            f"transition {int(np.argmax(impossible))} ({impossible.sum()} in all) cannot be "
            "explained by any action; remove it, or give the dynamics some noise"
        )
    return loglik


def log_mix(loglik: Array, weights: Array) -> Array:
    """``log Σ_j exp(loglik_j) weights_j`` by row, safe against underflow."""
    top = loglik.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log((np.exp(loglik - top) * weights).sum(axis=1)) + top[:, 0])


def check_features(features: Any, n_states: int) -> Any:
    """State features (S, F), dense or sparse; None stands for one indicator a state."""
    if features is None:
        return sparse.csr_array(sparse.identity(n_states))
    if sparse.issparse(features):
        features = sparse.csr_array(features)
    else:
        features = finite_array("features", features, ndim=2)
    if features.shape[0] != n_states or features.shape[1] == 0:
        raise ValueError(f"features must be ({n_states}, F) with F > 0, got {features.shape}")
    return features


def discounted_visits(demos: Demonstrations, n_states: int, discount: float) -> Array:
    """``Σ_t γ^t 1[s_t = s]``, averaged over the trajectories."""
    time = np.arange(len(demos.states)) - np.repeat(demos.offsets[:-1], demos.lengths)
    weight = discount**time
    return np.bincount(demos.states, weights=weight, minlength=n_states) / len(demos)


def starts_by_length(demos: Demonstrations, n_states: int) -> dict[int, Array]:
    """For each length, the share of trajectories of that length that start in each state."""
    first, lengths = demos.states[demos.offsets[:-1]], demos.lengths
    return {
        int(length): np.bincount(first[lengths == length], minlength=n_states) / len(demos)
        for length in np.unique(lengths)
    }
