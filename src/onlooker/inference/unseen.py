"""States that were not seen, or not exactly: sampled jointly with all other unknowns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.arrays import count, smallest_int
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.inference.updates import DynamicsParameters, controllers_given_counts
from onlooker.missing.actions import Steps, Walk, draw_actions, make_runs, make_steps, scaled
from onlooker.missing.paths import (
    arrange,
    draw_paths,
    find_moves,
    make_gaps,
    make_moves,
    transition_at,
)
from onlooker.missing.positions import draw_positions
from onlooker.problem import Layout, Problem

NOISE = "observation_noise"


class Unseen(NamedTuple):
    """All states of the trajectories, as they are thought to be now."""

    states: Array


def unseen_updates(
    problem: Problem, layout: Layout, dynamics: list[DynamicsParameters]
) -> list[Update[Any]]:
    """What draws the unseen states of a problem; nothing if all were seen."""
    if problem.incomplete is None:
        return []
    if problem.states.ndim == 1:
        return [UnseenPath(problem, layout)]
    return [UnseenPositions(problem, layout, dynamics[0])]


class UnseenPath(Update[Any]):
    """Unseen states of a finite space, where every state is a node.

    Given the policy, gaps are independent. Controllers that are integrated out are drawn for this
    step alone, ``θ_k ~ Dir(ξ_k + α)``, and forgotten after it: states and actions of the gaps are
    then drawn together given them, which leaves the posterior as it is.
    """

    name = "unseen"

    def __init__(self, problem: Problem, layout: Layout) -> None:
        assert problem.incomplete is not None
        self._layout = layout
        dynamics: Any = problem.dynamics
        self._moves = make_moves(dynamics)
        self._incomplete = problem.incomplete
        self._transition = transition_at(
            problem.incomplete.starts, len(problem.incomplete.observed)
        )
        self._gaps = make_gaps(problem.incomplete.observed, problem.incomplete.hidden)
        self._move_of = np.empty(len(problem.incomplete.starts), dtype=np.int64)
        self._first = first_states(problem)

    def begin(self, state: State[Any]) -> None:
        """The problem's own path."""
        state.unseen = Unseen(self._first.copy())

    def prepare(self, state: State[Any]) -> None:
        """Sort the transitions by where they start now."""
        path, starts, layout = state.unseen.states, self._incomplete.starts, self._layout
        find_moves(self._moves, path[starts], path[starts + 1], self._move_of)
        first = np.empty(layout.n_nodes + 1, dtype=np.int64)
        order = np.empty(len(starts), dtype=np.int64)
        data = layout.data.own_rows()
        arrange(
            layout.place[path[starts]], self._move_of, self._moves, first, order, data.likelihood
        )
        state.data = data._replace(first=first, order=order, log_scale=np.zeros(0))

    def __call__(self, state: State[Any]) -> Info:
        """Draw states and actions of all gaps."""
        controllers = state.controllers
        if controllers is None:
            controllers = controllers_given_counts(state)
        actions = state.data.unsorted(state.actions)
        draw_paths(
            state.unseen.states,
            actions,
            self._move_of,
            self._transition,
            self._gaps,
            controllers[self._layout.of_nodes(state.labels)],
            self._moves,
            state.rng,
        )
        self.prepare(state)
        state.actions = actions[state.data.order]
        n_slots, n_actions = state.counts.cluster.shape
        state.counts = count(state.actions, state.labels, state.data.first, n_actions, n_slots)
        return NO_INFO

    def log_density(self, state: State[Any]) -> float:
        """``Σ_t ln T(s_{t+1} | s_t, a_t)``."""
        actions = state.data.unsorted(state.actions)
        return float(np.log(self._moves.probability[self._move_of, actions]).sum())

    def kept(self, state: State[Any]) -> dict[str, Array]:
        """The states that were not seen."""
        states = state.unseen.states[self._incomplete.hidden]
        return {"imputed": states.astype(smallest_int(self._layout.n_nodes))} if len(states) else {}


