"""Behavioural cloning with imputed actions: what a practitioner would try first."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from onlooker.baselines.base import (
    Baseline,
    as_demonstrations,
    explained_log_likelihood,
)
from onlooker.checks import Array, finite_array, positive_integer
from onlooker.demonstrations import as_states
from onlooker.progress import make_progress


class BehavioralCloning(Baseline):
    """Impute the actions from the dynamics, then train any classifier on them.

    Each transition becomes one weighted example per action that may explain it, with weight
    ``p(a | s, s') ∝ T(s'|s, a) π(a|s)``. In the first round π is uniform; each further round
    imputes with the classifier of the round before.

    Parameters
    ----------
    dynamics : Dynamics
    classifier : scikit-learn classifier, optional
        Anything whose ``fit`` takes ``sample_weight`` and that has ``predict_proba``; by default a
        random forest.
    coordinates : array_like of shape (S, d), optional
        Inputs for integer states; without them each state is a category of its own.
    rounds : int
        How often to impute and train.
    random_state : int or None
        For the default classifier.
    progress : bool

    Attributes
    ----------
    classifier_ : the trained classifier
    convergence_ : Convergence
        Its residual is the last round's largest change of an imputed weight.
    """

    def __init__(
        self,
        dynamics: Any,
        classifier: Any = None,
        *,
        coordinates: Any = None,
        rounds: int = 1,
        random_state: int | None = None,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.classifier = classifier
        self.coordinates = coordinates
        self.rounds = rounds
        self.random_state = random_state
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Impute and train."""
        rounds = positive_integer("rounds", self.rounds)
        classifier = self._classifier()
        demos = as_demonstrations(demos)
        loglik = explained_log_likelihood(self.dynamics, demos)
        likelihood = np.exp(loglik - loglik.max(axis=1, keepdims=True))
        self.n_actions_ = likelihood.shape[1]
        states = demos.transitions()[0]
        self._encoder = None
        if demos.is_discrete and self.coordinates is None:
            n_states = getattr(self.dynamics, "n_states", int(demos.states.max()) + 1)
            self._encoder = OneHotEncoder(categories=[np.arange(n_states)]).fit([[0]])
        inputs = self._inputs(states)
        weight = likelihood / likelihood.sum(axis=1, keepdims=True)
        change = 0.0
        with make_progress(self.progress, rounds, "behavioural cloning", "rounds") as bar:
            for done in range(1, rounds + 1):
                if done > 1:
                    posterior = likelihood * self.predict_proba(states)
                    total = posterior.sum(axis=1, keepdims=True)
                    # A classifier may be sure of actions that cannot have been taken.
                    new = np.where(total > 0, posterior / np.where(total > 0, total, 1), weight)
                    change = float(np.abs(new - weight).max())
                    weight = new
                row, action = np.nonzero(weight > 1e-6)
                self.classifier_ = clone(classifier)
                self.classifier_.fit(inputs[row], action, sample_weight=weight[row, action])
                bar.update(done, f"change {change:.1e}")
        self._report(True, rounds, change, f"trained {rounds} time(s), as asked")
        return self

    def predict_proba(self, states: Any) -> Array:
        """The classifier's action probabilities, shape (n, A)."""
        check_is_fitted(self, "classifier_")
        probabilities = self.classifier_.predict_proba(self._inputs(as_states(states)))
        result = np.zeros((len(probabilities), self.n_actions_))
        result[:, self.classifier_.classes_] = probabilities
        return result

    def _classifier(self) -> Any:
        if self.classifier is None:
            return RandomForestClassifier(
                n_estimators=100, min_samples_leaf=20, random_state=self.random_state
            )
        if not has_fit_parameter(self.classifier, "sample_weight"):
            raise TypeError(
                f"classifier {type(self.classifier).__name__} takes no sample_weight, which the "
                "imputed actions need; choose another, e.g. RandomForestClassifier"
            )
        return self.classifier

    def _inputs(self, states: Array) -> Any:
        if states.ndim == 2:
            return states
        if self._encoder is not None:
            if len(states) and states.max() >= len(self._encoder.categories_[0]):
                raise ValueError(
                    f"states holds {states.max()}; there are "
                    f"{len(self._encoder.categories_[0])} states"
                )
            return self._encoder.transform(states[:, None])
        table = finite_array("coordinates", self.coordinates, ndim=2)
        if len(states) and states.max() >= len(table):
            raise ValueError(f"states holds {states.max()}; coordinates has {len(table)} rows")
        return table[states]
