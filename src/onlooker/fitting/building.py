"""A checked model file (`onlooker.fitting.model_file`) as the objects of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker import partitions
from onlooker.defaults import CLUSTERS, default_prior, typical_step
from onlooker.dynamics import features as kinds
from onlooker.fitting.model_file import DYNAMICS, PRIORS, Model, suggestion
from onlooker.hyper import CONCENTRATION

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.dynamics.base import Dynamics
    from onlooker.dynamics.features import Feature
    from onlooker.partitions import PartitionPrior

_STILL = "half of the steps or more stand still; give --step and --sigma"


def with_flags(model: Model, dynamics: Mapping[str, Any], prior: Mapping[str, Any]) -> Model:
    """The model with what flags say instead: they win over the file.

    `dynamics` holds directions, speeds, step and sigma; `prior` holds kind, clusters and scale.
    None is no flag. A flag that means nothing to the model's kind is refused.
    """
    given = {name: value for name, value in dynamics.items() if value is not None}
    moved = dict(model.dynamics)
    if given:
        kind = moved.get("kind", "displacement")
        if "step" in given and kind == "displacement":
            kind, moved = "compass", {k: v for k, v in moved.items() if k in DYNAMICS["compass"]}
        _refuse_meaningless(given, DYNAMICS[kind], kind)
        moved |= {"kind": kind, **given}
    wanted = {name: value for name, value in prior.items() if value is not None}
    chosen = dict(model.prior)
    if wanted:
        kind = wanted.get("kind", chosen.get("kind", "ddcrp"))
        chosen = chosen if kind == chosen.get("kind", kind) else {}
        scale = wanted.pop("scale", None)
        known = [*PRIORS[kind], "kind", *(["scale"] if "decay" in PRIORS[kind] else [])]
        _refuse_meaningless(wanted if scale is None else {**wanted, "scale": scale}, known, kind)
        chosen |= {"kind": kind, **wanted}
        if scale is not None:
            chosen["decay"] = {"kind": "gaussian"} | chosen.get("decay", {}) | {"scale": scale}
    return replace(model, dynamics=moved, prior=chosen)


def _refuse_meaningless(given: Mapping[str, Any], known: Any, kind: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"--{name} means nothing to {kind!r}; leave it out")


# -- dynamics -------------------------------------------------------------------------------------


def make_dynamics(
    demos: Demonstrations, model: Model, *, geographic: bool, one_sigma: bool = False
) -> Dynamics:
    """How the world moves: as the model says, or proposed from the tracks.

    With `one_sigma` all proposed actions have the same noise, as unseen positions need it.
    """
    from onlooker.dynamics import DisplacementDynamics, GeographicDynamics

    wanted = dict(model.dynamics)
    kind = wanted.pop("kind", "displacement")
    wanted.pop("names", None)
    if kind == "tabular":
        return _table(model.folder, **wanted)
    if kind == "gymnasium":
        return _environment(demos, **wanted)
    if demos.is_discrete:
        raise ValueError(
            "the states are whole numbers, as of a finite space, which needs a table of "
            'transitions: [dynamics] kind = "tabular" (or "gymnasium") in --model; for positions '
            'on a line write kind = "displacement" there'
        )
    made: Any = GeographicDynamics if geographic else DisplacementDynamics
    if kind == "steps":
        if not {"steps", "sigma"} <= wanted.keys():
            raise ValueError('[dynamics] kind = "steps" needs steps and sigma')
        return made(wanted["steps"], wanted["sigma"])  # type: ignore[no-any-return]
    if kind == "compass":
        return _compass(demos, made, **wanted)
    scale = {"scale": wanted.pop("scale")} if "scale" in wanted else {}
    names = {"directions": "n_directions", "speeds": "n_speeds"}
    options = {names.get(name, name): value for name, value in wanted.items()}
    proposed = made.from_demonstrations(demos, **options, **scale)
    if one_sigma and np.ndim(proposed.sigma) == 1:
        options["sigma"] = float(np.sqrt(np.mean(np.square(proposed.sigma))))
        proposed = made.from_demonstrations(demos, **options)
    return proposed  # type: ignore[no-any-return]


def _compass(
    demos: Demonstrations,
    made: Any,
    directions: int = 16,
    step: float | None = None,
    sigma: float | None = None,
    stay: bool = False,
) -> Any:
    if step is None:
        lengths = np.linalg.norm(made.displacements(*demos.transitions()), axis=1)
        step = float(np.median(lengths))
        if step == 0:
            raise ValueError(_STILL)
    return made.compass(directions, step, step / 5 if sigma is None else sigma, stay=stay)


def _table(folder: Path, file: str | None = None, array: str | None = None) -> Dynamics:
    """``T[s, a, s']`` out of a NumPy file; sparse matrices, one a file of scipy, do not fit one."""
    from onlooker.dynamics import TabularDynamics

    if file is None:
        raise ValueError('[dynamics] kind = "tabular" needs file, a NumPy array T[s, a, s\']')
    path = folder / file
    table = _load(path)
    if isinstance(table, dict):
        table = _pick(path, table, array)
    try:
        return TabularDynamics(table)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _load(path: Path) -> Any:
    """An array, or the arrays of an archive."""
    try:
        found = np.load(path, allow_pickle=False)
        return dict(found) if hasattr(found, "files") else found
    except (OSError, ValueError, EOFError) as error:
        what = getattr(error, "strerror", None) or "it is no NumPy file"
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
    id: str | None = None,
    options: dict[str, Any] | None = None,
    **wanted: Any,
) -> Dynamics:
    from onlooker.dynamics import GymnasiumDynamics

    if id is None:
        raise ValueError('[dynamics] kind = "gymnasium" needs id, such as "FrozenLake-v1"')
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("environments need Gymnasium: pip install gymnasium") from error
    try:
        env = gymnasium.make(id, **(options or {}))
    except (gymnasium.error.Error, TypeError) as error:
        raise ValueError(f"Gymnasium cannot make {id!r}: {error}") from error
    if "actions" in wanted and hasattr(env.action_space, "n"):
        wanted["actions"] = [int(action) for action in wanted["actions"]]
    try:
        if "sigma" in wanted or hasattr(env.unwrapped, "P"):
            made = GymnasiumDynamics(env, **wanted)
        else:
            made = GymnasiumDynamics.from_demonstrations(env, demos, **wanted)
    except TypeError as error:
        raise ValueError(f"[dynamics] {id}: {error}") from error
    return made


