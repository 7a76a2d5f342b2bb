"""A first guess of unseen states, which chains start from."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.dynamics.base import unknown_parameters
from onlooker.hyper import check_hyper
from onlooker.missing.seen import Incomplete


def completed(
    demos: Demonstrations, dynamics: Any, nodes: Any, noise: Any
) -> tuple[Demonstrations, Incomplete]:
    """Demonstrations with a first guess of unseen states, and what was seen of them."""
    discrete = demos.is_discrete
    if noise is not None:
        check_hyper("observation_noise", noise)
        if discrete:
            raise ValueError("observation_noise is for positions; these states are integers")
    incomplete = Incomplete(demos.states, demos.offsets, 0.0 if noise is None else noise)
    if discrete:
        _check_finite(demos, dynamics, nodes)
        path = first_path(dynamics, incomplete)
        return demos.with_states(path), incomplete
    if type(dynamics) is not DisplacementDynamics or np.ndim(dynamics.sigma):
        raise TypeError(
            "unseen or noisy positions need DisplacementDynamics with one sigma for all actions, "
            f"got {dynamics!r}"
        )
    return demos.filled(), incomplete


def _check_finite(demos: Any, dynamics: Any, nodes: Any) -> None:
    if not isinstance(dynamics, TabularDynamics):
        raise TypeError(
            f"unseen integer states need TabularDynamics, got {type(dynamics).__name__}"
        )
    if unknown_parameters(dynamics):
        raise ValueError(
            "dynamics has unknown parameters, which cannot be inferred together with unseen states "
            f"of a finite space: fix {min(unknown_parameters(dynamics))!r} to a number"
        )
    if not isinstance(nodes, str) or nodes != "all":
        raise SettingError(
            "an unseen state may be any state, so all are nodes: give ", Setting("nodes", ("all",))
        )
    bad = demos.states >= dynamics.n_states
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"the demonstrations hold state {demos.states[where]} at index {where}; the dynamics "
            f"have states 0 to {dynamics.n_states - 1}"
        )


def first_path(dynamics: TabularDynamics, incomplete: Incomplete) -> Array:
    """Complete paths by random actions: where chains start."""
    from onlooker.missing.paths import draw_paths, make_gaps, make_moves, transition_at

    observed, n_transitions = incomplete.observed, len(incomplete.starts)
    gaps = make_gaps(observed, incomplete.hidden)
    path = np.array(observed)
    unbridged = draw_paths(
        path,
        np.empty(n_transitions, dtype=np.int32),
        np.empty(n_transitions, dtype=np.int64),
        transition_at(incomplete.starts, len(observed)),
        gaps,
        np.full((dynamics.n_states, dynamics.n_actions), 1.0 / dynamics.n_actions),
        make_moves(dynamics),
        np.random.default_rng(0),
    )
    if unbridged >= 0:
        before = int(gaps.before[unbridged])
        after = before + int(gaps.length[unbridged]) + 1
        number = int(np.searchsorted(incomplete.offsets, before, side="right")) - 1
        raise ValueError(
            f"no actions lead from state {observed[before]} to {observed[after]} in "
            f"{after - before} steps (trajectory {number} of those with two seen states); split "
            "it there, or give the dynamics some noise"
        )
    return path
