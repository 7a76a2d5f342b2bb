"""What was not seen, or not exactly, is drawn along with all other unknowns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import Data, State, count
from onlooker.hyper import Prior
from onlooker.missing.paths import (
    Moves,
    arrange,
    draw_paths,
    find_moves,
    make_gaps,
    make_moves,
    transition_at,
)
from onlooker.missing.positions import draw_positions
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.inference.chain import Chain
    from onlooker.missing.seen import Incomplete

NOISE = "observation_noise"


class Imputer(Protocol):
    """Draws what was not seen."""

    def start(self, chain: Chain) -> tuple[dict[str, Array], dict[str, float]]:
        """Arrays and hyper-parameters that a chain's state needs in addition."""

    def restore(self, chain: Chain, state: State) -> None:
        """Bring the chain's data in line with what `state` says of the unseen."""

    def update(self, chain: Chain) -> None:
        """Draw the unseen, and bring the chain's data in line with it."""

    def imputed(self, state: State) -> Array:
        """The states that were not seen."""

    def log_likelihood(self, chain: Chain) -> float:
        """``ln p`` of all transitions and observations, given actions and the unseen."""


def make_imputer(problem: Problem) -> Imputer | None:
    """What the problem asks for."""
    if problem.incomplete is None:
        return None
    if problem.states.ndim == 1:
        return PathImputer(problem, problem.incomplete)
    return PositionImputer(problem, problem.incomplete)


class PathImputer:
    """Unseen states of a finite space, where every state is a node.

    Given the policy, gaps are independent. Controllers that are integrated out are drawn for this
    step alone, ``θ_k ~ Dir(ξ_k + α)``, and forgotten after it: states and actions of the gaps are
    then drawn together given them, which leaves the posterior as it is.
    """

    def __init__(self, problem: Problem, incomplete: Incomplete) -> None:
        dynamics: Any = problem.dynamics
        self._moves: Moves = make_moves(dynamics)
        self._incomplete = incomplete
        self._transition = transition_at(incomplete.starts, len(incomplete.observed))
        self._gaps = make_gaps(incomplete.observed, incomplete.hidden)
        self._move_of = np.empty(len(incomplete.starts), dtype=np.int64)
        self._first = first_states(problem)

    def start(self, chain: Chain) -> tuple[dict[str, Array], dict[str, float]]:
        """The problem's own path."""
        arrays = {"path": self._first.copy()}
        self._arrange(chain, arrays["path"])
        return arrays, {}

    def restore(self, chain: Chain, state: State) -> None:
        """Sort the transitions by where they start now."""
        self._arrange(chain, state.arrays["path"])

    def _arrange(self, chain: Chain, path: Array) -> None:
        starts = self._incomplete.starts
        find_moves(self._moves, path[starts], path[starts + 1], self._move_of)
        layout = chain.layout
        place = np.empty(layout.n_nodes, dtype=np.int64)
        place[layout.nodes] = np.arange(layout.n_nodes)
        first = np.empty(layout.n_nodes + 1, dtype=np.int64)
        order = np.empty(len(starts), dtype=np.int64)
        likelihood = np.empty_like(layout.likelihood)
        arrange(place[path[starts]], self._move_of, self._moves, first, order, likelihood)
        chain.layout = replace(layout, first=first, order=order, likelihood=likelihood)
        chain.data = Data(first, likelihood)

    def update(self, chain: Chain) -> None:
        """Draw states and actions of all gaps."""
        state = chain.state
        if chain.collapsed:
            controllers = chain.controllers_given_counts()
        else:
            controllers = state.arrays["controllers"]
        actions = chain.actions
        draw_paths(
            state.arrays["path"],
            actions,
            self._move_of,
            self._transition,
            self._gaps,
            controllers[chain.labels],
            self._moves,
            state.rng,
        )
        self._arrange(chain, state.arrays["path"])
        state.actions = actions[chain.layout.order]
        n_slots, n_actions = state.counts.cluster.shape
        state.counts = count(state.actions, state.labels, chain.data.first, n_actions, n_slots)

    def imputed(self, state: State) -> Array:
        """``(H,)``."""
        return state.arrays["path"][self._incomplete.hidden]

    def log_likelihood(self, chain: Chain) -> float:
        """``Σ_t ln T(s_{t+1} | s_t, a_t)``."""
        return float(np.log(self._moves.probability[self._move_of, chain.actions]).sum())


