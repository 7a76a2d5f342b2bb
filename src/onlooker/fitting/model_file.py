"""The model of a fit as a TOML file: read, checked key by key, and refused in one clear line.

    concentration = {prior = "loguniform", low = 0.1, high = 10}
    repertoire = "actions"

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

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from onlooker.checks import positive_integer, positive_number
from onlooker.choosing.features import STATES
from onlooker.defaults import PRIOR, settings
from onlooker.files import refuse_deep
from onlooker.fitting.building import DYNAMICS, FEATURES, prior_from
from onlooker.fitting.schema import (
    Check,
    arguments,
    by_kind,
    checked,
    hyper,
    keys_of,
    of_type,
    one_of,
    suggestion,
    tried,
)
from onlooker.partitions import PRIORS, DistanceDependent
from onlooker.reading.tracks import Cleaning

_MAX_BYTES = 1 << 16  # a model takes far less
_MAX_DOTS = 100  # of a key; the parser takes quadratic time for long ones
_text = of_type(str)
_count: Check = positive_integer
_from_0: Check = partial(positive_integer, minimum=0)


def _names(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name} must be a list of names, got {value!r}")
    return [_text(f"{name}[{i}]", item) for i, item in enumerate(value)]


def _draws(name: str, value: Any) -> Any:
    return value if value == "auto" else _count(name, value)


def _columns(name: str, value: Any) -> list[str]:
    return [value] if isinstance(value, str) else _names(name, value)


def _dynamics(where: str, value: Any) -> dict[str, Any]:
    table = dict(of_type(dict)(where, value))
    names = {"names": _names(f"{where} names", table.pop("names"))} if "names" in table else {}
    return by_kind(where, table, DYNAMICS, "displacement") | names


def _prior(where: str, value: Any) -> dict[str, Any]:
    table = by_kind(where, value, PRIORS, PRIOR)
    tried(where, prior_from, table, settings(PRIORS[table["kind"]]))
    return table


def joined_features(text: str, name: str = "features") -> tuple[str, ...]:
    """What joins the position, as ``none``, ``heading`` or ``heading,speed``."""
    names = tuple(part.strip() for part in text.split(",")) if text.strip() != "none" else ()
    if names not in STATES:
        raise ValueError(f"{name} must be none, heading or heading,speed; got {text!r}")
    return names


def _features(value: Any) -> list[dict[str, Any]] | tuple[str, ...]:
    if isinstance(value, str):
        return joined_features(value)
    if not isinstance(value, list):
        raise ValueError(
            'features must be "none", "heading", "heading,speed", or a list of tables: write '
            "[[features]] for each"
        )
    tables = []
    for i, item in enumerate(value):
        tables.append(by_kind(f"features[{i}]", item, FEATURES))
        make, where = FEATURES[tables[-1]["kind"]], f"features[{i}] ({tables[-1]['kind']})"
        arguments(make, tables[-1], where)
    return tables or ()


def _share(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a share from 0 to below 1, got {value!r}")
    return float(value)


DATA: dict[str, Check] = {
    "states": _columns,
    "trajectory": _text,
    "time": _text,
    "geographic": of_type(bool),
    "hold_out": _share,
    "encoding": _text,
}
SAMPLING: dict[str, Check] = {
    "draws": _draws,
    "max_minutes": positive_number,
    "tune": _from_0,
    "chains": _count,
    "thin": _count,
    "seed": _from_0,
    "jobs": _count,
    "scheduler": _text,
    "collapsed": of_type(bool),
    "nodes": one_of("visited", "all"),
}
_CLEANING = {name: check for name, check in keys_of(Cleaning).items() if name != "geographic"}
"""Whether places are geographic is said in [data], once."""
MODEL: dict[str, Check] = {
    "concentration": hyper,
    "repertoire": one_of("auto", "actions"),
    "data": lambda _, value: checked("[data]", value, DATA),
    "cleaning": lambda _, value: checked("[cleaning]", value, _CLEANING),
    "dynamics": lambda _, value: _dynamics("[dynamics]", value),
    "prior": lambda _, value: _prior("[prior]", value),
    "features": lambda _, value: _features(value),
    "sampling": lambda _, value: checked("[sampling]", value, SAMPLING),
}


PAPER = "paper"
"""The name of the paper's settings, in place of a file."""


