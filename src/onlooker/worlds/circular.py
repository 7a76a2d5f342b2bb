"""Example 1 of the paper: circular motion in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array, positive_integer, positive_number, require_memory
from onlooker.demonstrations import Demonstrations, as_real_states
from onlooker.dynamics import DisplacementDynamics
from onlooker.dynamics.rollout import roll_out, walk_size


class CircularMotion:
    """An agent that circles the origin, knowing only the sector it is in (Figure 3).

    Inside `radius` it wants to go counter-clockwise, outside clockwise, and picks uniformly among
    the best action and the `spread` neighbours on either side of it.

    Parameters
    ----------
    n_actions : int
        Directions, at angles ``j · 2π / n_actions``.
    n_sectors : int
        Sectors of equal angle, the first centred on the x axis.
    radius : float
        Where the sense of rotation changes.
    spread : int
        Neighbours of the best action that are as likely, on either side.
    step, sigma : float
        Length of a step, and standard deviation of its noise.

    Attributes
    ----------
    dynamics : DisplacementDynamics
    angles : ndarray of shape (n_actions,)
    coordinates : ndarray of shape (441, 2)
        A regular grid on [−10, 10]², to judge a policy off the trajectories.
    """

    def __init__(
        self,
        n_actions: int = 24,
        n_sectors: int = 8,
        radius: float = 5.0,
        *,
        spread: int = 1,
        step: float = 1.0,
        sigma: float = 0.2,
    ) -> None:
        self.n_actions = positive_integer("n_actions", n_actions)
        self.n_sectors = _check_sectors(n_sectors)
        self.radius = positive_number("radius", radius)
        self.spread = _check_spread(spread, self.n_actions)
        self.dynamics = DisplacementDynamics.compass(self.n_actions, step=step, sigma=sigma)
        self.angles = 2 * np.pi * np.arange(self.n_actions) / self.n_actions
        axis = np.linspace(-10.0, 10.0, 21)
        self.coordinates = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def __repr__(self) -> str:
        return (
            f"CircularMotion(n_actions={self.n_actions}, n_sectors={self.n_sectors}, "
            f"radius={self.radius:g}, sigma={self.dynamics.sigma:g})"
        )

    def regions(self, states: Any) -> Array:
        """The expert's own partition: sector, plus `n_sectors` outside the radius."""
        return _regions(_plane(states), self.n_sectors, self.radius)

    def controllers(self, states: Any) -> Array:
        """The number of the expert's controller at each state, below `n_sectors`.

        A sector inside the radius and the opposite one outside share a controller.
        """
        heading = np.angle(self.policy(states) @ np.exp(1j * self.angles))
        return np.rint(heading * self.n_sectors / (2 * np.pi)).astype(np.int64) % self.n_sectors

    def policy(self, states: Any) -> Array:
        """The expert's action probabilities, shape (n, n_actions)."""
        return circular_expert(
            states,
            n_actions=self.n_actions,
            n_sectors=self.n_sectors,
            radius=self.radius,
            spread=self.spread,
        )

    def rollout(
        self,
        n_trajectories: int = 10,
        length: int = 100,
        random_state: int | np.random.Generator | None = None,
        *,
        start: Any = None,
    ) -> tuple[Demonstrations, list[Array]]:
        """Simulate the expert.

        Parameters
        ----------
        n_trajectories, length : int
            How many trajectories, each of how many states.
        start : array_like of shape (n_trajectories, 2), optional
            First states; by default random points of the unit circle.

        Returns
        -------
        demonstrations, actions
            `actions` holds one integer array per trajectory, one shorter than its states.
        """
        rng = np.random.default_rng(random_state)
        n, length = walk_size(n_trajectories, length, 2)
        if start is None:
            angle = rng.uniform(0.0, 2 * np.pi, size=n)
            first = np.column_stack([np.cos(angle), np.sin(angle)])
        else:
            first = _plane(start)
            if len(first) != n:
                raise ValueError(f"start has {len(first)} states for {n} trajectories")

        def act(states: Array, rng: np.random.Generator) -> Array:
            best = _best_actions(states, self.n_actions, self.n_sectors, self.radius)
            shift = rng.integers(-self.spread, self.spread + 1, size=len(states))
            return np.asarray((best + shift) % self.n_actions)

        return roll_out(first, length, act, self.dynamics, rng)


def circular_expert(
    states: Any,
    *,
    n_actions: int,
    n_sectors: int = 8,
    radius: float = 5.0,
    spread: int = 1,
) -> Array:
    """Action probabilities, shape (n, n_actions), of the circling expert at points of the plane."""
    xy = _plane(states)
    best = _best_actions(xy, n_actions, _check_sectors(n_sectors), radius)
    what = f"the policy at {len(xy):,} points with {n_actions:,} actions"
    require_memory(8 * len(xy) * n_actions, what, "ask at fewer points at a time")
    policy = np.zeros((len(xy), n_actions))
    width = 2 * _check_spread(spread, n_actions) + 1
    for shift in range(-spread, spread + 1):
        policy[np.arange(len(xy)), (best + shift) % n_actions] = 1 / width
    return policy


def _best_actions(xy: Array, n_actions: int, n_sectors: int, radius: float) -> Array:
    """The action nearest to the tangent at the middle of the sector; the first of two as near."""
    region = _regions(xy, n_sectors, radius)
    turn = np.where(region < n_sectors, 0.25, -0.25)
    # In units of one action; the nudge settles exact halves against rounding.
    target = ((region % n_sectors) / n_sectors + turn) * n_actions
    return np.asarray(np.ceil(target - 0.5 - 1e-9).astype(np.int64) % n_actions)


def _regions(xy: Array, n_sectors: int, radius: float) -> Array:
    sector = np.rint(np.arctan2(xy[:, 1], xy[:, 0]) * (n_sectors / (2 * np.pi))).astype(np.int64)
    outside = np.einsum("nd,nd->n", xy, xy) > radius**2
    return np.asarray(sector % n_sectors + n_sectors * outside)


def _plane(states: Any) -> Array:
    xy = np.asarray(states)
    if xy.ndim != 2 or xy.shape[1] != 2 or xy.dtype.kind not in "iuf":
        raise ValueError(f"states must be (n, 2) numbers, points of the plane; got {xy.shape}")
    return as_real_states("states", xy)


def _check_sectors(n_sectors: int) -> int:
    n_sectors = positive_integer("n_sectors", n_sectors)
    if n_sectors > 2**52:
        raise ValueError(f"n_sectors must be at most 2**52, what floats can tell; got {n_sectors}")
    return n_sectors


def _check_spread(spread: int, n_actions: int) -> int:
    spread = positive_integer("spread", spread, minimum=0)
    if 2 * spread + 1 > n_actions:
        raise ValueError(f"spread={spread} needs at least {2 * spread + 1} actions")
    return spread
