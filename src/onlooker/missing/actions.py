"""Actions between positions that are unknown, with the positions integrated out.

Drawing actions given positions and positions given actions does not mix once the noise of a step is
small against the step: a path that goes east, then north never becomes one that goes north, then
east. Without positions, what was seen before and after a few actions says how far these must lead
together. ``N(m, P)`` is the filter of a position given what was seen up to it, ``N(b, Q)`` the
message from what was seen from it on, both by coordinate; a variance is infinite where nothing was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts
from onlooker.gibbs.categorical import invert

_REACH = 25.0  # squared standard deviations: three actions are drawn among those that lead there
_NOTHING = 45.0  # a weight below exp(-45) of another is lost in rounding


class Runs(NamedTuple):
    """Stretches of transitions between states of which something was seen."""

    first: Array
    """``(R + 1,)``: run r owns the transitions ``first[r]`` to ``first[r + 1] - 1``."""
    start: Array
    """``(R,)``: the state that it starts at; it ends where the next one starts."""
    trajectory: Array
    """Trajectory k owns the runs ``trajectory[k]`` to ``trajectory[k + 1] - 1``."""


class Steps(NamedTuple):
    """Where one action leads, and where two lead together."""

    one: Array
    """``(d, A)``."""
    two: Array
    """``(d, A²)``, rising in the first coordinate."""
    actions: Array
    """``(2, A²)``: which two actions these are."""
    apart: float
    """Distance between the two steps that are nearest to each other."""


class Walk(NamedTuple):
    """Actions, and how the policy weighs them: by controllers, or by counts without them."""

    actions: Array
    """``(M,)``, in the problem's order, like all that follows by transition."""
    place: Array
    """``(M,)``: the node of each transition."""
    labels: Array
    counts: Counts
    alpha: Array
    """``(A,)``: of the controllers' Dirichlet prior."""
    controllers: Array
    """``(slots, A)``; ``(0, A)`` if they are integrated out."""


class _Pair(NamedTuple):
    """How far two actions lead, by coordinate: ``N(middle; v_j, width)`` for the first alone, and
    ``N(target - share · v_j; v_l, spread)`` for both."""

    middle: Array
    width: Array
    target: Array
    share: Array
    spread: Array


def make_runs(observed: Array, starts: Array, offsets: Array) -> Runs:
    """Find the runs; every trajectory starts and ends at a state of which something was seen."""
    seen = np.asarray(~np.isnan(observed).all(axis=1))
    first = np.flatnonzero(seen[starts])
    begin = offsets - np.arange(len(offsets))  # transitions before each trajectory
    return Runs(
        np.append(first, len(starts)), starts[first], np.searchsorted(first, begin).astype(np.int64)
    )


def make_steps(steps: Array) -> Steps:
    """Tabulate the steps ``(A, d)``, alone and by twos."""
    n = len(steps)
    first, second = np.divmod(np.arange(n * n), n)
    two = steps[first] + steps[second]
    order = np.argsort(two[:, 0], kind="stable")
    square = ((steps[:, None] - steps[None]) ** 2).sum(axis=-1)
    return Steps(
        np.ascontiguousarray(steps.T),
        np.ascontiguousarray(two[order].T),
        np.stack([first, second])[:, order],
        float(np.sqrt(square[square > 0.0].min(initial=np.inf))),
    )


def scaled(steps: Steps, length: float) -> Steps:
    """The same steps, `length` times as long."""
    return Steps(length * steps.one, length * steps.two, steps.actions, length * steps.apart)


# -- counts and weights ---------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def _cluster(t: int, walk: Walk) -> int:
    return int(walk.labels[walk.place[t]])


@njit(cache=True, nogil=True, error_model="numpy")
def _take(t: int, walk: Walk) -> int:
    """Take an action out of the counts; it is returned."""
    action = walk.actions[t]
    walk.counts.node[walk.place[t], action] -= 1
    walk.counts.cluster[_cluster(t, walk), action] -= 1
    return int(action)


