"""Unseen states of a finite space: forward filtering–backward sampling, given the policy.

Turned round in time: messages run back from the seen state that ends a gap, then states and
actions are drawn on the way to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.dynamics.tabular import TabularDynamics
from onlooker.gibbs.categorical import invert

ENDS = 64
"""Ends of gaps that messages run back from at a time."""


class Moves(NamedTuple):
    """All moves that some action can make, row after row of their first state."""

    first: Array
    """``(S + 1,)``: state s owns moves ``first[s]`` to ``first[s + 1] - 1``."""
    end: Array
    """``(E,)``: where a move leads; rising within a row."""
    start: Array
    """``(E,)``: where it comes from."""
    probability: Array
    """``(E, A)``: ``T(end | start, j)``."""
    into: Array
    """``(E,)``: the moves, sorted by their end."""
    into_first: Array
    """``(S + 1,)``: state s is the end of ``into[into_first[s] : into_first[s + 1]]``."""


class Gaps(NamedTuple):
    """Stretches of unseen states, in groups that end at the same seen state."""

    before: Array
    """``(G,)``: index of the last seen state before each gap."""
    length: Array
    """``(G,)``: unseen states."""
    group: Array
    """Gaps ``group[k]`` to ``group[k + 1] - 1`` end at the same state."""
    longest: Array
    """The longest gap of each group; groups fall in it."""


def make_moves(dynamics: TabularDynamics) -> Moves:
    """Tabulate what can happen."""
    import scipy.sparse

    possible = sum((matrix != 0).astype(np.int8) for matrix in dynamics.matrices)
    possible = scipy.sparse.csr_array(possible)
    possible.sort_indices()
    start = np.repeat(np.arange(dynamics.n_states), np.diff(possible.indptr))
    end = possible.indices.astype(np.int64)
    into = np.argsort(end, kind="stable")
    counts = np.bincount(end, minlength=dynamics.n_states)
    return Moves(
        possible.indptr.astype(np.int64),
        end,
        start,
        np.exp(dynamics.log_likelihood(start, end)),
        into,
        np.concatenate([[0], np.cumsum(counts)]),
    )


def make_gaps(observed: Array, hidden: Array) -> Gaps:
    """Find the gaps; every one has a seen state on both sides."""
    apart = np.flatnonzero(np.diff(hidden) > 1)
    n = min(len(hidden), 1)
    begins = hidden[np.concatenate([np.zeros(n, dtype=np.int64), apart + 1])]
    ends = hidden[np.concatenate([apart, np.full(n, len(hidden) - 1)])]
    length, state = ends - begins + 1, observed[ends + 1]
    longest = np.zeros(int(state.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(longest, state, length)
    order = np.lexsort([begins, state, -longest[state]])
    new = np.flatnonzero(np.diff(state[order])) + 1
    group = np.concatenate([np.zeros(n, dtype=np.int64), new, np.full(n, len(begins))])
    return Gaps(
        before=begins[order] - 1,
        length=length[order],
        group=group.astype(np.int64),
        longest=longest[state[order][group[:-1]]],
    )


def transition_at(starts: Array, n: int) -> Array:
    """The transition that starts at each of `n` states; -1 at the end of a trajectory."""
    transition = np.full(n, -1, dtype=np.int64)
    transition[starts] = np.arange(len(starts))
    return transition


@njit(cache=True, nogil=True, error_model="numpy")
def find_move(moves: Moves, start: int, end: int) -> int:
    """The number of a move; -1 if no action makes it."""
    low, high = moves.first[start], moves.first[start + 1]
    while low < high:
        middle = (low + high) // 2
        if moves.end[middle] < end:
            low = middle + 1
        else:
            high = middle
    if low < moves.first[start + 1] and moves.end[low] == end:
        return low
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def find_moves(moves: Moves, starts: Array, ends: Array, out: Array) -> None:
    """The numbers of many moves."""
    for t in range(len(starts)):
        out[t] = find_move(moves, starts[t], ends[t])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_action(
    move: int, start: int, policy: Array, moves: Moves, running: Array, uniform: float
) -> int:
    """``p(a = j) ∝ T(end | start, j) policy_j``; -1 if no action makes the move."""
    total = 0.0
    for j in range(policy.shape[1]):
        total += moves.probability[move, j] * policy[start, j]
        running[j] = total
    return invert(running, policy.shape[1], uniform) if total > 0.0 else -1


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_move(
    here: int, message: Array, mixed: Array, moves: Moves, running: Array, uniform: float
) -> int:
    """Draw the next move, ``∝ P(s' | s) · message(s')``; -1 if none leads to the end."""
    first, n = moves.first[here], moves.first[here + 1] - moves.first[here]
    total = 0.0
    for e in range(n):
        total += mixed[first + e] * message[moves.end[first + e]]
        running[e] = total
    return first + invert(running, n, uniform) if total > 0.0 else -1


@njit(cache=True, nogil=True, error_model="numpy")
def _messages(ends: Array, longest: Array, mixed: Array, moves: Moves, messages: Array) -> None:
    """``messages[m, s, k] ∝ p(ends[k] is reached in m + 1 steps | s)``, scaled to a maximum of 1.

    Many ends at a time: what is read of the moves then serves all of them.
    """
    n_states = messages.shape[1]
    messages[0] = 0.0
    for k in range(len(ends)):
        for q in range(moves.into_first[ends[k]], moves.into_first[ends[k] + 1]):
            messages[0, moves.start[moves.into[q]], k] = mixed[moves.into[q]]
    largest = np.empty(len(ends))
    n = len(ends)
    for m in range(1, longest[0]):
        while longest[n - 1] <= m:  # these have no gap that long
            n -= 1
        largest[:n] = 0.0
        before, after = messages[m - 1], messages[m]
        for s in range(n_states):
            row = after[s]
            for k in range(n):
                row[k] = 0.0
            for e in range(moves.first[s], moves.first[s + 1]):
                weight, there = mixed[e], before[moves.end[e]]
                for k in range(n):
                    row[k] += weight * there[k]
            for k in range(n):
                largest[k] = max(largest[k], row[k])
        for s in range(n_states):
            for k in range(n):
                if largest[k] > 0.0:
                    after[s, k] /= largest[k]


@njit(cache=True, nogil=True, error_model="numpy")
def draw_paths(
    path: Array,
    actions: Array,
    move_of: Array,
    transition: Array,
    gaps: Gaps,
    policy: Array,
    moves: Moves,
    rng: np.random.Generator,
) -> int:
    """Draw the states and the actions of every gap, given the policy ``(S, A)``.

    `path` holds all states, ``transition[i]`` the transition that starts at ``path[i]``; its
    action and its move are written too. Returns a gap that nothing can bridge, or -1.
    """
    n_groups = len(gaps.longest)
    if n_groups == 0:
        return -1
    mixed = np.empty(len(moves.end))
    for e in range(len(mixed)):
        total = 0.0
        for j in range(policy.shape[1]):
            total += moves.probability[e, j] * policy[moves.start[e], j]
        mixed[e] = total
    messages = np.empty((gaps.longest[0], len(policy), min(n_groups, ENDS)))
    running = np.empty(max(policy.shape[1], np.diff(moves.first).max()))
    ends = np.empty(n_groups, dtype=np.int64)
    for k in range(n_groups):
        g = gaps.group[k]
        ends[k] = path[gaps.before[g] + gaps.length[g] + 1]
    for first in range(0, n_groups, ENDS):
        last = min(n_groups, first + ENDS)
        _messages(ends[first:last], gaps.longest[first:last], mixed, moves, messages)
        for k in range(first, last):
            for g in range(gaps.group[k], gaps.group[k + 1]):
                i = gaps.before[g]
                here = path[i]
                for m in range(gaps.length[g] - 1, -2, -1):
                    if m >= 0:
                        message = messages[m, :, k - first]
                        e = _draw_move(here, message, mixed, moves, running, rng.random())
                    else:
                        e = find_move(moves, here, ends[k])
                    if e < 0:
                        return g
                    t = transition[i]
                    move_of[t] = e
                    actions[t] = _draw_action(e, here, policy, moves, running, rng.random())
                    here = moves.end[e]
                    i += 1
                    path[i] = here
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def arrange(
    place_of: Array, move_of: Array, moves: Moves, first: Array, order: Array, likelihood: Array
) -> None:
    """Sort transitions by the place of their node (`place_of`), and look their rows up."""
    n_places = len(first) - 1
    first[:] = 0
    for t in range(len(place_of)):
        first[place_of[t] + 1] += 1
    for p in range(n_places):
        first[p + 1] += first[p]
    at = first[:-1].copy()
    for t in range(len(place_of)):
        row = at[place_of[t]]
        at[place_of[t]] += 1
        order[row] = t
        largest = 0.0
        for j in range(likelihood.shape[1]):
            largest = max(largest, moves.probability[move_of[t], j])
        for j in range(likelihood.shape[1]):
            likelihood[row, j] = moves.probability[move_of[t], j] / largest
