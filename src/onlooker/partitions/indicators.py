"""The indicators: which cluster each node belongs to, for the finite priors and the CRP.

One kernel serves them all. The CRP is the finite mixture's limit: no share for an empty cluster,
but a weight for a new one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.gibbs.categorical import draw_log
from onlooker.gibbs.dirichlet import dirichlet, log_dm_of
from onlooker.gibbs.state import Counts, Tables

WEIGHTS, COUNTS, POTTS = 0, 1, 2
"""Kinds of ``p(z_i = k | z_-i)``: given weights, other nodes' counts, or neighbours' labels."""


class Slots(NamedTuple):
    """Which slots are in use: ``order[:n[0]]``; ``where`` is the inverse permutation."""

    order: Array
    where: Array
    n: Array


class IndicatorPrior(NamedTuple):
    """``p(z_i = k | z_-i)`` as the kernel needs it; what a kind does not use is empty or 0."""

    kind: int
    log_weight: Array
    """WEIGHTS: ``ln q_k``."""
    log_count: Array
    """COUNTS: ``ln(ζ + γ / K)`` for ``ζ = 0 … N``, so that no kernel takes logarithms of them."""
    new: float
    """COUNTS: ``γ``, the weight of a new cluster; 0 if there is none."""
    beta: float
    indptr: Array
    indices: Array
    weights: Array
    offset: float
    """POTTS: the similarity graph."""


class Scheme(NamedTuple):
    """How controllers enter: integrated out by `tables`, or as they are drawn."""

    tables: Tables
    ordinary: bool
    controllers: Array
    log_controllers: Array


@njit(cache=True, nogil=True, error_model="numpy")
def open_slot(slots: Slots) -> int:
    """Take a free slot into use."""
    k = slots.order[slots.n[0]]
    slots.n[0] += 1
    return k


@njit(cache=True, nogil=True, error_model="numpy")
def close_slot(slots: Slots, k: int) -> None:
    """Give a slot back; the last one in use takes its place in the order."""
    last = slots.n[0] - 1
    position, moved = slots.where[k], slots.order[last]
    slots.order[position], slots.order[last] = moved, k
    slots.where[moved], slots.where[k] = position, last
    slots.n[0] = last


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior(
    out: Array,
    field: Array,
    i: int,
    labels: Array,
    size: Array,
    slots: Slots,
    prior: IndicatorPrior,
) -> None:
    """Fill ``out[position] = ln p(z_i = k | z_-i)`` for the slots in use; node i is out of `size`.

    Potts: ``β Σ_j w_ij δ(k, z_j)``, where a constant offset contributes ``offset · ζ_k``.
    """
    n = slots.n[0]
    if prior.kind == WEIGHTS:
        for p in range(n):
            out[p] = prior.log_weight[slots.order[p]]
    elif prior.kind == COUNTS:
        for p in range(n):
            out[p] = prior.log_count[size[slots.order[p]]]
    else:
        for p in range(n):
            field[slots.order[p]] = prior.offset * size[slots.order[p]]
        for q in range(prior.indptr[i], prior.indptr[i + 1]):
            field[labels[prior.indices[q]]] += prior.weights[q]
        for p in range(n):
            out[p] = prior.beta * field[slots.order[p]]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_log_fit(
    out: Array,
    played: Array,
    n_played: int,
    n_own: int,
    i: int,
    counts: Counts,
    slots: Slots,
    scheme: Scheme,
) -> None:
    """Add how well node i's actions fit each cluster in use.

    Collapsed: ``ln DM(ψ_k + φ_i) - ln DM(ψ_k)``. Ordinary: ``Σ_j φ_ij ln θ_kj``.
    """
    phi = counts.node[i]
    action, total = scheme.tables.action, scheme.tables.total
    for p in range(slots.n[0]):
        k = slots.order[p]
        fit = 0.0
        if scheme.ordinary:
            for q in range(n_played):
                fit += phi[played[q]] * scheme.log_controllers[k, played[q]]
        else:
            psi = counts.cluster[k]
            for q in range(n_played):
                j = played[q]
                fit += action[psi[j] + phi[j]] - action[psi[j]]
            fit -= total[counts.total[k] + n_own] - total[counts.total[k]]
        out[p] += fit


@njit(cache=True, nogil=True, error_model="numpy")
def move(i: int, k: int, sign: int, counts: Counts) -> None:
    """Add node i's counts to slot k, or take them out."""
    own = 0
    for j in range(counts.node.shape[1]):
        own += counts.node[i, j]
        counts.cluster[k, j] += sign * counts.node[i, j]
    counts.total[k] += sign * own
    counts.size[k] += sign


@njit(cache=True, nogil=True, error_model="numpy")
def update_indicators(
    start: int,
    labels: Array,
    counts: Counts,
    slots: Slots,
    prior: IndicatorPrior,
    scheme: Scheme,
    rng: np.random.Generator,
) -> int:
    """Draw the indicator of every node from `start` on, given all the others.

    Returns the number of nodes, or the node to go on from once there are more slots.
    """
    n_nodes, n_actions = counts.node.shape
    capacity = len(slots.order)
    log_weights = np.empty(capacity + 1)
    field = np.empty(capacity)
    played = np.empty(n_actions, dtype=np.int64)
    tables = scheme.tables
    for i in range(start, n_nodes):
        if prior.new > 0 and slots.n[0] == capacity:
            return i
        k = labels[i]
        move(i, k, -1, counts)
        if prior.new > 0 and counts.size[k] == 0:
            close_slot(slots, k)
        _log_prior(log_weights, field, i, labels, counts.size, slots, prior)
        n = slots.n[0]
        n_own = n_played = 0
        for j in range(n_actions):
            if counts.node[i, j] > 0:
                played[n_played] = j
                n_played += 1
                n_own += counts.node[i, j]
        _add_log_fit(log_weights, played, n_played, n_own, i, counts, slots, scheme)
        if prior.new > 0:
            fit = log_dm_of(counts.node[i], n_own, tables)
            log_weights[n] = np.log(prior.new) + fit
            n += 1
        drawn = draw_log(log_weights, n, rng.random())
        fresh = drawn == slots.n[0]
        k = open_slot(slots) if fresh else slots.order[drawn]
        if fresh and scheme.ordinary:
            dirichlet(scheme.controllers[k], counts.node[i], tables.alpha, rng)
            for j in range(n_actions):
                scheme.log_controllers[k, j] = np.log(scheme.controllers[k, j])
        labels[i] = k
        move(i, k, 1, counts)
    return n_nodes
