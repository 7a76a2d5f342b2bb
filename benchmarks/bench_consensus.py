"""Time and memory of the consensus of many draws.

    python benchmarks/bench_consensus.py            # 1,000 draws of 1,000 nodes
    python benchmarks/bench_consensus.py --large    # 2,000 draws of 5,000 nodes as well

Draws come in two kinds. "map": nodes in the plane belong to the nearest of K centres, and each draw
moves the centres a little, so that only borders are uncertain, as in a posterior over controllers.
"noise": each draw misplaces a tenth of all nodes at random, which no sampler is likely to do.
Compilation is left out; wall and processor time are both given, since they part on a busy machine.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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


def timed(work: Callable[[], object]) -> tuple[object, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def measure(kind: str, n_draws: int, n: int, k: int, repeats: int) -> None:
    make = {"map": map_draws, "noise": noise_draws}[kind]
    draws = make(n_draws, n, k, np.random.default_rng(0))
    tasks: dict[str, Callable[[], object]] = {
        "consensus vi": lambda: consensus(draws, "vi", random_state=0),
        "consensus binder": lambda: consensus(draws, "binder", random_state=0),
        "co_clustering": lambda: co_clustering(draws),
        "credible_ball": lambda: credible_ball(draws[0], draws),
    }
    for name, work in tasks.items():
        runs = [timed(work) for _ in range(repeats)]
        wall, processor = min(r[1] for r in runs), min(r[2] for r in runs)
        found = runs[0][0]
        note = ""
        if name.startswith("consensus"):
            note = (
                f"{found.n_clusters:4d} clusters, loss {found.expected_loss:.5f}, "  # type: ignore[attr-defined]
                f"{found.n_agreeing}/{found.n_restarts} searches agree"  # type: ignore[attr-defined]
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{kind:5s} {n_draws:5d} x {n:5d}, K = {k:3d}  {name:16s} "
            f"wall {wall:7.2f} s  cpu {processor:7.2f} s  peak {peak:5.0f} MB  {note}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--large", action="store_true", help="2,000 draws of 5,000 nodes as well")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many is given")
    options = parser.parse_args()
    warm = noise_draws(5, 20, 3, np.random.default_rng(0))
    credible_ball(consensus(warm, random_state=0).labels, warm)
    co_clustering(warm)
    for kind in ("map", "noise"):
        for k in (10, 30, 100, 300):
            measure(kind, 1000, 1000, k, options.repeats)
    if options.large:
        for k in (10, 30):
            measure("map", 2000, 5000, k, 1)


if __name__ == "__main__":
    main()
