"""Numba kernels of the search for one partition that stands for many.

Both losses have one form. With n_k the sizes of the estimate's clusters, n_l those of a draw's and
n_kl the sizes of their intersections,

    loss = a Σ_l f(n_l) + (2 - a) Σ_k f(n_k) - 2 Σ_kl f(n_kl),

where f(n) = n log2(n) / N gives the variation of information and f(n) = n² / N² Binder's loss. So
one search serves both. ``step[n] = [f(n + 1) - f(n)] - [f(1) - f(0)]`` is all it needs: what a node
adds when it joins n others, compared with standing alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class Draws(NamedTuple):
    """Distinct draws, each cluster a slice of ``members``.

    Cluster l of draw b has the number c = offset[b] + l and holds the nodes
    ``members[start[c]:start[c + 1]]``.
    """

    members: Ints32
    start: Ints
    offset: Ints
    weights: Floats


class Rules(NamedTuple):
    """What the search minimises, and within which bounds."""

    step: Floats
    penalty: float
    max_clusters: int
    tolerance: float


class State(NamedTuple):
    """A partition under construction; label -1 marks a node not yet placed.

    ``counts[r, k]`` is n_kl for the draw cluster with table row r, ``gain[r, k]`` the weighted step
    from it. ``rows[i, b]`` is the row of node i's cluster in draw b, or -1 - c when that cluster c
    is so small that walking through its members beats reading a row.
    """

    labels: Ints
    sizes: Ints
    rows: Ints32
    counts: Ints32
    gain: Floats


@njit(cache=True, nogil=True)
def canonical_rows(draws: Ints, n_values: int) -> Ints32:
    """Number each row's clusters by decreasing size, ties by first appearance."""
    n_draws, n = draws.shape
    out = np.empty((n_draws, n), np.int32)
    number = np.full(n_values, -1, np.int64)
    for b in range(n_draws):
        size = np.zeros(n, np.int64)
        found = 0
        for i in range(n):
            value = draws[b, i]
            if number[value] < 0:
                number[value] = found
                found += 1
            out[b, i] = number[value]
            size[number[value]] += 1
        for i in range(n):
            number[draws[b, i]] = -1
        place = np.empty(found, np.int64)
        place[np.argsort(-size[:found], kind="mergesort")] = np.arange(found)
        for i in range(n):
            out[b, i] = place[out[b, i]]
    return out


@njit(cache=True, nogil=True)
def index_draws(labels: Ints32) -> tuple[Ints32, Ints, Ints]:
    """Members, starts and offsets of `Draws` by counting sort; labels are canonical."""
    n_draws, n = labels.shape
    offset = np.zeros(n_draws + 1, np.int64)
    for b in range(n_draws):
        offset[b + 1] = offset[b] + labels[b].max() + 1
    start = np.zeros(offset[-1] + 1, np.int64)
    for b in range(n_draws):
        for i in range(n):
            start[offset[b] + labels[b, i] + 1] += 1
    start[:] = np.cumsum(start)
    fill = start.copy()
    members = np.empty(n_draws * n, np.int32)
    for b in range(n_draws):
        for i in range(n):
            c = offset[b] + labels[b, i]
            members[fill[c]] = i
            fill[c] += 1
    return members, start, offset


@njit(cache=True, nogil=True)
def overlaps(labels: Ints32, draws: Draws, f: Floats) -> Floats:
    """Σ_kl f(n_kl) against each draw; labels are canonical."""
    n_draws = draws.offset.size - 1
    out = np.zeros(n_draws)
    count = np.zeros(labels.size, np.int64)
    for b in range(n_draws):
        total = 0.0
        for c in range(draws.offset[b], draws.offset[b + 1]):
            nodes = draws.members[draws.start[c] : draws.start[c + 1]]
            for j in nodes:
                count[labels[j]] += 1
            for j in nodes:
                total += f[count[labels[j]]]
                count[labels[j]] = 0
        out[b] = total
    return out


@njit(cache=True, nogil=True)
def companions(labels: Ints32, draws: Draws) -> tuple[Floats, Floats]:
    """Per node: how many of its own cluster are with it, summed over draws; how often it is alone."""
    n = labels.size
    together = np.zeros(n)
    alone = np.zeros(n)
    count = np.zeros(n, np.int64)
    for b in range(draws.weights.size):
        weight = draws.weights[b]
        for c in range(draws.offset[b], draws.offset[b + 1]):
            nodes = draws.members[draws.start[c] : draws.start[c + 1]]
            if nodes.size == 1:
                alone[nodes[0]] += weight
            for j in nodes:
                count[labels[j]] += 1
            for j in nodes:
                together[j] += weight * (count[labels[j]] - 1)
            for j in nodes:
                count[labels[j]] = 0
    return together, alone


