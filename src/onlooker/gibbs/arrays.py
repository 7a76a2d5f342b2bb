"""The arrays that kernels share: data, counts, tables of the controllers' prior, slots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array


def smallest_int(n: int) -> np.dtype[Any]:
    """The smallest signed integers that hold ``0 … n - 1``."""
    for kind in (np.int8, np.int16, np.int32):
        if n - 1 <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


class Data(NamedTuple):
    """What the transitions say: sorted by node, with likelihoods scaled row by row."""

    first: Array
    """``(N + 1,)``: node i owns transitions ``first[i]`` to ``first[i + 1] - 1``."""
    likelihood: Array
    """``(U, A)``, each row divided by its maximum or so, so that none underflows whole."""
    row: Array
    """``(M,)``: the row of each transition; transitions that say the same share one."""
    order: Array
    """``(M,)``: the problem's transitions, in the order in which they lie here."""
    log_scale: Array
    """``(M,)``: ``ln ℓ[t, j]`` is ``ln likelihood[t, j] + log_scale[t]``. Empty where an update
    computes the likelihood: it then adds its logarithm to the joint density itself."""

    def unsorted(self, actions: Array) -> Array:
        """What belongs to each transition, in the problem's order."""
        out = np.empty_like(actions)
        out[self.order] = actions
        return out

    def own_rows(self) -> Data:
        """The same with a row of its own, not yet filled, for each transition."""
        n = len(self.row)
        empty = np.empty((n, self.likelihood.shape[1]))
        return self._replace(likelihood=empty, row=np.arange(n))

    def log_likelihood(self, actions: Array) -> float:
        """``Σ_t ln T(s_{t+1} | s_t, a_t)``; 0 if an update adds it."""
        if len(self.log_scale) == 0:
            return 0.0
        chosen = self.likelihood[self.row, actions]
        return float(np.log(chosen).sum() + self.log_scale.sum())


class Counts(NamedTuple):
    """The sufficient statistics, kept up to date by every kernel."""

    node: Array
    """``φ``, ``(N, A)``: how often each action is played at each node."""
    cluster: Array
    """``ξ``, ``(slots, A)``: the same by cluster."""
    total: Array
    """``(slots,)``: transitions in each cluster, ``Σ_j ξ_kj``."""
    size: Array
    """``ζ``, ``(slots,)``: nodes in each cluster."""


def count(actions: Array, labels: Array, first: Array, n_actions: int, n_slots: int) -> Counts:
    """Count everything from scratch."""
    n_nodes = len(labels)
    node = np.zeros((n_nodes, n_actions), dtype=np.int32)
    node_of = np.repeat(np.arange(n_nodes), np.diff(first))
    np.add.at(node, (node_of, actions), 1)
    cluster = np.zeros((n_slots, n_actions), dtype=np.int32)
    np.add.at(cluster, labels, node)
    return Counts(
        node,
        cluster,
        cluster.sum(axis=1, dtype=np.int64),
        np.bincount(labels, minlength=n_slots).astype(np.int64),
    )


class Slots(NamedTuple):
    """Which slots are in use: ``order[:n[0]]``; ``where`` is the inverse permutation."""

    order: Array
    where: Array
    n: Array


def make_slots(n_slots: int, n_used: int) -> Slots:
    """Slots of which the first `n_used` are in use."""
    every = np.arange(n_slots)
    return Slots(every, every.copy(), np.array([n_used], dtype=np.int64))


class Base(NamedTuple):
    """A base measure that is uniform within kinds."""

    share: Array
    """``(kinds,)``: the measure of one of a kind, times A."""
    kind: Array
    """``(A,)``."""


class BaseSums(NamedTuple):
    """What a draw from likelihood times base measure needs, summed once."""

    order: Array
    """``(A,)``: the columns of the likelihood, kind after kind."""
    start: Array
    """``(kinds + 1,)``: where each kind begins in that order."""
    running: Array
    """``(U, A)``: running sums of the likelihood in that order, anew for each kind."""
    sums: Array
    """``(U, kinds)``: of all of a kind."""


def sum_base(likelihood: Array, kind: Array) -> BaseSums:
    """Sum the rows of a likelihood, kind by kind."""
    n_kinds = int(kind.max()) + 1
    order = np.argsort(kind, kind="stable")
    start = np.searchsorted(kind[order], np.arange(n_kinds + 1))
    running, sums = np.empty(likelihood.shape), np.empty((len(likelihood), n_kinds))
    for q in range(n_kinds):
        inside = slice(start[q], start[q + 1])
        whole = n_kinds == 1
        own = likelihood if whole else likelihood[:, order[inside]]
        np.cumsum(own, axis=1, out=running[:, inside])
        sums[:, q] = own @ np.ones(own.shape[1])
    return BaseSums(order, start, running, sums)


class Tables(NamedTuple):
    """The prior of the controllers, ``Dir(α · share)``.

    Logarithms of rising factorials, so that no kernel calls ``lgamma``:
    ``ln DM(ξ) = Σ_j action[kind_j, ξ_j] - total[Σ_j ξ_j]``.
    """

    action: Array
    """``(kinds, M + 1)``: ``ln Γ(α share + n) - ln Γ(α share)`` for ``n = 0 … M``."""
    total: Array
    """``(M + 1,)``: ``ln Γ(Aα + n) - ln Γ(Aα)`` for ``n = 0 … M``."""
    alpha: float
    share: Array
    """``(A,)``: the base measure times A, so that its mean is 1."""
    kind: Array
    """``(A,)``: entries of one kind have the same share."""
    by_kind: Array
    """``(kinds,)``: that share."""


def make_tables(
    alpha: float, n_actions: int, n_transitions: int, base: Base | None = None
) -> Tables:
    """Tabulate the two factors of ``DM`` for counts up to `n_transitions`."""
    share, kind = base or Base(np.ones(1), np.zeros(n_actions, dtype=np.int64))
    return Tables(
        np.array([_log_rising(float(alpha * part), n_transitions) for part in share]),
        _log_rising(n_actions * float(alpha), n_transitions),
        float(alpha),
        share[kind],
        kind,
        share,
    )


def _log_rising(start: float, n: int) -> Array:
    """``ln Γ(start + m) - ln Γ(start)`` for ``m = 0 … n``: sums of logarithms, as DM has them."""
    table = np.zeros(n + 1)
    row = table[1:]
    np.add(start, np.arange(n), out=row)
    np.cumsum(np.log(row, out=row), out=row)
    return table
