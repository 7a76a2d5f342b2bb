"""The link graph of the ddCRP: links, components and their counts, kept up to date.

Every node has one out-link, so each component has exactly one cycle (a self-link counts). Taking
node i's link away splits its component if and only if the nodes that reach i are not all of it;
they are found by walking in-links from i. No global search.
"""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array, stored_array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Slots, make_slots
from onlooker.gibbs.slots import close_slot, open_slot
from onlooker.partitions.links.arrays import Forest

CHILD, NEXT, PREVIOUS = 0, 1, 2


POOL_FACTOR = 4
"""The pool holds this many entries a node: one tight copy, and room to double any list."""


def make_forest(links: Array) -> tuple[Forest, Array, Slots]:
    """Build the lists of a link graph; returns them with labels and slots."""
    n = len(links)
    n_components, labels = _components(links)
    sizes = np.bincount(labels, minlength=n)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    members = np.argsort(labels, kind="stable")
    pool = np.zeros(POOL_FACTOR * n + 2, dtype=np.int32)
    pool[:n] = members
    at = np.empty(n, dtype=np.int32)
    at[members] = np.arange(n) - start[labels[members]]
    forest = Forest(
        link=links.astype(np.int32),
        siblings=np.full((n, 3), -1, dtype=np.int32),
        pool=pool,
        start=start.astype(np.int64),
        capacity=sizes.astype(np.int64),
        at=at,
        pool_end=np.array([n], dtype=np.int64),
    )
    list_in_links(forest.link, forest.siblings)
    return forest, labels, make_slots(n, n_components)


def check_forest(forest: Forest, labels: Array, slots: Slots, size: Array) -> None:
    """Refuse stored lists that contradict the links, the labels or each other.

    `slots` and `size` are right. A walk along wrong lists would leave them, or never end.
    """
    n, pool = len(labels), POOL_FACTOR * len(labels) + 2
    stored_array("link", forest.link, np.int32, (n,))
    check_lists(forest.link, forest.siblings)
    for name, dtype, shape, low, high in (
        ("pool", np.int32, (pool,), 0, n),
        ("start", np.int64, (n,), 0, pool),
        ("capacity", np.int64, (n,), 0, pool + 1),
        ("at", np.int32, (n,), 0, n),
        ("pool_end", np.int64, (1,), 0, pool + 1),
    ):
        stored_array(name, getattr(forest, name), dtype, shape, low, high)
    used = slots.order[: slots.n[0]]
    begin, end = forest.start[used], forest.start[used] + forest.capacity[used]
    order = np.argsort(begin)
    apart = (end[order][:-1] <= begin[order][1:]).all() and (end <= forest.pool_end[0]).all()
    if not apart or (size[used] > forest.capacity[used]).any() or (size[used] == 0).any():
        raise ValueError("start and capacity must keep the members of clusters apart")
    listed = (forest.at < size[labels]).all()
    if not listed or (forest.pool[forest.start[labels] + forest.at] != np.arange(n)).any():
        raise ValueError("pool must list the members of every cluster")
    if (labels[forest.link] != labels).any() or len(used) != _components(forest.link)[0]:
        raise ValueError("labels must be the components of the links")


def check_lists(link: Array, siblings: Array) -> None:
    """Refuse stored lists of in-links that contradict the links."""
    n = len(link)
    stored_array("link", link, np.int32, (n,), 0, n)
    stored_array("siblings", siblings, np.int32, (n, 3), -1, n)
    if not _list_all(link, siblings):
        raise ValueError("siblings must list the links to every node")


def _components(links: Array) -> tuple[int, Array]:
    """The number of components of a link graph, and the component of each node."""
    import scipy.sparse
    from scipy.sparse.csgraph import connected_components

    n = len(links)
    graph = scipy.sparse.csr_array((np.ones(n), (np.arange(n), links)), shape=(n, n))
    n_components, labels = connected_components(graph, directed=False)
    return int(n_components), labels.astype(np.int32)


@njit(cache=True, nogil=True, error_model="numpy")
def _list_all(link: Array, siblings: Array) -> bool:
    """Whether the lists hold every link to another node, once; they may lead in circles."""
    n_listed = 0
    for j in range(len(link)):
        before, i = -1, siblings[j, CHILD]
        while i >= 0:
            n_listed += 1
            if n_listed > len(link) or link[i] != j or i == j:
                return False
            if siblings[i, PREVIOUS] != before:
                return False
            before, i = i, siblings[i, NEXT]
    for i in range(len(link)):
        n_listed -= link[i] != i
    return n_listed == 0