@njit(cache=True, nogil=True)
def count_pairs(nodes_by_draws: Ints, out: Floats) -> None:
    """out[i, j] = share of draws in which i and j are together; blocked to stay in the cache."""
    n, n_draws = nodes_by_draws.shape
    block = 64
    for first in range(0, n, block):
        for second in range(first, n, block):
            for i in range(first, min(first + block, n)):
                mine = nodes_by_draws[i]
                for j in range(max(i, second), min(second + block, n)):
                    other = nodes_by_draws[j]
                    together = np.int32(0)
                    for b in range(n_draws):
                        together += np.int32(mine[b] == other[b])
                    out[i, j] = together / n_draws
                    out[j, i] = out[i, j]


@njit(cache=True, nogil=True)
def build(labels: Ints, width: int, draws: Draws, rules: Rules) -> State:
    """The tables for a partition, with room for ``width`` clusters (see `State`).

    Rows are kept for draw clusters of more than width / 4 nodes only, so the tables hold at most
    4 N entries a draw however many clusters there are.
    """
    n, n_draws = labels.size, draws.weights.size
    rows = np.empty((n, n_draws), np.int32)
    n_rows = 0
    for c in range(draws.start.size - 1):
        n_rows += 4 * (draws.start[c + 1] - draws.start[c]) > width
    counts = np.zeros((n_rows, width), np.int32)
    gain = np.zeros((n_rows, width))
    row = 0
    for b in range(n_draws):
        for c in range(draws.offset[b], draws.offset[b + 1]):
            nodes = draws.members[draws.start[c] : draws.start[c + 1]]
            if 4 * nodes.size <= width:
                for j in nodes:
                    rows[j, b] = -1 - c
                continue
            for j in nodes:
                rows[j, b] = row
                if labels[j] >= 0:
                    counts[row, labels[j]] += 1
            for k in range(width):
                gain[row, k] = draws.weights[b] * rules.step[counts[row, k]]
            row += 1
    sizes = np.zeros(width, np.int64)
    for i in range(n):
        if labels[i] >= 0:
            sizes[labels[i]] += 1
    return State(labels, sizes, rows, counts, gain)


@njit(cache=True, nogil=True)
def shift(i: int, k: int, by: int, state: State, draws: Draws, rules: Rules) -> None:
    """Put node i into cluster k (by = 1) or take it out (by = -1)."""
    state.labels[i] = k if by > 0 else -1
    state.sizes[k] += by
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r >= 0:
            state.counts[r, k] += by
            state.gain[r, k] = draws.weights[b] * rules.step[state.counts[r, k]]


@njit(cache=True, nogil=True)
def costs(i: int, state: State, draws: Draws, rules: Rules, out: Floats, count: Ints) -> None:
    """out[k] = expected loss with node i in cluster k, less that with node i alone.

    ``count`` is scratch: all zero before and after.
    """
    own = state.labels[i]
    out[:] = 0.0
    mine = 0.0
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r >= 0:
            for k in range(out.size):
                out[k] += state.gain[r, k]
            if own >= 0:
                mine += draws.weights[b] * rules.step[state.counts[r, own] - 1]
    if own >= 0:
        out[own] = mine
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r < 0:
            nodes = draws.members[draws.start[-1 - r] : draws.start[-r]]
            for j in nodes:
                k = state.labels[j]
                if j != i and k >= 0:
                    n = count[k]
                    out[k] += draws.weights[b] * (rules.step[n + 1] - rules.step[n])
                    count[k] = n + 1
            for j in nodes:
                if state.labels[j] >= 0:
                    count[state.labels[j]] = 0
    for k in range(out.size):
        out[k] = rules.penalty * rules.step[state.sizes[k] - (k == own)] - 2.0 * out[k]


@njit(cache=True, nogil=True)
def choose(i: int, state: State, rules: Rules, cost: Floats) -> int:
    """The best cluster for node i; the width of the tables means "a new one, but none is free"."""
    own = state.labels[i]
    width = state.sizes.size
    free, used = width, 0
    best = own
    lowest = cost[own] - rules.tolerance if own >= 0 else np.inf
    for k in range(width):
        if state.sizes[k] == 0:
            free = min(free, k)
            continue
        used += 1
        if k != own and cost[k] < lowest:
            best, lowest = k, cost[k]
    alone = own >= 0 and state.sizes[own] == 1
    if not alone and used < rules.max_clusters and lowest > 0.0:
        best = free
    return best


