"""Example 2 of the paper: a grid world with a circling or an optimal expert."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy import sparse

from onlooker.checks import (
    Array,
    as_policy,
    finite_array,
    positive_integer,
    positive_number,
    require_memory,
)
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import TabularDynamics
from onlooker.dynamics.actions import compass_point
from onlooker.dynamics.rollout import draw_actions, roll_out, walk_size
from onlooker.planning import policy_iteration
from onlooker.worlds.circular import circular_expert

# A table of this many entries (a 32×32 grid with 8 actions) takes 67 MB.
_DENSE_ENTRIES = 1 << 23


class GridWorld:
    """A square grid, steps in the directions of the compass, and an expert.

    State ``i · size + j`` lies at ``coordinates[state] = (x_i, y_j)``; both axes run from
    ``−(size−1)/2`` to ``(size−1)/2``. The default expert is the circling one of
    `CircularMotion`; `GridWorld.with_reward` makes worlds with an optimal expert.

    Parameters
    ----------
    size : int
        States along an axis.
    n_actions : int
        Directions, at angles ``j · 2π / n_actions``.
    step, sigma : float
        Length of a step, and standard deviation of its noise; see `grid_dynamics`.
    expert : array_like of shape (size², n_actions), optional
        The expert's action probabilities; by default `circular_expert` with `radius` and
        `n_sectors`.

    Attributes
    ----------
    dynamics : TabularDynamics
    coordinates : ndarray of shape (size², 2)
    angles : ndarray of shape (n_actions,)
    reward : ndarray of shape (size²,), or None for an expert that follows no reward
    """

    def __init__(
        self,
        size: int = 21,
        n_actions: int = 8,
        *,
        step: float = 1.0,
        sigma: float = 1.0,
        radius: float = 5.0,
        n_sectors: int = 8,
        expert: Any = None,
    ) -> None:
        self.size = positive_integer("size", size, minimum=2)
        self.n_actions = positive_integer("n_actions", n_actions)
        self.dynamics = grid_dynamics(size, n_actions, step=step, sigma=sigma)
        self.coordinates = _coordinates(self.size)
        self.angles = 2 * np.pi * np.arange(self.n_actions) / self.n_actions
        self.reward: Array | None = None
        if expert is None:
            radius = positive_number("radius", radius)
            expert = circular_expert(
                self.coordinates,
                n_actions=n_actions,
                n_sectors=n_sectors,
                radius=radius,
                spread=min(1, (n_actions - 1) // 2),
            )
        self._set_expert(expert)

    @classmethod
    def with_reward(
        cls,
        random_state: int | np.random.Generator | None = None,
        *,
        size: int = 21,
        n_actions: int = 8,
        step: float = 1.0,
        sigma: float = 1.0,
        chance: float = 0.01,
        discount: float = 0.9,
        reward: Any = None,
    ) -> Self:
        """A world with sparse rewards and the expert that is optimal for them.

        Parameters
        ----------
        chance : float
            Probability that a state carries a reward, which is then drawn from N(0, 1). Worlds
            without any reward are drawn again.
        discount : float
            The expert's discount factor.
        reward : array_like of shape (size²,), optional
            Rewards, instead of random ones.
        """
        world = cls(size, n_actions, step=step, sigma=sigma)
        n_states = world.n_states
        if reward is None:
            if not 0 < chance <= 1:
                raise ValueError(f"chance must be above 0 and at most 1, got {chance!r}")
            rng = np.random.default_rng(random_state)
            carries = np.zeros(n_states, dtype=bool)
            while not carries.any():
                carries = rng.random(n_states) < chance
            reward = np.where(carries, rng.normal(size=n_states), 0.0)
        world.reward = finite_array("reward", reward, ndim=1)
        world._set_expert(policy_iteration(world.dynamics, world.reward, discount).policy)
        return world

    def __repr__(self) -> str:
        expert = "circling" if self.reward is None else "optimal"
        return f"GridWorld({self.size}×{self.size}, n_actions={self.n_actions}, {expert} expert)"

    @property
    def n_states(self) -> int:
        """Number of states, size²."""
        return self.size**2

    def policy(self, states: Any = None) -> Array:
        """The expert's action probabilities, shape (n, n_actions); at all states by default."""
        if states is None:
            return self._expert.copy()
        return np.asarray(self._expert[self.dynamics.check_states("states", states)])

    def rollout(
        self,
        n_trajectories: int = 100,
        length: int = 10,
        random_state: int | np.random.Generator | None = None,
        *,
        start: Any = None,
    ) -> tuple[Demonstrations, list[Array]]:
        """Simulate the expert.

        Parameters
        ----------
        n_trajectories, length : int
            How many trajectories, each of how many states.
        start : array_like of shape (n_trajectories,), optional
            First states; by default uniformly random ones.

        Returns
        -------
        demonstrations, actions
            `actions` holds one integer array per trajectory, one shorter than its states.
        """
        rng = np.random.default_rng(random_state)
        n, length = walk_size(n_trajectories, length)
        if start is None:
            first = rng.integers(self.n_states, size=n)
        else:
            first = self.dynamics.check_states("start", start).astype(np.int64)
            if len(first) != n:
                raise ValueError(f"start has {len(first)} states for {n} trajectories")

        def act(states: Array, rng: np.random.Generator) -> Array:
            return draw_actions(self._cumulative[states], rng)

        return roll_out(first, length, act, self.dynamics, rng)

    def _set_expert(self, expert: Any) -> None:
        table = as_policy("expert", expert, (self.n_states, self.n_actions))
        self._expert = table
        self._cumulative = np.cumsum(table, axis=1)


