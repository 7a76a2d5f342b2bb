"""The indicators: which cluster each node belongs to, for the finite priors and the CRP.

One kernel serves them all. The CRP is the finite mixture's limit: no share for an empty cluster,
but a weight for a new one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Slots, Tables
from onlooker.gibbs.categorical import draw_log
from onlooker.gibbs.dirichlet import dirichlet, log_dm_of
from onlooker.gibbs.slots import close_slot, move_node, open_slot
from onlooker.gibbs.state import State

NO_CONTROLLERS = np.zeros((0, 0))
"""Stands for controllers that are integrated out."""


class Conditional(NamedTuple):
    """``ln p(z_i = k | z_-i)`` as a sum of terms; an empty array is a term that is not there."""

    log_weight: Array
    """``(K,)``: ``ln q_k``."""
    log_count: Array
    """``(N + 1,)``: ``ln(ζ + γ / K)`` for ``ζ = 0 … N``, so that no kernel takes logarithms."""
    indptr: Array
    """``(N + 1,)``: rows of the graph whose neighbours attract."""
    indices: Array
    weights: Array
    offset: float
    """The similarity of all other pairs."""
    beta: float
    """``β Σ_j w_ij δ(k, z_j)``."""
    new: float
    """``γ``, the weight of a new cluster; 0 if there is none."""


def make_conditional(
    log_weight: Array | None = None, log_count: Array | None = None, new: float = 0.0
) -> Conditional:
    """Terms that ignore location."""
    nothing = np.zeros(0)
    return Conditional(
        nothing if log_weight is None else log_weight,
        nothing if log_count is None else log_count,
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0),
        0.0,
        0.0,
        new,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior(
    out: Array,
    field: Array,
    i: int,
    labels: Array,
    size: Array,
    slots: Slots,
    prior: Conditional,
) -> None:
    """Fill ``out[position] = ln p(z_i = k | z_-i)`` for the slots in use; node i is out of `size`.

    A constant similarity contributes ``β · offset · ζ_k``.
    """
    n = slots.n[0]
    by_weight, by_count = len(prior.log_weight) > 0, len(prior.log_count) > 0
    for p in range(n):
        value = 0.0
        if by_weight:
            value += prior.log_weight[slots.order[p]]
        if by_count:
            value += prior.log_count[size[slots.order[p]]]
        out[p] = value
    if len(prior.indptr):
        for p in range(n):
            field[slots.order[p]] = prior.offset * size[slots.order[p]]
        for q in range(prior.indptr[i], prior.indptr[i + 1]):
            field[labels[prior.indices[q]]] += prior.weights[q]
        for p in range(n):
            out[p] += prior.beta * field[slots.order[p]]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_log_fit(
    out: Array,
    played: Array,
    n_played: int,
    i: int,
    counts: Counts,
    slots: Slots,
    tables: Tables,
    log_controllers: Array,
) -> None:
    """Add how well node i's actions fit each cluster in use.

    Collapsed: ``ln DM(ψ_k + φ_i) - ln DM(ψ_k)``. Ordinary: ``Σ_j φ_ij ln θ_kj``.
    """
    phi = counts.node[i]
    n_own = 0
    for q in range(n_played):
        n_own += phi[played[q]]
    total = tables.total
    for p in range(slots.n[0]):
        k = slots.order[p]
        fit = 0.0
        if len(log_controllers):
            for q in range(n_played):
                fit += phi[played[q]] * log_controllers[k, played[q]]
        else:
            psi = counts.cluster[k]
            for q in range(n_played):
                j = played[q]
                action = tables.action[tables.kind[j]]
                fit += action[psi[j] + phi[j]] - action[psi[j]]
            fit -= total[counts.total[k] + n_own] - total[counts.total[k]]
        out[p] += fit


@njit(cache=True, nogil=True, error_model="numpy")
def update_indicators(
    start: int,
    labels: Array,
    counts: Counts,
    slots: Slots,
    prior: Conditional,
    tables: Tables,
    controllers: Array,
    log_controllers: Array,
    moved: Array,
    rng: np.random.Generator,
) -> int:
    """Draw the indicator of every node from `start` on, given all the others.

    `controllers` is empty where they are integrated out. Nodes that change sides are counted in
    ``moved[0]``. Returns the number of nodes, or the node to go on from once there are more slots.
    """
    n_nodes, n_actions = counts.node.shape
    capacity = len(slots.order)
    log_weights = np.empty(capacity + 1)
    field = np.empty(capacity)
    played = np.empty(n_actions, dtype=np.int64)
    for i in range(start, n_nodes):
        if prior.new > 0 and slots.n[0] == capacity:
            return i
        old = labels[i]
        move_node(i, old, -1, counts)
        if prior.new > 0 and counts.size[old] == 0:
            close_slot(slots, old)
        _log_prior(log_weights, field, i, labels, counts.size, slots, prior)
        n = slots.n[0]
        n_played, n_own = 0, 0
        for j in range(n_actions):
            if counts.node[i, j] > 0:
                played[n_played] = j
                n_played += 1
                n_own += counts.node[i, j]
        _add_log_fit(log_weights, played, n_played, i, counts, slots, tables, log_controllers)
        if prior.new > 0:
            log_weights[n] = np.log(prior.new) + log_dm_of(counts.node[i], n_own, tables)
            n += 1
        drawn = draw_log(log_weights, n, rng.random())
        fresh = drawn == slots.n[0]
        k = open_slot(slots) if fresh else slots.order[drawn]
        if fresh and len(controllers):
            dirichlet(controllers[k], counts.node[i], tables.alpha, tables.share, rng)
            for j in range(n_actions):
                log_controllers[k, j] = np.log(controllers[k, j])
        moved[0] += k != old
        labels[i] = k
        move_node(i, k, 1, counts)
    return n_nodes


def draw_indicators(state: State[Any], prior: Conditional) -> float:
    """Draw every indicator, with more slots where they run out; returns the share that moved."""
    node, moved = 0, np.zeros(1, dtype=np.int64)
    while True:
        controllers = log_controllers = NO_CONTROLLERS
        if state.controllers is not None:
            controllers = state.controllers
            with np.errstate(divide="ignore"):
                log_controllers = np.log(controllers)
        node = update_indicators(
            node,
            state.labels,
            state.counts,
            state.slots,
            prior,
            state.tables,
            controllers,
            log_controllers,
            moved,
            state.rng,
        )
        if node == len(state.labels):
            return float(moved[0]) / node
        state.grow()
