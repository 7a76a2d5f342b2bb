"""Updates that every model has: actions, controllers, their concentration, unknown dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.unknown import likelihood_of
from onlooker.gibbs.actions import collapsed_actions, ordinary_actions
from onlooker.gibbs.arrays import make_tables
from onlooker.gibbs.dirichlet import draw_controllers, log_dm
from onlooker.gibbs.slices import slice_sample_log
from onlooker.gibbs.state import State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.problem import Layout, Problem


class CollapsedActions(Update[Any]):
    """``p(a_t = j) ∝ ℓ[t, j] · (ξ_kj - 1[a_t = j] + α)``."""

    name = "actions"

    def __call__(self, state: State[Any]) -> Info:
        """Draw every action with the controllers integrated out."""
        collapsed_actions(
            state.actions, state.labels, state.counts, state.data, state.tables, state.rng
        )
        return NO_INFO


class OrdinaryActions(Update[Any]):
    """``p(a_t = j) ∝ ℓ[t, j] · θ_kj``."""

    name = "actions"

    def __call__(self, state: State[Any]) -> Info:
        """Draw every action given the controllers."""
        assert state.controllers is not None
        ordinary_actions(
            state.actions, state.labels, state.counts, state.data, state.controllers, state.rng
        )
        return NO_INFO


class Controllers(Update[Any]):
    """``θ_k ~ Dir(ξ_k + α)``."""

    name = "controllers"

    def begin(self, state: State[Any]) -> None:
        """A chain with this update has controllers; they are drawn once there are counts."""
        state.controllers = np.zeros((0, 0))

    def __call__(self, state: State[Any]) -> Info:
        """Draw the controller of every slot."""
        assert state.controllers is not None
        draw_controllers(state.controllers, state.counts.cluster, state.tables.alpha, state.rng)
        return NO_INFO


def controllers_given_counts(state: State[Any]) -> Array:
    """``θ_k ~ Dir(ξ_k + α)`` of every slot."""
    controllers = np.empty(state.counts.cluster.shape)
    draw_controllers(controllers, state.counts.cluster, state.tables.alpha, state.rng)
    return controllers


class Concentration(Update[Any]):
    """``p(α | a, z) ∝ p(α) Π_k DM(ξ_k)``; controllers, if drawn, are drawn next."""

    name = "alpha"

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def __call__(self, state: State[Any]) -> Info:
        """Draw α by slice sampling."""
        counts = state.counts

        def log_density(alpha: float) -> float:
            return float(log_dm(alpha, counts.cluster, counts.total) + self.prior.logpdf(alpha))

        alpha = slice_sample_log(log_density, state.hyper["alpha"], state.rng)
        state.hyper["alpha"] = alpha
        state.tables = make_tables(alpha, counts.cluster.shape[1], len(state.actions))
        return NO_INFO


def dynamics_updates(problem: Problem, layout: Layout) -> list[DynamicsParameters]:
    """The dynamics' update, where likelihoods change: unknown parameters or positions."""
    moving = problem.incomplete is not None and problem.states.ndim == 2
    return [DynamicsParameters(problem, layout)] if problem.parameters or moving else []


class DynamicsParameters(Update[Any]):
    """``p(ϑ | a) ∝ p(ϑ) Π_t T(s' | s, a_t, ϑ)``; owns the chain's table of likelihoods.

    Parameters
    ----------
    problem
        Its dynamics may have unknown parameters.
    layout
        How the transitions lie.
    """

    name = "dynamics"

    def __init__(self, problem: Problem, layout: Layout) -> None:
        assert problem.next_states is not None
        self.priors = problem.parameters
        data = layout.data
        self._data = data._replace(likelihood=np.empty_like(data.likelihood), log_scale=np.zeros(0))
        states = problem.states[problem.node_of[data.order]]
        self.model: Any = likelihood_of(problem.dynamics, states, problem.next_states[data.order])

    def begin(self, state: State[Any]) -> None:
        """The priors' means."""
        state.hyper |= {name: prior.mean for name, prior in self.priors.items()}

    def prepare(self, state: State[Any]) -> None:
        """Write the table for the values in the state."""
        self.model.fill(self._values(state), self._data.likelihood)
        state.data = self._data

    def _values(self, state: State[Any]) -> dict[str, float]:
        return {name: state.hyper[name] for name in self.priors}

    def __call__(self, state: State[Any]) -> Info:
        """Draw every parameter, and the new table."""
        if not self.priors:
            return NO_INFO
        log_likelihood = self.model.given(state.actions)
        values = self._values(state)
        for name, prior in self.priors.items():

            def log_density(value: float, name: str = name, prior: Prior = prior) -> float:
                log_prior = prior.logpdf(value)  # outside its support, a model need not answer
                if log_prior == -np.inf:
                    return log_prior
                return float(log_likelihood(values | {name: value}) + log_prior)

            values[name] = slice_sample_log(log_density, values[name], state.rng)
        state.hyper.update(values)
        self.prepare(state)
        return NO_INFO

    def log_density(self, state: State[Any]) -> float:
        """``ln p(s' | s, a, ϑ)`` of all transitions."""
        return float(self.model.given(state.actions)(self._values(state)))
