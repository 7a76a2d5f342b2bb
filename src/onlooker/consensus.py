"""One partition that stands for many, and how far to trust it.

A sampler gives many partitions of the same nodes. `consensus` finds the one with the least expected
loss, by default under the variation of information; `credible_ball` says how far the draws spread
around it. Labels may be any non-negative integers: only who is together with whom matters.

    result = consensus(draws, random_state=0)
    result.labels, result.membership
    credible_ball(result.labels, draws).radius

The search is that of Dahl, Johnson and Müller (2022), "Search algorithms and loss functions for
Bayesian clustering" (the R package salso); the ball is that of Wade and Ghahramani (2018),
"Bayesian cluster analysis: point estimation and credible balls".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onlooker import _consensus_kernels as kernels

__all__ = [
    "ConsensusResult",
    "CredibleBall",
    "adjusted_rand_index",
    "binder_distance",
    "binder_loss",
    "canonical",
    "co_clustering",
    "consensus",
    "credible_ball",
    "variation_of_information",
    "vi_loss",
]

Loss = Literal["vi", "binder"]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]

_TOLERANCE = 1e-12  # losses closer than this are the same up to rounding
_MOST_PAIRED = 6_000  # nodes whose pairs are counted: 144 MB, and as much again for a tree
_RANKING_BUDGET = 4 * 10**7  # labels read to rank draws as starting points: about 0.1 s


@dataclass(frozen=True)
class ConsensusResult:
    """The partition with the least expected loss that was found.

    Attributes
    ----------
    labels : (N,) int array
        Clusters numbered by decreasing size, ties by first appearance.
    loss : {"vi", "binder"}
        The loss that was minimised.
    expected_loss : float
        Its mean over the draws: bits for "vi", a share of the N² ordered pairs for "binder".
    n_clusters : int
        Number of clusters.
    n_restarts, n_agreeing : int
        Searches made, and how many of them ended at this loss. One of many calls for more restarts.
    membership : (N,) float array
        How certain each node's place is: the mean probability of being together with the others of
        its cluster; for a cluster of one, the probability of being alone.
    """

    labels: NDArray[np.int64]
    loss: Loss
    expected_loss: float
    n_clusters: int
    n_restarts: int
    n_agreeing: int
    membership: Floats


@dataclass(frozen=True)
class CredibleBall:
    """The draws nearest to a partition that hold at least ``level`` of the probability.

    Attributes
    ----------
    radius, level : float
        The smallest radius whose ball holds at least ``level`` of the draws.
    probability : float
        The share of draws inside.
    distances : (n_draws,) float array
        Distance of each draw, chains one after the other.
    horizontal : (m, N) int array
        The distinct partitions inside that are farthest away.
    upper, lower : (m, N) int array
        The vertical bounds: of the partitions inside with the fewest (upper) and the most (lower)
        clusters, those farthest away.
    """

    radius: float
    level: float
    probability: float
    distances: Floats
    horizontal: NDArray[np.int64]
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


def consensus(
    draws: ArrayLike,
    loss: Loss = "vi",
    *,
    max_clusters: int | None = None,
    restarts: int = 16,
    zealous: bool = True,
    a: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> ConsensusResult:
    """Find the partition with the least expected loss over the draws.

    Each search places node after node in random order where it costs least, then visits all nodes
    again until none wants to move; the best results go on to take clusters apart and place their
    nodes anew. Every fourth search starts from nothing, one from the best level of a hierarchical
    clustering, the others from the best draws (or random labels when draws run out). A greedy
    search promises a local minimum only, never worse than any of the draws ranked as starting
    points (all of them, unless there are very many) that ``max_clusters`` permits.

    Parameters
    ----------
    draws : (n_draws, N) or (n_chains, n_draws, N) array of int
        One partition of the N nodes a row; labels mean nothing from one row to the next.
    loss : {"vi", "binder"}
        Variation of information, or Binder's loss (which tends to more and smaller clusters).
    max_clusters : int, optional
        The most clusters the result may have; by default no bound.
    restarts : int
        Number of searches.
    zealous : bool
        Whether to take clusters apart.
    a : float
        Cost of parting what belongs together, between 0 and 2; joining what does not costs 2 - a.
        Above 1 gives fewer clusters, below 1 more.
    random_state : int, numpy.random.Generator, optional
        The result is the same for the same seed, however the draws are ordered and labelled.
    """
    every = _check_draws(draws)
    unique, n = _Unique(every), every.shape[1]
    _check_loss(loss)
    _check_cost(a)
    restarts = _check_count(restarts, "restarts", 1)
    most = n if max_clusters is None else _check_count(max_clusters, "max_clusters", 1)
    rng = np.random.default_rng(random_state)

    f = _terms(loss, n)
    step = np.append(np.diff(f), 0.0) - (f[1] - f[0])  # the last entry is never read
    rules = kernels.Rules(step, 2.0 - a, min(most, n), _TOLERANCE)
    pairs = _count_pairs(every) if n <= _MOST_PAIRED else None
    evidence = _evidence(loss, pairs, unique)
    value = _Valued(unique, f, a)
    found: dict[bytes, tuple[float, Ints32]] = {}
    reached = []
    for start in _starts(value, pairs, rules.max_clusters, restarts, rng):
        loss_there, labels = value(kernels.search(start, evidence, rules, False, rng))
        found[labels.tobytes()] = loss_there, labels
        reached.append(labels.tobytes())
    if zealous:
        for key in sorted(found, key=lambda key: found[key][0])[: max(1, restarts // 4)]:
            start = found[key][1].astype(np.int64)
            found[key] = value(kernels.search(start, evidence, rules, True, rng))
    lowest, best = min(found.values(), key=lambda pair: pair[0])
    return ConsensusResult(
        labels=best.astype(np.int64),
        loss=loss,
        expected_loss=lowest,
        n_clusters=int(best.max()) + 1,
        n_restarts=restarts,
        n_agreeing=sum(found[key][0] <= lowest + _TOLERANCE for key in reached),
        membership=_membership(best, unique),
    )


def credible_ball(
    labels: ArrayLike, draws: ArrayLike, level: float = 0.95, loss: Loss = "vi"
) -> CredibleBall:
    """The credible ball of Wade and Ghahramani (2018) around a partition.

    Parameters
    ----------
    labels : (N,) array of int
        The centre, usually `consensus(draws).labels`.
    draws : (n_draws, N) or (n_chains, n_draws, N) array of int
        One partition a row.
    level : float
        Probability that the ball must hold, in (0, 1].
    loss : {"vi", "binder"}
        The distance.
    """
    unique = _Unique(_check_draws(draws))
    centre = _check_labels(labels, "labels", unique.labels.shape[1])
    _check_loss(loss)
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level!r}; 0.95 is usual")
    distances = unique.losses(centre, _terms(loss, centre.size), 1.0)
    nearest = np.argsort(distances, kind="stable")
    held = np.cumsum(unique.counts[nearest])
    # level * n may land just above an integer by rounding: 0.07 * 100 > 7.
    needed = np.ceil(level * held[-1] - 1e-9)
    radius = float(distances[nearest[np.searchsorted(held, needed)]])
    inside = np.flatnonzero(distances <= radius + _TOLERANCE)
    n_clusters = unique.labels.max(axis=1)[inside]

    def farthest(among: NDArray[np.int64]) -> NDArray[np.int64]:
        at = distances[among]
        chosen: NDArray[np.int64] = unique.labels[among[at >= at.max() - _TOLERANCE]].astype(int)
        return chosen

    return CredibleBall(
        radius=radius,
        level=float(level),
        probability=float(unique.counts[inside].sum() / held[-1]),
        distances=distances[unique.inverse],
        horizontal=farthest(inside),
        upper=farthest(inside[n_clusters == n_clusters.min()]),
        lower=farthest(inside[n_clusters == n_clusters.max()]),
    )


def vi_loss(labels: ArrayLike, draws: ArrayLike, *, a: float = 1.0) -> Any:
    """Expected variation of information (bits) between a partition and the draws.

    The exact mean over the draws of a H(labels | draw) + (2 - a) H(draw | labels). ``labels`` is
    (N,) and gives a float, or (m, N) and gives an (m,) array.
    """
    return _expected_loss("vi", labels, draws, a)


def binder_loss(labels: ArrayLike, draws: ArrayLike, *, a: float = 1.0) -> Any:
    """Expected Binder loss between a partition and the draws, as a share of the N² ordered pairs.

    A pair that is together in the draw and apart in ``labels`` costs a, the converse 2 - a.
    ``labels`` is (N,) and gives a float, or (m, N) and gives an (m,) array.
    """
    return _expected_loss("binder", labels, draws, a)


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    """Variation of information of two partitions in bits: H(first | second) + H(second | first)."""
    return _distance("vi", first, second)


def binder_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Share of the N² ordered pairs on which two partitions disagree."""
    return _distance("binder", first, second)


