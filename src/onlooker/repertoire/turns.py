"""Turning, relative to the heading: the same rule for all headings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from onlooker.checks import Array, positive_number, stored_array
from onlooker.dynamics.actions import action_rings
from onlooker.dynamics.features import FeatureDynamics, Heading
from onlooker.repertoire.base import Block, Kind, Part, World

_LEAST, _MOST = 1e-3, 1e3  # width of a turn


@dataclass(frozen=True)
class Turns(Kind):
    """To turn by an angle δ, where the heading φ is part of the state (`Heading`).

    Each direction has its mass under a wrapped normal distribution around ``φ + δ``. The heading is
    not rounded to a direction. δ runs round the circle by half the angle between directions.

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
        """Every turn by every width, for each speed; nothing without a heading and directions."""
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
            start = steps[ring.actions[0]]
            block = Turning(
                ring.actions,
                math.atan2(start[1], start[0]),
                np.asarray(self.widths, dtype=np.float64),
                int(columns.start),
                world.n_actions,
            )
            speed = f", {float(np.linalg.norm(start)):.3g}{unit}" if len(rings) > 1 else ""
            names = [
                f"{_turn(k * ring.spacing / 2)} ± {width * ring.spacing:.2g}°{speed}"  # type: ignore[operator]
                for k in range(2 * len(ring.actions))
                for width in self.widths
            ]
            parts.append(Part("turns", names, block))
        return parts


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
