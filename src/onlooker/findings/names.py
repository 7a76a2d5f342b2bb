"""What things are called in reports: axes, hyper-parameters, priors."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.actions import compass_point, degrees
from onlooker.hyper import Exponential, LogUniform, Scaled
from onlooker.partitions.base import HyperText, PartitionPrior
from onlooker.runs.codec import UnknownPrior

_PROBE = re.compile(r"policy\[node (\d+), action (\d+)\]")
_KIND = re.compile(r"kind\[(.+)\]")
_IMPUTED = re.compile(r"imputed\[(state|action) (\d+)(?:, coordinate (\d+))?\]")


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
    "n_regions": "number of regions",
    "largest_share": "share of states in the largest cluster",
    "mean_entropy": "mean entropy of the policy",
    "log_joint": "fit of a draw, ln p(s, a, z)",
}


def hyper_text(prior: PartitionPrior[Any] | None, name: str) -> HyperText:
    """The words for a hyper-parameter by its name in `Posterior.hyper`."""
    known = {} if prior is None else prior.texts
    return known.get(name) or _TEXTS.get(name, HyperText("", name, ""))


def hyper_words(prior: PartitionPrior[Any] | None, name: str) -> str:
    """Name and symbol of a hyper-parameter, such as "self-link weight ν"."""
    text = hyper_text(prior, name)
    return f"{text.name} {text.symbol}".rstrip()


def scalar_name(
    prior: PartitionPrior[Any], name: str, state: Callable[[int], str], actions: Sequence[str]
) -> str:
    """What a row of `Posterior.summary` is, in words; `state` says what a node is called."""
    if probe := _PROBE.fullmatch(name):
        return f"probability of {actions[int(probe[2])]} at {state(int(probe[1]))}"
    if kind := _KIND.fullmatch(name):
        return f"mass of {kind[1]}"
    if match := _IMPUTED.fullmatch(name):
        what = f"unseen {match[1]} {match[2]}"
        return f"coordinate {match[3]} of {what}" if match[3] else f"{what} is its likeliest"
    return _SCALARS.get(name) or hyper_words(prior, name)


def hyper_prior_words(value: Any) -> str:
    """A prior of a hyper-parameter, such as "log-uniform from 0.5 to 5"."""
    if isinstance(value, Scaled) and isinstance(value.prior, Exponential):
        return hyper_prior_words(Exponential(value.factor * value.prior.mean))
    if isinstance(value, Scaled):
        return f"{hyper_prior_words(value.prior)}, times {value.factor:.4g}"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return str(value)
    given = [getattr(value, item.name) for item in dataclasses.fields(value)]
    if isinstance(value, LogUniform):
        return f"log-uniform from {value.low:.4g} to {value.high:.4g}"
    if not all(isinstance(x, int | float) for x in given):
        return short_repr(value)
    parts = [f"{f.name} {x:.4g}" for f, x in zip(dataclasses.fields(value), given, strict=True)]
    return ", ".join([type(value).__name__.lower(), *parts])


# -- axes -----------------------------------------------------------------------------------------


def axis_names(
    columns: list[str] | None, n_position: int, features: Sequence[str] = ()
) -> list[str]:
    """Names of all dimensions of a state: columns of the position, then features.

    Without columns: x, y, z, or numbers where there are more than three.
    """
    if columns is None or len(columns) != n_position:
        known = ["x", "y", "z"] if n_position <= 3 else [f"x{i + 1}" for i in range(n_position)]
        columns = known[:n_position]
    return [*columns, *features]


def decimals(values: Array, steps: Array) -> int:
    """Digits after the point at which values can be told apart by a twentieth of a usual step.

    `steps` are differences between successive values; without any that is not 0, the extent of
    the values stands for a thousand of them.
    """
    steps = np.abs(steps[steps != 0])
    unit = float(np.median(steps)) / 20 if len(steps) else float(np.ptp(values)) / 1000
    return int(np.clip(np.ceil(-np.log10(unit)), 0, 9)) if unit > 0 else 3


def place_text(place: Sequence[float], digits: Sequence[int], geographic: bool) -> str:
    """Coordinates such as "(4.95, −0.1)", or "(61.9°W, 21.9°N)" on Earth."""
    parts = [coordinate(x, d) for x, d in zip(place, digits, strict=False)]
    if geographic:
        lon = coordinate(abs((place[0] + 180) % 360 - 180), digits[0])
        lat = coordinate(abs(place[1]), digits[1])
        sides = "W" if (place[0] + 180) % 360 < 180 else "E", "S" if place[1] < 0 else "N"
        parts[:2] = [f"{lon}°{sides[0]}", f"{lat}°{sides[1]}"]
    return f"({', '.join(parts)})".replace("-", "−")


def feature_text(name: str, values: Array, geographic: bool) -> str:
    """A feature of a state in its own unit, such as "heading NW" or "speed 120 km"."""
    if name != "heading" or len(values) != 2:
        unit = " km" if geographic and name in ("speed", "previous step") else ""
        return f"{name} {', '.join(f'{value:.3g}' for value in values)}{unit}"
    x, y = values
    if x == y == 0:
        return "no heading yet"
    if geographic:
        return f"heading {compass_point(math.degrees(math.atan2(x, y)))}"
    return f"heading {degrees(float(round(math.degrees(math.atan2(y, x)))))}"


def coordinate(value: float, digits: int) -> str:
    """A number with as many digits after the point as it needs, at most `digits`."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


# -- priors ---------------------------------------------------------------------------------------


def short_repr(value: Any, whole: bool = False) -> str:
    """A prior as its call, without what is left at its default; arrays by their shape.

    The decay is shown whole: it is in the units of the data. Numbers have six digits.
    """
    if isinstance(value, float):
        return repr(float(f"{value:.6g}"))
    if isinstance(value, np.ndarray | list | tuple):
        return f"<{'×'.join(map(str, np.shape(value)))} array>"
    if isinstance(value, UnknownPrior):
        return value.text
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    arguments = []
    for item in dataclasses.fields(value):
        given = getattr(value, item.name)
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        decay = item.name == "decay"
        if whole or decay or repr(given) != repr(default):
            arguments.append(f"{item.name}={short_repr(given, decay)}")
    return f"{type(value).__name__}({', '.join(arguments)})"
