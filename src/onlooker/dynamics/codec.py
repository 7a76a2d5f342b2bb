"""Dynamics made of others, as JSON and arrays: features beside positions, simulators by name."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from onlooker.checks import Array

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.dynamics.features import FeatureDynamics
    from onlooker.dynamics.simulated import SimulatedGymnasium

_PLAIN = (bool, int, float, str, type(None))


def encode_other(dynamics: Any, arrays: dict[str, Array]) -> Any:
    """Features and simulators that can be made again by name; anything else is only named."""
    from onlooker.dynamics.features import FeatureDynamics
    from onlooker.dynamics.simulated import SimulatedGymnasium

    told = None
    if type(dynamics) is FeatureDynamics:
        told = _encode_features(dynamics, arrays)
    elif type(dynamics) is SimulatedGymnasium:
        told = _encode_simulator(dynamics, arrays)
    kind = type(dynamics)
    return told or {"opaque": f"{kind.__module__}.{kind.__qualname__}"}


def decode_other(value: Any, arrays: dict[str, Array]) -> Dynamics | None:
    """Undo `encode_other`; None where that is not possible here."""
    if value["class"] == "FeatureDynamics":
        return _decode_features(value, arrays)
    if value["class"] == "SimulatedGymnasium":
        return _decode_simulator(value, arrays)
    return None  # written by a later version


def _feature_classes() -> dict[str, type]:
    from onlooker.dynamics import features

    found = [getattr(features, name) for name in features.__all__]
    return {
        item.__name__: item
        for item in found
        if isinstance(item, type) and issubclass(item, features.Feature)
    }


def _encode_features(dynamics: FeatureDynamics, arrays: dict[str, Array]) -> Any:
    from onlooker.runs.codec import encode_dynamics

    inner = encode_dynamics(dynamics.dynamics, arrays)
    known = _feature_classes()
    if "opaque" in inner or any(
        known.get(type(one).__name__) is not type(one) for one in dynamics.features
    ):
        return None
    return {
        "class": "FeatureDynamics",
        "dynamics": inner,
        "features": [
            {"class": type(one).__name__, "params": dataclasses.asdict(one)}
            for one in dynamics.features
        ],
        "n_dims": dynamics.n_position,
        "interval": dynamics.interval,
    }


def _decode_features(value: Any, arrays: dict[str, Array]) -> Dynamics | None:
    from onlooker.dynamics.features import FeatureDynamics
    from onlooker.runs.codec import decode_dynamics

    inner = decode_dynamics(value["dynamics"], arrays)
    known = _feature_classes()
    if inner is None or any(one["class"] not in known for one in value["features"]):
        return None
    features = [known[one["class"]](**one["params"]) for one in value["features"]]
    return FeatureDynamics(inner, features, value["n_dims"], value["interval"])


def _encode_simulator(dynamics: SimulatedGymnasium, arrays: dict[str, Array]) -> Any:
    """An environment that `gymnasium.make` makes, with states as they are."""
    spec = getattr(dynamics._env, "spec", None)
    arguments = {k: v for k, v in getattr(spec, "kwargs", {}).items() if k != "render_mode"}
    if (
        spec is None
        or _has_own_functions(dynamics)
        or not all(isinstance(one, _PLAIN) for one in arguments.values())
    ):
        return None
    discrete = hasattr(dynamics._env.action_space, "n")
    if not discrete:
        arrays["dynamics.actions"] = _stacked(dynamics.actions)
    arrays["dynamics.sigma"] = dynamics.sigma
    return {
        "class": "SimulatedGymnasium",
        "id": spec.id,
        "arguments": arguments,
        "actions": [int(a) for a in dynamics.actions] if discrete else None,
        "periodic": [[dim, *ends] for dim, ends in dynamics.periodic.items()],
    }


def _has_own_functions(dynamics: SimulatedGymnasium) -> bool:
    from onlooker.dynamics.simulated import _get_state

    return dynamics._state_of is not None or dynamics._get is not _get_state


def _stacked(actions: list[Any]) -> Array:
    import numpy as np

    return np.stack([np.asarray(action, dtype=np.float64) for action in actions])


def _decode_simulator(value: Any, arrays: dict[str, Array]) -> Dynamics | None:
    from onlooker.dynamics.simulated import SimulatedGymnasium

    try:
        import gymnasium
    except ImportError:
        return None
    # Only what is registered: "module:Name" would import that module, and a file must never
    # choose what code runs.
    plain = all(isinstance(one, _PLAIN) for one in value["arguments"].values())
    if value["id"] not in gymnasium.registry or not plain:
        return None
    with warnings.catch_warnings():  # a newer version of the environment is not the one that was
        warnings.simplefilter("ignore")
        env = gymnasium.make(value["id"], **value["arguments"])
    actions = value["actions"] if value["actions"] is not None else arrays["dynamics.actions"]
    return SimulatedGymnasium(
        env,
        sigma=arrays["dynamics.sigma"],
        actions=list(actions),
        periodic={int(dim): (low, high) for dim, low, high in value["periodic"]},
    )
