"""All that onlooker warns of, in one place: to silence one kind, or to make it an error.

Examples
--------
>>> import warnings
>>> from onlooker.warnings import ConvergenceWarning
>>> warnings.simplefilter("error", ConvergenceWarning)
"""

from __future__ import annotations

import sys
import warnings

from onlooker.checks import Advice

__all__ = [
    "ChainFailedWarning",
    "ConvergenceWarning",
    "DynamicsMisfitWarning",
    "GeometryWarning",
    "TrackWarning",
    "UnidentifiableActionsWarning",
]

_PACKAGE = __name__.partition(".")[0]


class ChainFailedWarning(UserWarning):
    """A chain died; the others were kept."""


class ConvergenceWarning(UserWarning):
    """The chains disagree, or have drawn too little to tell; a baseline has not settled."""


class DynamicsMisfitWarning(UserWarning):
    """The steps that were seen are far from what any action does."""


class GeometryWarning(UserWarning):
    """Distances between states are likely not what was meant."""


class TrackWarning(Advice, UserWarning):
    """Tracks were read as they are, although something about them asks for a choice."""


class UnidentifiableActionsWarning(UserWarning):
    """Some transitions are equally likely under every action: they carry no information."""


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, and point at the line outside of this package from which it was entered."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