class UnseenPositions(Update[Any]):
    """Unseen or noisy positions, where steps are displacements.

    Nodes stay where their positions were seen, or lie between those seen: the partition prior is
    over these places. What is drawn are the positions that the steps lead from and to: first the
    actions with all positions integrated out, then the positions given the actions.
    """

    name = "unseen"

    def __init__(self, problem: Problem, layout: Layout, likelihood: DynamicsParameters) -> None:
        assert problem.incomplete is not None
        self._incomplete = problem.incomplete
        self._likelihood = likelihood
        self._starts = problem.incomplete.starts[layout.data.order]
        dynamics: Any = problem.dynamics
        self._sigma: float = dynamics.sigma
        self._steps = make_steps(np.array(dynamics.unit_steps))
        self._runs = make_runs(
            problem.incomplete.observed, problem.incomplete.starts, problem.incomplete.offsets
        )
        self._place = layout.place[problem.node_of]
        self._first = first_states(problem)
        self._seen = ~np.isnan(problem.incomplete.observed)

    def begin(self, state: State[Any]) -> None:
        """Where the nodes lie."""
        state.unseen = Unseen(self._first.copy())
        if isinstance(self._incomplete.noise, Prior):
            state.hyper[NOISE] = start_of(self._incomplete.noise)

    def prepare(self, state: State[Any]) -> None:
        """Take the steps between the positions."""
        positions = state.unseen.states
        self._likelihood.model.moves[:] = positions[self._starts + 1] - positions[self._starts]

    def __call__(self, state: State[Any]) -> Info:
        """Draw actions without positions, then all positions, then their noise."""
        incomplete, positions = self._incomplete, state.unseen.states
        sigma, noise = state.hyper.get("sigma", self._sigma), self._noise(state)
        steps = scaled(self._steps, state.hyper.get("step", 1.0))
        actions = self._draw_actions(state, steps, sigma, noise)
        drift = np.zeros_like(positions)
        drift[incomplete.starts] = steps.one[:, actions].T
        draw_positions(
            positions, incomplete.observed, incomplete.offsets, drift, sigma, noise, state.rng
        )
        if isinstance(incomplete.noise, Prior):
            self._draw_noise(state, incomplete.noise)
        self.prepare(state)
        self._likelihood.prepare(state)
        return NO_INFO

    def _draw_actions(self, state: State[Any], steps: Steps, sigma: float, noise: float) -> Array:
        """Draw the actions with the positions integrated out; in the problem's order."""
        n_actions = state.counts.cluster.shape[1]
        walk = Walk(
            state.data.unsorted(state.actions),
            self._place,
            state.labels,
            state.counts,
            state.tables.alpha * state.tables.share,
            np.empty((0, n_actions)) if state.controllers is None else state.controllers,
        )
        draw_actions(walk, steps, self._runs, self._incomplete.observed, sigma, noise, state.rng)
        state.actions = walk.actions[state.data.order]
        return walk.actions

    def _noise(self, state: State[Any]) -> float:
        noise = self._incomplete.noise
        return state.hyper[NOISE] if isinstance(noise, Prior) else float(noise)

    def _squares(self, state: State[Any]) -> float:
        away = (self._incomplete.observed - state.unseen.states)[self._seen]
        return float((away**2).sum())

    def _log_seen(self, noise: float, squares: float) -> float:
        """``Σ ln N(y | x, noise²)`` over what was seen."""
        n = int(self._seen.sum())
        return -n * math.log(noise * math.sqrt(2 * math.pi)) - 0.5 * squares / noise**2

    def _draw_noise(self, state: State[Any], prior: Prior) -> None:
        squares = self._squares(state)
        state.hyper[NOISE] = slice_sample_log(
            lambda noise: self._log_seen(noise, squares) + prior.logpdf(noise),
            state.hyper[NOISE],
            state.rng,
        )

    def log_density(self, state: State[Any]) -> float:
        """``Σ ln N(y | x, noise²)``; nothing where positions were seen exactly."""
        noise = self._noise(state)
        return self._log_seen(noise, self._squares(state)) if noise > 0.0 else 0.0

    def kept(self, state: State[Any]) -> dict[str, Array]:
        """The positions that were not seen."""
        positions = state.unseen.states[self._incomplete.hidden]
        return {"imputed": positions} if len(positions) else {}


def first_states(problem: Problem) -> Array:
    """The states that a problem of incomplete demonstrations was made with."""
    assert problem.incomplete is not None
    assert problem.next_states is not None
    incomplete = problem.incomplete
    states = np.empty_like(incomplete.observed)
    states[incomplete.starts] = problem.states[problem.node_of]
    states[incomplete.starts + 1] = problem.next_states
    return states