@njit(cache=True, nogil=True)
def shuffled(nodes: Ints, rng: np.random.Generator) -> Ints:
    """The nodes in random order (Fisher and Yates)."""
    out = nodes.copy()
    for i in range(out.size - 1, 0, -1):
        j = rng.integers(0, i + 1)
        out[i], out[j] = out[j], out[i]
    return out


@njit(cache=True, nogil=True)
def compact(state: State, draws: Draws, rules: Rules) -> State:
    """The same partition in tables of fitting width: a multiple of 8 with room to grow."""
    number = np.full(state.sizes.size, -1, np.int64)
    used = 0
    for k in range(state.sizes.size):
        if state.sizes[k] > 0:
            number[k] = used
            used += 1
    labels = state.labels.copy()
    for i in range(labels.size):
        if labels[i] >= 0:
            labels[i] = number[labels[i]]
    return build(labels, 8 * ((5 * used // 4 + 1) // 8 + 1), draws, rules)


@njit(cache=True, nogil=True)
def visit(nodes: Ints, state: State, draws: Draws, rules: Rules) -> tuple[State, int, float]:
    """Put each node where it costs least; the state, the number of moves, the change in loss."""
    cost = np.empty(state.sizes.size)
    count = np.zeros(state.sizes.size, np.int64)
    moves, change = 0, 0.0
    for i in nodes:
        costs(i, state, draws, rules, cost, count)
        own = state.labels[i]
        k = choose(i, state, rules, cost)
        if k == own:
            continue
        if own >= 0:
            change -= cost[own]
            shift(i, own, -1, state, draws, rules)
        if k == state.sizes.size:
            state = compact(state, draws, rules)
            cost = np.zeros(state.sizes.size)
            count = np.zeros(state.sizes.size, np.int64)
            k = np.argmin(state.sizes)
        change += cost[k]
        shift(i, k, 1, state, draws, rules)
        moves += 1
    return state, moves, change


@njit(cache=True, nogil=True)
def sweeten(state: State, draws: Draws, rules: Rules, rng: np.random.Generator) -> State:
    """Visit all nodes in random order until none wants to move."""
    moves = 1
    while moves > 0:
        if 8 * ((state.sizes > 0).sum() // 8 + 2) < state.sizes.size // 2:
            state = compact(state, draws, rules)
        nodes = shuffled(np.arange(state.labels.size), rng)
        state, moves, _ = visit(nodes, state, draws, rules)
    return state


@njit(cache=True, nogil=True)
def dissolve(
    k: int, state: State, draws: Draws, rules: Rules, rng: np.random.Generator
) -> tuple[State, bool]:
    """Take cluster k apart and place its nodes anew; undone unless the loss falls."""
    nodes = shuffled(np.flatnonzero(state.labels == k), rng)
    before = state.labels.copy()
    cost = np.empty(state.sizes.size)
    count = np.zeros(state.sizes.size, np.int64)
    change = 0.0
    for i in nodes:
        costs(i, state, draws, rules, cost, count)
        change -= cost[k]
        shift(i, k, -1, state, draws, rules)
    new, _, gained = visit(nodes, state, draws, rules)
    if change + gained < -rules.tolerance:
        return new, True
    if new.sizes.size != state.sizes.size:  # the clusters were renumbered on the way
        return build(before, state.sizes.size, draws, rules), False
    for i in nodes:
        if new.labels[i] != k:
            shift(i, new.labels[i], -1, new, draws, rules)
            shift(i, k, 1, new, draws, rules)
    return new, False


@njit(cache=True, nogil=True)
def search(
    labels: Ints, draws: Draws, rules: Rules, zealous: int, rng: np.random.Generator
) -> Ints:
    """Place what is unplaced (label -1), sweeten, then take up to ``zealous`` clusters apart."""
    width = 8 * ((labels.max() + 2) // 8 + 1)
    state = build(labels.copy(), width, draws, rules)
    nodes = shuffled(np.flatnonzero(labels < 0), rng)
    state, _, _ = visit(nodes, state, draws, rules)
    state = sweeten(state, draws, rules, rng)
    attempts = 0
    while attempts < zealous:
        better = False
        for k in shuffled(np.flatnonzero(state.sizes > 0), rng):
            attempts += 1
            state, better = dissolve(k, state, draws, rules, rng)
            if better or attempts >= zealous:
                break
        if not better:
            break
        state = sweeten(state, draws, rules, rng)
    return state.labels
