"""What things are called in reports: axes, actions, hyper-parameters, priors."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics
from onlooker.partitions.base import HyperText, PartitionPrior
from onlooker.runs.codec import UnknownPrior

_COMPASS = [
    "N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE",
    "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW",
]  # fmt: skip
_PROBE = re.compile(r"policy\[node (\d+), action (\d+)\]")
_FRACTION = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")


# -- hyper-parameters and other scalars -----------------------------------------------------------


_TEXTS = {
    "alpha": HyperText(
        "α",
        "concentration of the controllers",
        "how similar the probabilities of a controller's actions are: below 1 a few stand out",
    ),
    "sigma": HyperText("σ", "noise of a step", "how far steps are from what actions do exactly"),
    "step": HyperText("", "length of a step", "the factor by which the actions' steps are scaled"),
    "success": HyperText("", "probability of success", "how often an action does what it should"),
    "observation_noise": HyperText("", "observation noise", "how far positions are from the truth"),
}
_SCALARS = {
    "n_controllers": "number of controllers",
    "largest_cluster": "size of the largest cluster",
    "log_joint": "fit of a draw, ln p(s, a, z)",
}


def hyper_text(prior: PartitionPrior[Any], name: str) -> HyperText:
    """The words for a hyper-parameter by its name in `Posterior.hyper`."""
    return prior.texts.get(name) or _TEXTS.get(name, HyperText("", name, ""))


def scalar_name(prior: PartitionPrior[Any], name: str) -> str:
    """What a row of `Posterior.summary` is, in words."""
    if probe := _PROBE.fullmatch(name):
        return f"probability of action {probe[2]} at node {probe[1]}"
    text = hyper_text(prior, name)
    return _SCALARS.get(name) or f"{text.name} {text.symbol}".rstrip()


# -- axes -----------------------------------------------------------------------------------------


def axis_names(columns: list[str] | None, n_position: int, n_dims: int) -> list[str]:
    """Names of all dimensions of a state: columns of the position, then features.

    Without columns: x, y, z, or numbers where there are more than three.
    """
    if columns is None or len(columns) != n_position:
        known = ["x", "y", "z"] if n_position <= 3 else [f"x{i + 1}" for i in range(n_position)]
        columns = known[:n_position]
    return columns + [f"feature {i}" for i in range(n_dims - n_position)]


# -- actions --------------------------------------------------------------------------------------


def action_names(dynamics: Any, n_actions: int, moves: Array | None = None) -> list[str]:
    """Directions and lengths where actions are steps, else numbers.

    `moves` are mean moves, ``(A, d)``, where actions are no steps: in the plane their directions
    are added.
    """
    from onlooker.dynamics import GeographicDynamics

    steps = getattr(position_dynamics(dynamics), "steps", None)
    if steps is None:
        names = [f"action {j}" for j in range(n_actions)]
        if moves is None or moves.shape[1] != 2:
            return names
        return [f"{name} ({_heading(*move)})" for name, move in zip(names, moves, strict=True)]
    on_earth = isinstance(position_dynamics(dynamics), GeographicDynamics)
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


# -- priors ---------------------------------------------------------------------------------------


def short_repr(value: Any) -> str:
    """A prior as its call, without what is left at its default; arrays by their shape.

    The decay is shown in any case: it is in the units of the data.
    """
    if isinstance(value, np.ndarray | list | tuple):
        return f"<{'×'.join(map(str, np.shape(value)))} array>"
    if isinstance(value, UnknownPrior):
        return value.text
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    arguments = []
    for item in dataclasses.fields(value):
        given = getattr(value, item.name)
        if item.name == "decay":
            arguments.append(f"decay={given!r}")
            continue
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        if repr(given) != repr(default):
            arguments.append(f"{item.name}={short_repr(given)}")
    return f"{type(value).__name__}({', '.join(arguments)})"


def rounded(text: str) -> str:
    """The text with its fractions at 4 significant digits: to be read, not to be run."""
    return _FRACTION.sub(lambda found: repr(float(f"{float(found[0]):.4g}")), text)
