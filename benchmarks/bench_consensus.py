"""Time and memory of the consensus of many draws.

    python -m benchmarks consensus

Draws come in two kinds. "map": nodes in the plane belong to the nearest of K centres, and each draw
moves the centres a little, so that only borders are uncertain, as in a posterior over controllers.
"noise": each draw misplaces a tenth of all nodes at random, which no sampler is likely to do.
Compilation is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import print_table
from onlooker.consensus import co_clustering, consensus, credible_ball

Ints = NDArray[np.int64]


def map_draws(n_draws: int, n: int, k: int, rng: np.random.Generator) -> Ints:
    """Nearest of k centres that move from draw to draw."""
    nodes, centres = rng.random((n, 2)), rng.random((k, 2))
    draws = np.empty((n_draws, n), np.int64)
    for row in draws:
        moved = centres + rng.normal(0.0, 0.1 / np.sqrt(k), (k, 2))
        row[:] = ((nodes[:, None] - moved) ** 2).sum(axis=2).argmin(axis=1)
    return draws


def noise_draws(n_draws: int, n: int, k: int, rng: np.random.Generator) -> Ints:
    """One partition into k clusters, a tenth of whose nodes go astray in each draw."""
    draws = np.tile(rng.integers(0, k, n), (n_draws, 1))
    astray = rng.random(draws.shape) < 0.1
    draws[astray] = rng.integers(0, k, astray.sum())
    return draws


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """The result, and the least processor time of all threads."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        result = work()
        times.append(time.process_time() - began)
    return result, min(times)


def row_of(kind: str, n_draws: int, n: int, k: int, repeats: int) -> list[object]:
    """One row of the table."""
    make = {"map": map_draws, "noise": noise_draws}[kind]
    draws = make(n_draws, n, k, np.random.default_rng(0))
    found, vi = timed(lambda: consensus(draws, "vi", random_state=0), repeats)
    _, binder = timed(lambda: consensus(draws, "binder", random_state=0), repeats)
    _, together = timed(lambda: co_clustering(draws), repeats)
    _, ball = timed(lambda: credible_ball(draws[0], draws), repeats)
    return [
        f"{kind}, {n_draws:,} × {n:,}",
        k,
        *(f"{seconds:.2f}" for seconds in (vi, binder, together, ball)),
        found.n_clusters,
        f"{found.n_agreeing} of {found.n_restarts}",
    ]


def main(quick: bool = False) -> None:
    """Print the table."""
    warm = noise_draws(5, 20, 3, np.random.default_rng(0))
    for loss in ("vi", "binder"):
        credible_ball(consensus(warm, loss, random_state=0).labels, warm)
    co_clustering(warm)
    sizes = (10,) if quick else (10, 30, 100)
    n = 200 if quick else 1_000
    rows = [row_of(kind, n, n, k, 2) for kind in ("map", "noise") for k in sizes]
    if not quick:
        rows.append(row_of("map", 2_000, 5_000, 30, 1))
    print_table(
        "Consensus of many draws, processor seconds",
        [
            "draws × nodes",
            "K",
            "VI",
            "Binder",
            "co-clustering",
            "credible ball",
            "clusters by VI",
            "searches that agree",
        ],
        rows,
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
