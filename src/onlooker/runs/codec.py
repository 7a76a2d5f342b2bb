"""Priors as JSON and arrays, without pickle: a file must never run code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import numpy as np

from onlooker import files
from onlooker.checks import Array
from onlooker.partitions.base import (
    Bound,
    Drawn,
    Hyper,
    PartitionPrior,
    Strategy,
    Weights,
)
from onlooker.problem import Problem


@dataclasses.dataclass(eq=False)
class UnknownPrior(PartitionPrior[Any]):
    """Stands for a prior that could not be stored; draws can be read, new states not placed."""

    text: str

    def hyper(self) -> dict[str, Hyper]:
        """Not known."""
        return {}

    def bind(self, problem: Problem) -> Bound[Any]:
        """Refused."""
        raise self._refusal("it cannot be sampled")

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """Refused."""
        raise self._refusal("states that are no nodes have no weights")

    def _refusal(self, what: str) -> TypeError:
        return TypeError(
            f"{self.text} is code of your own, which is not stored, so {what}; give prior= to "
            "Posterior.load"
        )


def _classes() -> dict[str, type]:
    from onlooker import hyper
    from onlooker.partitions import PRIORS, ScaledAxes, decay
    from onlooker.partitions.continuation import Continuation

    parts = [
        *PRIORS.values(),
        Continuation,
        ScaledAxes,
        *vars(decay).values(),
        *vars(hyper).values(),
    ]
    return {
        item.__name__: item
        for item in parts
        if isinstance(item, type) and dataclasses.is_dataclass(item)
    }


def encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """A prior, or one of its parameters, as JSON; see `onlooker.files.encode`."""
    return files.encode(value, name, arrays, _classes())


def decode(value: Any, arrays: dict[str, Array]) -> Any:
    """Undo `encode`."""
    return files.decode(value, arrays, _classes())


def fingerprint(description: Any, arrays: dict[str, Array]) -> str:
    """A hash that changes with anything in the description or the arrays."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
