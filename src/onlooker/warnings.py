"""All warnings of onlooker, to silence one kind or to make it an error.

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
    "RepertoireWarning",
    "TrackWarning",
    "UnidentifiableActionsWarning",
]

_PACKAGE = __name__.partition(".")[0]


class ChainFailedWarning(Advice, UserWarning):
    """A chain failed; the others were kept."""


class ConvergenceWarning(UserWarning):
    """The chains disagree, or have too few draws to tell; a baseline has not converged."""


class DynamicsMisfitWarning(UserWarning):
    """The observed steps are far from what any action does."""


class GeometryWarning(UserWarning):
    """Distances between states are probably not the intended ones."""


class RepertoireWarning(UserWarning):
    """Some behaviours were left out, since there are too many."""


class TrackWarning(Advice, UserWarning):
    """Tracks were read as they are, although they need a decision, such as about gaps."""


class UnidentifiableActionsWarning(UserWarning):
    """Some transitions are equally likely under every action and carry no information."""


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, and point at the line outside of this package from which it was entered."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
