"""Turning, relative to the heading: the same rule for all headings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, softmax

from onlooker.checks import Array, positive_number, stored_array
from onlooker.dynamics.actions import Ring, action_rings
from onlooker.dynamics.base import position_dynamics
from onlooker.dynamics.features import FeatureDynamics, Heading, Speed
from onlooker.repertoire.base import Block, Kind, Part, World

_LEAST, _MOST = 1e-3, 1e3  # width of a turn
_HUGE = 1e150
_LEAST_SHARE = 1e-6  # of a speed: none is impossible


@dataclass(frozen=True)
class Turns(Kind):
    """To turn by an angle δ, where the heading φ is part of the state (`Heading`).

    Each direction has its mass under a wrapped normal distribution around ``φ + δ``. The heading is
    not rounded to a direction. δ runs round the circle by half the angle between directions.

    Where the speed is part of the state too (`Speed`), there is a second kind: to turn by δ and
    keep the speed, whatever it is. The next step is then made at each speed, standing still
    included, as probably as the last one was.

    Parameters
    ----------
    widths
        Standard deviations, in angles between directions.
    """

    widths: tuple[float, ...] = (0.1, 0.3, 1.0, 2.0)

    def __post_init__(self) -> None:
        for width in self.widths:
            if not _LEAST <= positive_number("widths", width) < _MOST:
                raise ValueError(f"widths must be from {_LEAST:g} to {_MOST:g}, got {width}")

    def build(self, world: World) -> list[Part]:
        """Every turn by every width, for each speed; nothing without a heading and directions.

        Then the same at an unchanged speed, where there is more than one.
        """
        dynamics: Any = world.dynamics
        if not isinstance(dynamics, FeatureDynamics) or dynamics.n_position != 2:
            return []
        columns = dynamics.columns_of(Heading)
        rings = [ring for ring in action_rings(dynamics) if ring.spacing is not None]
        if columns is None or not rings:
            return []
        steps = np.array(dynamics.steps)
        parts = []
        unit = " km" if hasattr(dynamics.dynamics, "bearings") else ""
        for ring in rings:
            block = self._turning(ring, steps, int(columns.start), world.n_actions)
            length = float(np.linalg.norm(steps[ring.actions[0]]))
            speed = f", {length:.3g}{unit}" if len(rings) > 1 else ""
            parts.append(Part("turns", self._names(ring, speed), block))
        kept = self._keeping(world, rings, int(columns.start))
        if kept is not None:
            parts.append(Part("kept speed", self._names(rings[0], ", speed unchanged"), kept))
        return parts

    def _turning(self, ring: Ring, steps: Array, column: int, n_actions: int) -> Turning:
        first = steps[ring.actions[0]]
        widths = np.asarray(self.widths, dtype=np.float64)
        return Turning(ring.actions, math.atan2(first[1], first[0]), widths, column, n_actions)

    def _names(self, ring: Ring, speed: str) -> list[str]:
        assert ring.spacing is not None
        return [
            f"{_turn(k * ring.spacing / 2)} ± {width * ring.spacing:.2g}°{speed}"
            for k in range(2 * len(ring.actions))
            for width in self.widths
        ]

    def _keeping(self, world: World, rings: list[Ring], column: int) -> Keeping | None:
        """Where the speed is known, and there are several that all have the same directions."""
        dynamics: Any = world.dynamics
        speed = dynamics.columns_of(Speed)
        steps = np.array(dynamics.steps)
        still = np.flatnonzero(~steps.any(axis=1))[:1]
        actions = [ring.actions for ring in rings]
        if speed is None or len(rings) + len(still) < 2 or len({*map(len, actions)}) > 1:
            return None
        units = [steps[own] / np.linalg.norm(steps[own], axis=1)[:, None] for own in actions]
        if not all(np.allclose(own, units[0], atol=1e-6) for own in units):
            return None
        feature = next(feature for feature, _ in dynamics.parts if isinstance(feature, Speed))
        n_directions = len(actions[0])
        directions = rings[0]._replace(actions=np.arange(n_directions))
        spread = np.asarray(position_dynamics(dynamics).sigma, dtype=np.float64)
        spread = np.broadcast_to(
            spread.reshape(len(spread), -1) if spread.ndim else spread, steps.shape
        )
        groups = [*actions, *([still] if len(still) else [])]
        return Keeping(
            self._turning(directions, units[0], column, n_directions),
            np.array(actions),
            int(still[0]) if len(still) else -1,
            np.array([np.linalg.norm(steps[own[0]]) for own in groups]),
            np.array([spread[own[0]].mean() for own in groups]),
            np.array([world.shares[own].sum() for own in groups]) + _LEAST_SHARE,
            int(speed.start),
            feature,
            world.n_actions,
        )


def _turn(degrees: float) -> str:
    """An angle counter-clockwise, in words."""
    if degrees == 0:
        return "goes straight on"
    if degrees == 180:
        return "turns back"
    return (
        f"turns left by {degrees:.3g}°" if degrees < 180 else f"turns right by {360 - degrees:.3g}°"
    )


@dataclass(frozen=True, eq=False)
class Turning(Block):
    """Masses of directions under wrapped normals around the heading and an angle more."""

    actions: Array
    """``(D,)``: those of one speed, in the order of their directions, spread evenly."""
    first: float
    """Angle of the first."""
    widths: Array
    """Standard deviations, in angles between directions."""
    column: int
    """Where in a state the heading begins, a vector in the plane."""
    n_actions: int

    def __post_init__(self) -> None:
        n = self.actions.size
        stored_array("actions", self.actions, "i", (n,), 0, self.n_actions)
        stored_array("widths", self.widths, np.float64, (self.widths.size,), _LEAST, _MOST)
        if not 0 < len(np.unique(self.actions)) == n or not math.isfinite(self.first):
            raise ValueError("actions must be numbers of actions, each once, from an angle on")
        if type(self.column) is not int or self.column < 0:
            raise ValueError(f"column must be the number of a column, got {self.column!r}")

    @property
    def n(self) -> int:
        """Turns times widths."""
        return 2 * len(self.actions) * len(self.widths)

    def policies(self, states: Array) -> Array:
        """Any direction alike where there is no heading yet."""
        n_directions, n_widths = len(self.actions), len(self.widths)
        heading = states[:, self.column : self.column + 2]
        masses = self._masses(np.arctan2(heading[:, 1], heading[:, 0]))
        # turned by k halves, direction j is as far from the heading as 2 j - k halves are
        half = np.arange(2 * n_directions)
        place = (2 * np.arange(n_directions)[None] - half[:, None]) % (2 * n_directions)
        turned = masses[:, :, place].transpose(0, 2, 1, 3).reshape(len(states), -1, n_directions)
        turned[~heading.any(axis=1)] = 1 / n_directions
        out = np.zeros((len(states), 2 * n_directions * n_widths, self.n_actions))
        out[:, :, self.actions] = turned
        return out

    def _masses(self, heading: Array) -> Array:
        """``(n, widths, 2 D)``: of a bin around each half direction, with no turn."""
        n_directions = len(self.actions)
        bins = (heading - self.first) / (2 * np.pi) * n_directions  # in angles between directions
        sd = self.widths[None, :, None]
        center = np.arange(2 * n_directions) / 2 - bins[:, None, None]
        center = (center + n_directions / 2) % n_directions - n_directions / 2
        masses: Array = np.zeros((len(bins), len(self.widths), 2 * n_directions))
        wraps = 1 + math.ceil(8 * self.widths.max() / n_directions)
        for wrap in range(-wraps, wraps + 1):
            away = center + wrap * n_directions
            masses += ndtr((away + 0.5) / sd) - ndtr((away - 0.5) / sd)
        whole = masses.reshape(len(bins), len(self.widths), n_directions, 2).sum(axis=2)
        return np.asarray(masses / np.tile(whole, n_directions))


@dataclass(frozen=True, eq=False)
class Keeping(Block):
    """Turning, at each speed as probably as the last step was made at it.

    A step of length L was made at speed k with probability ``∝ w_k Σ_a N((L, 0) | a, σ_k² I) / D``
    over its D directions a. To stand still is a speed as well.
    """

    turning: Turning
    """Of directions, rather than of actions."""
    actions: Array
    """``(R, D)``: those of each speed, in the order of their directions."""
    still: int
    """The action that stands still; -1: there is none."""
    lengths: Array
    """``(R,)`` of the steps at each speed, then 0 where an action stands still."""
    noise: Array
    """``σ_k``."""
    shares: Array
    """``w_k``: how many of all steps are made at each speed."""
    column: int
    """Where in a state the speed is."""
    feature: Speed
    """How it is there."""
    n_actions: int

    def __post_init__(self) -> None:
        numbers = (self.still, self.column, self.n_actions)
        if not isinstance(self.turning, Turning) or not isinstance(self.feature, Speed):
            raise ValueError("turning must be a Turning, and feature a Speed")
        if any(type(number) is not int for number in numbers) or self.column < 0:
            raise ValueError(f"still, column and n_actions must be numbers, got {numbers!r}")
        if not -1 <= self.still < self.n_actions:
            raise ValueError(f"still must be the number of an action or -1, got {self.still}")
        shape = (len(self.actions), self.turning.n_actions)
        stored_array("actions", self.actions, "i", shape, 0, self.n_actions)
        n_known = (len(self.actions) + (self.still >= 0),)
        stored_array("lengths", self.lengths, np.float64, n_known, 0.0, _HUGE)
        stored_array("noise", self.noise, np.float64, n_known, 1 / _HUGE, _HUGE)
        stored_array("shares", self.shares, np.float64, n_known, 1 / _HUGE, _HUGE)

    @property
    def n(self) -> int:
        """As many as turns."""
        return self.turning.n

    def speeds(self, states: Array) -> Array:
        """``(n, R)``, or with standing still: how probably the last step was made at each speed."""
        length = self.feature.in_words(states[:, [self.column]])[1]
        n_directions = self.turning.n_actions
        ahead = np.cos(2 * np.pi * np.arange(n_directions) / n_directions)
        logs = np.empty((len(states), len(self.lengths)))
        for k, (own, sigma) in enumerate(zip(self.lengths, self.noise, strict=True)):
            square = (length - own) ** 2 + 2 * length * own * (1 - ahead)  # |(L, 0) - a|²
            logs[:, k] = logsumexp(-square / (2 * sigma**2), axis=1) - 2 * math.log(sigma)
        logs += np.log(self.shares)
        return np.asarray(softmax(logs, axis=1))

    def policies(self, states: Array) -> Array:
        """Turned directions, at speeds as they were."""
        speeds, directions = self.speeds(states), self.turning.policies(states)
        out = np.zeros((*directions.shape[:2], self.n_actions))
        for k, actions in enumerate(self.actions):
            out[:, :, actions] = speeds[:, k, None, None] * directions
        if self.still >= 0:
            out[:, :, self.still] = speeds[:, -1:]
        return out

    def likelihood(self, states: Array, likelihood: Array) -> Array:
        """That of directions, all speeds taken together."""
        speeds, n_moving = self.speeds(states), len(self.actions)
        of_directions = np.einsum("nr,nrd->nd", speeds[:, :n_moving], likelihood[:, self.actions])
        still = speeds[:, -1:] * likelihood[:, [self.still]] if self.still >= 0 else 0.0
        return np.asarray(self.turning.likelihood(states, of_directions) + still)
