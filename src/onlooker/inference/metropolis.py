"""The ddCRP's links by Metropolis–Hastings: no list of neighbours, any decay, any size.

Candidates are drawn without looking at the state of the chain, so their similarities can be
computed beforehand, all at once; the kernel then needs nothing but numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.gibbs.categorical import draw_log
from onlooker.gibbs.state import Counts, Tables
from onlooker.inference.components import log_dm_by_component
from onlooker.partitions.indicators import Slots
from onlooker.partitions.links.forest import Forest, count_reach, cut, settle, tidy_slots
from onlooker.partitions.links.kernels import Economy

SELF, NEAR = 0.1, 0.6
"""Shares of candidates that are the node itself, or near it; the others are any node."""


def draw_candidates(n_nodes: int, tries: int, rng: np.random.Generator) -> Array:
    """Draw ``(N, tries)`` nodes to link to.

    Near candidates are `r` places away, ``P(r) ∝ 1 / (r (r + 1))``: nodes are numbered so that
    near places are near in space, and the heavy tail reaches everywhere.
    """
    shape = (n_nodes, tries)
    node = np.broadcast_to(np.arange(n_nodes)[:, None], shape)
    if n_nodes == 1:
        return node.copy()
    kind = rng.random(shape)
    far = _other(rng.integers(n_nodes - 1, size=shape), node)
    farthest = _farthest(n_nodes)
    if farthest == 0:  # two nodes have no places to tell apart
        return np.where(kind < SELF, node, far)
    # inversion of P(R > r) = 1 / (r + 1), cut off at the farthest
    uniform = 1.0 - rng.random(shape) * (1.0 - 1.0 / (farthest + 1))
    distance = np.minimum((1.0 / uniform).astype(np.int64), farthest)
    side = np.where(rng.random(shape) < 0.5, 1, -1)
    near = (node + side * distance) % n_nodes
    return np.where(kind < SELF, node, np.where(kind < SELF + NEAR, near, far))


def log_proposal(candidates: Array) -> Array:
    """``ln q(j | i)`` of `draw_candidates`, for ``candidates[i] = j`` or rows of them."""
    n_nodes = len(candidates)
    node = np.arange(n_nodes).reshape(-1, *(1,) * (candidates.ndim - 1))
    if n_nodes == 1:
        return np.zeros(candidates.shape)
    farthest = _farthest(n_nodes)
    near = NEAR if farthest > 0 else 0.0
    gap = np.abs(candidates - node)
    gap = np.maximum(np.minimum(gap, n_nodes - gap), 1)
    p_near = np.where(gap <= farthest, 0.5 / (gap * (gap + 1.0)), 0.0)
    if farthest > 0:
        p_near /= 1.0 - 1.0 / (farthest + 1)
    other = near * p_near + (1.0 - SELF - near) / (n_nodes - 1)
    return np.log(np.where(candidates == node, SELF, other))


def _farthest(n_nodes: int) -> int:
    """The largest number of places that leads to two different nodes on a ring."""
    return (n_nodes - 1) // 2


def _other(drawn: Array, node: Array) -> Array:
    return drawn + (drawn >= node)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_merge(part: Array, n_own: int, k: int, counts: Counts, tables: Tables) -> float:
    """``ln DM(ξ_a + ξ_k) - ln DM(ξ_k)``; the rest is common to all candidates."""
    n_k = counts.total[k]
    g = tables.component[k]
    value = tables.total[g, n_k] - tables.total[g, n_k + n_own]
    for j in range(len(part)):
        if part[j] > 0:
            x = counts.cluster[k, j]
            value += tables.action[g, x + part[j]] - tables.action[g, x]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def metropolis_links(
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    tables: Tables,
    candidates: Array,
    log_weight: Array,
    log_current: Array,
    economy: Economy,
    rng: np.random.Generator,
) -> None:
    """Move the link of every node by Metropolis–Hastings steps, one a candidate.

    `log_weight` is ``ln [ν or f(d_ij)] - ln q(j | i)`` of the candidates, `log_current` the same
    of the links there are. A link to another component also weighs its merge ratio, as in
    `onlooker.partitions.links.kernels`.
    """
    n_nodes, n_actions = counts.node.shape
    walk = np.empty(n_nodes, dtype=np.int32)
    part = np.empty(n_actions, dtype=np.int32)
    by_component = np.empty(len(tables.alpha))
    tidy_slots(labels, forest, slots, counts, tables.component)
    for i in range(n_nodes):
        current, home = forest.link[i], labels[i]
        n_reach = count_reach(i, forest, walk, counts.size[home], economy.longest, rng)
        if n_reach == 0:
            continue
        own = cut(i, n_reach, walk, labels, forest, slots, counts, part)
        n_own = counts.total[own]
        log_dm_own = log_dm_by_component(part, n_own, tables, by_component)

        weight = log_current[i]
        if labels[current] != own:
            weight += _log_merge(part, n_own, labels[current], counts, tables) - log_dm_own
        for c in range(candidates.shape[1]):
            j = candidates[i, c]
            candidate = log_weight[i, c]
            if labels[j] != own:
                candidate += _log_merge(part, n_own, labels[j], counts, tables) - log_dm_own
            if np.log1p(-rng.random()) < candidate - weight:
                current, weight = j, candidate
        g = tables.component[labels[current]]
        if labels[current] == own and len(by_component) > 1:
            g = draw_log(by_component, len(by_component), rng.random())
        settle(i, current, home, walk, labels, forest, slots, counts, part)
        tables.component[labels[i]] = g
