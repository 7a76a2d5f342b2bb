"""The ddCRP's links, ``p(c_i = j) ∝ f(d_ij) · (merge ratio)``, drawn exactly in little time.

The merge ratio depends on ``j`` only through its cluster, so the cluster is drawn first, with
mass ``Σ_{j ∈ C_k} f(d_ij)``, then ``j`` inside it. The constant part of ``f`` contributes
``offset · |C_k|`` and needs no neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from onlooker._validation import Array
from onlooker.inference.forest import Forest, attach, detach, reach
from onlooker.inference.indicators import Slots
from onlooker.inference.state import Counts, Tables


class Graph(NamedTuple):
    """Similarities, as in `onlooker.partitions.geometry.Similarity`, and the order of the scan."""

    indptr: Array
    indices: Array
    weights: Array
    offset: float
    scan: Array


class Economy(NamedTuple):
    """Exact short cuts for large problems; each is a choice that does not look at ``c_i``."""

    few: int
    """Up to this many clusters, the constant part is summed over all of them. Beyond, it is drawn
    by `tries` candidates: the link's constant part is then updated by a conditional importance
    draw, which leaves the same distribution invariant."""
    tries: int
    longest: int
    """A node that more nodes than this lead to keeps its link, but with `chance`."""
    chance: float


@njit(cache=True, nogil=True, error_model="numpy")
def log_merge_ratio(a: int, k: int, counts: Counts, tables: Tables) -> float:
    """``ln DM(ξ_a + ξ_k) - ln DM(ξ_a) - ln DM(ξ_k)``."""
    xi_a, xi_k = counts.cluster[a], counts.cluster[k]
    ratio = 0.0
    for j in range(len(xi_a)):
        if xi_a[j] > 0:
            ratio += tables.action[xi_a[j] + xi_k[j]]
            ratio -= tables.action[xi_a[j]] + tables.action[xi_k[j]]
    n_a, n_k = counts.total[a], counts.total[k]
    return ratio - (tables.total[n_a + n_k] - tables.total[n_a] - tables.total[n_k])


@njit(cache=True, nogil=True, error_model="numpy")
def _other_node(i: int, n_nodes: int, uniform: float) -> int:
    """A node other than i, each with the same chance."""
    j = int(uniform * (n_nodes - 1))
    return j + 1 if j >= i else j


@njit(cache=True, nogil=True, error_model="numpy")
def _member(i: int, k: int, index: int, labels: Array, forest: Forest) -> int:
    """Member number `index` of slot k, node i not counted."""
    if labels[i] == k and index >= forest.at[i]:
        index += 1
    return forest.pool[forest.start[k] + index]


@njit(cache=True, nogil=True, error_model="numpy")
def _near_member(i: int, k: int, mass: float, labels: Array, graph: Graph) -> int:
    """The neighbour in slot k at which the running sum of similarities passes `mass`."""
    chosen = -1
    for q in range(graph.indptr[i], graph.indptr[i + 1]):
        j = graph.indices[q]
        if labels[j] == k and graph.weights[q] > 0.0:
            chosen = j
            mass -= graph.weights[q]
            if mass < 0.0:
                break
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def update_links(
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    tables: Tables,
    graph: Graph,
    nu: float,
    economy: Economy,
    rng: np.random.Generator,
) -> None:
    """Draw the link of every node, given all the others.

    ``p(c_i = i) ∝ ν``; ``p(c_i = j) ∝ f(d_ij)`` within i's component, and times
    ``DM(ξ_zi + ξ_zj) / (DM(ξ_zi) DM(ξ_zj))`` if it would merge two; counts without the link.
    """
    n_nodes = len(labels)
    walk = np.empty(n_nodes, dtype=np.int32)
    near = np.zeros(n_nodes)  # similarity of node i to each slot, by neighbours
    touched = np.empty(n_nodes, dtype=np.int64)
    most = n_nodes + economy.tries + 1
    slot = np.empty(most, dtype=np.int64)
    node = np.empty(most, dtype=np.int64)  # a candidate that is one node, else -1
    mass = np.empty(most)
    log_ratio = np.empty(most)
    for s in range(n_nodes):
        i = graph.scan[s]
        old = forest.link[i]
        if old == i:  # i is the root: all of its component leads to it
            n_reach = counts.size[labels[i]]
        else:
            n_reach = reach(i, forest, walk, min(economy.longest, counts.size[labels[i]]))
        if n_reach > economy.longest:
            if rng.random() >= economy.chance:
                continue
            if old != i:
                n_reach = reach(i, forest, walk, n_nodes)
        a = detach(i, n_reach, walk, labels, forest, slots, counts)

        n_touched = 0
        near_old = 0.0
        for q in range(graph.indptr[i], graph.indptr[i + 1]):
            j = graph.indices[q]
            k = labels[j]
            if near[k] == 0.0:
                touched[n_touched] = k
                n_touched += 1
            near[k] += graph.weights[q]
            if j == old:
                near_old = graph.weights[q]

        slot[0], node[0], mass[0], log_ratio[0] = a, i, nu, 0.0
        n = 1
        sum_all = slots.n[0] <= economy.few
        if sum_all:
            for p in range(slots.n[0]):
                k = slots.order[p]
                others = counts.size[k] - 1 if k == a else counts.size[k]
                slot[n], node[n], mass[n] = k, -1, near[k] + graph.offset * others
                n += 1
        else:
            for p in range(n_touched):
                k = touched[p]
                if near[k] > 0.0:
                    slot[n], node[n], mass[n] = k, -1, near[k]
                    n += 1
                    near[k] = -near[k]  # a slot whose weights rounded to 0 is listed twice
            for p in range(n_touched):
                near[touched[p]] = abs(near[touched[p]])
            if graph.offset > 0.0:
                far = False
                if old != i:
                    far = rng.random() * (near_old + graph.offset) >= near_old
                for p in range(economy.tries):
                    j = old if far and p == 0 else _other_node(i, n_nodes, rng.random())
                    slot[n], node[n] = labels[j], j
                    mass[n] = graph.offset * (n_nodes - 1) / economy.tries
                    n += 1

        largest = 0.0
        for c in range(1, n):
            log_ratio[c] = 0.0
            if slot[c] != a and mass[c] > 0.0:
                log_ratio[c] = log_merge_ratio(a, slot[c], counts, tables)
                largest = max(largest, log_ratio[c])
        total = 0.0
        for c in range(n):
            total += mass[c] * np.exp(log_ratio[c] - largest)
            log_ratio[c] = total
        target = rng.random() * total
        if target >= total:
            target = np.nextafter(total, 0.0)
        c = 0
        while c < n - 1 and log_ratio[c] <= target:
            c += 1

        j = node[c]
        if j < 0:
            k = slot[c]
            part = rng.random() * mass[c]
            if part < near[k] or not sum_all or graph.offset == 0.0:
                j = _near_member(i, k, part, labels, graph)
            else:
                others = counts.size[k] - 1 if k == a else counts.size[k]
                index = min(int((part - near[k]) / graph.offset), others - 1)
                j = _member(i, k, index, labels, forest)
        for p in range(n_touched):
            near[touched[p]] = 0.0
        attach(i, j, labels, forest, slots, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def link_similarity(i: int, j: int, graph: Graph) -> float:
    """``f(d_ij)``, found by bisection: each row of the graph is sorted."""
    low, high = graph.indptr[i], graph.indptr[i + 1]
    while low < high:
        middle = (low + high) // 2
        if graph.indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    if low < graph.indptr[i + 1] and graph.indices[low] == j:
        return graph.weights[low] + graph.offset
    return graph.offset


@njit(cache=True, nogil=True, error_model="numpy")
def log_link_weights(links: Array, graph: Graph, nu: float) -> float:
    """``Σ_i ln [ν or f(d_i,c_i)]``: the link prior without its normaliser."""
    total = 0.0
    for i in range(len(links)):
        weight = nu if links[i] == i else link_similarity(i, links[i], graph)
        total += np.log(weight)
    return total