@njit(cache=True, nogil=True, error_model="numpy")
def _put(t: int, action: int, walk: Walk) -> None:
    """Put an action into the counts."""
    walk.actions[t] = action
    walk.counts.node[walk.place[t], action] += 1
    walk.counts.cluster[_cluster(t, walk), action] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(t: int, walk: Walk, out: Array) -> None:
    """``w_t(j)``: θ, or counts and α."""
    k = _cluster(t, walk)
    for j in range(len(out)):
        if len(walk.controllers) > 0:
            out[j] = walk.controllers[k, j]
        else:
            out[j] = walk.counts.cluster[k, j] + walk.alpha[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _together(s: int, t: int, walk: Walk) -> float:
    """What an action at s adds to the weight of the same action at t."""
    alike = len(walk.controllers) == 0 and _cluster(s, walk) == _cluster(t, walk)
    return 1.0 if alike else 0.0


# -- one, two, three actions ----------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_one(
    t: int, left: Array, spread: Array, one: Array, walk: Walk, rng: np.random.Generator
) -> None:
    """``p(a_t = j) ∝ w_t(j) N(left + v_old; v_j, spread)``; `left` is what no action explains."""
    n_dims, n_actions = one.shape
    old = _take(t, walk)
    weights, running = np.empty(n_actions), np.zeros(n_actions)
    _weigh(t, walk, weights)
    for d in range(n_dims):
        target, precision = left[d] + one[d, old], 1.0 / spread[d]
        for j in range(n_actions):
            running[j] += precision * (target - one[d, j]) ** 2
    lowest = running.min()
    total = 0.0
    for j in range(n_actions):
        total += weights[j] * np.exp(0.5 * (lowest - running[j]))
        running[j] = total
    new = invert(running, n_actions, rng.random()) if total > 0.0 else old
    _put(t, new, walk)
    for d in range(n_dims):
        left[d] += one[d, old] - one[d, new]


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_two(
    s: int, t: int, pair: _Pair, one: Array, walk: Walk, rng: np.random.Generator
) -> None:
    """``p(a_s = j, a_t = l) ∝ w_s(j) w_t(l)`` times the two normals of the pair."""
    n_dims, n_actions = one.shape
    old_s, old_t = _take(s, walk), _take(t, walk)
    first, second = np.empty(n_actions), np.empty(n_actions)
    _weigh(s, walk, first)
    _weigh(t, walk, second)
    same = _together(s, t, walk)
    square = np.zeros((n_actions, n_actions))
    lowest, at_j, at_l = np.inf, 0, 0
    for j in range(n_actions):
        row = square[j]
        alone = 0.0
        for d in range(n_dims):
            alone += (pair.middle[d] - one[d, j]) ** 2 / pair.width[d]
            target, precision = pair.target[d] - pair.share[d] * one[d, j], 1.0 / pair.spread[d]
            for m in range(n_actions):
                row[m] += precision * (target - one[d, m]) ** 2
        for m in range(n_actions):
            row[m] += alone
            if row[m] < lowest:
                lowest, at_j, at_l = row[m], j, m
    best = first[at_j] * second[at_l]
    most = first.max() * (second.max() + same)
    cut = lowest + 2.0 * (_NOTHING + np.log(most / best)) if best > 0.0 else np.inf
    running = np.empty(n_actions)
    total = 0.0
    for j in range(n_actions):
        row = square[j]
        within = 0.0
        for m in range(n_actions):
            if row[m] <= cut:
                weight = second[m] + same if m == j else second[m]
                within += weight * np.exp(0.5 * (lowest - row[m]))
            row[m] = within
        total += first[j] * within
        running[j] = total
    if total > 0.0:
        old_s = invert(running, n_actions, rng.random())
        old_t = invert(square[old_s], n_actions, rng.random())
    _put(s, old_s, walk)
    _put(t, old_t, walk)


@njit(cache=True, nogil=True, error_model="numpy")
def _swap(s: int, t: int, walk: Walk, rng: np.random.Generator) -> None:
    """Exchange two actions: they lead as far as before, so the ratio of their weights decides."""
    a, b = walk.actions[s], walk.actions[t]
    if a == b:
        return
    _take(s, walk)
    _take(t, walk)
    n_actions = len(walk.alpha)
    first, second = np.empty(n_actions), np.empty(n_actions)
    _weigh(s, walk, first)
    _weigh(t, walk, second)
    if rng.random() * (first[a] * second[b]) < first[b] * second[a]:
        a, b = b, a
    _put(s, a, walk)
    _put(t, b, walk)


