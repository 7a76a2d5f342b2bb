"""A checked model file (`onlooker.fitting.model_file`) as the objects of the library."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.defaults import PRIOR, settings_from
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics
from onlooker.dynamics import features as kinds
from onlooker.dynamics.base import Dynamics
from onlooker.files import read_array, read_arrays
from onlooker.fitting.schema import arguments, make_decay, suggestion, tried
from onlooker.partitions import PRIORS, PartitionPrior

if TYPE_CHECKING:
    from onlooker.dynamics.features import Feature
    from onlooker.fitting.model_file import Model

FEATURES: dict[str, Any] = {
    "heading": kinds.Heading,
    "speed": kinds.Speed,
    "previous_step": kinds.PreviousStep,
    "elapsed": kinds.Elapsed,
    "cycle": kinds.Cycle,
    "time_of_day": kinds.time_of_day,
    "day_of_year": kinds.day_of_year,
}

# -- dynamics -------------------------------------------------------------------------------------


def make_dynamics(
    demos: Demonstrations, model: Model, *, geographic: bool, one_sigma: bool = False
) -> Dynamics:
    """How the world moves: as the model says, or proposed from the tracks.

    With `one_sigma` all proposed actions have the same noise, as unseen positions need it.
    """
    kind = model.dynamics.get("kind", "displacement")
    given = arguments(DYNAMICS[kind], model.dynamics, f'[dynamics] kind = "{kind}"')
    if demos.is_discrete and kind not in FINITE:
        raise ValueError(
            "the states are whole numbers, as of a finite space, which needs a table of "
            'transitions: [dynamics] kind = "tabular", file = "table.npy" (or kind = "gymnasium") '
            'in a file given by --model; for positions on a line write kind = "displacement" there'
        )
    steps = GeographicDynamics if geographic else DisplacementDynamics
    make: Any = steps.from_demonstrations if kind == "displacement" else DYNAMICS[kind]
    context = {"demos": demos, "dynamics": steps, "folder": model.folder}
    needed = {name: context[name] for name in inspect.signature(make).parameters if name in context}
    dynamics = make(**needed, **given)
    if one_sigma and kind == "displacement" and np.ndim(dynamics.sigma) == 1:
        sigma = float(np.sqrt(np.mean(np.square(dynamics.sigma))))
        dynamics = make(**needed, **given, sigma=sigma)
    return dynamics  # type: ignore[no-any-return]


def _compass(
    demos: Demonstrations,
    dynamics: Any,
    directions: int = 16,
    step: float | None = None,
    sigma: float | None = None,
    stay: bool = False,
) -> Any:
    if step is None:
        lengths = np.linalg.norm(dynamics.displacements(*demos.transitions()), axis=1)
        step = float(np.median(lengths))
        if step == 0:
            raise ValueError("half of the steps or more stand still; give --step and --sigma")
    return dynamics.compass(directions, step, step / 5 if sigma is None else sigma, stay=stay)


def _steps(dynamics: Any, steps: list[Any], sigma: Any) -> Any:
    return tried("[dynamics]", dynamics, steps, sigma)


def _table(folder: Path, file: str, array: str | None = None) -> Dynamics:
    """``T[s, a, s']`` out of a NumPy file; sparse matrices, one a file of scipy, do not fit one."""
    from onlooker.dynamics import TabularDynamics

    path = folder / file
    table = _load(path)
    if isinstance(table, dict):
        table = _pick(path, table, array)
    return tried(f"{path}:", TabularDynamics, table)  # type: ignore[no-any-return]


def _load(path: Path) -> Any:
    """An array, or the arrays of an archive."""
    try:
        return read_arrays(path) if zipfile.is_zipfile(path) else read_array(path)
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or f"it is not a NumPy file ({error.__cause__})"
        raise ValueError(f"cannot read {path}: {what}") from error


def _pick(path: Path, arrays: dict[str, Any], name: str | None) -> Any:
    if name is None and len(arrays) == 1:
        return next(iter(arrays.values()))
    if name not in arrays:
        listed = ", ".join(arrays)
        if name is None:
            raise ValueError(f"{path} holds several arrays ({listed}); name one: array")
        raise ValueError(f"{path} has no array {name!r}{suggestion(name, arrays)}; it has {listed}")
    return arrays[name]


def _environment(
    demos: Demonstrations,
    id: str,
    options: dict[str, Any] | None = None,
    sigma: Any = None,
    actions: list[Any] | None = None,
    absorbing: bool | None = None,
) -> Dynamics:
    from onlooker.dynamics import GymnasiumDynamics

    given = {"sigma": sigma, "actions": actions, "absorbing": absorbing}
    given = {name: value for name, value in given.items() if value is not None}
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("environments need Gymnasium: pip install gymnasium") from error
    try:
        env = gymnasium.make(id, **(options or {}))
    except (gymnasium.error.Error, TypeError) as error:
        raise ValueError(f"Gymnasium cannot make {id!r}: {error}") from error
    if actions is not None and hasattr(env.action_space, "n"):
        given["actions"] = [int(action) for action in actions]
    if sigma is not None or hasattr(env.unwrapped, "P"):
        return tried(f"[dynamics] {id}:", GymnasiumDynamics, env, **given)  # type: ignore[no-any-return]
    return GymnasiumDynamics.from_demonstrations(env, demos, **given)


DYNAMICS: dict[str, Any] = {
    "displacement": DisplacementDynamics.from_demonstrations,
    "compass": _compass,
    "steps": _steps,
    "tabular": _table,
    "gymnasium": _environment,
}
FINITE = ("tabular", "gymnasium")
"""Kinds whose states may be whole numbers."""


# -- features and partitions ----------------------------------------------------------------------


def make_features(model: Model) -> list[Feature]:
    """The derived parts of the state."""
    tables = model.features if isinstance(model.features, list) else []
    makes = [(FEATURES[table["kind"]], table) for table in tables]
    return [make(**arguments(make, table)) for make, table in makes]


def make_prior(
    demos: Demonstrations, dynamics: Dynamics, model: Model, metric: Any = None
) -> PartitionPrior[Any]:
    """Which partitions are believable: as the model says, the rest from the tracks."""
    table = {"kind": PRIOR} | model.prior
    if "coordinates" in table:
        path = model.folder / table["coordinates"]
        array = _load(path)
        table["coordinates"] = _pick(path, array, None) if isinstance(array, dict) else array
        table.setdefault("metric", "euclidean")
    return prior_from(table, settings_from(PRIORS[table["kind"]], demos, dynamics, metric))


def prior_from(table: Mapping[str, Any], known: Mapping[str, Any]) -> PartitionPrior[Any]:
    """The prior of a checked table; `known` are the parameters that it may leave out."""
    kind: Any = PRIORS[table["kind"]]
    given = arguments(kind, table)
    if "decay" in given:
        plain = known["decay"] if "decay" in known else kind(**known).decay
        given["decay"] = make_decay(given["decay"], scale=plain.scale, offset=plain.offset)
    prior: PartitionPrior[Any] = kind(**{**known, **given})
    return prior
