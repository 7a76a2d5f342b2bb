"""Greedy policies for a reward at one state each, for many such states at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array
from onlooker.planning.bellman import check_discount
from onlooker.planning.transitions import as_transitions

_ACCURACY = 1e-10  # of the values, of the largest
_TIE = (1e-6, 1e-9)  # of a state's value, and of the largest: actions this close are equally good
_MAX_ITER = 10_000


def goal_actions(T: Any, goals: Array, discount: float) -> Array:
    """``(G, S, A)``, which actions are best for a reward of 1 at each of `goals`, everywhere.

    Value iteration for all goals side by side: one product of matrices serves them all. Only
    differences between actions matter, so a goal is done once MacQueen's bounds on its values have
    closed, which they do long before the values themselves have settled. A state that a goal is
    out of reach of has no best action: all are.
    """
    move = as_transitions(T)
    gamma = check_discount(discount)
    best = np.empty((len(goals), move.n_states, move.n_actions), dtype=bool)
    for part in slices_of(len(goals), move.n_states * move.n_actions):
        best[part] = _solve(move, np.asarray(goals[part]), gamma)
    return best


def _solve(move: Any, goals: Array, gamma: float) -> Array:
    n_goals = len(goals)
    reward = np.zeros((move.n_states, n_goals))
    reward[goals, np.arange(n_goals)] = 1.0
    best = np.empty((n_goals, move.n_states, move.n_actions), dtype=bool)
    left, values = np.arange(n_goals), reward.copy()
    for iteration in range(_MAX_ITER):
        q = move.expect_many(values)  # (A, S, G)
        new = reward[:, left] + gamma * q.max(axis=0)
        change = new - values
        error = 0.5 * gamma / (1 - gamma) * np.ptp(change, axis=0)
        done = error <= _ACCURACY * new.max(axis=0)
        if done.any() or iteration == _MAX_ITER - 1:
            done |= iteration == _MAX_ITER - 1
            found = q[:, :, done]
            # the bounds' middle, less what only the goal itself has
            shift = gamma / (1 - gamma) * 0.5 * (change.min(axis=0) + change.max(axis=0))[done]
            found = found + shift
            top = found.max(axis=0)
            tie = _TIE[0] * np.abs(top) + _TIE[1] * new[:, done].max(axis=0)
            best[left[done]] = (found >= top - tie).transpose(2, 1, 0)
            left, new = left[~done], new[:, ~done]
            if not len(left):
                break
        values = new
    return best
