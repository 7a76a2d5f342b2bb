"""Where states can be drawn: coordinates, cells of a grid, or a table and a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from onlooker.checks import Array
from onlooker.posterior import Posterior
from onlooker.problem.problem import Problem

Kind = Literal["real", "grid", "abstract"]
_MOST_SITES = 50_000  # states of a finite space that are drawn, visited or not
_MOST_LAID_OUT = 600  # nodes of a graph
_STEPS = 150  # of the layout


@dataclass(frozen=True)
class Space:
    """The states of a run as places.

    Attributes
    ----------
    kind
        Real vectors; integers with coordinates; integers without.
    sites
        ``(S, d)``: a place for every state that can be shown, the nodes first.
    states
        ``(S,)``: the integer state of each site; None for real vectors.
    n_nodes
        How many of the sites are nodes.
    """

    kind: Kind
    sites: Array
    states: Array | None
    n_nodes: int

    @property
    def nodes(self) -> Array:
        """``(N, d)``: the places of the nodes."""
        return self.sites[: self.n_nodes]

    @property
    def axes(self) -> list[str]:
        """Names of the coordinates."""
        if self.kind == "abstract":
            return ["column", "row"]
        d = self.sites.shape[1]
        return ["x", "y", "z"][:d] if d <= 3 else [f"x{i + 1}" for i in range(d)]

    @cached_property
    def cell(self) -> list[float] | None:
        """Spacing of the sites along each axis, if they lie on a lattice."""
        if self.kind == "real":
            return None
        spacing = [_spacing(column) for column in self.sites.T]
        return None if None in spacing else spacing  # type: ignore[return-value]


def space_of(posterior: Posterior) -> Space:
    """Find places for the states of a run."""
    problem = posterior.problem
    if problem.states.ndim == 2:
        return Space("real", np.asarray(problem.states), None, problem.n_nodes)
    table = getattr(posterior.prior, "coordinates", None)
    n_states = int(problem.states.max()) + 1
    n_states = max(n_states, int(getattr(problem.dynamics, "n_states", 0)))
    if table is not None:
        table = np.asarray(table, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        n_states = len(table)
    states = np.asarray(problem.states)
    if n_states <= _MOST_SITES:
        unseen = np.setdiff1d(np.arange(n_states), states)
        states = np.concatenate([states, unseen])
    if table is not None:
        return Space("grid", table[states], states, problem.n_nodes)
    rank = np.empty(len(states), dtype=np.int64)  # a table without gaps, however large the numbers
    rank[np.argsort(states)] = np.arange(len(states))
    columns = int(np.ceil(np.sqrt(len(states))))
    places = np.column_stack([rank % columns, rank // columns]).astype(np.float64)
    return Space("abstract", places, states, problem.n_nodes)


def _spacing(values: Array) -> float | None:
    distinct = np.unique(values)
    if len(distinct) < 2:
        return 1.0
    gaps = np.diff(distinct)
    steps = gaps / gaps.min()
    on_lattice = np.allclose(steps, np.rint(steps), atol=1e-6)
    return float(gaps.min()) if on_lattice and steps.max() < 1000 else None


# -- what actions do ------------------------------------------------------------------------------


def action_moves(problem: Problem, space: Space) -> Array | None:
    """``(A, d)``: where each action leads on average; None if that cannot be known."""
    steps = getattr(problem.dynamics, "steps", None)
    if space.kind == "real" and steps is not None and np.shape(steps)[1:] == space.sites.shape[1:]:
        return np.asarray(steps)
    moves = _tabular_moves(problem, space)
    return None if moves is None else moves.mean(axis=0)


def expected_moves(problem: Problem, space: Space, policy: Array) -> Array | None:
    """``(N, d)``: the mean move at every node under `policy`, ``(N, A)``."""
    moves = _tabular_moves(problem, space)
    if moves is not None:
        return np.einsum("nad,na->nd", moves, policy)
    steps = action_moves(problem, space)
    return None if steps is None else policy @ steps


def _tabular_moves(problem: Problem, space: Space) -> Array | None:
    """``(N, A, d)``: the mean move of every action at every node of a grid."""
    matrices = getattr(problem.dynamics, "matrices", None)
    if space.kind != "grid" or matrices is None or space.states is None:
        return None
    n_states = matrices[0].shape[0]
    if len(space.states) < n_states or space.states[: len(space.states)].max() >= n_states:
        return None
    table = np.empty_like(space.sites)
    table[space.states] = space.sites
    nodes = np.asarray(problem.states)
    return np.stack([(matrix[nodes] @ table) - table[nodes] for matrix in matrices], axis=1)


# -- a graph of abstract states -------------------------------------------------------------------


def transition_edges(posterior: Posterior) -> Array:
    """``(E, 3)``: pairs of nodes that trajectories went between, and how often."""
    paths = posterior.problem.paths
    if paths is None:
        return np.empty((0, 3), dtype=np.int64)
    keep = np.ones(len(paths.nodes), dtype=bool)
    keep[paths.offsets[1:] - 1] = False
    start = np.flatnonzero(keep)
    pairs = np.sort(np.column_stack([paths.nodes[start], paths.nodes[start + 1]]), axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if len(pairs) == 0:
        return np.empty((0, 3), dtype=np.int64)
    edges, counts = np.unique(pairs, axis=0, return_counts=True)
    return np.column_stack([edges, counts])


def graph_layout(n_nodes: int, edges: Array) -> Array | None:
    """``(N, 2)``: places for nodes such that edges are short (Fruchterman and Reingold, 1991).

    The start is spectral, so the same graph always gets the same picture.
    """
    if n_nodes > _MOST_LAID_OUT or len(edges) == 0:
        return None
    i, j = edges[:, 0], edges[:, 1]
    weight = np.sqrt(edges[:, 2].astype(np.float64))
    place = _spectral(n_nodes, i, j, weight)
    ideal = 1.0 / np.sqrt(n_nodes)
    for step in range(_STEPS):
        apart = place[:, None] - place[None]
        squared = np.maximum((apart**2).sum(axis=2), 1e-9)
        force = ideal**2 * (apart / squared[:, :, None]).sum(axis=1)
        along = place[i] - place[j]
        pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
        np.add.at(force, i, -pull)
        np.add.at(force, j, pull)
        force -= place * 0.5  # islands must not drift away
        length = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-12)
        place = place + force / length * np.minimum(length, 0.1 * (1 - step / _STEPS) + 1e-3)
    place = place - place.mean(axis=0)
    return np.asarray(place / max(np.abs(place).max(), 1e-12))


def _spectral(n: int, i: Array, j: Array, weight: Array) -> Array:
    """The two slowest modes of the graph, with a little of a circle to part what they join."""
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (i, j), -weight)
    np.add.at(laplacian, (j, i), -weight)
    laplacian[np.diag_indices(n)] = -laplacian.sum(axis=1)
    _, modes = np.linalg.eigh(laplacian)
    place = modes[:, 1:3] if n > 2 else np.zeros((n, 2))
    spread = np.maximum(np.abs(place).max(axis=0), 1e-12)
    turn = 2 * np.pi * np.arange(n) / n
    return np.asarray(place / spread + 0.05 * np.column_stack([np.cos(turn), np.sin(turn)]))
