"""What a run is, in words and arrays: enough to tell it from any other, and to go on with it."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array, SettingError, one_of
from onlooker.dynamics.codec import decode_dynamics, encode_dynamics
from onlooker.files import CannotDecode, DamagedFileError, read_json, refusing_damage, within
from onlooker.inference.runner import End, Schedule
from onlooker.inference.target import Target
from onlooker.missing.seen import Incomplete
from onlooker.problem import Landmarks, Paths, Problem
from onlooker.runs.checking import check_dynamics, check_prior, check_problem
from onlooker.runs.codec import UnknownPrior, decode, encode, fingerprint
from onlooker.warnings import UnidentifiableActionsWarning

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.partitions.base import PartitionPrior

FORMAT = 1
HEADER = "run.json"
_KINDS = ("class", "opaque")
_GONE: dict[str, Any] = {"tempering": None, "split_merge": 0, "blocked": False, "method": "gibbs"}
"""Parameters that older versions stored, each with the value that made it do nothing."""
_BESIDE = ("trajectory_names", "state_times", "state_rows")
_TYPES = {
    "versions": dict,
    "created": str,
    "fingerprint": str,
    "problem": dict,
    "prior": dict,
    "prior_text": str,
    "options": dict,
    "seed": str,
    "draws": int,
    "chains": int,
}
_OPTIONS = {"collapsed": bool, "tune": int, "thin": int}


class StoreMismatchError(SettingError):
    """The store holds another run than the one that is to go on."""


def describe_run(target: Target, schedule: Schedule) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header of a run, and the arrays that belong to it."""
    problem = target.problem
    arrays: dict[str, Array] = {}
    options = {"collapsed": target.collapsed, "tune": schedule.tune, "thin": schedule.thin}
    options["concentration"] = encode(target.concentration, "concentration", arrays)
    arrays |= {"node_of": problem.node_of, "loglik": problem.first_guess, "states": problem.states}
    identity = {"prior": encode(target.prior, "prior", arrays), "options": options}
    identity["seed"] = str(schedule.seed)  # larger than JavaScript's numbers
    ends = {} if problem.next_states is None else {"next_states": problem.next_states}
    if problem.base_measure() is not None:
        arrays["base"] = problem.base
    if len(problem.kinds) > 1:
        arrays["kind_of"] = problem.kind_of
        identity["kinds"] = problem.kinds
    if problem.incomplete is not None:
        seen = problem.incomplete
        arrays |= {"seen.observed": seen.observed, "seen.offsets": seen.offsets}
        identity["observation_noise"] = encode(seen.noise, "observation_noise", arrays)
    if problem.landmarks is not None:
        identity["landmarks"] = dataclasses.asdict(problem.landmarks)
    if problem.parameters:  # else the likelihoods say it all
        arrays |= ends
        identity["dynamics"] = encode_dynamics(problem.dynamics, arrays)
    mark = fingerprint(identity, arrays)
    arrays |= ends
    versions = {name: __import__(name).__version__ for name in ("numpy", "numba")}
    if problem.paths is not None:
        paths = problem.paths
        arrays |= {"paths.nodes": paths.nodes, "paths.offsets": paths.offsets}
        # beside "paths.", of which older versions expect these two
        beside = zip(_BESIDE, (paths.names, paths.times, paths.rows), strict=True)
        arrays |= {name: array for name, array in beside if array is not None}
    header = {
        "what": "onlooker run",
        "format": FORMAT,
        "versions": {"onlooker": __version__, "python": platform.python_version(), **versions},
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "fingerprint": mark,
        "problem": {
            "nodes": problem.n_nodes,
            "transitions": problem.n_transitions,
            "actions": problem.n_actions,
            **({} if problem.policies is None else {"behaviours": problem.n_behaviours}),
            "dimensions": None if problem.states.ndim == 1 else problem.states.shape[1],
        },
        "prior_text": repr(target.prior),
        "dynamics": encode_dynamics(problem.dynamics, arrays),
        "repertoire": _repertoire(problem, arrays),
        **identity,
        "draws": schedule.draws,
        "end": schedule.end,
        "chains": schedule.chains,
        "command": _command(),
    }
    return header, arrays


def _repertoire(problem: Problem, arrays: dict[str, Array]) -> dict[str, Any] | None:
    """What the behaviours do; those of the user's own where it may be asked for."""
    if problem.policies is None:
        return None
    from onlooker.repertoire.making import encode_policies

    n_states = getattr(problem.dynamics, "n_states", None)
    states = problem.states if n_states is None else np.arange(n_states)
    return encode_policies(problem.policies, states, arrays)


def _command() -> str | None:
    """The command that makes this run, if it is one of onlooker's own."""
    name = Path(sys.argv[0]).stem if sys.argv else ""
    return shlex.join([name, *sys.argv[1:]]) if name == "onlooker" else None


def _without_gone(stored: dict[str, Any]) -> dict[str, Any]:
    """What was stored without what no longer exists; refuses a run that made use of it."""
    if "params" in stored:
        return {**stored, "params": _without_gone(stored["params"])}
    for name, value in stored.items():
        kind = value.get("class") if isinstance(value, dict) else None
        if value != _GONE.get(name, value) or kind in ("PerController", "DirichletMixture"):
            raise StoreMismatchError(
                f"the run was made with {name}={kind or repr(value)}, which this version of "
                "onlooker no longer has; open it with the version that made it"
            )
    return {name: value for name, value in stored.items() if name not in _GONE}