@dataclass(frozen=True)
class Model:
    """What a model file says, checked; what it leaves open is not in the dictionaries."""

    data: dict[str, Any] = field(default_factory=dict)
    cleaning: dict[str, Any] = field(default_factory=dict)
    dynamics: dict[str, Any] = field(default_factory=dict)
    prior: dict[str, Any] = field(default_factory=dict)
    concentration: Any = None
    repertoire: str | None = None
    features: list[dict[str, Any]] | tuple[str, ...] | None = None
    """Tables; or names of what joins the position, with weights from the tracks; None: chosen."""
    sampling: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    """Where files that it names are looked for."""


def paper_model() -> Model:
    """The paper's settings: bare actions, the position as state, the ddCRP with α = 1."""
    prior = {"kind": DistanceDependent.key, "reassign": 0}
    return Model(prior=prior, concentration=1.0, repertoire="actions", features=())


def read_model(path: Path) -> Model:
    """Read and check a model file, or give that of a name."""
    if str(path) == PAPER:
        return paper_model()
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ValueError(f"there is no model file {str(path)!r}") from error
    except OSError as error:
        raise ValueError(f"cannot read the model {path}: {error.strerror}") from error
    try:
        if len(text) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
        if any(word.count(b".") > _MAX_DOTS for word in re.split(rb"[][{}=,\n]", text)):
            raise ValueError(f"it has a key with more than {_MAX_DOTS} dots")
        content = refuse_deep(tomllib.loads(text.decode()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a valid TOML file: {error}") from error
    try:
        return Model(**checked("the model", content, MODEL), folder=path.parent)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


# -- flags ----------------------------------------------------------------------------------------


def with_flags(model: Model, dynamics: Mapping[str, Any], prior: Mapping[str, Any]) -> Model:
    """The model with what flags say instead: they win over the file.

    `dynamics` holds directions, speeds, step and sigma; `prior` holds kind, clusters and scale.
    None is no flag. A flag that does not apply to the model's kind is refused.
    """
    given = {name: value for name, value in dynamics.items() if value is not None}
    moved = dict(model.dynamics)
    if given:
        kind = moved.get("kind", "displacement")
        if "step" in given and "speeds" in given:
            raise ValueError("--step gives all steps one length; leave out --speeds")
        if "step" in given and kind == "displacement":
            known = [*keys_of(DYNAMICS["compass"]), "names"]
            kind, moved = "compass", {k: v for k, v in moved.items() if k in known}
        _refuse_meaningless(given, keys_of(DYNAMICS[kind]), kind)
        moved |= {"kind": kind, **given}
    wanted = {name: value for name, value in prior.items() if value is not None}
    chosen = dict(model.prior)
    if wanted:
        kind = wanted.get("kind", chosen.get("kind", PRIOR))
        if kind not in PRIORS:
            near = suggestion(kind, PRIORS)
            raise ValueError(f"--prior must be one of {', '.join(PRIORS)}; got {kind!r}{near}")
        chosen = chosen if kind == chosen.get("kind", kind) else {}
        scale = wanted.pop("scale", None)
        keys = keys_of(PRIORS[kind])
        known = [*keys, "kind", *(["scale"] if "decay" in keys else [])]
        _refuse_meaningless(wanted if scale is None else {**wanted, "scale": scale}, known, kind)
        chosen |= {"kind": kind, **wanted}
        if scale is not None:
            chosen["decay"] = {"kind": "gaussian"} | chosen.get("decay", {}) | {"scale": scale}
    return replace(model, dynamics=moved, prior=chosen)


def _refuse_meaningless(given: Mapping[str, Any], known: Any, kind: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"--{name} does not apply to {kind!r}; leave it out")