def adjusted_rand_index(first: ArrayLike, second: ArrayLike) -> float:
    """Rand index of two partitions, corrected for chance (Hubert and Arabie, 1985): 1 if equal."""
    one = _check_labels(first, "first")
    other = _Unique(_check_labels(second, "second", one.size)[None, :])
    number = np.arange(one.size + 1, dtype=float)
    pairs = number * (number - 1.0) / 2.0
    both = float(kernels.overlaps(one, other.index, pairs)[0])
    mine = float(pairs[np.bincount(one)].sum())
    theirs = float(other.within(pairs)[0])
    chance = mine * theirs / pairs[-1] if one.size > 1 else 0.0
    most = (mine + theirs) / 2.0
    return 1.0 if most == chance else (both - chance) / (most - chance)


def co_clustering(draws: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """The (N, N) matrix of P(z_i = z_j): the share of draws in which i and j are together."""
    labels = _check_draws(draws)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    return np.divide(_count_pairs(labels), labels.shape[0], dtype=dtype, casting="unsafe")


def canonical(labels: ArrayLike) -> NDArray[np.int64]:
    """Number clusters by decreasing size, ties by first appearance: equal partitions become equal.

    ``labels`` is one partition, or an array of partitions along the last axis.
    """
    given = np.asarray(labels)
    rows = _canonical_rows(given if given.ndim != 1 else given[None, :], "labels")
    return rows.reshape(given.shape).astype(np.int64)


class _Unique:
    """Distinct draws in a fixed order, so that results depend on the set of draws alone."""

    def __init__(self, labels: Ints32) -> None:
        keys = [row.tobytes() for row in labels]
        first = {key: b for b, key in reversed(list(enumerate(keys)))}
        number = {key: u for u, key in enumerate(sorted(first))}
        self.inverse = np.array([number[key] for key in keys])
        self.labels = np.ascontiguousarray(labels[[first[key] for key in number]])
        self.counts = np.bincount(self.inverse)
        self.index = kernels.Draws(
            *kernels.index_draws(self.labels), self.counts / self.counts.sum()
        )

    def within(self, f: Floats) -> Floats:
        """Σ_l f(n_l) of each distinct draw."""
        return np.add.reduceat(f[np.diff(self.index.start)], self.index.offset[:-1])

    def losses(self, labels: Ints32, f: Floats, a: float) -> Floats:
        """Loss of a canonical partition against each distinct draw."""
        shared = kernels.overlaps(labels, self.index, f)
        own = f[np.bincount(labels)].sum()
        loss: Floats = np.maximum(a * self.within(f) + (2.0 - a) * own - 2.0 * shared, 0.0)
        loss[loss < _TOLERANCE] = 0.0
        return loss

    def expected_loss(self, labels: Ints32, f: Floats, a: float) -> float:
        return float(self.index.weights @ self.losses(labels, f, a))


def _terms(loss: Loss, n: int) -> Floats:
    """f(0), ..., f(n) of the loss (see the kernels)."""
    number = np.arange(n + 1, dtype=float)
    if loss == "binder":
        return (number / n) ** 2
    return number * np.log2(np.maximum(number, 1.0)) / n


def _count_pairs(labels: Ints32) -> Ints32:
    # Narrow labels let one instruction compare many draws.
    narrow = np.uint8 if labels.max() < 256 else np.uint16 if labels.max() < 65536 else np.int32
    pairs: Ints32 = kernels.count_pairs(np.ascontiguousarray(labels.T.astype(narrow)))
    return pairs


def _evidence(loss: Loss, pairs: Ints32 | None, unique: _Unique) -> kernels.Evidence:
    """Pairs suffice for Binder's loss, and take less time than the draws."""
    if pairs is None:
        return kernels.Evidence(unique.index, np.empty((0, 0), np.int32), 0.0)
    if loss == "vi":
        return kernels.Evidence(unique.index, pairs, 0.0)
    none = np.empty(0, np.int64)
    draws = kernels.Draws(np.empty(0, np.int32), none, none, np.empty(0))
    return kernels.Evidence(draws, pairs, 2.0 / (unique.counts.sum() * pairs.size))


class _Valued:
    """Labels -> (expected loss, canonical labels)."""

    def __init__(self, unique: _Unique, f: Floats, a: float) -> None:
        self.unique, self.f, self.a = unique, f, a

    def __call__(self, labels: NDArray[np.int64]) -> tuple[float, Ints32]:
        rows = _canonical_rows(labels[None, :], "labels")
        return self.unique.expected_loss(rows[0], self.f, self.a), rows[0]


def _starts(
    value: _Valued, pairs: Ints32 | None, most: int, restarts: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Starting labels of each search; -1 leaves a node to be placed."""
    draws = value.unique.labels
    n = draws.shape[1]
    n_clusters = draws.max(axis=1) + 1
    allowed = np.flatnonzero(n_clusters <= most)
    affordable = max(16, _RANKING_BUDGET // draws.size)
    if allowed.size > affordable:
        allowed = allowed[np.linspace(0, allowed.size - 1, affordable).astype(int)]
    ranked = sorted((value(draws[b]) for b in allowed), key=lambda pair: pair[0])
    if restarts > 1 and n > 1 and pairs is not None:
        ranked.insert(1, _best_cut(value, pairs, np.minimum(n_clusters, most), most))
    starts: list[NDArray[np.int64]] = []
    while len(starts) < restarts:
        if len(starts) % 4 == 3:
            starts.append(np.full(n, -1, np.int64))
        elif ranked:
            starts.append(ranked.pop(0)[1].astype(np.int64))
        else:
            k = rng.integers(1, min(most, n_clusters.max()) + 1)
            starts.append(rng.integers(0, k, n))
    return starts


def _best_cut(
    value: _Valued, pairs: Ints32, n_clusters: NDArray[Any], most: int
) -> tuple[float, Ints32]:
    """The best level of the tree of average linkage: joins clusters as no node's move can."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n_draws, n = pairs[0, 0], len(pairs)
    tree = linkage(1.0 - pairs[np.triu_indices(n, 1)] / n_draws, "average")
    levels: dict[int, tuple[float, Ints32]] = {}

    def look(at: NDArray[Any]) -> int:
        for k in set(at.astype(int).tolist()) - levels.keys():
            levels[k] = value(fcluster(tree, k, "maxclust"))
        return min(sorted(levels), key=lambda k: levels[k][0])

    grid = np.append(np.geomspace(1, most, 16), np.quantile(n_clusters, [0, 0.25, 0.5, 0.75, 1]))
    k = look(grid)
    below = max((m for m in levels if m < k), default=k)
    above = min((m for m in levels if m > k), default=k)
    return levels[look(np.linspace(below, above, 16))]


def _membership(labels: Ints32, unique: _Unique) -> Floats:
    together, alone = kernels.companions(labels, unique.index)
    size = np.bincount(labels)[labels]
    share = np.where(size > 1, together / np.maximum(size - 1, 1), alone)
    return np.minimum(share, 1.0)  # the weights may sum to a little more than one


def _expected_loss(loss: Loss, labels: ArrayLike, draws: ArrayLike, a: float) -> Any:
    unique = _Unique(_check_draws(draws))
    n = unique.labels.shape[1]
    _check_cost(a)
    f = _terms(loss, n)
    if np.ndim(labels) != 2:
        return unique.expected_loss(_check_labels(labels, "labels", n), f, a)
    rows = _canonical_rows(np.asarray(labels), "labels")
    if rows.shape[1] != n:
        raise ValueError(f"labels has {rows.shape[1]} nodes but draws has {n}; they must agree")
    return np.array([unique.expected_loss(row, f, a) for row in rows])


def _distance(loss: Loss, first: ArrayLike, second: ArrayLike) -> float:
    one = _check_labels(first, "first")
    other = _Unique(_check_labels(second, "second", one.size)[None, :])
    return float(other.losses(one, _terms(loss, one.size), 1.0)[0])


def _check_draws(draws: ArrayLike) -> Ints32:
    given = np.asarray(draws)
    if given.ndim not in (2, 3):
        raise ValueError(
            f"draws must have shape (n_draws, N) or (n_chains, n_draws, N), got {given.shape}; "
            "a single partition is draws[None, :]"
        )
    return _canonical_rows(given, "draws")


def _check_labels(labels: ArrayLike, name: str, n: int | None = None) -> Ints32:
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one partition of shape (N,), got shape {given.shape}")
    if n is not None and given.size != n:
        raise ValueError(f"{name} has {given.size} nodes but {n} are needed; give every node one")
    return _canonical_rows(given[None, :], name)[0]


def _canonical_rows(given: NDArray[Any], name: str) -> Ints32:
    """Validated partitions along the last axis as the rows of a canonical array."""
    if given.ndim == 0 or given.size == 0:
        raise ValueError(
            f"{name} is empty (shape {given.shape}); give at least one draw of at least one node"
        )
    if not np.issubdtype(given.dtype, np.integer):
        raise TypeError(
            f"{name} must hold integers, got dtype {given.dtype}; convert by {name}.astype(int)"
        )
    if given.min() < 0:
        where = tuple(int(i) for i in np.unravel_index(given.argmin(), given.shape))
        raise ValueError(
            f"{name}{list(where)} is {given.min()}: labels must not be negative; shift them by "
            f"{name} - {name}.min()"
        )
    rows = np.ascontiguousarray(given.reshape(-1, given.shape[-1]))
    n_values = int(rows.max()) + 1
    if n_values > 4 * rows.shape[1] + 1024:  # too wide for a table of labels
        values, inverse = np.unique(rows, return_inverse=True)
        rows, n_values = inverse.reshape(rows.shape), values.size
    out: Ints32 = kernels.canonical_rows(rows.astype(np.int64, copy=False), n_values)
    return out


def _check_loss(loss: str) -> None:
    if loss not in ("vi", "binder"):
        raise ValueError(f'loss must be "vi" or "binder", got {loss!r}')


def _check_cost(a: float) -> None:
    if not 0.0 < a < 2.0:
        raise ValueError(f"a must lie between 0 and 2 (both excluded), got {a!r}; 1 is symmetric")


def _check_count(value: int, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)
