"""The ddCRP's links, ``p(c_i = j) ∝ f(d_ij) · (merge ratio)``, drawn exactly in little time.

The merge ratio depends on ``j`` only through its cluster, so the cluster is drawn first, with
mass ``Σ_{j ∈ C_k} f(d_ij)``, then ``j`` inside it. The constant part of ``f`` contributes
``offset · |C_k|`` and needs no neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Slots, Tables
from onlooker.gibbs.categorical import invert
from onlooker.gibbs.dirichlet import log_dm_of
from onlooker.partitions.links.arrays import Forest, Graph
from onlooker.partitions.links.forest import count_reach, remove_link, set_link, tidy_slots


class Shortcuts(NamedTuple):
    """Exact short cuts for large problems; each is a choice that does not look at ``c_i``."""

    max_exact: int
    """Up to this many clusters, the constant part is summed over all of them. Beyond, it is drawn
    by `n_candidates` nodes: the link's constant part is then updated by a conditional importance
    draw, which leaves the same distribution invariant."""
    n_candidates: int
    max_walk: int
    """A node that more nodes than this lead to may keep its link; see `count_reach`."""


class Workspace(NamedTuple):
    """Working space: nothing in it outlives the drawing of one link."""

    walk: Array
    """The nodes that reach node i."""
    part: Array
    """Action counts of the component of node i, its link removed."""
    played: Array
    """The actions with a count in `part`."""
    near: Array
    """Node i's similarity to each slot, by its neighbours."""
    touched: Array
    """The slots of its neighbours."""
    slot: Array
    """Candidates: their slots,"""
    node: Array
    """the node itself for those that are one node, else -1,"""
    mass: Array
    """their prior weights,"""
    score: Array
    """and their merge ratios, later their running sums."""


