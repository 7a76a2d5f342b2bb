"""Numba kernels of the search for the consensus partition.

Both losses have one form. With n_k the sizes of the estimate's clusters, n_l those of a draw's and
n_kl the sizes of their intersections,

    loss = Σ_l f(n_l) + Σ_k f(n_k) - 2 Σ_kl f(n_kl),

where f(n) = n log2(n) / N gives the variation of information and f(n) = n² / N² Binder's loss. So
one search serves both. ``step[n] = [f(n + 1) - f(n)] - [f(1) - f(0)]`` is all it needs: what a node
adds when it joins n others, compared with standing alone. Binder's step is linear in n, so that
for it the counts of pairs say as much as the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlooker.compiled import njit
from onlooker.consensus.pair_kernels import PartitionDraws

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]

BEST, OUT = -2, -1
"""Places for nodes that are no clusters; see `place`."""


class DrawSummary(NamedTuple):
    """What the search knows of the draws.

    ``pairs[i, j]`` is the number of draws in which i and j are together, empty if there are too
    many nodes. If one such draw has a weight, ``per_pair`` above 0, pairs replace the draws.
    """

    draws: PartitionDraws
    pairs: Ints32
    per_pair: float


class SearchOptions(NamedTuple):
    """What the search minimises, and within which bounds."""

    step: Floats
    max_clusters: int
    tolerance: float


class SearchState(NamedTuple):
    """A partition under construction; label -1 marks a node not yet placed.

    Intersections n_kl with a draw's large clusters, of more nodes than half the width of the
    tables, lie in ``counts[r, k]``, the weighted steps from them in ``gain[r, k]`` (with a last row
    of zeros). Those with a small cluster lie one after the other in ``slots`` as pairs (k, n_kl), a
    pair with n_kl = 0 closing the list. ``rows[i, b]`` is the row r of node i's cluster in draw b,
    or -1 - s if its list begins at slot s. So a draw needs at most 4 N entries, however many
    clusters there are.

    A node that wanted to stay still does while ``slack[i] > drift[0]`` and need not be asked: what
    it lost by staying was more than all the moves since can have made up for (see `shift`).
    """

    labels: Ints
    sizes: Ints
    rows: Ints32
    counts: Ints32
    gain: Floats
    slots: Ints32
    slack: Floats
    drift: Floats


@njit(cache=True, nogil=True)
def build(labels: Ints, width: int, summary: DrawSummary, options: SearchOptions) -> SearchState:
    """The state of a partition, with room for ``width`` clusters."""
    draws = summary.draws
    n, n_draws = labels.size, draws.weights.size
    n_rows = 0
    for c in range(draws.start.size - 1):
        n_rows += 2 * (draws.start[c + 1] - draws.start[c]) > width
    rows = np.empty((n, n_draws), np.int32)
    counts = np.zeros((n_rows, width), np.int32)
    gain = np.zeros((n_rows + 1, width))
    slots = np.zeros((draws.members.size + draws.start.size, 2), np.int32)
    count = np.zeros(width, np.int32)
    row = 0
    for b in range(n_draws):
        for c in range(draws.offset[b], draws.offset[b + 1]):
            first, last = draws.start[c], draws.start[c + 1]
            at = first + c  # one slot more than nodes: the closing pair
            r = row if 2 * (last - first) > width else -1 - at
            for p in range(first, last):
                j = draws.members[p]
                rows[j, b] = r
                if labels[j] >= 0:
                    count[labels[j]] += 1
            if r >= 0:
                for k in range(width):
                    counts[r, k] = count[k]
                    gain[r, k] = draws.weights[b] * options.step[count[k]]
                    count[k] = 0
                row += 1
                continue
            for p in range(first, last):
                k = labels[draws.members[p]]
                if k >= 0 and count[k] > 0:
                    slots[at, 0], slots[at, 1] = k, count[k]
                    count[k] = 0
                    at += 1
    sizes = np.zeros(width, np.int64)
    slack = np.empty(n)
    for i in range(n):
        slack[i] = -np.inf
        if labels[i] >= 0:
            sizes[labels[i]] += 1
    return SearchState(labels, sizes, rows, counts, gain, slots, slack, np.zeros(1))


@njit(cache=True, nogil=True)
def shift_slot(at: int, k: int, by: int, slots: Ints32) -> None:
    """Change the entry of cluster k in the list that begins at a slot; no gaps remain."""
    while slots[at, 1] > 0 and slots[at, 0] != k:
        at += 1
    slots[at, 0] = k
    slots[at, 1] += by
    if slots[at, 1] == 0:
        last = at
        while slots[last + 1, 1] > 0:
            last += 1
        slots[at, 0], slots[at, 1] = slots[last, 0], slots[last, 1]
        slots[last, 1] = 0


@njit(cache=True, nogil=True)
def shift(
    i: int, k: int, by: int, state: SearchState, summary: DrawSummary, options: SearchOptions
) -> None:
    """Put node i into cluster k (by = 1) or take it out (by = -1).

    What another node may gain by this is bounded: by the change in the cost of the size of k,
    and by the largest step times the share of draws in which the two are together.
    """
    draws = summary.draws
    state.labels[i] = k if by > 0 else -1
    state.sizes[k] += by
    larger = max(state.sizes[k], state.sizes[k] - by)
    state.drift[0] += options.step[larger] - options.step[larger - 1]
    if summary.pairs.shape[0] > 0:
        most = 2.0 * options.step[1] / summary.pairs[i, i]  # no difference of steps is larger
        for j in range(state.slack.size):
            state.slack[j] -= most * summary.pairs[i, j]
        state.slack[i] = -np.inf
    else:
        state.slack[:] = -np.inf
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r >= 0:
            state.counts[r, k] += by
            state.gain[r, k] = draws.weights[b] * options.step[state.counts[r, k]]
        else:
            shift_slot(-1 - r, k, by, state.slots)


@njit(cache=True, nogil=True)
def add_large(
    i: int, state: SearchState, draws: PartitionDraws, options: SearchOptions, out: Floats
) -> None:
    """Add the weighted steps of node i over the draws in which its cluster has a table row."""
    own = state.labels[i]
    mine = 0.0
    rows = np.empty(draws.weights.size + 3, np.int64)
    n_rows = 0
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r >= 0:
            rows[n_rows] = r
            n_rows += 1
            if own >= 0:
                mine += draws.weights[b] * options.step[state.counts[r, own] - 1]
    for at in range(n_rows, n_rows + 3):
        rows[at] = state.gain.shape[0] - 1  # a row of zeros
    for at in range(0, n_rows, 4):  # four rows at a time: up to three times as fast
        p, q, r, s = rows[at], rows[at + 1], rows[at + 2], rows[at + 3]
        for k in range(out.size):
            out[k] += (state.gain[p, k] + state.gain[q, k]) + (state.gain[r, k] + state.gain[s, k])
    if own >= 0:
        out[own] = mine


@njit(cache=True, nogil=True)
def add_small(
    i: int, state: SearchState, draws: PartitionDraws, options: SearchOptions, out: Floats
) -> None:
    """Add the weighted steps of node i over the draws in which its cluster has slots."""
    own = state.labels[i]
    for b in range(draws.weights.size):
        r = state.rows[i, b]
        if r < 0:
            at = -1 - r
            while state.slots[at, 1] > 0:
                k = state.slots[at, 0]
                out[k] += draws.weights[b] * options.step[state.slots[at, 1] - (k == own)]
                at += 1


@njit(cache=True, nogil=True)
def costs(
    i: int, state: SearchState, summary: DrawSummary, options: SearchOptions, out: Floats
) -> None:
    """out[k] = expected loss with node i in cluster k, less that with node i alone."""
    own = state.labels[i]
    out[:] = 0.0
    if summary.per_pair > 0.0:
        for j in range(state.labels.size):
            k = state.labels[j]
            if k >= 0 and j != i:
                out[k] += summary.per_pair * summary.pairs[i, j]
    else:
        add_large(i, state, summary.draws, options, out)
        add_small(i, state, summary.draws, options, out)
    for k in range(out.size):
        out[k] = options.step[state.sizes[k] - (k == own)] - 2.0 * out[k]


@njit(cache=True, nogil=True)
def choose(i: int, state: SearchState, options: SearchOptions, cost: Floats) -> int:
    """The best cluster for node i; the width of the tables means "a new one, but none is free"."""
    own = state.labels[i]
    width = state.sizes.size
    free, used = width, 0
    best = int(own)
    lowest = cost[own] - options.tolerance if own >= 0 else np.inf
    for k in range(width):
        if state.sizes[k] == 0:
            free = min(free, k)
            continue
        used += 1
        if k != own and cost[k] < lowest:
            best, lowest = k, cost[k]
    alone = own >= 0 and state.sizes[own] == 1
    if not alone and used < options.max_clusters and lowest > 0.0:
        best = free
    return best


@njit(cache=True, nogil=True)
def margin(own: int, state: SearchState, cost: Floats) -> float:
    """How much more the next best place costs than the own one; being alone always counts."""
    lowest = 0.0
    for k in range(cost.size):
        if k != own and state.sizes[k] > 0 and cost[k] < lowest:
            lowest = cost[k]
    return lowest - cost[own]


@njit(cache=True, nogil=True)
def place(
    nodes: Ints,
    start: int,
    to: int,
    state: SearchState,
    summary: DrawSummary,
    options: SearchOptions,
) -> tuple[int, int, float]:
    """Put each node, from number `start` on, into cluster `to`; `BEST`: where it costs least.

    `OUT`: nowhere. Returns the number of nodes, or that of the node that wants a new cluster where
    none is free; how many moved; and by how much the loss changed, unless `to` is a cluster.
    """
    cost = np.zeros(state.sizes.size)
    moves, change = 0, 0.0
    for at in range(start, nodes.size):
        i, k = nodes[at], to
        own = state.labels[i]
        if to < 0:
            if to == BEST and state.slack[i] > state.drift[0]:
                continue
            costs(i, state, summary, options, cost)
        if to == BEST:
            k = choose(i, state, options, cost)
            if k == own:
                state.slack[i] = state.drift[0] + margin(own, state, cost)
                continue
            if k == state.sizes.size:
                return at, moves, change
        if own >= 0:
            change -= cost[own]
            shift(i, own, -1, state, summary, options)
        if k >= 0:
            change += cost[k]
            shift(i, k, 1, state, summary, options)
        moves += 1
    return nodes.size, moves, change


# What follows is not compiled: it takes no time, but compiling all above into it would.


def compact(state: SearchState, summary: DrawSummary, options: SearchOptions) -> SearchState:
    """The same partition in tables of fitting width: a multiple of 8 with room to grow."""
    used = np.flatnonzero(state.sizes)
    number = np.full(state.sizes.size + 1, -1)  # the last for -1
    number[used] = np.arange(used.size)
    width = 8 * ((5 * used.size // 4 + 1) // 8 + 1)
    new = build(number[state.labels], width, summary, options)
    new.slack[:] = state.slack
    new.drift[:] = state.drift
    return new


def visit(
    nodes: Ints, state: SearchState, summary: DrawSummary, options: SearchOptions
) -> tuple[SearchState, int, float]:
    """Put each node where it costs least; the state, the number of moves, the change in loss."""
    at, moves, change = 0, 0, 0.0
    while True:
        at, moved, changed = place(nodes, at, BEST, state, summary, options)
        moves, change = moves + moved, change + changed
        if at == nodes.size:
            return state, moves, change
        state = compact(state, summary, options)


def improve(
    state: SearchState, summary: DrawSummary, options: SearchOptions, rng: np.random.Generator
) -> SearchState:
    """Visit all nodes in random order until none wants to move."""
    moves = 1
    while moves > 0:
        if 8 * (np.count_nonzero(state.sizes) // 8 + 2) < state.sizes.size // 2:
            state = compact(state, summary, options)
        state, moves, _ = visit(rng.permutation(state.labels.size), state, summary, options)
    return state


def rebuild_cluster(
    k: int,
    state: SearchState,
    summary: DrawSummary,
    options: SearchOptions,
    rng: np.random.Generator,
) -> tuple[SearchState, bool]:
    """Take cluster k apart and place its nodes anew; undone unless the loss falls."""
    nodes = rng.permutation(np.flatnonzero(state.labels == k))
    before, slack, drift = state.labels.copy(), state.slack.copy(), state.drift[0]
    change = place(nodes, 0, OUT, state, summary, options)[2]
    new, _, gained = visit(nodes, state, summary, options)
    if change + gained < -options.tolerance:
        return new, True
    if new.sizes.size != state.sizes.size:  # the clusters were renumbered on the way
        return build(before, state.sizes.size, summary, options), False
    place(nodes[new.labels[nodes] != k], 0, k, new, summary, options)
    new.slack[:] = slack
    new.drift[0] = drift
    return new, False


def search(
    labels: Ints,
    summary: DrawSummary,
    options: SearchOptions,
    rebuild: bool,
    rng: np.random.Generator,
) -> Ints:
    """Place what is unplaced (label -1) and improve; if `rebuild`, take clusters apart as well."""
    state = build(labels.copy(), 8 * ((int(labels.max()) + 2) // 8 + 1), summary, options)
    nodes = rng.permutation(np.flatnonzero(labels < 0))
    state = visit(nodes, state, summary, options)[0]
    state = improve(state, summary, options, rng)
    improved = rebuild
    while improved:
        improved = False
        for k in rng.permutation(np.flatnonzero(state.sizes)):
            if k < state.sizes.size and state.sizes[k] > 0:
                state, better = rebuild_cluster(k, state, summary, options, rng)
                improved |= better
        if improved:
            state = improve(state, summary, options, rng)
    return state.labels