@njit(cache=True, nogil=True, error_model="numpy")
def list_in_links(link: Array, siblings: Array) -> None:
    """List every node under its target; `siblings` is -1 before."""
    for i in range(len(link) - 1, -1, -1):
        enlist(i, link, siblings)


@njit(cache=True, nogil=True, error_model="numpy")
def enlist(i: int, link: Array, siblings: Array) -> None:
    """Put node i at the front of its target's in-links."""
    j = link[i]
    if j == i:
        return
    head = siblings[j, CHILD]
    siblings[i, NEXT] = head
    siblings[i, PREVIOUS] = -1
    if head >= 0:
        siblings[head, PREVIOUS] = i
    siblings[j, CHILD] = i


@njit(cache=True, nogil=True, error_model="numpy")
def delist(i: int, link: Array, siblings: Array) -> None:
    """Take node i out of its target's in-links."""
    j = link[i]
    if j == i:
        return
    before, after = siblings[i, PREVIOUS], siblings[i, NEXT]
    if before >= 0:
        siblings[before, NEXT] = after
    else:
        siblings[j, CHILD] = after
    if after >= 0:
        siblings[after, PREVIOUS] = before


@njit(cache=True, nogil=True, error_model="numpy")
def _compact(forest: Forest, slots: Slots, size: Array) -> None:
    """Lay all member lists out tightly at the start of the pool."""
    copy = np.empty(len(forest.link), dtype=forest.pool.dtype)
    top = 0
    for p in range(slots.n[0]):
        k = slots.order[p]
        begin = forest.start[k]
        forest.start[k] = top
        forest.capacity[k] = size[k]
        for m in range(size[k]):
            copy[top] = forest.pool[begin + m]
            top += 1
    forest.pool[:top] = copy[:top]
    forest.pool_end[0] = top


@njit(cache=True, nogil=True, error_model="numpy")
def _reserve(k: int, needed: int, forest: Forest, slots: Slots, size: Array) -> None:
    """See to it that slot k's list can hold `needed` members."""
    if needed <= forest.capacity[k]:
        return
    capacity = 2 * needed
    if forest.pool_end[0] + capacity > len(forest.pool):
        _compact(forest, slots, size)
        capacity = min(capacity, len(forest.pool) - forest.pool_end[0])
    begin, top = forest.start[k], forest.pool_end[0]
    for m in range(size[k]):
        forest.pool[top + m] = forest.pool[begin + m]
    forest.start[k] = top
    forest.capacity[k] = capacity
    forest.pool_end[0] = top + capacity


@njit(cache=True, nogil=True, error_model="numpy")
def _append(i: int, k: int, labels: Array, forest: Forest, slots: Slots, size: Array) -> None:
    _reserve(k, size[k] + 1, forest, slots, size)
    forest.pool[forest.start[k] + size[k]] = i
    forest.at[i] = size[k]
    labels[i] = k
    size[k] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _take_out(i: int, k: int, forest: Forest, size: Array) -> None:
    last = forest.pool[forest.start[k] + size[k] - 1]
    forest.pool[forest.start[k] + forest.at[i]] = last
    forest.at[last] = forest.at[i]
    size[k] -= 1


@njit(cache=True, nogil=True, error_model="numpy")
def tidy_slots(labels: Array, forest: Forest, slots: Slots, counts: Counts) -> None:
    """Number the slots in use from 0 on, in their order, if they lie scattered.

    Nothing that is drawn depends on a slot's number, but memory that lies together is faster.
    """
    n = slots.n[0]
    highest = 0
    for p in range(n):
        highest = max(highest, slots.order[p])
    if highest < 2 * n:
        return
    for i in range(len(labels)):
        labels[i] = slots.where[labels[i]]
    used = slots.order[:n].copy()
    for array in (counts.total, counts.size, forest.start, forest.capacity):
        array[:n] = array[used]
        array[n : highest + 1] = 0
    counts.cluster[:n] = counts.cluster[used]
    counts.cluster[n : highest + 1] = 0
    for k in range(len(slots.order)):
        slots.order[k] = k
        slots.where[k] = k


