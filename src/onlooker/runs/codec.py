"""Priors and dynamics as JSON and arrays, without pickle: a file must never run code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.partitions.base import PartitionPrior

if TYPE_CHECKING:
    from onlooker.dynamics import TabularDynamics
    from onlooker.dynamics.base import Dynamics


_GONE: dict[str, Any] = {"tempering": None, "split_merge": 0}
"""Parameters that older versions stored, each with the value that made it do nothing."""


class CannotDecode(ValueError):
    """Something is code of the user's own, which is not stored."""


@dataclasses.dataclass(eq=False)
class UnknownPrior(PartitionPrior):
    """Stands for a prior that could not be stored; draws can be read, new states not placed."""

    text: str


def _classes() -> dict[str, type]:
    from onlooker import hyper, partitions

    found = [getattr(partitions, name) for name in partitions.__all__] + list(vars(hyper).values())
    return {
        item.__name__: item
        for item in found
        if isinstance(item, type) and dataclasses.is_dataclass(item)
    }


def encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Turn a parameter into JSON; arrays go to `arrays` under a name that starts with `name`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        params = {
            item.name: encode(getattr(value, item.name), f"{name}.{item.name}", arrays)
            for item in dataclasses.fields(value)
        }
        known = _classes().get(type(value).__name__) is type(value)
        return {"class" if known else "opaque": type(value).__qualname__, "params": params}
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            arrays[name] = array
            return {"array": name}
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {"opaque": f"{kind.__module__}.{kind.__qualname__}"}


def decode(value: Any, arrays: dict[str, Array]) -> Any:
    """Undo `encode`; raises `CannotDecode` where code of the user's own would be needed."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "float" in value:
        return float(value["float"])
    if "opaque" in value:
        raise CannotDecode(value["opaque"])
    made = _classes().get(value["class"])
    if made is None:
        raise CannotDecode(value["class"])
    params = {name: decode(inner, arrays) for name, inner in without_gone(value["params"]).items()}
    unknown = params.keys() - {item.name for item in dataclasses.fields(made)}
    if unknown:  # written by another version
        raise CannotDecode(f"{value['class']}({', '.join(sorted(unknown))}=...)")
    return made(**params)


def without_gone(params: dict[str, Any]) -> dict[str, Any]:
    """Stored parameters without those that no longer exist; refuses one that did something."""
    for name, off in _GONE.items():
        if params.get(name, off) != off:
            raise ValueError(
                f"the run was made with {name}={params[name]!r}, which this version of onlooker "
                "no longer has; open it with the version that made it"
            )
    return {name: value for name, value in params.items() if name not in _GONE}


def _displacements() -> dict[str, type]:
    from onlooker.dynamics import DisplacementDynamics, GeographicDynamics

    return {made.__name__: made for made in (DisplacementDynamics, GeographicDynamics)}


def encode_dynamics(
    dynamics: Dynamics | None, arrays: dict[str, Array], name: str = "dynamics"
) -> Any:
    """Tables and codebooks are stored; anything else is only named.

    Arrays go to `arrays` under names that start with `name`.
    """
    from onlooker.dynamics import SlipperyDynamics, TabularDynamics

    if dynamics is None:
        return None
    if isinstance(dynamics, _displacements().get(type(dynamics).__name__, ())):
        steps: Any = dynamics
        arrays[f"{name}.steps"] = steps.unit_steps
        found = {"sigma": steps.sigma} | steps.parameters
        return {"class": type(dynamics).__name__} | {
            key: encode(value, f"{name}.{key}", arrays) for key, value in found.items()
        }
    if isinstance(dynamics, SlipperyDynamics):
        success = dynamics.parameters.get("success", dynamics.success)
        return {
            "class": "SlipperyDynamics",
            "intended": encode_dynamics(dynamics.intended, arrays, f"{name}.intended"),
            "slip": encode_dynamics(dynamics.slip, arrays, f"{name}.slip"),
            "success": encode(success, f"{name}.success", arrays),
        }
    if isinstance(dynamics, TabularDynamics):
        return _encode_table(dynamics, arrays, name)
    from onlooker.dynamics.codec import encode_other

    return encode_other(dynamics, arrays)


def _encode_table(dynamics: TabularDynamics, arrays: dict[str, Array], name: str) -> Any:
    if not dynamics.is_sparse:
        arrays[f"{name}.table"] = dynamics.toarray()
        return {"class": "TabularDynamics", "sparse": False}
    for action, matrix in enumerate(dynamics.matrices):
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{action}.{part}"] = getattr(matrix, part)
    return {
        "class": "TabularDynamics",
        "sparse": True,
        "n_states": dynamics.n_states,
        "n_actions": dynamics.n_actions,
    }


def decode_dynamics(
    value: Any, arrays: dict[str, Array], name: str = "dynamics"
) -> Dynamics | None:
    """Undo `encode_dynamics`; None where the dynamics were not stored."""
    from onlooker.dynamics import SlipperyDynamics

    if value is None or "opaque" in value:
        return None
    try:
        if value["class"] in _displacements():
            known = {key: decode(value[key], arrays) for key in ("sigma", "step") if key in value}
            made: Dynamics = _displacements()[value["class"]](arrays[f"{name}.steps"], **known)
            return made
        if value["class"] == "SlipperyDynamics":
            intended, slip = (
                decode_dynamics(value[part], arrays, f"{name}.{part}")
                for part in ("intended", "slip")
            )
            return SlipperyDynamics(intended, slip, decode(value["success"], arrays))
    except CannotDecode:  # a prior of the user's own
        return None
    if value["class"] == "TabularDynamics":
        return _decode_table(value, arrays, name)
    from onlooker.dynamics.codec import decode_other

    return decode_other(value, arrays)


def _decode_table(value: Any, arrays: dict[str, Array], name: str) -> TabularDynamics:
    from scipy.sparse import csr_array

    from onlooker.dynamics import TabularDynamics

    if not value["sparse"]:
        return TabularDynamics(arrays[f"{name}.table"])
    n = value["n_states"]
    return TabularDynamics(
        [
            csr_array(
                tuple(arrays[f"{name}.{action}.{part}"] for part in ("data", "indices", "indptr")),
                shape=(n, n),
            )
            for action in range(value["n_actions"])
        ]
    )


def fingerprint(description: Any, arrays: dict[str, Array]) -> str:
    """A hash that changes with anything in the description or the arrays."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
