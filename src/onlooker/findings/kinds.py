"""How much of what is done is heading for places, turning, single actions, or chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.prediction.controllers import LEVEL, with_interval

if TYPE_CHECKING:
    from onlooker.posterior import Posterior

_WORDS = {
    "goals": "heading for a place",
    "turns": "going straight on or turning",
    "kept speed": "going straight on or turning at an unchanged speed",
    "stay": "staying",
    "overall": "acting as everywhere",
    "any action": "any action at all",
    "actions": "a fixed action",
}
_BLURS = "a fixed action or one of its neighbours"
_MIN_SHARE = 0.01  # of the steps, of a kind that is worth a word


def kinds(posterior: Posterior) -> list[dict[str, Any]] | None:
    """The share of the steps that are of each kind of behaviours, the largest first.

    Blurs of all widths are taken together. None where there is one kind only.
    """
    problem = posterior.problem
    names = [_words(name) for name in problem.kinds]
    words = list(dict.fromkeys(names))
    if len(words) < 2:
        return None
    group = np.array([words.index(name) for name in names])[problem.kind_of]
    drawn = posterior.draws.behaviours.reshape(-1, problem.n_transitions)
    steps = np.array([np.bincount(group[row], minlength=len(words)) for row in drawn])
    shares = steps / problem.n_transitions
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    mean = shares.mean(axis=0)
    return [
        {"kind": words[q], "mean": float(mean[q]), "low": float(low[q]), "high": float(high[q])}
        for q in np.argsort(-mean, kind="stable")
    ]


def _words(kind: str) -> str:
    return _BLURS if kind.startswith("blurs of ") else _WORDS.get(kind, kind)


def format_kinds(found: list[dict[str, Any]] | None) -> str | None:
    """One sentence: "... 60 % [50–70] heading for a place, ..."."""
    if found is None:
        return None
    parts = [
        f"{with_interval(one['mean'], one['low'], one['high'])} {one['kind']}"
        for one in found
        if one["mean"] >= _MIN_SHARE or one is found[0]
    ]
    return f"Steps by kind of behaviour ({100 * LEVEL:.0f} % intervals): {', '.join(parts)}."
