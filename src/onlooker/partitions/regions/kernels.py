"""Links and controllers of regions, drawn together.

Take ``c_i`` away. The nodes that still reach i, its branch R, lose their controller, and with R the
region that it may be. Then ``(c_i, controller of R)`` is drawn::

    a region by itself with controller k   (ν + Σ_{j ∈ R} g_ij) · m_k/(m + γ) · fit_k
    … with a new controller                (ν + Σ_{j ∈ R} g_ij) · γ/(m + γ)   · fit_new
    joined to the region of j ∉ R          g_ij · fit_k(j)

The masses of one controller add up: first the controller is drawn, then whether R joins a region or
is one, then j. With actions given and controllers integrated out, ``fit_k = DM(ξ_k + ξ_R) /
DM(ξ_k)``; with controllers given and actions summed out, ``fit_k = Π_{x ∈ R} L_xk``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Tables
from onlooker.gibbs.categorical import invert
from onlooker.partitions.links.forest import delist, enlist, reach
from onlooker.partitions.regions.state import Sharing

_NOTHING = -100.0  # differences of log scores below are beyond all rounding
_BELOW_ONE = 1.0 - 1e-12


class Reached(NamedTuple):
    """Similarities at one scale, row by row, nearest first.

    All scales share `indices`: the row of a scale is the beginning of the longest one.
    """

    indptr: Array
    """``(N + 1,)``: where rows begin in `weights`."""
    weights: Array
    first: Array
    """``(N,)``: where they begin in `indices`."""
    indices: Array


class Fit(NamedTuple):
    """What tells how well a branch fits a controller."""

    fits: Array
    """``(N, slots)``: ``ln L_ik``; empty where controllers are integrated out."""
    first: Array
    """``(N + 1,)``: as in `onlooker.gibbs.arrays.Data`."""
    actions: Array
    """``(M,)``."""


@njit(cache=True, nogil=True, error_model="numpy")
def _count_branch(
    n: int, walk: Array, part: Array, played: Array, fit: Fit, node: Array
) -> tuple[int, int]:
    """Counts of a branch into `part`, which is zero before; returns how many actions, of how many.

    By its transitions or by the counts of its nodes, whichever are fewer.
    """
    n_played = total = 0
    for p in range(n):
        x = walk[p]
        start, stop = fit.first[x], fit.first[x + 1]
        if stop - start <= len(part):
            for t in range(start, stop):
                a = fit.actions[t]
                if part[a] == 0:
                    played[n_played] = a
                    n_played += 1
                part[a] += 1
        else:
            for a in range(len(part)):
                if node[x, a] > 0:
                    if part[a] == 0:
                        played[n_played] = a
                        n_played += 1
                    part[a] += node[x, a]
        total += stop - start
    return n_played, total


@njit(cache=True, nogil=True, error_model="numpy")
def _move_part(
    k: int, sign: int, part: Array, played: Array, n_played: int, total: int, counts: Counts
) -> None:
    """Add a branch's counts to a controller's, or take them out."""
    for q in range(n_played):
        counts.cluster[k, played[q]] += sign * part[played[q]]
    counts.total[k] += sign * total


@njit(cache=True, nogil=True, error_model="numpy")
def _log_ratios(
    n_slots: int,
    part: Array,
    played: Array,
    n_played: int,
    total: int,
    counts: Counts,
    tables: Tables,
    out: Array,
) -> None:
    """``ln DM(ξ_k + ξ_R) - ln DM(ξ_k)`` of the first slots; an empty one stands for a new one."""
    for k in range(n_slots):
        n_k = counts.total[k]
        out[k] = tables.total[n_k] - tables.total[n_k + total]
    for q in range(n_played):
        a = played[q]
        table, more = tables.action[tables.kind[a]], part[a]
        for k in range(n_slots):
            x = counts.cluster[k, a]
            out[k] += table[x + more] - table[x]


@njit(cache=True, nogil=True, error_model="numpy")
def _log_fits(n_slots: int, walk: Array, start: int, stop: int, fits: Array, out: Array) -> None:
    """``ln Π_{x ∈ R} L_xk`` of the first slots."""
    for k in range(n_slots):
        out[k] = 0.0
    for p in range(start, stop):
        for k in range(n_slots):
            out[k] += fits[walk[p], k]


@njit(cache=True, nogil=True, error_model="numpy")
def _exponentials(scores: Array, n: int) -> None:
    """Exponentials of log scores, the largest 1."""
    largest = -np.inf
    for k in range(n):
        largest = max(largest, scores[k])
    for k in range(n):
        less = scores[k] - largest
        scores[k] = np.exp(less) if less > _NOTHING else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _add_masses(i: int, near: Reached, labels: Array, mass: Array) -> None:
    """Add up node i's similarities to the nodes of each label.

    By turns in two rows: adding to one number twice in a row would wait for the first time.
    """
    shift = near.first[i] - near.indptr[i]
    for q in range(near.indptr[i], near.indptr[i + 1]):
        mass[q & 1, labels[near.indices[q + shift]]] += near.weights[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_target(i: int, label: int, mass: float, near: Reached, labels: Array) -> int:
    """The neighbour of a label at which the running sum of similarities passes `mass`.

    Node i itself where none does. No branch asks for the label: it could not be foretold.
    """
    shift = near.first[i] - near.indptr[i]
    for q in range(near.indptr[i], near.indptr[i + 1]):
        j = near.indices[q + shift]
        mass -= near.weights[q] if labels[j] == label else 0.0
        if mass < 0.0:
            return j
    return i


@njit(cache=True, nogil=True, error_model="numpy")
def update_links(
    start: int,
    backwards: bool,
    labels: Array,
    sharing: Sharing,
    counts: Counts,
    tables: Tables,
    fit: Fit,
    near: Reached,
    nu: float,
    before: Reached,
    nu_before: float,
    gamma: float,
    n_slots: int,
    out: Array,
    rng: np.random.Generator,
) -> int:
    """Draw link and controller of every node's branch, from the node number `start` on.

    ``out[0]`` counts the links that changed. To ``out[1]`` are added ``ln [mass_i(near, ν) /
    mass_i(before, ν_before)]`` of all nodes, where the two scales differ. With actions summed out,
    the first `n_slots` slots are all there are. Else they grow: returns the number of nodes, or
    that of the node to go on from once there are more slots.
    """
    link, siblings, n_regions, _ = sharing
    n_nodes, n_actions = len(link), len(tables.kind)
    summed = len(fit.fits) > 0
    carried = len(before.indptr) > 0
    walk = np.empty(n_nodes, dtype=np.int32)
    part = np.zeros(n_actions, dtype=np.int32)
    played = np.empty(n_actions, dtype=np.int64)
    capacity = len(n_regions)
    branch = capacity  # the label of the nodes of a branch while its link is away
    mass, mass_before = np.zeros((2, capacity + 1)), np.zeros((2, capacity + 1))
    score = np.empty(capacity)
    m = n_used = 0
    for k in range(capacity):
        m += n_regions[k]
        n_used += n_regions[k] > 0
    top = n_slots if summed else n_used  # beyond it, all slots are free
    n_played = total = 0
    for step in range(start, n_nodes):
        i = n_nodes - 1 - step if backwards else step
        home, old = labels[i], link[i]
        if not summed and n_used == capacity:
            return step
        delist(i, link, siblings)
        link[i] = i
        n = reach(i, siblings, walk, n_nodes)
        for p in range(n):
            labels[walk[p]] = branch
        if labels[old] == branch:
            n_regions[home] -= 1
            m -= 1
            n_used -= n_regions[home] == 0
        if not summed:
            n_played, total = _count_branch(n, walk, part, played, fit, counts.node)
            _move_part(home, -1, part, played, n_played, total, counts)

        _add_masses(i, near, labels, mass)
        own, own_before = nu + mass[0, branch] + mass[1, branch], nu_before
        if carried:
            _add_masses(i, before, labels, mass_before)
            own_before += mass_before[0, branch] + mass_before[1, branch]

        fresh = -1  # the slot that stands for a new controller
        if summed:
            n_free, n_scored = n_slots - n_used, n_slots
            _log_fits(n_scored, walk, 0, n, fit.fits, score)
        else:
            n_free, fresh = 1, 0
            while n_regions[fresh] > 0:
                fresh += 1
            top = max(top, fresh + 1)
            n_scored = top
            _log_ratios(n_scored, part, played, n_played, total, counts, tables, score)
            for k in range(n_scored):
                if n_regions[k] == 0 and k != fresh:
                    score[k] = -np.inf
        _exponentials(score, n_scored)
        each = 1.0 / (m + gamma)
        free = gamma * each / n_free  # free slots share ``γ/(m + γ)``
        running = running_before = 0.0
        for k in range(n_scored):
            if score[k] > 0.0:
                share = n_regions[k] * each if n_regions[k] > 0 else free
                other = mass_before[0, k] + mass_before[1, k]
                running_before += score[k] * (own_before * share + other)
                running += score[k] * (own * share + mass[0, k] + mass[1, k])
            score[k] = running
        if carried:
            out[1] += np.log(running / running_before)
        k = invert(score, n_scored, rng.random())

        alone = own * (n_regions[k] * each if n_regions[k] > 0 else free)
        joined = mass[0, k] + mass[1, k]
        rest = rng.random() * (alone + joined)
        join = rest >= alone and joined > 0.0
        if join:
            # rounding must not leave the region's neighbours
            rest = min(rest - alone, joined * _BELOW_ONE)
            j = _draw_target(i, k, rest, near, labels)
        else:
            j = _draw_target(i, branch, rest / alone * own, near, labels)
        for row in range(2):
            mass[row, branch] = mass_before[row, branch] = 0.0
            for q in range(n_scored):
                mass[row, q] = mass_before[row, q] = 0.0
        link[i] = j
        enlist(i, link, siblings)
        if not join:
            n_used += n_regions[k] == 0
            n_regions[k] += 1
            m += 1
        for p in range(n):
            labels[walk[p]] = k
        if k != home:
            counts.size[home] -= n
            counts.size[k] += n
        if not summed:
            _move_part(k, 1, part, played, n_played, total, counts)
            for q in range(n_played):
                part[played[q]] = 0
        out[0] += j != old
    return n_nodes


@njit(cache=True, nogil=True, error_model="numpy")
def find_regions(link: Array, region: Array, members: Array, first: Array) -> int:
    """Number the regions by first appearance; returns how many there are.

    Those of region r are ``members[first[r] : first[r + 1]]``.
    """
    n = len(link)
    path = np.empty(n, dtype=np.int32)
    region[:] = -1
    n_regions = 0
    for i in range(n):
        length, x = 0, i
        while region[x] == -1:
            region[x] = -2
            path[length] = x
            length += 1
            x = link[x]
        r = region[x]
        if r == -2:
            r = n_regions
            n_regions += 1
        for p in range(length):
            region[path[p]] = r
    first[: n_regions + 1] = 0
    for i in range(n):
        first[region[i] + 1] += 1
    for r in range(n_regions):
        first[r + 1] += first[r]
    for i in range(n - 1, -1, -1):
        first[region[i] + 1] -= 1
        members[first[region[i] + 1]] = i
    for r in range(n_regions):
        first[r] = first[r + 1]
    first[n_regions] = n
    return n_regions


@njit(cache=True, nogil=True, error_model="numpy")
def update_sharing(
    start: int,
    labels: Array,
    sharing: Sharing,
    counts: Counts,
    tables: Tables,
    fit: Fit,
    members: Array,
    first: Array,
    gamma: float,
    n_slots: int,
    rng: np.random.Generator,
) -> int:
    """Draw the controller of every region from region `start` on, given all the others.

    ``p(k_r = k) ∝ m_k^(-r) · fit_k``, γ for a new one. Returns as `update_links`.
    """
    n_regions = sharing.n_regions
    n_actions, capacity = len(tables.kind), len(n_regions)
    summed = len(fit.fits) > 0
    part = np.zeros(n_actions, dtype=np.int32)
    played = np.empty(n_actions, dtype=np.int64)
    score = np.empty(capacity)
    n_used = 0
    for k in range(capacity):
        n_used += n_regions[k] > 0
    top = n_slots if summed else n_used
    n_played = total = 0
    for r in range(start, len(first) - 1):
        if not summed and n_used == capacity:
            return r
        begin, end = first[r], first[r + 1]
        home = labels[members[begin]]
        n_regions[home] -= 1
        n_used -= n_regions[home] == 0
        fresh = -1
        if summed:
            n_free, n_scored = n_slots - n_used, n_slots
            _log_fits(n_scored, members, begin, end, fit.fits, score)
        else:
            n_played, total = _count_branch(
                end - begin, members[begin:end], part, played, fit, counts.node
            )
            _move_part(home, -1, part, played, n_played, total, counts)
            n_free, fresh = 1, 0
            while n_regions[fresh] > 0:
                fresh += 1
            top = max(top, fresh + 1)
            n_scored = top
            _log_ratios(n_scored, part, played, n_played, total, counts, tables, score)
        for k in range(n_scored):
            if not summed and n_regions[k] == 0 and k != fresh:
                score[k] = -np.inf
        _exponentials(score, n_scored)
        running = 0.0
        for k in range(n_scored):
            if score[k] > 0.0:
                running += score[k] * (n_regions[k] if n_regions[k] > 0 else gamma / n_free)
            score[k] = running
        k = invert(score, n_scored, rng.random())
        n_used += n_regions[k] == 0
        n_regions[k] += 1
        if k != home:
            for p in range(begin, end):
                labels[members[p]] = k
            counts.size[home] -= end - begin
            counts.size[k] += end - begin
        if not summed:
            _move_part(k, 1, part, played, n_played, total, counts)
            for q in range(n_played):
                part[played[q]] = 0
    return len(first) - 1


@njit(cache=True, nogil=True, error_model="numpy")
def tidy(labels: Array, sharing: Sharing, counts: Counts) -> int:
    """Number the slots in use from 0 on, in their order; returns how many there are."""
    n_regions = sharing.n_regions
    name = np.empty(len(n_regions), dtype=np.int32)
    n = 0
    for k in range(len(n_regions)):
        if n_regions[k] == 0:
            continue
        name[k] = n
        if n < k:
            n_regions[n], n_regions[k] = n_regions[k], 0
            counts.size[n], counts.size[k] = counts.size[k], 0
            counts.total[n], counts.total[k] = counts.total[k], 0
            for j in range(counts.cluster.shape[1]):
                counts.cluster[n, j], counts.cluster[k, j] = counts.cluster[k, j], 0
        n += 1
    for i in range(len(labels)):
        labels[i] = name[labels[i]]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def link_lengths(link: Array, distances: Reached, out: Array) -> int:
    """The length of every link; -1 for self-links, whose number is returned."""
    n_self = 0
    for i in range(len(link)):
        out[i] = -1.0
        if link[i] == i:
            n_self += 1
            continue
        shift = distances.first[i] - distances.indptr[i]
        for q in range(distances.indptr[i], distances.indptr[i + 1]):
            if distances.indices[q + shift] == link[i]:
                out[i] = distances.weights[q]
                break
    return n_self