# -- features -------------------------------------------------------------------------------------


def make_features(model: Model) -> list[Feature]:
    """The derived parts of the state."""
    made: dict[str, Any] = {
        "heading": kinds.Heading,
        "speed": kinds.Speed,
        "previous_step": kinds.PreviousStep,
        "elapsed": kinds.Elapsed,
        "cycle": kinds.Cycle,
        "time_of_day": kinds.time_of_day,
        "day_of_year": kinds.day_of_year,
    }
    found = [dict(item) for item in model.features]
    return [made[item.pop("kind")](**item) for item in found]


# -- partitions -----------------------------------------------------------------------------------


def make_prior(demos: Demonstrations, dynamics: Dynamics, model: Model) -> PartitionPrior:
    """Which partitions are believable: as the model says, the rest from the tracks."""
    wanted = dict(model.prior)
    kind = wanted.pop("kind", None)
    if kind == "static":
        return partitions.Static()
    if kind == "crp":
        return partitions.ChineseRestaurant(**({"concentration": CONCENTRATION} | wanted))
    if kind in ("uniform", "mixing"):
        n_clusters = wanted.pop("clusters", CLUSTERS)
        if kind == "uniform":
            return partitions.Uniform(n_clusters)
        return partitions.Mixing(n_clusters, **({"concentration": CONCENTRATION} | wanted))
    base = default_prior(demos, dynamics)
    if kind is None and not wanted:
        return base
    base = (
        base if isinstance(base, partitions.DistanceDependent) else partitions.DistanceDependent()
    )
    given = _spatial(wanted, base, typical_step(demos, dynamics), model.folder)
    if kind == "potts":
        given.setdefault("n_clusters", CLUSTERS)
        given.setdefault("metric", base.metric)
        given.setdefault("decay", replace(base.decay, offset=0.0))
        return partitions.Potts(**given)
    return replace(base, **given)


def _spatial(
    wanted: dict[str, Any], base: partitions.DistanceDependent, step: float, folder: Path
) -> dict[str, Any]:
    """Keys of the file as parameters of the class."""
    names = {"neighbors": "n_neighbors", "clusters": "n_clusters"}
    given = {names.get(name, name): value for name, value in wanted.items()}
    if "coordinates" in given:
        path = folder / given["coordinates"]
        array = _load(path)
        given["coordinates"] = _pick(path, array, None) if isinstance(array, dict) else array
        given.setdefault("metric", "euclidean")
    if "decay" in given:
        decay = dict(given["decay"])
        kind = decay.pop("kind")
        made = getattr(partitions, f"{kind.capitalize()}Decay")
        same = made is type(base.decay)
        start = {f.name: getattr(base.decay, f.name) for f in fields(base.decay)} if same else {}
        given["decay"] = made(**({"scale": step, "offset": 0.01} | start | decay))
    return given
