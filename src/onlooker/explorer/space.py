"""Where states can be drawn: coordinates, cells of a grid, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from onlooker.checks import Array
from onlooker.explorer.coast import Box, land
from onlooker.findings.names import axis_names
from onlooker.findings.opened import OpenedRun
from onlooker.problem.problem import Problem

Kind = Literal["real", "grid", "abstract"]
_MAX_SITES = 50_000  # states of a finite space that are drawn, visited or not


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
    axes, units
        Names of the coordinates, and their units (empty where they are not known).
    decimals
        Digits after the point at which coordinates are written; None: as they come.
    geographic
        Whether the first two coordinates are longitude and latitude.
    """

    kind: Kind
    sites: Array
    states: Array | None
    n_nodes: int
    axes: list[str]
    units: list[str]
    decimals: list[int] | None = None
    geographic: bool = False

    @cached_property
    def cell(self) -> list[float] | None:
        """Spacing of the sites along each axis, if they lie on a lattice."""
        if self.kind == "real":
            return None
        spacing = [_spacing(column) for column in self.sites.T]
        return None if None in spacing else spacing  # type: ignore[return-value]

    @cached_property
    def meridian(self) -> float | None:
        """The longitude in the middle: all others are shown within 180° of it."""
        if not self.geographic:
            return None
        angle = np.radians(self.sites[:, 0])
        return float(np.round(np.degrees(np.arctan2(np.sin(angle).sum(), np.cos(angle).sum()))))

    @cached_property
    def extent(self) -> list[list[float]] | None:
        """The range of each real coordinate without what lies far off, which would squeeze it.

        Far off is what lies further beyond the middle 95 % of the sites than these are wide.
        """
        if self.kind != "real":
            return None
        low, high = np.quantile(self._unwrapped, [0.025, 0.975], axis=0)
        width = np.where(high > low, high - low, np.inf)
        inside = (self._unwrapped >= low - width) & (self._unwrapped <= high + width)
        return [
            [float(x[near].min()), float(x[near].max())]
            for x, near in zip(self._unwrapped.T, inside.T, strict=True)
        ]

    @cached_property
    def _unwrapped(self) -> Array:
        if self.meridian is None:
            return self.sites
        sites = self.sites.copy()
        sites[:, 0] = (sites[:, 0] - self.meridian + 180) % 360 - 180 + self.meridian
        return sites

    @cached_property
    def land(self) -> list[dict[str, Any]]:
        """Outlines of the land around the sites: all of it first, then the part in view."""
        if self.extent is None or not self.geographic:
            return []
        whole = [[float(x.min()), float(x.max())] for x in self._unwrapped[:, :2].T]
        boxes = [self.extent[:2]] if self.extent[:2] == whole else [whole, self.extent[:2]]
        return [land(_wider(box)) for box in boxes]


def space_of(run: OpenedRun) -> Space:
    """Find places for the states of a run."""
    problem = run.posterior.problem
    n_nodes = problem.n_nodes
    if problem.states.ndim == 2:
        sites = np.asarray(problem.states)
        return Space(
            "real", sites, None, n_nodes, run.axes, run.units, run.decimals, run.geographic
        )
    geometry = run.posterior.prior.geometry(problem)
    table = None if geometry is None else geometry.table
    n_states = int(problem.states.max()) + 1
    n_states = max(n_states, int(getattr(problem.dynamics, "n_states", 0)))
    if table is not None:
        n_states = len(table)
    states = np.asarray(problem.states)
    if n_states <= _MAX_SITES:
        unseen = np.setdiff1d(np.arange(n_states), states)
        states = np.concatenate([states, unseen])
    if table is not None:
        axes = axis_names(None, table.shape[1])
        return Space("grid", table[states], states, n_nodes, axes, [""] * len(axes))
    rank = np.empty(len(states), dtype=np.int64)  # a table without gaps, however large the numbers
    rank[np.argsort(states)] = np.arange(len(states))
    columns = int(np.ceil(np.sqrt(len(states))))
    places = np.column_stack([rank % columns, rank // columns]).astype(np.float64)
    return Space("abstract", places, states, n_nodes, ["column", "row"], ["", ""])


def _wider(box: list[list[float]]) -> Box:
    """A box with its size around it on every side, for who zooms out; no more than the Earth."""
    size = max(1.0, *(high - low for low, high in box))
    (west, east), (south, north) = box
    return (west - size, east + size), (max(-90.0, south - size), min(90.0, north + size))


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
    n_dims = space.sites.shape[1]
    if space.kind == "real" and steps is not None and np.shape(steps)[1] <= n_dims:
        steps = np.asarray(steps)
        return np.pad(steps, [(0, 0), (0, n_dims - steps.shape[1])])  # features do not move
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
