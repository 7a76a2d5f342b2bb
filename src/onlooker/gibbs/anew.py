"""All actions of a controller drawn anew together.

Drawn one at a time, they hardly leave one explanation of the controller's steps (now east, now
south-east) for another (always between them). Here the old ones give way as a whole, or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import BaseSums, Data
from onlooker.gibbs.categorical import invert

SEQUENCES = 8  # that are drawn anew for the actions of a controller
MAX_ANEW = 400  # transitions of a controller; with more, one in fifty of its tries succeeds
_TINY = 1e-60  # products below are turned into logarithms


@njit(cache=True, nogil=True, error_model="numpy")
def from_base(
    row: int, base: BaseSums, by_kind: Array, running: Array, rng: np.random.Generator
) -> int:
    """Draw an action with weight ``ℓ_j share_j``."""
    q, n_kinds = 0, len(by_kind)
    if n_kinds > 1:
        total = 0.0
        for kind in range(n_kinds):
            total += base.sums[row, kind] * by_kind[kind]
            running[kind] = total
        q = invert(running, n_kinds, rng.random())
    low, high = base.start[q], base.start[q + 1] - 1
    total = base.running[row, high]
    target = rng.random() * total
    if target >= total:
        target = np.nextafter(total, 0.0)
    while low < high:  # the first running sum beyond the target
        middle = (low + high) // 2
        if base.running[row, middle] > target:
            high = middle
        else:
            low = middle + 1
    return base.order[low]


class Anew(NamedTuple):
    """Room for a sequence of actions: those in use, by order of appearance."""

    place: Array
    """``(A,)``: where an action stands in `used`, or -1."""
    used: Array
    times: Array
    drawn: Array
    chosen: Array


@njit(cache=True, nogil=True, error_model="numpy")
def draw_anew(
    at: Array,
    node: Array,
    actions: Array,
    cluster: Array,
    node_counts: Array,
    data: Data,
    base: BaseSums,
    base_total: Array,
    alpha: float,
    by_kind: Array,
    running: Array,
    anew: Anew,
    rng: np.random.Generator,
) -> None:
    """Draw all actions of a controller anew, or keep them.

    In a random order, one action after the other is drawn given those before: ``p(a_p = j) ∝ w_p(j)
    = ℓ[p, j] (ξ_j^{<p} + α share_j) / (p + Aα)``. Such a sequence is worth ``Π_p Σ_j w_p(j)``, the
    posterior over what it was drawn from. One of several sequences and the present one is chosen by
    worth (iterated sampling importance resampling; Andrieu, Lee and Vihola 2018): that is exact.
    """
    n, chosen = len(at), anew.chosen
    for p in range(n - 1, 0, -1):
        q = int(rng.random() * (p + 1))
        at[p], at[q] = at[q], at[p]
        node[p], node[q] = node[q], node[p]
    for p in range(n):
        chosen[p] = actions[at[p]]
    worth, changed = 0.0, False
    for number in range(1 + SEQUENCES):  # the present one first
        other = _sequence(
            number == 0, at, data, base, base_total, alpha, by_kind, running, anew, rng
        )
        if number == 0:
            worth = other
            continue
        worth = np.logaddexp(worth, other)
        if np.log(rng.random()) < other - worth:
            changed = True
            for p in range(n):
                chosen[p] = anew.drawn[p]
    if not changed:
        return
    for p in range(n):
        old, new = actions[at[p]], chosen[p]
        if new != old:
            actions[at[p]] = new
            cluster[old] -= 1
            cluster[new] += 1
            node_counts[node[p], old] -= 1
            node_counts[node[p], new] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _sequence(
    given: bool,
    at: Array,
    data: Data,
    base: BaseSums,
    base_total: Array,
    alpha: float,
    by_kind: Array,
    running: Array,
    anew: Anew,
    rng: np.random.Generator,
) -> float:
    """Draw a sequence into ``anew.drawn``, or take the given one; the logarithm of its worth."""
    place, used, times, drawn, chosen = anew
    n_used, log_worth, product, concentration = 0, 0.0, 1.0, len(place) * alpha
    for p in range(len(at)):
        row, total = data.row[at[p]], 0.0
        for q in range(n_used):
            total += data.likelihood[row, used[q]] * times[q]
            running[q] = total
        total += alpha * base_total[row]
        running[n_used] = total
        product *= total / (p + concentration)
        if product < _TINY:
            log_worth += np.log(product)
            product = 1.0
        if given:
            q, new = n_used, chosen[p]
        else:
            q, new = invert(running, n_used + 1, rng.random()), 0
            if q == n_used:
                new = from_base(row, base, by_kind, running, rng)
        if q == n_used:
            q = place[new]
            if q < 0:
                q = n_used
                place[new], used[q], times[q] = q, new, 0.0
                n_used += 1
        times[q] += 1.0
        drawn[p] = used[q]
    for q in range(n_used):
        place[used[q]] = -1
    return log_worth + np.log(product)
