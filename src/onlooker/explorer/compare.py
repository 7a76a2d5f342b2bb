"""Two runs side by side: do they agree on the policy and on the partition?"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.consensus import variation_of_information
from onlooker.explorer.packing import pack
from onlooker.explorer.view import RunView

_MAX_ASKED = 500  # places where a policy must be worked out rather than looked up


def compare(first: RunView, second: RunView) -> dict[str, Any]:
    """How far two runs agree, at the nodes of the first."""
    mine, theirs = first.posterior, second.posterior
    reason = _cannot(first, second)
    if reason:
        return {"comparable": False, "reason": reason}
    _, there = theirs.predictor.place(mine.problem.states)
    shared = np.flatnonzero(there >= 0)
    asked = shared
    if len(shared) < mine.problem.n_nodes and theirs.prior.geometry(theirs.problem) is not None:
        some = np.linspace(0, mine.problem.n_nodes - 1, _MAX_ASKED).astype(int)
        asked = np.unique(np.concatenate([shared, some]))
    result: dict[str, Any] = {
        "comparable": True,
        "shared": len(shared),
        "nodes": mine.problem.n_nodes,
        "asked": len(asked),
        "distance": None,
        "rand": None,
        "variation": None,
    }
    if len(shared) > 1:
        one, other = first.reference.labels[shared], second.reference.labels[there[shared]]
        from sklearn.metrics import adjusted_rand_score

        result["rand"] = float(adjusted_rand_score(one, other))
        result["variation"] = float(variation_of_information(one, other))
    if mine.problem.n_actions == theirs.problem.n_actions and len(asked):
        result |= _distances(first, second, asked)
    return result


def _distances(first: RunView, second: RunView, asked: Array) -> dict[str, Any]:
    """Total variation between the two mean policies at the nodes `asked`."""
    theirs = second.posterior.policy(first.posterior.problem.states[asked])
    distance = 0.5 * np.abs(first.policy[asked] - theirs).sum(axis=1)
    everywhere = np.full(first.posterior.problem.n_nodes, np.nan)
    everywhere[asked] = distance
    return {
        "distance": pack(everywhere),
        "mean": float(distance.mean()),
        "most": float(distance.max()),
        "where": int(asked[distance.argmax()]),
    }


def _cannot(first: RunView, second: RunView) -> str | None:
    one, other = first.posterior.problem.states, second.posterior.problem.states
    if one.ndim != other.ndim:
        return "One run has integer states, the other real ones."
    if one.shape[1:] != other.shape[1:]:
        return f"The states have {one.shape[1]} and {other.shape[1]} dimensions."
    return None