@njit(cache=True, nogil=True, error_model="numpy")
def _third(
    i: int,
    target: Array,
    spread: Array,
    steps: Steps,
    weights: Array,
    same: Array,
    until: float,
) -> tuple[float, int]:
    """The weights of all pairs beside a third action i, summed until they exceed `until`.

    ``weights[r]`` are those of the three, ``same`` what they add to each other: the first to the
    second, the first and the second to the third. Returns the sum, and the pair that it ended at.
    """
    n_dims = len(target)
    total, last = 0.0, -1
    middle, half = target[0] - steps.one[0, i], np.sqrt(_REACH * spread[0])
    n = np.searchsorted(steps.two[0], middle - half)
    while n < steps.two.shape[1] and steps.two[0, n] <= middle + half:
        square = 0.0
        for d in range(n_dims):
            square += (target[d] - steps.one[d, i] - steps.two[d, n]) ** 2 / spread[d]
        if square <= _REACH:
            j, m = steps.actions[0, n], steps.actions[1, n]
            second, third = weights[1, m], weights[2, i]
            if j == m:
                second += same[0]
            if j == i:
                third += same[1]
            if m == i:
                third += same[2]
            weight = weights[0, j] * second * third * np.exp(-0.5 * square)
            if weight > 0.0:
                total, last = total + weight, n
                if total > until:
                    break
        n += 1
    return total, last


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_three(
    r: int,
    s: int,
    t: int,
    left: Array,
    spread: Array,
    steps: Steps,
    walk: Walk,
    rng: np.random.Generator,
) -> None:
    """Three actions, among those that lead within 5 standard deviations of where they must.

    If the present ones lie outside they stay: Gibbs sampling within a set is as exact as without.
    """
    n_dims, n_actions = steps.one.shape
    square = 0.0
    for d in range(n_dims):
        square += left[d] ** 2 / spread[d]
    if square > _REACH:
        return
    a, b, c = _take(r, walk), _take(s, walk), _take(t, walk)
    weights, same = np.empty((3, n_actions)), np.empty(3)
    _weigh(r, walk, weights[0])
    _weigh(s, walk, weights[1])
    _weigh(t, walk, weights[2])
    same[0], same[1], same[2] = (
        _together(r, s, walk),
        _together(r, t, walk),
        _together(s, t, walk),
    )
    target = np.empty(n_dims)
    for d in range(n_dims):
        target[d] = left[d] + steps.one[d, a] + steps.one[d, b] + steps.one[d, c]
    running = np.empty(n_actions)
    total = 0.0
    for i in range(n_actions):
        total += _third(i, target, spread, steps, weights, same, np.inf)[0]
        running[i] = total
    if total > 0.0:
        c = invert(running, n_actions, rng.random())
        below = running[c - 1] if c > 0 else 0.0
        until = rng.random() * (running[c] - below)
        n = _third(c, target, spread, steps, weights, same, until)[1]
        a, b = steps.actions[0, n], steps.actions[1, n]
    _put(r, a, walk)
    _put(s, b, walk)
    _put(t, c, walk)


# -- trajectories ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def _see(mean: Array, variance: Array, observed: Array, blur: float) -> None:
    """Take what was seen of a state into the filter, or into the message."""
    for d in range(len(mean)):
        if np.isnan(observed[d]):
            continue
        if blur == 0.0 or variance[d] == np.inf:
            mean[d], variance[d] = observed[d], blur
        else:
            gain = variance[d] / (variance[d] + blur)
            mean[d] += gain * (observed[d] - mean[d])
            variance[d] = blur * gain


