"""What a table of a model file may hold, read off the signature of what it makes.

A parameter ``n_neighbors: int | None = None`` is a key ``neighbors`` that takes an integer; a
hyper-parameter takes a number, or a table that names a prior.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from onlooker import partitions
from onlooker.checks import alternatives, positive_integer, positive_number
from onlooker.hyper import PRIORS, Prior
from onlooker.partitions.continuation import Continuation

Check = Callable[[str, Any], Any]
"""Takes the name of a value and the value; returns it checked, or raises."""

CONTEXT = ("demos", "dynamics", "folder")
"""Parameters that no key is for."""
HYPER = {name.lower(): prior for name, prior in PRIORS.items()}
DECAYS = {
    name.removesuffix("Decay").lower(): getattr(partitions, name)
    for name in partitions.__all__
    if name.endswith("Decay") and name != "Decay"
}
_WORDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


# -- tables ---------------------------------------------------------------------------------------


def _parameters(make: Any) -> dict[str, inspect.Parameter]:
    """By key: the name of a parameter without ``n_``."""
    parameters = inspect.signature(make).parameters
    return {name.removeprefix("n_"): p for name, p in parameters.items() if name not in CONTEXT}


def keys_of(make: Any) -> dict[str, Check]:
    """How each key is checked."""
    hints = get_type_hints(make)
    return {key: _check_of(p, hints[p.name]) for key, p in _parameters(make).items()}


def arguments(make: Any, table: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The values of a checked table by the names of parameters; with `where`, none may lack."""
    parameters = _parameters(make)
    lacking = [key for key, p in parameters.items() if p.default is p.empty and key not in table]
    if where and lacking:
        raise ValueError(f"{where} needs {' and '.join(lacking)}")
    return {parameters[key].name: value for key, value in table.items() if key in parameters}


def checked(where: str, table: Any, keys: Mapping[str, Check]) -> dict[str, Any]:
    """The values of a table, each checked; a key that is not among `keys` is refused."""
    for key in of_type(dict)(where, table):
        if key not in keys:
            near = suggestion(key, keys) or f"; it has {', '.join(sorted(keys)) or 'none'}"
            raise ValueError(f"{where} has no key {key!r}{near}")
    return {key: keys[key](f"{where} {key}", value) for key, value in table.items()}


def by_kind(
    where: str, table: Any, kinds: Mapping[str, Any], default: str | None = None, word: str = "kind"
) -> dict[str, Any]:
    """The values of a table whose keys depend on its kind, and the kind."""
    table = dict(of_type(dict)(where, table))
    kind = table.pop(word, default)
    if kind is None:
        raise ValueError(f"{where} needs {word}: one of {', '.join(kinds)}")
    if not isinstance(kind, str) or kind not in kinds:
        near = suggestion(str(kind), kinds)
        raise ValueError(f"{where} {word} must be one of {', '.join(kinds)}; got {kind!r}{near}")
    return {word: kind} | checked(where, table, keys_of(kinds[kind]))


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` where a known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def tried(where: str, make: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """What `make` makes; a refusal says where the values are."""
    try:
        return make(*args, **given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where} {error}") from error


def make_decay(table: Mapping[str, Any], **defaults: Any) -> Any:
    """A decay out of its checked table."""
    kind = DECAYS[table["kind"]]
    return kind(**defaults | arguments(kind, table))


# -- values ---------------------------------------------------------------------------------------


def of_type(*kinds: type) -> Check:
    """A check that a value is of one of these types."""

    def check(name: str, value: Any) -> Any:
        known = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, known) or (isinstance(value, bool) and bool not in kinds):
            words = alternatives([_WORDS[kind] for kind in kinds])
            raise ValueError(f"{name} must be {words}, got {value!r}")
        return value

    return check


def one_of(*choices: Any) -> Check:
    """A check that a value is one of these."""

    def check(name: str, value: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            near = suggestion(str(value), map(str, choices))
            listed = ", ".join(f'"{c}"' if isinstance(c, str) else str(c).lower() for c in choices)
            raise ValueError(f"{name} must be one of {listed}; got {value!r}{near}")
        return value

    return check


def hyper(name: str, value: Any) -> Any:
    """A number, or ``{prior = "gamma", shape = 2, rate = 1}`` as a prior of `onlooker.hyper`."""
    if isinstance(value, dict):
        table = by_kind(name, value, HYPER, word="prior")
        make = HYPER[table["prior"]]
        return tried(f"{name}:", make, **arguments(make, table, f"{name}: {table['prior']}"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(
            f"{name} must be a number, or a table such as "
            f'{{prior = "loguniform", low = 0.1, high = 10}}; got {value!r}'
        )
    return float(value)


def _decay(name: str, value: Any) -> dict[str, Any]:
    table = by_kind(name, value, DECAYS, default="gaussian")
    tried(name, make_decay, table)
    return table


def _continuation(name: str, value: Any) -> Continuation:
    table = checked(name, value, keys_of(Continuation))
    return Continuation(**arguments(Continuation, table))


def _numbers_by_name(name: str, value: Any) -> dict[str, float]:
    table = of_type(dict)(name, value)
    return {key: positive_number(f"{name} {key}", number) for key, number in table.items()}


def _check_of(parameter: inspect.Parameter, hint: Any) -> Check:
    """How the values of a parameter are checked, by its type."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [part for part in parts if part in _WORDS]
    choices = [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]
    if Prior in parts:
        return hyper
    if partitions.Decay in parts:
        return _decay
    if Continuation in parts:
        return _continuation
    if parameter.name in ("coordinates", "metric"):  # arrays and functions are no TOML
        return of_type(str)
    if choices:
        return one_of(*((True, False) if bool in kinds else ()), *choices)
    if any(get_origin(part) is Mapping for part in parts):
        return _numbers_by_name
    if kinds == [int]:
        return partial(positive_integer, minimum=0 if parameter.default == 0 else 1)
    if kinds == [float]:
        return positive_number
    return of_type(*kinds) if kinds else lambda name, value: value
