"""Split–merge moves: two clusters become one, or one becomes two, at once.

After Jain and Neal (2004), with the controllers (and mixing weights) integrated out. Two nodes are
the anchors. If they share a cluster it is to be split, each of them in a part of its own; else
their clusters are to be merged. How a split divides the other nodes: one after the other from
scratch, then a few Gibbs scans restricted to the two parts; the result is where the proposal
starts, a last scan from there is the proposal, whose probability can be computed. A merge needs
the probability of the last scan that would undo it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.gibbs.dirichlet import dirichlet
from onlooker.gibbs.state import Counts, Tables
from onlooker.inference.components import draw_component, log_dm_by_component
from onlooker.partitions.indicators import (
    COUNTS,
    POTTS,
    IndicatorPrior,
    Scheme,
    Slots,
    close_slot,
    move,
    open_slot,
)

SCANS = 3
"""Restricted scans before the last one."""

_NOWHERE = -1


class Played(NamedTuple):
    """Which actions are played at each node at all."""

    first: Array
    action: Array


class Model(NamedTuple):
    """What the labels are drawn given."""

    prior: IndicatorPrior
    tables: Tables
    played: Played


@njit(cache=True, nogil=True, error_model="numpy")
def _list_played(nodes: Array, counts: Counts, played: Played) -> None:
    """List the actions of the p-th of `nodes` from ``first[p]`` on."""
    n = 0
    for p in range(len(nodes)):
        played.first[p] = n
        for j in range(counts.node.shape[1]):
            if counts.node[nodes[p], j] > 0:
                played.action[n] = j
                n += 1
    played.first[len(nodes)] = n


@njit(cache=True, nogil=True, error_model="numpy")
def log_dm(k: int, counts: Counts, tables: Tables) -> float:
    """``ln DM(ξ_k)``, the concentration integrated out where controllers have their own."""
    by_component = np.empty(len(tables.alpha))
    return log_dm_by_component(counts.cluster[k], counts.total[k], tables, by_component)


@njit(cache=True, nogil=True, error_model="numpy")
def log_fit(
    i: int, p: int, played: Played, k: int, counts: Counts, action: Array, total: Array
) -> float:
    """``ln DM(ψ_k + φ_i) - ln DM(ψ_k)``, where node i is the p-th of those in `played`.

    `action` and `total` are the rows of `Tables` that belong to cluster k's component.
    """
    value = 0.0
    own = 0
    for q in range(played.first[p], played.first[p + 1]):
        j = played.action[q]
        n, more = counts.cluster[k, j], counts.node[i, j]
        value += action[n + more] - action[n]
        own += more
    return value - (total[counts.total[k] + own] - total[counts.total[k]])


@njit(cache=True, nogil=True, error_model="numpy")
def _move(i: int, p: int, played: Played, k: int, sign: int, counts: Counts) -> None:
    """As `move`, for one who knows the actions: most nodes play few."""
    own = 0
    for q in range(played.first[p], played.first[p + 1]):
        j = played.action[q]
        own += counts.node[i, j]
        counts.cluster[k, j] += sign * counts.node[i, j]
    counts.total[k] += sign * own
    counts.size[k] += sign


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior_odds(
    i: int, a: int, b: int, labels: Array, size: Array, prior: IndicatorPrior
) -> float:
    """``ln p(z_i = a | z_-i) - ln p(z_i = b | z_-i)``; node i is out of `size`."""
    if prior.kind == COUNTS:
        return prior.log_count[size[a]] - prior.log_count[size[b]]
    if prior.kind == POTTS:
        field = prior.offset * (size[a] - size[b])
        for q in range(prior.indptr[i], prior.indptr[i + 1]):
            label = labels[prior.indices[q]]
            if label == a:
                field += prior.weights[q]
            elif label == b:
                field -= prior.weights[q]
        return prior.beta * field
    return prior.log_weight[a] - prior.log_weight[b]


@njit(cache=True, nogil=True, error_model="numpy")
def _log_seats(size: int, prior: IndicatorPrior) -> float:
    """A cluster of ζ nodes contributes ``ln Γ(ζ + γ/K)/Γ(γ/K)``, in the CRP ``ln γ (ζ - 1)!``."""
    if size == 0:
        return 0.0
    value = np.log(prior.new) if prior.new > 0 else prior.log_count[0]
    for n in range(1, size):
        value += prior.log_count[n]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _log_labels(
    nodes: Array, a: int, b: int, labels: Array, size: Array, prior: IndicatorPrior
) -> float:
    """What the prior of the labels has to do with clusters a and b, which hold `nodes`."""
    value = 0.0
    if prior.kind == COUNTS:
        value = _log_seats(size[a], prior) + _log_seats(size[b], prior)
    elif prior.kind == POTTS:
        for i in nodes:
            for q in range(prior.indptr[i], prior.indptr[i + 1]):
                if labels[prior.indices[q]] == labels[i]:
                    value += prior.weights[q]
        value += prior.offset * (size[a] * (size[a] - 1) + size[b] * (size[b] - 1))
        value *= 0.5 * prior.beta
    else:
        value = prior.log_weight[a] * size[a] + prior.log_weight[b] * size[b]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _log_target(nodes: Array, a: int, b: int, labels: Array, counts: Counts, model: Model) -> float:
    """``ln p(z) + ln DM(ξ_a) + ln DM(ξ_b)``, but for what does not change."""
    value = _log_labels(nodes, a, b, labels, counts.size, model.prior)
    return value + log_dm(a, counts, model.tables) + log_dm(b, counts, model.tables)


@njit(cache=True, nogil=True, error_model="numpy")
def _scan(
    nodes: Array,
    wanted: Array,
    forced: bool,
    a: int,
    b: int,
    labels: Array,
    counts: Counts,
    model: Model,
    rng: np.random.Generator,
) -> float:
    """Draw a or b for each node but the anchors, the first two; returns the log probability.

    With `forced` every node goes where it is wanted instead. Nodes may be nowhere before.
    """
    played, tables = model.played, model.tables
    action_a, total_a = tables.action[tables.component[a]], tables.total[tables.component[a]]
    action_b, total_b = tables.action[tables.component[b]], tables.total[tables.component[b]]
    log_probability = 0.0
    product = 1.0  # of probabilities whose logarithm is still to be taken
    for p in range(2, len(nodes)):
        i = nodes[p]
        if labels[i] != _NOWHERE:
            _move(i, p, played, labels[i], -1, counts)
        odds = _log_prior_odds(i, a, b, labels, counts.size, model.prior)
        odds += log_fit(i, p, played, a, counts, action_a, total_a)
        odds -= log_fit(i, p, played, b, counts, action_b, total_b)
        less = np.exp(-abs(odds))
        k = wanted[p]
        if not forced:
            k = a if rng.random() * (1.0 + less) < (1.0 if odds >= 0 else less) else b
        product /= 1.0 + less
        if (odds >= 0) != (k == a):
            log_probability -= abs(odds)
        if product < 1e-200:
            log_probability += np.log(product)
            product = 1.0
        labels[i] = k
        _move(i, p, played, k, 1, counts)
    return log_probability + np.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(i: int, j: int, a: int, b: int, labels: Array, nodes: Array) -> int:
    """List the nodes of clusters a and b, the anchors first."""
    nodes[0], nodes[1] = i, j
    n = 2
    for m in range(len(labels)):
        if (labels[m] == a or labels[m] == b) and m != i and m != j:
            nodes[n] = m
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_component(k: int, counts: Counts, tables: Tables, rng: np.random.Generator) -> None:
    """``p(g_k) ∝ w_g DM_g(ξ_k)``."""
    by_component = np.empty(len(tables.alpha))
    n = counts.total[k]
    tables.component[k] = draw_component(counts.cluster[k], n, tables, by_component, rng)


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(
    nodes: Array,
    wanted: Array,
    forced: bool,
    a: int,
    b: int,
    scans: int,
    labels: Array,
    counts: Counts,
    model: Model,
    rng: np.random.Generator,
) -> float:
    """Divide `nodes` between a and b, or as wanted; returns the last scan's log probability.

    Each scan is made given the parts' components, drawn before it. The last ones belong to where
    the proposal starts, so that its probability needs no sum over them.
    """
    for p in range(len(nodes) - 1, 2, -1):  # in random order, since it matters for the first pass
        q = 2 + int(rng.random() * (p - 1))
        nodes[p], nodes[q] = nodes[q], nodes[p]
        wanted[p], wanted[q] = wanted[q], wanted[p]
    _list_played(nodes, counts, model.played)
    for i in nodes:
        move(i, labels[i], -1, counts)
        labels[i] = _NOWHERE
    labels[nodes[0]], labels[nodes[1]] = a, b
    move(nodes[0], a, 1, counts)
    move(nodes[1], b, 1, counts)
    for _ in range(scans + 1):
        _draw_component(a, counts, model.tables, rng)
        _draw_component(b, counts, model.tables, rng)
        _scan(nodes, wanted, False, a, b, labels, counts, model, rng)
    _draw_component(a, counts, model.tables, rng)
    _draw_component(b, counts, model.tables, rng)
    return _scan(nodes, wanted, forced, a, b, labels, counts, model, rng)


@njit(cache=True, nogil=True, error_model="numpy")
def _put(nodes: Array, wanted: Array, labels: Array, counts: Counts) -> None:
    """Put nodes where they are wanted."""
    for p in range(len(nodes)):
        i = nodes[p]
        if labels[i] != wanted[p]:
            move(i, labels[i], -1, counts)
            labels[i] = wanted[p]
            move(i, wanted[p], 1, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _pick(labels: Array, k: int, among: bool, but: int, index: int) -> int:
    """The node number `index` of those in cluster k (or of those not in it), `but` left out."""
    for i in range(len(labels)):
        if (labels[i] == k) == among and i != but:
            if index == 0:
                return i
            index -= 1
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _redraw(k: int, counts: Counts, scheme: Scheme, rng: np.random.Generator) -> None:
    """``θ_k ~ Dir(ξ_k + α)``, if controllers are drawn at all."""
    if scheme.ordinary:
        _draw_component(k, counts, scheme.tables, rng)
        alpha = scheme.tables.alpha[scheme.tables.component[k]]
        dirichlet(scheme.controllers[k], counts.cluster[k], alpha, rng)
        for j in range(scheme.controllers.shape[1]):
            scheme.log_controllers[k, j] = np.log(scheme.controllers[k, j])


@njit(cache=True, nogil=True, error_model="numpy")
def _empty_slot(size: Array, slots: Slots, uniform: float) -> tuple[int, int]:
    """One of the empty slots among those in use (-1: there is none), and how many there are."""
    n_empty = 0
    for p in range(slots.n[0]):
        if size[slots.order[p]] == 0:
            n_empty += 1
    index = int(uniform * n_empty)
    for p in range(slots.n[0]):
        if size[slots.order[p]] == 0:
            if index == 0:
                return slots.order[p], n_empty
            index -= 1
    return _NOWHERE, 0


@njit(cache=True, nogil=True, error_model="numpy")
def _try_split(
    nodes: Array,
    a: int,
    b: int,
    log_empty: float,
    log_uniform: float,
    scans: int,
    labels: Array,
    counts: Counts,
    model: Model,
    rng: np.random.Generator,
) -> bool:
    """Split cluster a, or leave it."""
    whole = np.full(len(nodes), a)
    before = _log_target(nodes, a, b, labels, counts, model)
    log_proposal = _divide(nodes, whole, False, a, b, scans, labels, counts, model, rng)
    gain = _log_target(nodes, a, b, labels, counts, model) - before - log_proposal + log_empty
    gain += np.log((len(nodes) - 1) / (len(labels) - counts.size[a]))
    if log_uniform < gain:
        return True
    _put(nodes, whole, labels, counts)
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _try_merge(
    nodes: Array,
    a: int,
    b: int,
    log_empty: float,
    log_uniform: float,
    scans: int,
    labels: Array,
    counts: Counts,
    model: Model,
    rng: np.random.Generator,
) -> bool:
    """Merge cluster b into a, or leave them."""
    whole, parts = np.full(len(nodes), a), np.empty(len(nodes), dtype=np.int64)
    for p in range(len(nodes)):
        parts[p] = labels[nodes[p]]
    before = _log_target(nodes, a, b, labels, counts, model)
    most = np.log((len(labels) - counts.size[a]) / (len(nodes) - 1)) - log_empty - before
    _put(nodes, whole, labels, counts)
    most += _log_target(nodes, a, b, labels, counts, model)
    if log_uniform >= most:  # no need to know how likely a split would undo it
        _put(nodes, parts, labels, counts)
        return False
    log_undo = _divide(nodes, parts, True, a, b, scans, labels, counts, model, rng)
    if log_uniform < most + log_undo:
        _put(nodes, whole, labels, counts)
        return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def split_merge(
    start: int,
    moves: int,
    scans: int,
    labels: Array,
    n_transitions: int,
    counts: Counts,
    slots: Slots,
    prior: IndicatorPrior,
    scheme: Scheme,
    rng: np.random.Generator,
) -> int:
    """Propose splits and merges, from move number `start` on.

    The first anchor i is any node. With equal chances the second, j, is any other node of i's
    cluster (a split) or any node of another one (a merge); there may be none. In a split i's part
    keeps the label and j's takes an empty one: a new one in the CRP, else any that is empty, if
    there is one. A merge gives j's cluster the label of i's. With ``n_i`` nodes in i's cluster and
    ``n`` in both, while they are two, and E labels empty, while they are one, the moves that undo
    each other have probabilities

        p(merge) / p(split) = (n - 1) / (N - n_i) · E / p(last scan)

    (E = 1 in the CRP, where labels are only names).

    Returns `moves`, or the move to go on with once there are more slots.
    """
    n_nodes = len(labels)
    is_open = prior.new > 0
    members = np.empty(n_nodes, dtype=np.int64)
    actions = np.empty(n_transitions, dtype=np.int64)
    model = Model(prior, scheme.tables, Played(np.empty(n_nodes + 1, dtype=np.int64), actions))
    for done in range(start, moves):
        if is_open and slots.n[0] == len(slots.order):
            return done
        i, splits = int(rng.random() * n_nodes), rng.random() < 0.5
        a = labels[i]
        n_second = counts.size[a] - 1 if splits else n_nodes - counts.size[a]
        empty, n_empty = _empty_slot(counts.size, slots, rng.random())
        if n_second == 0 or (splits and n_empty == 0 and not is_open):
            continue
        j = _pick(labels, a, splits, i, int(rng.random() * n_second))
        log_uniform = np.log1p(-rng.random())
        if splits:
            b = slots.order[slots.n[0]] if is_open else empty
            log_empty = 0.0 if is_open else np.log(n_empty)
        else:
            b = labels[j]
            log_empty = 0.0 if is_open else np.log(n_empty + 1)
        nodes = members[: _gather(i, j, a, b, labels, members)]
        if splits:
            accepted = _try_split(
                nodes, a, b, log_empty, log_uniform, scans, labels, counts, model, rng
            )
        else:
            accepted = _try_merge(
                nodes, a, b, log_empty, log_uniform, scans, labels, counts, model, rng
            )
        if not accepted:
            continue
        if is_open and splits:
            open_slot(slots)
        elif is_open:
            close_slot(slots, b)
        _redraw(a, counts, scheme, rng)
        _redraw(b, counts, scheme, rng)
    return moves
