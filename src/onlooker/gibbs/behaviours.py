"""Latent actions where there may be hundreds: what a draw costs are the actions in use.

Controllers put nearly all their weight on few actions. So an action is drawn from two parts, the
counts of its cluster and the base measure: ``ℓ[t, j] ξ_kj`` over the actions in use, and ``α Σ_j
ℓ[t, j] share_j``, which is known beforehand. Where the second part is drawn from, a kind is drawn
first, then an action of it by sums that are cumulated once.

After some passes the actions of a controller are also drawn all together: `onlooker.gibbs.anew`.
"""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.anew import MAX_ANEW, Anew, draw_anew, from_base
from onlooker.gibbs.arrays import BaseSums, Counts, Data, Tables
from onlooker.gibbs.categorical import invert
from onlooker.gibbs.concentrations import draw_log_alpha, draw_masses

BETWEEN = 4
"""Passes over the actions from one draw of α to the next."""
_BLOCK = 64  # rows that are turned round at a time
_LOST = 1e-40  # probabilities below are added only where all others are tiny too
_ROUNDING = 2.0**53
_TINY = 1e-60  # products of `_FEW` and one such factors do not underflow
_FEW = 4


@njit(cache=True, nogil=True, error_model="numpy")
def _by_label(labels: Array, n_slots: int) -> Array:
    """The nodes, label after label."""
    place = np.zeros(n_slots + 1, dtype=np.int64)
    for i in range(len(labels)):
        place[labels[i] + 1] += 1
    for k in range(n_slots):
        place[k + 1] += place[k]
    order = np.empty(len(labels), dtype=np.int32)
    for i in range(len(labels)):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order


@njit(cache=True, nogil=True, error_model="numpy")
def collapsed_behaviours(
    passes: int,
    actions: Array,
    labels: Array,
    counts: Counts,
    data: Data,
    base: BaseSums,
    tables: Tables,
    masses: Array,
    sizes: Array,
    form: Array,
    rng: np.random.Generator,
) -> tuple[float, Array]:
    """Draw every action some times over, with the controllers integrated out.

    ``p(a_t = j) ∝ ℓ[t, j] · (ξ_kj - 1[a_t = j] + α share_j)``. After every fourth pass but the
    last, the masses of the kinds and α are drawn too, unless `masses` or `form` are empty: see
    `onlooker.gibbs.concentrations`. Returns ``ln α`` and the shares by kind.
    """
    n_actions, by_kind = counts.cluster.shape[1], np.empty(len(tables.by_kind))
    for q in range(len(by_kind)):
        by_kind[q] = tables.by_kind[q]
    log_alpha = np.log(tables.alpha)
    order = _by_label(labels, len(counts.size))
    base_total = np.empty(len(base.sums))
    for done in range(0, passes, BETWEEN):
        if done > 0 and len(masses) > 0:
            n = n_actions * np.exp(log_alpha)
            draw_masses(masses, counts.cluster, counts.total, tables.kind, sizes, n, rng)
            for q in range(len(by_kind)):
                by_kind[q] = n_actions * masses[q] / sizes[q]
        if done > 0 and len(form) > 0:
            log_alpha = draw_log_alpha(
                log_alpha, by_kind, tables.kind, counts.cluster, counts.total, form, rng
            )
        for row in range(len(base.sums)):
            base_total[row] = 0.0
            for q in range(len(by_kind)):
                base_total[row] += base.sums[row, q] * by_kind[q]
        _collapsed_passes(
            min(BETWEEN, passes - done),
            actions,
            labels,
            order,
            counts,
            data,
            base,
            base_total,
            np.exp(log_alpha),
            by_kind,
            rng,
        )
    return log_alpha, by_kind


