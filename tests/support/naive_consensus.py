"""Slow, readable twins of the consensus kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log2


def set_partitions(n: int) -> Iterator[list[int]]:
    """All partitions of n nodes, as restricted growth strings."""

    def grow(prefix: list[int]) -> Iterator[list[int]]:
        if len(prefix) == n:
            yield list(prefix)
            return
        for k in range(max(prefix, default=-1) + 2):
            yield from grow([*prefix, k])

    return grow([])


def conditional_entropy(of: Sequence[int], given: Sequence[int]) -> float:
    """H(of | given) in bits."""
    n = len(of)
    both, condition = Counter(zip(of, given, strict=True)), Counter(given)
    return -sum(m / n * log2(m / condition[g]) for (_, g), m in both.items())


def vi(labels: Sequence[int], draw: Sequence[int]) -> float:
    return conditional_entropy(labels, draw) + conditional_entropy(draw, labels)


def binder(labels: Sequence[int], draw: Sequence[int]) -> float:
    total = 0.0
    for i, j in combinations(range(len(labels)), 2):
        here, there = labels[i] == labels[j], draw[i] == draw[j]
        total += here != there
    return 2 * total / len(labels) ** 2


DISTANCES = {"vi": vi, "binder": binder}


def expected_loss(loss: str, labels: Sequence[int], draws: Sequence[Sequence[int]]) -> float:
    return sum(DISTANCES[loss](labels, draw) for draw in draws) / len(draws)


def least_loss(loss: str, draws: Sequence[Sequence[int]], max_clusters: int | None = None) -> float:
    """The minimum over every partition there is."""
    n = len(draws[0])
    return min(
        expected_loss(loss, labels, draws)
        for labels in set_partitions(n)
        if max_clusters is None or max(labels) < max_clusters
    )


def co_clustering(draws: Sequence[Sequence[int]]) -> list[list[float]]:
    n = len(draws[0])
    return [
        [sum(draw[i] == draw[j] for draw in draws) / len(draws) for j in range(n)] for i in range(n)
    ]


def canonical(labels: Sequence[int]) -> list[int]:
    """Clusters by decreasing size, ties by first appearance."""
    size = Counter(labels)
    order = sorted(size, key=lambda k: (-size[k], labels.index(k)))
    return [order.index(k) for k in labels]


def membership(labels: Sequence[int], draws: Sequence[Sequence[int]]) -> list[float]:
    together = co_clustering(draws)
    out = []
    for i, own in enumerate(labels):
        others = [j for j, k in enumerate(labels) if k == own and j != i]
        if others:
            out.append(sum(together[i][j] for j in others) / len(others))
        else:
            out.append(sum(Counter(draw)[draw[i]] == 1 for draw in draws) / len(draws))
    return out


def placement_costs(
    loss: str, i: int, labels: Sequence[int], draws: Sequence[Sequence[int]], width: int
) -> list[float]:
    """Expected loss with node i in each cluster, less that with node i alone."""

    def at(k: int) -> float:
        return expected_loss(loss, [*labels[:i], k, *labels[i + 1 :]], draws)

    return [at(k) - at(width) for k in range(width)]