@njit(cache=True, nogil=True, error_model="numpy")
def reach(i: int, siblings: Array, walk: Array, most: int) -> int:
    """Collect in `walk` the nodes from which links lead to i, and i; give up beyond `most`.

    The set does not depend on i's own link. Returns its size, or ``most + 1``.
    """
    walk[0] = i
    n = 1
    done = 0
    while done < n:
        j = siblings[walk[done], CHILD]
        done += 1
        while j >= 0:
            if j != i:  # i's own link may close the cycle
                if n == most:
                    return most + 1
                walk[n] = j
                n += 1
            j = siblings[j, NEXT]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def count_reach(
    i: int, forest: Forest, walk: Array, size: int, most: int, rng: np.random.Generator
) -> int:
    """Collect the nodes that reach i; 0 if that would take too long and i is to be left alone.

    Beyond `most` nodes the walk goes on with a chance of one half, then again at every doubling:
    a node is given up with a probability that depends on how many nodes reach it, never on its own
    link, so that the steps that are taken stay exact. Where i links to itself, its whole component
    of `size` nodes reaches it, and `walk` is not needed.
    """
    while True:
        n = size if forest.link[i] == i else reach(i, forest.siblings, walk, min(most, size))
        if n <= most:
            return n
        if rng.random() < 0.5:
            return 0
        most *= 2


@njit(cache=True, nogil=True, error_model="numpy")
def remove_link(
    i: int,
    n_reach: int,
    walk: Array,
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    part: Array,
) -> int:
    """Take node i's link away (it then links to itself); returns the slot that i is in now.

    `walk` holds the `n_reach` nodes that reach i. If they are less than the component, labels and
    counts come apart: the nodes get the label of a free slot and their counts go to `part`.
    Member lists stay as they are until `set_link`, since most often the part goes back.
    """
    home = labels[i]
    delist(i, forest.link, forest.siblings)
    forest.link[i] = i
    n_actions = len(part)
    if n_reach == counts.size[home]:
        part[:] = counts.cluster[home]
        return home
    own = slots.order[slots.n[0]]
    part[:] = 0
    for m in range(n_reach):
        node = walk[m]
        labels[node] = own
        for j in range(n_actions):
            part[j] += counts.node[node, j]
    n_own = 0
    for j in range(n_actions):
        n_own += part[j]
        counts.cluster[home, j] -= part[j]
    counts.total[home] -= n_own
    counts.size[home] -= n_reach
    counts.total[own] = n_own
    counts.size[own] = n_reach
    return own


@njit(cache=True, nogil=True, error_model="numpy")
def set_link(
    i: int,
    j: int,
    home: int,
    walk: Array,
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    part: Array,
) -> None:
    """Link node i to j after `remove_link`, and put lists, labels and counts in order again.

    `home` is the slot that node i had before the cut.
    """
    if j != i:
        forest.link[i] = j
        enlist(i, forest.link, forest.siblings)
    own, target = labels[i], labels[j]
    if own != home:
        _set_part(own, home, target, walk, labels, forest, slots, counts, part)
    elif target != own:
        _merge(own, target, labels, forest, slots, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _set_part(
    own: int,
    home: int,
    target: int,
    walk: Array,
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    part: Array,
) -> None:
    """The part that was cut off goes to `target`: a slot of its own, another's, or back home."""
    n_part, n_own = counts.size[own], counts.total[own]
    counts.size[own] = 0
    counts.total[own] = 0
    if target == own:
        open_slot(slots)
        forest.capacity[own] = 0
    if target == home:
        counts.size[home] += n_part
        for m in range(n_part):
            labels[walk[m]] = home
    else:
        counts.size[home] += n_part  # the lists still hold the part
        _reserve(target, counts.size[target] + n_part, forest, slots, counts.size)
        for m in range(n_part):
            _take_out(walk[m], home, forest, counts.size)
            _append(walk[m], target, labels, forest, slots, counts.size)
    for a in range(len(part)):
        counts.cluster[target, a] += part[a]
    counts.total[target] += n_own


@njit(cache=True, nogil=True, error_model="numpy")
def _merge(
    own: int, target: int, labels: Array, forest: Forest, slots: Slots, counts: Counts
) -> None:
    """Two whole components become one; the smaller one moves."""
    kept, gone = target, own
    if counts.size[kept] < counts.size[gone]:
        kept, gone = gone, kept
    _reserve(kept, counts.size[kept] + counts.size[gone], forest, slots, counts.size)
    begin = forest.start[gone]
    for m in range(counts.size[gone]):
        _append(forest.pool[begin + m], kept, labels, forest, slots, counts.size)
    for a in range(counts.cluster.shape[1]):
        counts.cluster[kept, a] += counts.cluster[gone, a]
    counts.total[kept] += counts.total[gone]
    counts.cluster[gone] = 0  # a slot that is not in use holds nothing
    counts.total[gone] = 0
    counts.size[gone] = 0
    close_slot(slots, gone)
