"""What actions are called, and which of them are neighbours."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics

_COMPASS = [
    "N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE",
    "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW",
]  # fmt: skip
_SAME = 1e-6  # radians between directions that are one
_EVEN = 1.5  # times the median gap: a wider one opens a circle


class Ring(NamedTuple):
    """Actions in their order, each next to its neighbours."""

    actions: Array
    closed: bool
    """A circle: the last is next to the first."""
    spacing: float | None = None
    """Degrees from one to the next, where they are directions spread evenly."""


def action_rings(dynamics: Any) -> list[Ring]:
    """Which actions are neighbours: by the method ``action_rings`` of the dynamics, if it has one.

    Directions make a circle for every speed, steps on the line make a line. A dynamics of your own
    may offer an order of its actions by such a method.
    """
    offered = getattr(dynamics, "action_rings", None)
    return [] if offered is None else list(offered())


def rings_of_steps(steps: Array) -> list[Ring]:
    """Which of the actions are neighbours that are steps, ``(A, d)``."""
    if steps.shape[1] == 1:
        return [Ring(np.argsort(steps[:, 0], kind="stable"), closed=False)]
    if steps.shape[1] > 2:
        return []
    moving = np.flatnonzero(np.linalg.norm(steps, axis=1) > 0)
    angle = np.arctan2(steps[moving, 1], steps[moving, 0])
    angle = np.where(angle < -_SAME, angle + 2 * np.pi, angle)
    order = np.lexsort([np.linalg.norm(steps[moving], axis=1), np.round(angle / _SAME)])
    moving, angle = moving[order], angle[order]
    new = np.concatenate([[True], np.diff(angle) > _SAME]) if len(angle) else np.zeros(0, bool)
    start = np.flatnonzero(new)
    speed = np.arange(len(angle)) - np.repeat(start, np.diff([*start, len(angle)]))
    return [_ring(moving[speed == s], angle[speed == s]) for s in np.unique(speed)]


def _ring(actions: Array, angle: Array) -> Ring:
    """Directions in the order of their angles: a circle, or a line that begins behind a gap."""
    gaps = np.diff(np.append(angle, angle[0] + 2 * np.pi))
    widest = int(gaps.argmax())
    if len(actions) < 3 or gaps[widest] > _EVEN * np.median(gaps):
        return Ring(np.roll(actions, -widest - 1), closed=False)
    even = bool(np.ptp(gaps) < len(gaps) * _SAME)
    return Ring(actions, closed=True, spacing=360.0 / len(gaps) if even else None)


# -- names ----------------------------------------------------------------------------------------


def action_names(dynamics: Any, n_actions: int, moves: Array | None = None) -> list[str]:
    """Names that the dynamics has; directions and lengths where actions are steps; else numbers.

    `moves` are mean moves, ``(A, d)``, where actions are no steps: in the plane their directions
    are added.
    """
    given = getattr(dynamics, "action_names", None)
    if given is not None:
        return list(given)
    position: Any = position_dynamics(dynamics)
    steps = getattr(position, "steps", None)
    if steps is None:
        names = [f"action {j}" for j in range(n_actions)]
        if moves is None or moves.shape[1] != 2:
            return names
        return [f"{name} ({_heading(*move)})" for name, move in zip(names, moves, strict=True)]
    on_earth = hasattr(position, "bearings")
    lengths = np.linalg.norm(steps, axis=1)
    speeds = lengths[lengths > 0]
    one_speed = bool(len(speeds)) and bool(np.ptp(speeds) < 1e-9 * speeds.max())
    return [step_name(step, on_earth, one_speed and steps.shape[1] == 2) for step in steps]


def step_name(step: Array, on_earth: bool = False, one_speed: bool = False) -> str:
    """A step as its direction and length; the direction alone where there is one speed."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return "stay"
    if len(step) == 1:
        return f"{step[0]:+.3g}"
    if len(step) > 2:
        return "(" + ", ".join(f"{x:+.3g}" for x in step) + ")"
    if on_earth:
        bearing = bearing_name(math.degrees(math.atan2(step[0], step[1])))
        return bearing if one_speed else f"{bearing} {length:.3g} km"
    angle = degrees(math.degrees(math.atan2(step[1], step[0])))
    return angle if one_speed else f"{angle} {length:.3g}"


def degrees(angle: float) -> str:
    """An angle from 0° to 360°."""
    return f"{round(angle, 1) % 360:g}°"


def compass_point(bearing: float) -> str:
    """The nearest of 16 points of the compass."""
    return _COMPASS[round(bearing % 360 / 22.5) % 16]


def bearing_name(bearing: float) -> str:
    """A point of the compass where a bearing is one, else degrees."""
    point = bearing % 360 / 22.5
    return compass_point(bearing) if abs(point - round(point)) < 1e-6 else degrees(bearing)


def _heading(x: float, y: float) -> str:
    return "stay" if x == y == 0 else compass_point(math.degrees(math.atan2(x, y)))
