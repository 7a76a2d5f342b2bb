"""A model in words: what actions do, and which partitions are believable."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.dynamics.base import position_dynamics
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.findings.names import hyper_text, hyper_words
from onlooker.hyper import Prior
from onlooker.partitions.base import PartitionPrior
from onlooker.reading.tracks import counted
from onlooker.runs.codec import UnknownPrior

_MAX_NAMES = 8  # of actions, that are listed


def dynamics_words(dynamics: Any) -> str:
    """What the actions are, such as "16 directions × steps of 1, and staying; noise 0.2"."""
    if dynamics is None:
        return "not stored"
    position: Any = position_dynamics(dynamics)
    steps = getattr(position, "steps", None)
    if steps is not None and hasattr(position, "sigma"):
        return _steps_words(position)
    where = ""
    if getattr(dynamics, "n_states", None) is not None:
        where = f" in {counted(int(dynamics.n_states), 'state')}"
    elif getattr(dynamics, "n_dims", None) is not None:
        where = f" in {counted(int(dynamics.n_dims), 'dimension')}"
    names = getattr(dynamics, "action_names", None) or []
    listed = f" ({', '.join(names)})" if 0 < len(names) <= _MAX_NAMES else ""
    return counted(int(dynamics.n_actions), "action") + listed + where


def _steps_words(dynamics: Any) -> str:
    steps = dynamics.steps
    unit = " km" if isinstance(dynamics, GeographicDynamics) else ""
    lengths = np.unique(np.round(np.linalg.norm(steps, axis=1), 9))
    *others, last = [f"{length:.4g}" for length in lengths if length > 0] or [""]
    moves = f"{', '.join(others)} and {last}" if others else last
    stay = ", and staying" if 0 in lengths else ""
    n_moving, n_speeds = int((steps != 0).any(axis=1).sum()), int((lengths > 0).sum())
    per = f"{n_moving // n_speeds} directions × " if n_speeds and n_moving % n_speeds == 0 else ""
    low, high = float(np.min(dynamics.sigma)), float(np.max(dynamics.sigma))
    noise = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    inferred = [hyper_text(None, name).name for name in getattr(dynamics, "parameters", {})]
    ending = f"; {' and '.join(inferred)} inferred" if inferred else ""
    return f"{per}steps of {moves}{unit}{stay}; noise {noise}{unit}{ending}"


def prior_words(prior: PartitionPrior[Any]) -> str:
    """The kind of a prior and its hyper-parameters: inferred, or fixed to a number."""
    if isinstance(prior, UnknownPrior):
        return prior.text
    inferred, fixed = [], []
    for name, value in prior.hyper().items():
        words = hyper_words(prior, name)
        if isinstance(value, Prior):
            inferred.append(words)
        else:
            fixed.append(f"{words} {value:.4g}")
    kind = getattr(prior, "key", type(prior).__name__)
    n_clusters = getattr(prior, "n_clusters", None)
    parts = [] if n_clusters is None else [f"at most {counted(n_clusters, 'cluster')}"]
    parts += fixed
    if inferred:
        parts.append(f"{', '.join(inferred)} inferred")
    return f"{kind} ({'; '.join(parts)})" if parts else str(kind)


def concentration_words(concentration: Any) -> str:
    """The concentration of the controllers: a number, or inferred."""
    return f"{concentration:.4g}" if isinstance(concentration, int | float) else "inferred"