def restore_run(
    header: dict[str, Any],
    arrays: dict[str, Array],
    prior: PartitionPrior[Any] | None,
    dynamics: Dynamics | None,
) -> tuple[Target, Schedule]:
    """Undo `describe_run`; nothing that a file says reaches a kernel unchecked."""
    with warnings.catch_warnings():  # it was told when the problem was made
        warnings.simplefilter("ignore", UnidentifiableActionsWarning)
        problem = Problem(arrays["node_of"], arrays["loglik"], arrays["states"], arrays.get("base"))
    given, dynamics = dynamics, dynamics or decode_dynamics(header["dynamics"], arrays)
    problem.set_world(dynamics, arrays.get("next_states"))
    if header.get("repertoire") is not None:  # older stores have none
        from onlooker.repertoire.making import decode_policies

        problem.set_repertoire(decode_policies(header["repertoire"], problem.states, arrays))
    elif "kinds" in header:
        problem.set_kinds(header["kinds"], arrays["kind_of"])
    if "observation_noise" in header:
        noise = decode(header["observation_noise"], arrays)
        problem.incomplete = Incomplete(**within("seen.", arrays), noise=noise)
    paths = within("paths.", arrays)  # older stores have none
    beside = [arrays.get(name) for name in _BESIDE]
    problem.paths = Paths(paths["nodes"], paths["offsets"], *beside) if paths else None
    if "landmarks" in header:
        problem.landmarks = Landmarks(**header["landmarks"])
    check_problem(problem)
    if given is None:
        check_dynamics(problem)
    if prior is None:
        try:
            prior = decode(_without_gone(header["prior"]), arrays)
            check_prior(prior, problem)
        except CannotDecode:
            prior = UnknownPrior(header["prior_text"])
    stored = _without_gone(header["options"])
    schedule = Schedule(
        draws=header["draws"],
        tune=stored["tune"],
        chains=header["chains"],
        thin=stored["thin"],
        seed=int(header["seed"]),
        end=one_of("end", header.get("end", "draws"), get_args(End)),  # older stores have none
    )
    concentration = decode(stored["concentration"], arrays)
    return Target(problem, prior, concentration, stored["collapsed"]), schedule


def difference(name: str, there: Any, here: Any) -> str:
    """What differs between two parts of a header, and no more than that.

    ``tune (stored: 500, asked: 400)``.
    """
    alike = isinstance(there, dict) and isinstance(here, dict) and there.keys() == here.keys()
    if not alike or any(there.get(kind) != here.get(kind) for kind in _KINDS):
        one, other = _told_apart(there, here)
        return f"{name} (stored: {one}, asked: {other})"
    differing = [key for key in here if there[key] != here[key]]
    parts = ", ".join(difference(key, there[key], here[key]) for key in differing)
    return parts if name == "params" else f"{name}: {parts}"


def _told_apart(there: Any, here: Any) -> tuple[str, str]:
    """Both as text, with as many digits as tell them apart."""
    for digits in (4, 8):
        one, other = _describe(there, digits), _describe(here, digits)
        if one != other:
            return one, other
    return _describe(there, 17), _describe(here, 17)


def _describe(value: Any, digits: int) -> str:
    """What `encode` made, in words: ``LogUniform with low 1, high 5``."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if not isinstance(value, dict):
        return str(value)
    if "array" in value:
        return "an array"
    if "float" in value:
        return str(value["float"])
    of = value.get("params", {key: item for key, item in value.items() if key not in _KINDS})
    inner = ", ".join(f"{key} {_describe(item, digits)}" for key, item in of.items())
    name = value.get("class", value.get("opaque", ""))
    return f"{name} with {inner}" if name and inner else name or inner


@contextmanager
def refusing_run(path: Path, header: dict[str, Any]) -> Iterator[None]:
    """What fails within is due to the run: to a newer version that wrote it, or to damage."""
    try:
        with refusing_damage(path):
            yield
    except DamagedFileError as error:
        versions = header.get("versions")
        version = str(versions.get("onlooker")) if isinstance(versions, dict) else ""
        if _numbers(version) <= _numbers(__version__):
            raise
        raise StoreMismatchError(
            f"{path} was written by onlooker {version}, which is newer than this version, "
            f"{__version__}, and cannot be read by it: update onlooker ({error.__cause__})"
        ) from error


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", version)[:3]]


def check_header(header: Any, path: Path) -> dict[str, Any]:
    """A header that this version can read."""
    if not isinstance(header, dict) or header.get("what") != "onlooker run":
        raise ValueError(f"{path} was not written by onlooker")
    with refusing_run(path, header):
        if header["format"] != FORMAT:
            raise StoreMismatchError(
                f"{path} has format {header['format']}, this version of onlooker reads {FORMAT}; "
                f"use onlooker {header['versions']['onlooker']}"
            )
        for name, kind, part in (
            *((name, kind, header) for name, kind in _TYPES.items()),
            *((name, kind, header["options"]) for name, kind in _OPTIONS.items()),
        ):
            if type(part[name]) is not kind:
                raise ValueError(f"its {name} is {part[name]!r}")
        if min(header["draws"], header["chains"], header["options"]["thin"]) < 1:
            raise ValueError("it has no draws, no chains or no thinning")
        for name in {"onlooker", *header["versions"]}:
            version = header["versions"].get(name)
            if not isinstance(version, str):
                raise ValueError(f"its version of {name} is {version!r}")
    return header


def read_header(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The header of a store; None where there is none yet."""
    file = Path(path) / HEADER
    try:
        with refusing_damage(file):
            header = read_json(file)
    except FileNotFoundError:
        return None
    return check_header(header, Path(path))