@njit(cache=True, nogil=True, error_model="numpy")
def _collapsed_passes(
    passes: int,
    actions: Array,
    labels: Array,
    order: Array,
    counts: Counts,
    data: Data,
    base: BaseSums,
    base_total: Array,
    alpha: float,
    by_kind: Array,
    rng: np.random.Generator,
) -> None:
    """Passes given α and the shares; `base_total` holds ``Σ_j ℓ[u, j] share_j`` of every row."""
    n_actions = counts.cluster.shape[1]
    used = np.empty(n_actions, dtype=np.int64)
    running = np.empty(max(n_actions, len(by_kind)) + 1)
    at = np.empty(len(actions), dtype=np.int32)
    node = np.empty(len(actions), dtype=np.int32)
    anew = Anew(
        np.full(n_actions, -1, dtype=np.int32),
        np.empty(n_actions, dtype=np.int32),
        np.empty(n_actions),
        np.empty(MAX_ANEW, dtype=np.int32),
        np.empty(MAX_ANEW, dtype=np.int32),
    )
    end = 0
    while end < len(order):
        k, n, n_used = labels[order[end]], 0, 0
        while end < len(order) and labels[order[end]] == k:
            i = order[end]
            for t in range(data.first[i], data.first[i + 1]):
                at[n], node[n] = t, i
                n += 1
            end += 1
        cluster = counts.cluster[k]
        for j in range(n_actions):
            if cluster[j] > 0:
                used[n_used] = j
                n_used += 1
        # given labels, no cluster depends on another: all passes while its data are at hand
        for _ in range(passes):
            for p in range(n):
                t = at[p]
                row, old = data.row[t], actions[t]
                cluster[old] -= 1
                total = 0.0
                q = 0
                while q < n_used:
                    j = used[q]
                    if cluster[j] == 0:
                        n_used -= 1
                        used[q] = used[n_used]
                    else:
                        total += data.likelihood[row, j] * cluster[j]
                        running[q] = total
                        q += 1
                running[n_used] = total + alpha * base_total[row]
                q = invert(running, n_used + 1, rng.random())
                if q < n_used:
                    new = used[q]
                else:
                    new = from_base(row, base, by_kind, running, rng)
                    if cluster[new] == 0:
                        used[n_used] = new
                        n_used += 1
                cluster[new] += 1
                if new != old:
                    actions[t] = new
                    counts.node[node[p], old] -= 1
                    counts.node[node[p], new] += 1
        if n > 1 and n <= MAX_ANEW:
            draw_anew(
                at[:n], node, actions, cluster, counts.node, data, base, base_total, alpha, by_kind,
                running, anew, rng,
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _in_use(controllers: Array) -> tuple[Array, Array, Array]:
    """The actions that each controller has a use for, how many, and how much all others add up to.

    Most θ of a controller with few actions in use are so small that they are lost in rounding: they
    matter only where the others do not add up to `_ROUNDING` times as much.
    """
    n_slots, n_actions = controllers.shape
    used = np.empty((n_slots, n_actions), dtype=np.int32)
    n_used, lost = np.zeros(n_slots, dtype=np.int64), np.zeros(n_slots)
    for k in range(n_slots):
        for j in range(n_actions):
            if controllers[k, j] > _LOST:
                used[k, n_used[k]] = j
                n_used[k] += 1
            else:
                lost[k] += controllers[k, j] * _ROUNDING
    return used, n_used, lost


@njit(cache=True, nogil=True, error_model="numpy")
def _sums(controllers: Array, likelihood: Array) -> Array:
    """``(U, slots)``: ``Σ_j ℓ[u, j] θ_kj``.

    Columns in use are turned round in blocks, so that many are added at a time.
    """
    n_rows, (n_slots, n_actions) = len(likelihood), controllers.shape
    out = np.empty((n_rows, n_slots))
    used, n_used, lost = _in_use(controllers)
    place = np.full(n_actions, -1, dtype=np.int32)
    columns = np.empty(n_actions, dtype=np.int32)
    n_columns = 0
    for k in range(n_slots):
        for q in range(n_used[k]):
            j = used[k, q]
            if place[j] < 0:
                place[j], columns[n_columns] = n_columns, j
                n_columns += 1
    turned = np.zeros((n_columns, _BLOCK))
    total = np.empty(_BLOCK)
    for start in range(0, n_rows, _BLOCK):
        n = min(n_rows - start, _BLOCK)
        for u in range(n):
            for c in range(n_columns):
                turned[c, u] = likelihood[start + u, columns[c]]
        for k in range(n_slots):
            total[:] = 0.0
            for q in range(n_used[k]):
                j = used[k, q]
                theta, column = controllers[k, j], turned[place[j]]
                for u in range(_BLOCK):
                    total[u] += column[u] * theta
            for u in range(n):
                if total[u] < lost[k]:
                    total[u] = 0.0
                    for j in range(n_actions):
                        total[u] += likelihood[start + u, j] * controllers[k, j]
                out[start + u, k] = total[u]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def log_fits(controllers: Array, data: Data) -> Array:
    """``(N, slots)``: ``ln L_ik = Σ_{t at i} ln Σ_j ℓ[t, j] θ_kj``; rows are summed once.

    Factors are multiplied up to save logarithms.
    """
    n_nodes, n_slots = len(data.first) - 1, len(controllers)
    sums = _sums(controllers, data.likelihood)
    times = np.zeros(len(data.likelihood), dtype=np.int64)
    for t in range(len(data.row)):
        times[data.row[t]] += 1
    fits, product = np.zeros((n_nodes, n_slots)), np.empty(n_slots)
    for i in range(n_nodes):
        product[:] = 1.0
        for t in range(data.first[i], data.first[i + 1]):
            row = data.row[t]
            n = times[row]
            if n == 0:
                continue
            times[row] = 0
            for k in range(n_slots):
                factor = sums[row, k]
                if n > _FEW or factor < _TINY:
                    fits[i, k] += n * np.log(factor)
                    continue
                for _ in range(n):
                    product[k] *= factor
                if product[k] < _TINY:
                    fits[i, k] += np.log(product[k])
                    product[k] = 1.0
        for k in range(n_slots):
            fits[i, k] += np.log(product[k])
    return fits


@njit(cache=True, nogil=True, error_model="numpy")
def behaviours_given(
    actions: Array,
    labels: Array,
    counts: Counts,
    data: Data,
    controllers: Array,
    rng: np.random.Generator,
) -> None:
    """Draw every action given the controllers, ``p(a_t = j) ∝ ℓ[t, j] · θ_kj``; count anew."""
    n_actions = controllers.shape[1]
    running = np.empty(n_actions)
    used, n_used, lost = _in_use(controllers)
    every = np.arange(n_actions).astype(np.int32)
    counts.cluster[:] = 0
    counts.total[:] = 0
    for i in range(len(labels)):
        k = labels[i]
        for t in range(data.first[i], data.first[i + 1]):
            likelihood, among, n = data.likelihood[data.row[t]], used[k], n_used[k]
            for _ in range(2):
                total = 0.0
                for q in range(n):
                    total += likelihood[among[q]] * controllers[k, among[q]]
                    running[q] = total
                if total >= lost[k]:
                    break
                among, n = every, n_actions
            old, new = actions[t], actions[t]
            if total > 0.0:  # else every product underflowed: the old action stands
                new = among[invert(running, n, rng.random())]
            counts.cluster[k, new] += 1
            counts.total[k] += 1
            if new != old:
                actions[t] = new
                counts.node[i, old] -= 1
                counts.node[i, new] += 1