def grid_dynamics(
    size: int = 21, n_actions: int = 8, *, step: float = 1.0, sigma: float = 1.0
) -> TabularDynamics:
    """Transitions of a square grid whose actions are blurred steps in `n_actions` directions.

    The probabilities are proportional to the density of ``N(s + step·e_a, sigma² I)`` at the
    points of the unbounded integer grid; what falls outside the square is moved to its nearest
    border state. Density and square are products over the two axes, so each axis is done alone.

    Large grids come as sparse matrices that leave out what lies beyond six standard deviations
    (a mass below 1e-8).
    """
    size = positive_integer("size", size, minimum=2)
    n_actions = positive_integer("n_actions", n_actions)
    step, sigma = positive_number("step", step), positive_number("sigma", sigma)
    is_dense = n_actions * size**4 <= _DENSE_ENTRIES
    reach = math.ceil(step + 6 * sigma) + (size if is_dense else 0)
    entries = n_actions * (size * min(2 * reach + 1, size)) ** 2
    what = f"a grid of {size:,} × {size:,} states with {n_actions:,} actions"
    require_memory(24 * entries, what, "choose a smaller one")
    require_memory(48 * size * reach, f"steps across {reach:,} states", "choose smaller ones")
    angles = 2 * np.pi * np.arange(n_actions) / n_actions
    along_x = [_axis_table(size, step * np.cos(angle), sigma, reach) for angle in angles]
    along_y = [_axis_table(size, step * np.sin(angle), sigma, reach) for angle in angles]
    points = [compass_point(90 - math.degrees(angle)) for angle in angles]
    about: Any = ("circle", points if 16 % n_actions == 0 else None)
    if is_dense:
        x = np.array([table.toarray() for table in along_x])
        y = np.array([table.toarray() for table in along_y])
        table = np.einsum("aik,ajl->ijakl", x, y)
        return TabularDynamics(table.reshape(size**2, n_actions, size**2), *about)
    pairs = zip(along_x, along_y, strict=True)
    matrices = [sparse.csr_array(sparse.kron(x, y, format="csr")) for x, y in pairs]
    return TabularDynamics(matrices, *about)


def _axis_table(size: int, shift: float, sigma: float, reach: int) -> sparse.csr_array:
    """One axis: (size, size) probabilities of moving from a position to another."""
    offsets = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * ((offsets - shift) / sigma) ** 2)
    weight /= weight.sum()
    rows = np.repeat(np.arange(size), len(offsets))
    columns = np.clip(rows + np.tile(offsets, size), 0, size - 1)
    table = sparse.coo_array((np.tile(weight, size), (rows, columns)), shape=(size, size))
    return table.tocsr()


def _coordinates(size: int) -> Array:
    axis = np.arange(size) - (size - 1) / 2
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
