"""What the behaviours of a controller look like on the map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onlooker.explorer.view import RunView

_MAX_GOALS = 5  # of a behaviour, that look the same wherever somebody was seen


def picture(view: RunView, behaviour: int) -> dict[str, Any] | None:
    """Where a behaviour heads for, or which actions it takes; None: neither can be drawn."""
    problem, space = view.posterior.problem, view.space
    drawn = None if problem.policies is None else problem.policies.picture(behaviour)
    if drawn is None:
        return None
    if drawn.actions is not None:
        return None if space.kind == "abstract" else {"actions": drawn.actions.tolist()}
    goals = np.asarray(drawn.goals)[:_MAX_GOALS]
    if goals.ndim == 2:
        return {"goals": goals.tolist()}
    if space.states is None:
        return None
    sites = [np.flatnonzero(space.states == goal) for goal in goals]
    return {"goals": [space.sites[site[0]].tolist() for site in sites if len(site)]}