@njit(cache=True, nogil=True, error_model="numpy")
def _walked(first: int, last: int, one: Array, actions: Array, out: Array) -> None:
    """How far the transitions from `first` up to `last`, without it, lead together."""
    out[:] = 0.0
    for t in range(first, last):
        for d in range(len(out)):
            out[d] += one[d, actions[t]]


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_run(
    first: int,
    last: int,
    left: Array,
    pair: _Pair,
    steps: Steps,
    walk: Walk,
    rng: np.random.Generator,
) -> None:
    """Draw the actions of one run, whose sum is normal with variance ``pair.spread``.

    Singles; swaps, any two and any three where there are more than two. `left` is how far the end
    is from where they lead.
    """
    n = last - first
    one = steps.one
    for t in range(first, last):
        _draw_one(t, left, pair.spread, one, walk, rng)
    if n == 1:
        return
    if n > 2:
        for _ in range(4 * n):
            s = int(n * rng.random())
            t = int((n - 1) * rng.random())
            t += t >= s
            _swap(first + s, first + t, walk, rng)
    pair.share[:] = 1.0
    pair.width[:] = np.inf
    pair.middle[:] = 0.0
    for _ in range(n if n > 2 else 1):
        s = int(n * rng.random()) if n > 2 else 0
        t = int((n - 1) * rng.random()) if n > 2 else 0
        t += t >= s
        s, t = first + s, first + t
        for d in range(len(left)):
            left[d] += one[d, walk.actions[s]] + one[d, walk.actions[t]]
            pair.target[d] = left[d]
        _draw_two(s, t, pair, one, walk, rng)
        for d in range(len(left)):
            left[d] -= one[d, walk.actions[s]] + one[d, walk.actions[t]]
    if n > 2 and 2.0 * np.sqrt(pair.spread.max()) < steps.apart:
        r = int(n * rng.random())
        s = int((n - 1) * rng.random())
        s += s >= r
        t = int((n - 2) * rng.random())
        t += t >= min(r, s)
        t += t >= max(r, s)
        _draw_three(first + r, first + s, first + t, left, pair.spread, steps, walk, rng)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_actions(
    walk: Walk,
    steps: Steps,
    runs: Runs,
    observed: Array,
    sigma: float,
    noise: float,
    rng: np.random.Generator,
) -> None:
    """Draw every action of a run that starts, passes or ends at a position that is not known.

    Messages backwards, then runs forwards, and the two actions on both sides of a state that was
    not seen exactly; the filter follows with the new actions.
    """
    n_dims = len(steps.one)
    step, blur = sigma * sigma, noise * noise
    n_runs = len(runs.start)
    ahead, ahead_var = np.zeros((n_runs, n_dims)), np.empty((n_runs, n_dims))
    mean, var, way, rest = np.empty(n_dims), np.empty(n_dims), np.empty(n_dims), np.empty(n_dims)
    left = np.empty(n_dims)
    pair = _Pair(
        np.empty(n_dims), np.empty(n_dims), np.empty(n_dims), np.empty(n_dims), np.empty(n_dims)
    )
    for k in range(len(runs.trajectory) - 1):
        begin, end = runs.trajectory[k], runs.trajectory[k + 1]
        for r in range(end - 1, begin - 1, -1):  # the message at the end of each run
            stop = runs.start[r] + runs.first[r + 1] - runs.first[r]
            ahead_var[r] = np.inf
            if r < end - 1:
                _walked(runs.first[r + 1], runs.first[r + 2], steps.one, walk.actions, way)
                n = runs.first[r + 2] - runs.first[r + 1]
                for d in range(n_dims):
                    ahead_var[r, d] = ahead_var[r + 1, d] + n * step
                    if ahead_var[r, d] < np.inf:
                        ahead[r, d] = ahead[r + 1, d] - way[d]
            _see(ahead[r], ahead_var[r], observed[stop], blur)
        mean[:], var[:] = 0.0, np.inf
        _see(mean, var, observed[runs.start[begin]], blur)
        for r in range(begin, end):
            first, last = runs.first[r], runs.first[r + 1]
            n = last - first
            if n > 1 or var.max() > 0.0 or ahead_var[r].max() > 0.0:
                _walked(first, last, steps.one, walk.actions, way)
                for d in range(n_dims):
                    left[d] = ahead[r, d] - mean[d] - way[d]
                    pair.spread[d] = var[d] + n * step + ahead_var[r, d]
                _draw_run(first, last, left, pair, steps, walk, rng)
            stop = runs.start[r] + n
            seen = observed[stop]
            if r + 1 < end and (blur > 0.0 or np.isnan(seen).any()):
                following = runs.first[r + 2]
                _walked(first, last - 1, steps.one, walk.actions, way)
                _walked(last + 1, following, steps.one, walk.actions, rest)
                for d in range(n_dims):
                    before = mean[d] + way[d]
                    variance = var[d] + n * step
                    gain = 0.0
                    pair.middle[d], pair.width[d] = 0.0, np.inf
                    pair.target[d] = ahead[r + 1, d] - rest[d] - before
                    if not np.isnan(seen[d]):
                        gain = 1.0 if variance == np.inf else variance / (variance + blur)
                        pair.middle[d], pair.width[d] = seen[d] - before, variance + blur
                        pair.target[d] -= gain * (seen[d] - before)
                        variance = gain * blur
                    pair.share[d] = 1.0 - gain
                    pair.spread[d] = variance + (following - last) * step + ahead_var[r + 1, d]
                _draw_two(last - 1, last, pair, steps.one, walk, rng)
            _walked(first, last, steps.one, walk.actions, way)
            for d in range(n_dims):
                mean[d] += way[d]
                var[d] += n * step
            _see(mean, var, seen, blur)
