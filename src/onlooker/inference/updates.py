"""Updates that every model has: actions, controllers, their concentration, unknown dynamics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.unknown import likelihood_of
from onlooker.gibbs.actions import collapsed_actions, ordinary_actions
from onlooker.gibbs.arrays import Base, Data, Tables, make_tables, sum_base
from onlooker.gibbs.behaviours import collapsed_behaviours
from onlooker.gibbs.concentrations import draw_log_alpha, draw_masses
from onlooker.gibbs.dirichlet import draw_controllers, log_dm
from onlooker.gibbs.slices import slice_sample_log
from onlooker.gibbs.state import State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior, closed_form
from onlooker.partitions.base import Hyper
from onlooker.problem import Layout, Problem

_NONE = np.zeros(0)


class CollapsedActions(Update[Any]):
    """``p(a_t = j) ∝ ℓ[t, j] · (ξ_kj - 1[a_t = j] + α)``."""

    name = "actions"

    def __call__(self, state: State[Any]) -> Info:
        """Draw every action with the controllers integrated out."""
        collapsed_actions(
            state.actions, state.labels, state.counts, state.data, state.tables, state.rng
        )
        return NO_INFO


class Behaviours(Update[Any]):
    """The same, some passes over, at the cost of the actions in use.

    Between passes α and the masses of the kinds are drawn: once a sweep, masses mix far worse.
    """

    name = "actions"

    def __init__(self, passes: int, layout: Layout, alpha: Hyper) -> None:
        self.passes = passes
        self._layout = layout
        self._base: tuple[Data | None, Any] = (None, None)
        self._sizes = np.bincount(layout.problem.kind_of).astype(np.float64)
        self._form = np.array((isinstance(alpha, Prior) and closed_form(alpha)) or [])

    def prepare(self, state: State[Any]) -> None:
        """The likelihoods may have changed."""
        self._base = (None, None)

    def __call__(self, state: State[Any]) -> Info:
        """Draw every action with the controllers integrated out; tables are made afterwards."""
        data, tables = state.data, state.tables
        if self._base[0] is not data:
            shared = data is self._layout.data  # by all chains
            base = self._layout.base_sums if shared else sum_base(data.likelihood, tables.kind)
            self._base = data, base
        log_alpha, by_kind = collapsed_behaviours(
            self.passes,
            state.actions,
            state.labels,
            state.counts,
            data,
            self._base[1],
            tables,
            _NONE if state.masses is None else state.masses,
            self._sizes,
            self._form,
            state.rng,
        )
        if len(self._form) > 0:
            state.hyper["alpha"] = math.exp(log_alpha)
        state.tables = tables._replace(
            alpha=state.hyper["alpha"], share=by_kind[tables.kind], by_kind=by_kind
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
        draw_controllers(state.controllers, state.counts.cluster, state.tables, state.rng)
        return NO_INFO


def controllers_given_counts(state: State[Any]) -> Array:
    """``θ_k ~ Dir(ξ_k + α)`` of every slot."""
    controllers = np.empty(state.counts.cluster.shape)
    draw_controllers(controllers, state.counts.cluster, state.tables, state.rng)
    return controllers


class Concentration(Update[Any]):
    """``p(α | a, z) ∝ p(α) Π_k DM(ξ_k)``; controllers, if drawn, are drawn next."""

    name = "alpha"

    def __init__(self, prior: Prior) -> None:
        self.prior = prior
        form = closed_form(prior)
        self._form = None if form is None else np.array(form)

    def __call__(self, state: State[Any]) -> Info:
        """Draw α by slice sampling."""
        state.hyper["alpha"] = alpha = self._drawn(state)
        state.tables = state.tables._replace(alpha=alpha)
        state.tables = tables_again(state)
        return NO_INFO

    def _drawn(self, state: State[Any]) -> float:
        """In one kernel, unless the prior is the user's own."""
        counts, tables, now = state.counts, state.tables, state.hyper["alpha"]
        if self._form is None:
            return slice_sample_log(
                lambda alpha: (
                    log_dm(alpha, tables.share, counts.cluster, counts.total)
                    + self.prior.logpdf(alpha)
                ),
                now,
                state.rng,
            )
        return math.exp(
            draw_log_alpha(
                math.log(now),
                tables.by_kind,
                tables.kind,
                counts.cluster,
                counts.total,
                self._form,
                state.rng,
            )
        )


def tables_again(state: State[Any]) -> Tables:
    """The tables for the α and the shares that they hold."""
    tables = state.tables
    base = Base(tables.by_kind, tables.kind)
    return make_tables(tables.alpha, len(tables.kind), len(state.actions), base)


class KindMasses(Update[Any]):
    """The masses of the kinds of behaviours, ``w ~ Dir(1)``, given how often each was drawn.

    Behaviours of a kind are alike: each has its kind's mass over the number of them.
    """

    name = "kinds"

    def __init__(self, problem: Problem, tabulate: bool = True) -> None:
        self.tabulate = tabulate
        self._sizes = np.bincount(problem.kind_of).astype(np.float64)
        self._n = problem.n_behaviours

    def begin(self, state: State[Any]) -> None:
        """All alike."""
        n = len(self._sizes)
        state.masses = np.full(n, 1 / n)

    def __call__(self, state: State[Any]) -> Info:
        """Draw all masses."""
        assert state.masses is not None
        kind = state.tables.kind
        draw_masses(
            state.masses,
            state.counts.cluster,
            state.counts.total,
            kind,
            self._sizes,
            self._n * state.tables.alpha,
            state.rng,
        )
        by_kind = self._n * state.masses / self._sizes
        state.tables = state.tables._replace(share=by_kind[kind], by_kind=by_kind)
        if self.tabulate:
            state.tables = tables_again(state)
        return NO_INFO

    def kept(self, state: State[Any]) -> dict[str, Array]:
        """The masses, with sum 1."""
        assert state.masses is not None
        return {"kinds": state.masses.copy()}

    def log_density(self, state: State[Any]) -> float:
        """``ln p(w)``."""
        return math.lgamma(len(self._sizes))


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
        self._data = data.own_rows()._replace(log_scale=np.zeros(0))
        states = problem.start_states[data.order]
        self.model: Any = likelihood_of(problem.dynamics, states, problem.next_states[data.order])

    def begin(self, state: State[Any]) -> None:
        """The priors' means."""
        state.hyper |= {name: prior.mean for name, prior in self.priors.items()}

    def prepare(self, state: State[Any]) -> None:
        """Write the table for the values in the state."""
        self.model.fill(self._values(state), self._data.likelihood)
        state.data = self._data._replace()  # another one: what follows from it is out of date

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
