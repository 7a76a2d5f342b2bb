"""The model of a fit as a TOML file: read, checked key by key, and refused in one clear line.

    concentration = {prior = "loguniform", low = 0.1, high = 10}

    [data]
    states = ["lon", "lat"]
    geographic = true

    [dynamics]
    kind = "displacement"
    directions = 8

    [prior]
    kind = "ddcrp"
    decay = {kind = "gaussian", scale = 300, offset = 0.01}

    [[features]]
    kind = "heading"
    weight = 200

Whatever is left out is chosen from the tracks. docs/guide/command_line.md lists all keys.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from onlooker.checks import positive_integer, positive_number
from onlooker.reading.tracks import Duplicates, Gaps, Missing

Check = Callable[[str, Any], Any]
"""Takes the name of a value and the value; returns it checked, or raises."""


# -- checks of single values ----------------------------------------------------------------------


def _of(kind: type, told: str) -> Check:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be {told}, got {value!r}")
        return value

    return check


_text = _of(str, "text")
_yes_or_no = _of(bool, "true or false")
_table = _of(dict, "a table")
_number: Check = positive_number
_not_negative: Check = partial(positive_number, zero_ok=True)
_count: Check = positive_integer
_from_0: Check = partial(positive_integer, minimum=0)


def _one_of(*choices: Any) -> Check:
    def check(name: str, value: Any) -> Any:
        for choice in choices:
            if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                return value
        near = suggestion(str(value), [str(choice) for choice in choices])
        listed = ", ".join(_toml(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}{near}")

    return check


def _either(*checks: Check) -> Check:
    def check(name: str, value: Any) -> Any:
        for one in checks[:-1]:
            try:
                return one(name, value)
            except (TypeError, ValueError):
                continue
        return checks[-1](name, value)

    return check


def _list_of(each: Check, told: str) -> Check:
    def check(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"{name} must be a list of {told}, got {value!r}")
        return [each(f"{name}[{i}]", item) for i, item in enumerate(value)]

    return check


def _any_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def _columns(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    names: list[str] = _list_of(_text, "column names")(name, value)
    return names


_numbers = _list_of(_any_number, "numbers")
_noise = _either(_number, _list_of(_either(_number, _list_of(_number, "numbers")), "numbers"))


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def suggestion(name: str, known: Any) -> str:
    """``; did you mean ...?`` where a known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def checked(where: str, table: Any, keys: Mapping[str, Check]) -> dict[str, Any]:
    """The values of a table, each checked; a key that is not among `keys` is refused."""
    table = _table(where, table)
    for key in table:
        if key not in keys:
            near = suggestion(key, keys)
            raise ValueError(
                f"{where} has no key {key!r}{near or '; it has ' + ', '.join(sorted(keys))}"
            )
    return {key: keys[key](f"{where} {key}", value) for key, value in table.items()}


def by_kind(
    where: str,
    table: Any,
    kinds: Mapping[str, Mapping[str, Check]],
    default: str | None = None,
    word: str = "kind",
) -> dict[str, Any]:
    """The values of a table whose keys depend on its kind, and the kind."""
    table = dict(_table(where, table))
    kind = table.pop(word, default)
    if kind is None:
        raise ValueError(f"{where} needs {word}: one of {', '.join(kinds)}")
    if not isinstance(kind, str) or kind not in kinds:
        near = suggestion(str(kind), kinds)
        raise ValueError(f"{where} {word} must be one of {', '.join(kinds)}; got {kind!r}{near}")
    return {word: kind} | checked(where, table, kinds[kind])


# -- hyper-parameters -----------------------------------------------------------------------------

_HYPER: dict[str, dict[str, Check]] = {
    "exponential": {"mean": _number},
    "gamma": {"shape": _number, "rate": _number},
    "loguniform": {"low": _number, "high": _number},
}


def hyper(name: str, value: Any, *, zero_ok: bool = False) -> Any:
    """A number, or ``{prior = "gamma", shape = 2, rate = 1}`` as a prior of `onlooker.hyper`."""
    if not isinstance(value, dict):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(
                f"{name} must be a number, or a table such as "
                f'{{prior = "loguniform", low = 0.1, high = 10}}; got {value!r}'
            )
        return positive_number(name, value, zero_ok=zero_ok)
    from onlooker.hyper import Exponential, Gamma, LogUniform

    made = {"exponential": Exponential, "gamma": Gamma, "loguniform": LogUniform}
    found = by_kind(name, value, _HYPER, word="prior")
    kind = found.pop("prior")
    missing = _HYPER[kind].keys() - found.keys()
    if missing:
        raise ValueError(f"{name}: the prior {kind} needs {', '.join(sorted(missing))}")
    try:
        return made[kind](**found)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


_hyper_or_0: Check = partial(hyper, zero_ok=True)


# -- the tables -----------------------------------------------------------------------------------

_DECAY = {"scale": hyper, "offset": _hyper_or_0}
DECAYS: dict[str, dict[str, Check]] = {
    "gaussian": _DECAY,
    "exponential": _DECAY,
    "window": _DECAY,
    "logistic": _DECAY | {"width": _number},
}


