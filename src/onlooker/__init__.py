"""Watch a system move through its states and recognise the policy behind it.

The public names are loaded on first use, so that ``import onlooker`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onlooker._version import __version__

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.posterior import Posterior
    from onlooker.problem import Problem
    from onlooker.recognizer import PolicyRecognizer
    from onlooker.sampling import sample

_HOME = {
    "Demonstrations": "onlooker.demonstrations",
    "PolicyRecognizer": "onlooker.recognizer",
    "Posterior": "onlooker.posterior",
    "Problem": "onlooker.problem",
    "sample": "onlooker.sampling",
}

_ROOMS = {
    "anomaly",
    "baselines",
    "consensus",
    "datasets",
    "diagnostics",
    "dynamics",
    "geography",
    "hyper",
    "metrics",
    "partitions",
    "planning",
    "plot",
    "reading",
    "warnings",
    "worlds",
}

__all__ = [
    "Demonstrations",
    "PolicyRecognizer",
    "Posterior",
    "Problem",
    "__version__",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"onlooker.{name}")
    raise AttributeError(f"module 'onlooker' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
