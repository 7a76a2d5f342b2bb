"""The whole path from demonstrations to a policy as one scikit-learn estimator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from onlooker.checks import Array
from onlooker.defaults import default_model
from onlooker.demonstrations import Demonstrations
from onlooker.hyper import Prior, TotalMass
from onlooker.partitions import DistanceDependent
from onlooker.partitions.base import Hyper, PartitionPrior, Strategy
from onlooker.problem.problem import Problem
from onlooker.repertoire import Actions
from onlooker.sampling import sample

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.posterior import Posterior


class PolicyRecognizer(BaseEstimator):  # type: ignore[misc]
    """Recognise the policy behind demonstrations.

    Whatever is None is chosen from the demonstrations, as `onlooker fit` does: regions that share
    controllers, everything inferred (`onlooker.defaults.default_model`). The paper's settings are
    `PolicyRecognizer.paper`.

    Parameters
    ----------
    dynamics
        The model of the world.
    partition
        The prior over partitions of the states; None: chosen. A grid search reaches into one that
        is given: ``partition__beta``, ``partition__decay__scale``.
    nodes, observation_noise, repertoire
        Which states carry an indicator, the noise that positions were seen with, and what
        controllers are distributions over: see `Problem.from_demonstrations`. Without a
        repertoire, all behaviours that apply with `Regions`, and bare actions with any other prior.
    extrapolate
        How the policy is continued to states that were not seen: see `Posterior.policy`.
    concentration
        See `onlooker.sample`; None: inferred with `Regions`, 1 with any other prior.
    chains, collapsed, draws, tune, thin, n_jobs, progress, store, resume, client, random_state, \
max_minutes
        See `onlooker.sample`.

    Attributes
    ----------
    posterior_ : Posterior
        The draws, and all that can be asked of them.
    problem_ : Problem
        What was inferred.
    n_actions_ : int
        Number of actions.
    notes_ : list of str
        What was chosen from the demonstrations, a sentence each.

    Examples
    --------
    >>> from onlooker.worlds import CircularMotion
    >>> world = CircularMotion()
    >>> demos, _ = world.rollout(2, 20, random_state=0)
    >>> recognizer = PolicyRecognizer(world.dynamics, draws=200, random_state=0)  # doctest: +SKIP
    >>> recognizer.fit(demos).predict_proba([[1.0, 0.0]]).shape  # doctest: +SKIP
    (1, 24)
    """

    posterior_: Posterior
    problem_: Problem
    n_actions_: int
    notes_: list[str]

    def __init__(
        self,
        dynamics: Dynamics,
        partition: PartitionPrior[Any] | None = None,
        *,
        nodes: Literal["visited", "all"] | Any | None = None,
        extrapolate: Strategy | None = None,
        concentration: Hyper | TotalMass | None = None,
        collapsed: bool = True,
        draws: int | Literal["auto"] | None = None,
        tune: int | None = None,
        chains: int | None = None,
        thin: int = 1,
        n_jobs: int | None = None,
        progress: bool = False,
        store: str | os.PathLike[str] | None = None,
        resume: bool = False,
        client: Any = None,
        random_state: Any = None,
        observation_noise: float | Prior | None = None,
        repertoire: Any = None,
        max_minutes: float = 30.0,
    ) -> None:
        self.dynamics = dynamics
        self.partition = partition
        self.nodes = nodes
        self.extrapolate = extrapolate
        self.concentration = concentration
        self.collapsed = collapsed
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.thin = thin
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store
        self.resume = resume
        self.client = client
        self.random_state = random_state
        self.observation_noise = observation_noise
        self.repertoire = repertoire
        self.max_minutes = max_minutes

    @classmethod
    def paper(
        cls, dynamics: Dynamics, partition: PartitionPrior[Any] | None = None, **options: Any
    ) -> Self:
        """The paper's settings: bare actions, α = 1, and the distance-dependent prior.

        Parameters
        ----------
        dynamics
            The model of the world.
        partition
            Another prior of the paper's; None: `DistanceDependent.paper`, for steps of length 1.
        **options
            Other parameters.
        """
        papers: dict[str, Any] = {"concentration": 1.0, "repertoire": [Actions()]}
        partition = DistanceDependent.paper() if partition is None else partition
        return cls(dynamics, partition, **(papers | options))

    def fit(self, demos: Any, y: None = None) -> Self:
        """Sample the posterior given demonstrations.

        A `Demonstrations`, whose unseen states are inferred, or a list of arrays.
        """
        model = default_model(
            demos,
            self.dynamics,
            prior=self.partition,
            concentration=self.concentration,
            chains=self.chains,
            tune=self.tune,
            draws=self.draws,
            nodes=self.nodes,
            observation_noise=self.observation_noise,
            n_jobs=self.n_jobs,
            repertoire=self.repertoire,
            progress=self.progress,
        )
        self.problem_ = model.problem
        self.n_actions_ = model.problem.n_actions
        self.notes_ = model.notes
        self.posterior_ = sample(
            model.problem,
            model.prior,
            concentration=model.concentration,
            collapsed=self.collapsed,
            draws=model.draws,
            tune=model.tune,
            chains=model.chains,
            thin=self.thin,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            progress=self.progress,
            store=self.store,
            resume=self.resume,
            client=self.client,
            max_minutes=self.max_minutes,
        )
        return self

    def predict_proba(self, states: Any) -> Array:
        """``(n, A)``: the predictive action distribution at `states`."""
        check_is_fitted(self)
        return self.posterior_.policy(states, extrapolate=self.extrapolate)

    def predict(self, states: Any) -> Array:
        """``(n,)``: the most probable action at `states`."""
        return np.asarray(self.predict_proba(states).argmax(axis=1))

    def score(self, demos: Any, y: None = None) -> float:
        """Mean log predictive density of the transitions of demonstrations; higher is better.

        The mean, not the sum, so that folds of unequal length weigh the same in a
        cross-validation; `Posterior.log_predictive` gives every term.
        """
        check_is_fitted(self)
        return float(self.posterior_.log_predictive(demos, extrapolate=self.extrapolate).mean())

    def rollout(self, start_states: Any, length: int, random_state: Any = None) -> Demonstrations:
        """Imitate: simulate the learned policy for `length` states from each start state."""
        check_is_fitted(self)
        return self.posterior_.rollout(
            start_states, length, random_state, extrapolate=self.extrapolate
        )