def _decay(name: str, value: Any) -> dict[str, Any]:
    return by_kind(name, value, DECAYS, default="gaussian")


_SPATIAL: dict[str, Check] = {
    "decay": _decay,
    "neighbors": _count,
    "coordinates": _text,
    "metric": _text,
}
PRIORS: dict[str, dict[str, Check]] = {
    "ddcrp": _SPATIAL
    | {
        "self_link": hyper,
        "self_link_step": _one_of("slice", "metropolis"),
        "start": _one_of("nearest", "self"),
        "tolerance": _number,
        "reassign": _from_0,
    },
    "crp": {"concentration": hyper},
    "potts": _SPATIAL | {"clusters": _count, "beta": _hyper_or_0},
    "mixing": {"clusters": _count, "concentration": hyper, "collapsed": _yes_or_no},
    "uniform": {"clusters": _count},
    "static": {},
}
_NAMES = {"names": _list_of(_text, "names, one an action")}
_STAY = _one_of(True, False, "auto")
DYNAMICS: dict[str, dict[str, Check]] = {
    "displacement": _NAMES
    | {
        "directions": _count,
        "speeds": _count,
        "stay": _STAY,
        "noise": _one_of("estimate", "resolution"),
        "scale": _either(_one_of("spread"), _list_of(_number, "numbers")),
        "sigma": _number,
    },
    "compass": _NAMES
    | {"directions": _count, "step": _number, "sigma": _number, "stay": _yes_or_no},
    "steps": _NAMES
    | {"steps": _list_of(_numbers, "steps, each a list of numbers"), "sigma": _noise},
    "tabular": _NAMES | {"file": _text, "array": _text},
    "gymnasium": _NAMES
    | {
        "id": _text,
        "options": _table,
        "sigma": _either(_number, _list_of(_number, "numbers")),
        "actions": _list_of(_either(_any_number, _numbers), "actions"),
        "absorbing": _yes_or_no,
    },
}
FEATURES: dict[str, dict[str, Check]] = {
    "heading": {"weight": _number},
    "speed": {"weight": _number},
    "previous_step": {"weight": _number},
    "elapsed": {"weight": _number},
    "cycle": {"weight": _number, "period": _number},
    "time_of_day": {"weight": _number},
    "day_of_year": {"weight": _number},
}
_DURATION = _either(_number, _text)
CLEANING: dict[str, Check] = {
    "missing": _one_of(*get_args(Missing)),
    "duplicates": _one_of(*get_args(Duplicates)),
    "gaps": _one_of(*get_args(Gaps)),
    "gap": _DURATION,
    "interval": _DURATION,
    "max_gap": _DURATION,
    "periodic": lambda name, value: {
        column: _number(f"{name} {column}", period)
        for column, period in _table(name, value).items()
    },
}
_DATA: dict[str, Check] = {
    "states": _columns,
    "trajectory": _text,
    "time": _text,
    "geographic": _yes_or_no,
}
_SAMPLING: dict[str, Check] = {
    "draws": _count,
    "tune": _from_0,
    "chains": _count,
    "thin": _count,
    "seed": _from_0,
    "jobs": _count,
    "scheduler": _text,
    "collapsed": _yes_or_no,
    "nodes": _one_of("visited", "all"),
}


def _features(name: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list of tables: write [[features]] for each")
    found = [by_kind(f"{name}[{i}]", item, FEATURES) for i, item in enumerate(value)]
    for number, item in enumerate(found):
        missing = FEATURES[item["kind"]].keys() - item.keys()
        if missing:
            raise ValueError(
                f"{name}[{number}] ({item['kind']}) needs {', '.join(sorted(missing))}"
            )
    return found


_MODEL: dict[str, Check] = {
    "concentration": hyper,
    "data": lambda _, value: checked("[data]", value, _DATA),
    "cleaning": lambda _, value: checked("[cleaning]", value, CLEANING),
    "dynamics": lambda _, value: by_kind("[dynamics]", value, DYNAMICS, "displacement"),
    "prior": lambda _, value: by_kind("[prior]", value, PRIORS, "ddcrp"),
    "features": lambda _, value: _features("features", value),
    "sampling": lambda _, value: checked("[sampling]", value, _SAMPLING),
}


@dataclass(frozen=True)
class Model:
    """What a model file says, checked; what it leaves open is not in the dictionaries."""

    data: dict[str, Any] = field(default_factory=dict)
    cleaning: dict[str, Any] = field(default_factory=dict)
    dynamics: dict[str, Any] = field(default_factory=dict)
    prior: dict[str, Any] = field(default_factory=dict)
    concentration: Any = None
    features: list[dict[str, Any]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    """Where files that it names are looked for."""


def read_model(path: Path) -> Model:
    """Read and check a model file."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise ValueError(f"cannot read the model {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from error
    try:
        return Model(**checked("the model", content, _MODEL), folder=path.parent)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