@njit(cache=True, nogil=True, error_model="numpy")
def make_workspace(n_nodes: int, n_actions: int, n_candidates: int) -> Workspace:
    """Room for the candidates of one link."""
    most = n_nodes + n_candidates + 2
    return Workspace(
        np.empty(n_nodes, dtype=np.int32),
        np.zeros(n_actions, dtype=np.int32),
        np.empty(n_actions, dtype=np.int64),
        np.zeros(n_nodes),
        np.empty(n_nodes, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most),
        np.empty(most),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def every_cluster(
    i: int,
    own: int,
    split: bool,
    labels: Array,
    slots: Slots,
    size: Array,
    graph: Graph,
    work: Workspace,
) -> int:
    """List every cluster with its mass, ``Σ_{j ∈ C_k} f(d_ij)``; returns how many candidates."""
    near = work.near
    n_slots = slots.n[0] + split  # the part that was cut off comes last
    for p in range(n_slots):
        near[slots.order[p]] = 0.0
    for q in range(graph.indptr[i], graph.indptr[i + 1]):
        near[labels[graph.indices[q]]] += graph.weights[q]
    for p in range(n_slots):
        k = slots.order[p]
        others = size[k] - 1 if k == own else size[k]
        work.slot[p + 1], work.node[p + 1] = k, -1
        work.mass[p + 1] = near[k] + graph.offset * others
    return n_slots + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _near_and_far(
    i: int,
    old: int,
    labels: Array,
    graph: Graph,
    n_candidates: int,
    work: Workspace,
    rng: np.random.Generator,
) -> int:
    """List the neighbours' clusters and a few single nodes for the constant part.

    If the old link came from the constant part (drawn, given the link), it is one of them.
    """
    near = work.near
    n_touched = 0
    near_old = 0.0
    for q in range(graph.indptr[i], graph.indptr[i + 1]):
        near[labels[graph.indices[q]]] = 0.0
    for q in range(graph.indptr[i], graph.indptr[i + 1]):
        j = graph.indices[q]
        k = labels[j]
        if graph.weights[q] > 0.0:
            if near[k] == 0.0:
                work.touched[n_touched] = k
                n_touched += 1
            near[k] += graph.weights[q]
            if j == old:
                near_old = graph.weights[q]
    n = 1
    for p in range(n_touched):
        k = work.touched[p]
        work.slot[n], work.node[n], work.mass[n] = k, -1, near[k]
        n += 1
    if graph.offset > 0.0:
        n_nodes = len(labels)
        far = old != i and rng.random() * (near_old + graph.offset) >= near_old
        for p in range(n_candidates):
            j = old
            if not far or p > 0:
                j = int(rng.random() * (n_nodes - 1))
                j += j >= i
            work.slot[n], work.node[n] = labels[j], j
            work.mass[n] = graph.offset * (n_nodes - 1) / n_candidates
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _score(n: int, own: int, counts: Counts, tables: Tables, work: Workspace) -> None:
    """Fill in ``ln DM(ξ_a + ξ_k) - ln DM(ξ_a) - ln DM(ξ_k)``; 0 for i's own component."""
    n_played = 0
    n_own = counts.total[own]
    for j in range(len(work.part)):
        if work.part[j] > 0:
            work.played[n_played] = j
            n_played += 1
    log_dm_own = log_dm_of(work.part, n_own, tables)
    for c in range(n):
        k = work.slot[c]
        ratio = 0.0
        if k != own and n_own > 0 and work.mass[c] > 0.0:
            n_k = counts.total[k]
            ratio = tables.total[n_k] - tables.total[n_k + n_own] - log_dm_own
            for q in range(n_played):
                j = work.played[q]
                x = counts.cluster[k, j]
                action = tables.action[tables.kind[j]]
                ratio += action[x + work.part[j]] - action[x]
        work.score[c] = ratio


@njit(cache=True, nogil=True, error_model="numpy")
def draw_candidate(n: int, work: Workspace, uniform: float) -> int:
    """Draw a candidate by mass times merge ratio, never one of weight zero."""
    largest = 0.0
    for c in range(n):
        largest = max(largest, work.score[c])
    total = 0.0
    for c in range(n):
        total += work.mass[c] * np.exp(work.score[c] - largest)
        work.score[c] = total
    return invert(work.score, n, uniform)


@njit(cache=True, nogil=True, error_model="numpy")
def near_member(i: int, k: int, mass: float, labels: Array, graph: Graph) -> int:
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
def any_member(
    i: int,
    k: int,
    home: int,
    index: int,
    labels: Array,
    forest: Forest,
    size: Array,
    walk: Array,
    rng: np.random.Generator,
) -> int:
    """Member number `index` of slot k, node i not counted.

    The lists are those from before the cut: the part that was cut off is in `walk`, and what is
    left at home is found by trial, each of them with the same chance.
    """
    own = labels[i]
    if k == own and own != home:
        return walk[index + 1]
    if k == own and index >= forest.at[i]:
        index += 1
    if k == home and own != home:
        listed = size[home] + size[own]
        while True:
            j = forest.pool[forest.start[home] + int(rng.random() * listed)]
            if labels[j] == home:
                return j
    return forest.pool[forest.start[k] + index]


@njit(cache=True, nogil=True, error_model="numpy")
def update_links(
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    tables: Tables,
    graph: Graph,
    nu: float,
    shortcuts: Shortcuts,
    rng: np.random.Generator,
) -> int:
    """Draw the link of every node, given all the others; returns how many changed.

    ``p(c_i = i) ∝ ν``; ``p(c_i = j) ∝ f(d_ij)`` within i's component, and times
    ``DM(ξ_zi + ξ_zj) / (DM(ξ_zi) DM(ξ_zj))`` if it would merge two; counts without the link.
    """
    n_nodes, n_actions = counts.node.shape
    work = make_workspace(n_nodes, n_actions, shortcuts.n_candidates)
    moved = 0
    tidy_slots(labels, forest, slots, counts)
    for i in range(n_nodes):
        old, home = forest.link[i], labels[i]
        n_reach = count_reach(i, forest, work.walk, counts.size[home], shortcuts.max_walk, rng)
        if n_reach == 0:
            continue
        own = remove_link(i, n_reach, work.walk, labels, forest, slots, counts, work.part)

        work.slot[0], work.node[0], work.mass[0] = own, i, nu
        # the part that was cut off counts too: the choice must not depend on the old link
        every = slots.n[0] + (own != home) <= shortcuts.max_exact
        if every:
            n = every_cluster(i, own, own != home, labels, slots, counts.size, graph, work)
        else:
            n = _near_and_far(i, old, labels, graph, shortcuts.n_candidates, work, rng)
        _score(n, own, counts, tables, work)
        c = draw_candidate(n, work, rng.random())

        j, k = work.node[c], work.slot[c]
        if j < 0:
            rest = rng.random() * work.mass[c]
            if rest < work.near[k] or not every or graph.offset == 0.0:
                j = near_member(i, k, rest, labels, graph)
            else:
                others = counts.size[k] - 1 if k == own else counts.size[k]
                index = min(int((rest - work.near[k]) / graph.offset), others - 1)
                j = any_member(i, k, home, index, labels, forest, counts.size, work.walk, rng)
        set_link(i, j, home, work.walk, labels, forest, slots, counts, work.part)
        moved += j != old
    return moved


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


@njit(cache=True, nogil=True, error_model="numpy")
def most_similar(links: Array, graph: Graph) -> None:
    """Link each node to its most similar neighbour, the first of equals; to itself without any."""
    for i in range(len(links)):
        links[i] = i
        largest = 0.0
        for q in range(graph.indptr[i], graph.indptr[i + 1]):
            if graph.weights[q] > largest:
                largest = graph.weights[q]
                links[i] = graph.indices[q]


@njit(cache=True, nogil=True, error_model="numpy")
def log_link_normaliser(nu: float, row_sums: Array) -> float:
    """``Σ_i ln(ν + Σ_{j ≠ i} f(d_ij))``; factors are multiplied up to save logarithms."""
    total = 0.0
    product = 1.0
    for i in range(len(row_sums)):
        product *= nu + row_sums[i]
        if product > 1e150 or product < 1e-150:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)
