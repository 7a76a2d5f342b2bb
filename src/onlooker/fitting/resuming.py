"""Is a run that is resumed asked for with other settings than it has? Said in the user's words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onlooker.checks import Setting
from onlooker.findings.names import hyper_prior_words
from onlooker.fitting.model_file import Model
from onlooker.hyper import Prior
from onlooker.runs.header import StoreMismatchError

_FREE = ("draws", "max_minutes", "chains", "jobs", "scheduler")
"""Settings that a run may be resumed with as one likes."""
_NOT_GIVEN = "not given"
_TABLES = ("data", "cleaning", "dynamics", "prior", "sampling")
_OPTIONS = {
    ("data", "states"): "--states",
    ("data", "trajectory"): "--trajectory",
    ("data", "time"): "--time",
    ("data", "geographic"): "--geographic",
    ("data", "hold_out"): "--hold-out",
    ("data", "encoding"): "--encoding",
    ("cleaning", "missing"): "--missing",
    ("cleaning", "duplicates"): "--duplicates",
    ("cleaning", "gaps"): "--gaps",
    ("cleaning", "max_speed"): "--max-speed",
    ("dynamics", "directions"): "--directions",
    ("dynamics", "speeds"): "--speeds",
    ("dynamics", "step"): "--step",
    ("dynamics", "sigma"): "--sigma",
    ("prior", "kind"): "--prior",
    ("prior", "clusters"): "--clusters",
    ("prior", "decay", "scale"): "--scale",
    ("sampling", "tune"): "--tune",
    ("sampling", "seed"): "--seed",
}
_IMPLIED = {("dynamics", "kind"), ("prior", "decay", "kind")}
"""Said by other settings, unless all else is the same."""


def settings_of(model: Model, seed: int) -> dict[str, str]:
    """All that fixes a run, each by the name of its option, or of its key in a model file."""
    found: dict[tuple[str, ...], Any] = {("sampling", "seed"): seed}
    for table in _TABLES:
        values = dict(getattr(model, table))
        if table == "sampling":
            values = {name: value for name, value in values.items() if name not in _FREE}
        found |= dict(_flat((table,), values))
    texts = {_name(keys): _text(value) for keys, value in found.items()}
    if model.concentration is not None:
        texts["concentration in the model file"] = _text(model.concentration)
    if model.repertoire is not None:
        texts["--repertoire"] = model.repertoire
    if isinstance(model.features, tuple):
        texts["--features"] = ",".join(model.features) or "none"
    elif model.features is not None:
        tables = (f"{table.pop('kind')} ({_pairs(table)})" for table in map(dict, model.features))
        texts["[[features]] in the model file"] = "; ".join(tables)
    return texts


def other_settings(
    output: Path, stored: Mapping[str, str] | None, asked: Mapping[str, str]
) -> StoreMismatchError | None:
    """A refusal that names the settings that differ; None where none do, or it is not known."""
    if stored is None:
        return None
    names = [*stored, *(name for name in asked if name not in stored)]
    differing = [name for name in names if stored.get(name) != asked.get(name)]
    implied = {_name(keys) for keys in _IMPLIED}
    differing = [name for name in differing if name not in implied] or differing
    if not differing:
        return None
    listed = "; ".join(
        f"{name}: stored: {stored.get(name, _NOT_GIVEN)}, asked: {asked.get(name, _NOT_GIVEN)}"
        for name in differing
    )
    return StoreMismatchError(
        f"{output} holds a run with other settings ({listed}); repeat its settings, or choose "
        "another ",
        Setting("store"),
    )


def _flat(keys: tuple[str, ...], values: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """The values of nested tables, each with the keys that lead to it."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += _flat((*keys, name), value)
        else:
            found.append(((*keys, name), value))
    return found


def _name(keys: tuple[str, ...]) -> str:
    """``--seed``, or ``thin of [sampling] in the model file``."""
    table, *rest = keys
    return _OPTIONS.get(keys, f"{'.'.join(rest)} of [{table}] in the model file")


def _text(value: Any) -> str:
    """A value as one would write it."""
    if isinstance(value, Prior):
        return hyper_prior_words(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _pairs({item.name: getattr(value, item.name) for item in dataclasses.fields(value)})
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items())
