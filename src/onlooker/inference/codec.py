"""Priors and dynamics as JSON and arrays, without pickle: a file must never run code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker._validation import Array
from onlooker.partitions.base import PartitionPrior

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics


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
    params = {name: decode(inner, arrays) for name, inner in value["params"].items()}
    unknown = params.keys() - {item.name for item in dataclasses.fields(made)}
    if unknown:  # written by another version
        raise CannotDecode(f"{value['class']}({', '.join(sorted(unknown))}=...)")
    return made(**params)


def _displacements() -> dict[str, type]:
    from onlooker.dynamics import DisplacementDynamics, GeographicDynamics

    return {made.__name__: made for made in (DisplacementDynamics, GeographicDynamics)}


def encode_dynamics(dynamics: Dynamics | None, arrays: dict[str, Array]) -> Any:
    """Tables and codebooks are stored; anything else is only named."""
    from onlooker.dynamics import TabularDynamics

    if dynamics is None:
        return None
    if isinstance(dynamics, _displacements().get(type(dynamics).__name__, ())):
        arrays["dynamics.steps"] = dynamics.steps  # type: ignore[attr-defined]
        sigma = encode(dynamics.sigma, "dynamics.sigma", arrays)  # type: ignore[attr-defined]
        return {"class": type(dynamics).__name__, "sigma": sigma}
    if isinstance(dynamics, TabularDynamics):
        if not dynamics.is_sparse:
            arrays["dynamics.table"] = dynamics.toarray()
            return {"class": "TabularDynamics", "sparse": False}
        for action, matrix in enumerate(dynamics.matrices):
            for part in ("data", "indices", "indptr"):
                arrays[f"dynamics.{action}.{part}"] = getattr(matrix, part)
        return {
            "class": "TabularDynamics",
            "sparse": True,
            "n_states": dynamics.n_states,
            "n_actions": dynamics.n_actions,
        }
    from onlooker.inference.other_dynamics import encode_other

    return encode_other(dynamics, arrays)


def decode_dynamics(value: Any, arrays: dict[str, Array]) -> Dynamics | None:
    """Undo `encode_dynamics`; None where the dynamics were not stored."""
    from onlooker.dynamics import TabularDynamics

    if value is None or "opaque" in value:
        return None
    if value["class"] in _displacements():
        made: Dynamics = _displacements()[value["class"]](
            arrays["dynamics.steps"], decode(value["sigma"], arrays)
        )
        return made
    if value["class"] != "TabularDynamics":
        from onlooker.inference.other_dynamics import decode_other

        return decode_other(value, arrays)
    if not value["sparse"]:
        return TabularDynamics(arrays["dynamics.table"])
    from scipy.sparse import csr_array

    n = value["n_states"]
    return TabularDynamics(
        [
            csr_array(
                tuple(
                    arrays[f"dynamics.{action}.{part}"] for part in ("data", "indices", "indptr")
                ),
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