def first_states(problem: Problem) -> Array:
    """The states that a problem of incomplete demonstrations was made with."""
    assert problem.incomplete is not None
    assert problem.next_states is not None
    incomplete = problem.incomplete
    states = np.empty_like(incomplete.observed)
    states[incomplete.starts] = problem.states[problem.node_of]
    states[incomplete.starts + 1] = problem.next_states
    return states


class PositionImputer:
    """Unseen or noisy positions, where steps are displacements.

    Nodes stay where their positions were seen, or lie between those seen: the partition prior is
    over these places. What is drawn are the positions that the steps lead from and to.
    """

    def __init__(self, problem: Problem, incomplete: Incomplete) -> None:
        self._incomplete = incomplete
        dynamics: Any = problem.dynamics
        self._dynamics = dynamics
        self._unit_steps: Array = np.array(dynamics.unit_steps)
        self._first = first_states(problem)
        self._seen = ~np.isnan(incomplete.observed)

    def start(self, chain: Chain) -> tuple[dict[str, Array], dict[str, float]]:
        """Where the nodes lie."""
        arrays = {"positions": self._first.copy()}
        noise = self._incomplete.noise
        hyper = {NOISE: start_of(noise)} if isinstance(noise, Prior) else {}
        self._move(chain, arrays["positions"])
        return arrays, hyper

    def restore(self, chain: Chain, state: State) -> None:
        """Take the steps between the positions."""
        self._move(chain, state.arrays["positions"])

    def _move(self, chain: Chain, positions: Array) -> None:
        starts = self._incomplete.starts[chain.layout.order]
        assert chain.parameters is not None
        model: Any = chain.parameters.model
        model.moves[:] = positions[starts + 1] - positions[starts]

    def update(self, chain: Chain) -> None:
        """Draw all positions, then their noise."""
        state, incomplete = chain.state, self._incomplete
        positions = state.arrays["positions"]
        sigma = state.hyper.get("sigma", self._dynamics.sigma)
        drift = np.zeros_like(positions)
        step = state.hyper.get("step", 1.0)
        drift[incomplete.starts] = step * self._unit_steps[chain.actions]
        noise = self._noise(state)
        draw_positions(
            positions, incomplete.observed, incomplete.offsets, drift, sigma, noise, state.rng
        )
        if isinstance(incomplete.noise, Prior):
            self._draw_noise(state, incomplete.noise)
        self._move(chain, positions)
        assert chain.parameters is not None
        chain.parameters.set(state.hyper)

    def _noise(self, state: State) -> float:
        noise = self._incomplete.noise
        return state.hyper[NOISE] if isinstance(noise, Prior) else float(noise)

    def _squares(self, state: State) -> float:
        away = (self._incomplete.observed - state.arrays["positions"])[self._seen]
        return float((away**2).sum())

    def _log_seen(self, noise: float, squares: float) -> float:
        """``Σ ln N(y | x, noise²)`` over what was seen."""
        n = int(self._seen.sum())
        return -n * math.log(noise * math.sqrt(2 * math.pi)) - 0.5 * squares / noise**2

    def _draw_noise(self, state: State, prior: Prior) -> None:
        squares = self._squares(state)
        state.hyper[NOISE] = slice_sample_log(
            lambda noise: self._log_seen(noise, squares) + prior.logpdf(noise),
            state.hyper[NOISE],
            state.rng,
        )

    def imputed(self, state: State) -> Array:
        """``(H, d)``."""
        return state.arrays["positions"][self._incomplete.hidden]

    def log_likelihood(self, chain: Chain) -> float:
        """``Σ_t ln N(x_{t+1} | x_t + step, σ²)``, and of what was seen with noise."""
        assert chain.parameters is not None
        value = chain.parameters.log_likelihood(chain.state)
        noise = self._noise(chain.state)
        if noise == 0.0:
            return value
        return value + self._log_seen(noise, self._squares(chain.state))
