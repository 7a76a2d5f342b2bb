"""Cost of a sweep of the finite models: against the plain twin, with size, in memory.

python -m benchmarks.bench_sweeps
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks._measure import (
    TESTS,
    in_fresh_process,
    peak_memory,
    print_table,
    processor_seconds,
)
from onlooker import Problem
from onlooker.inference.chain import Chain
from onlooker.partitions import ChineseRestaurant, Mixing, PartitionPrior, Potts, Uniform


def random_problem(
    n_nodes: int, n_transitions: int, n_actions: int, rng: np.random.Generator
) -> Problem:
    """Transitions at random nodes, with likelihoods that tell actions apart but leave doubt."""
    node_of = np.arange(n_transitions) % n_nodes
    loglik = rng.normal(scale=1.5, size=(n_transitions, n_actions))
    return Problem(node_of, loglik, rng.uniform(0, 10, size=(n_nodes, 2)))


def make_chain(problem: Problem, prior: PartitionPrior, **scheme: bool) -> Chain:
    """A chain past its first sweeps."""
    options = {"collapsed": True, **scheme}
    chain = Chain(
        problem, prior.sampler(problem), alpha=1.0, rng=np.random.default_rng(0), **options
    )
    for _ in range(3):
        chain.sweep()
    return chain


def against_the_twin() -> list[list[object]]:
    """M = 1,000 transitions, A = 24, K = 8: kernel against plain Python, same draws."""
    sys.path.insert(0, str(TESTS))
    import naive

    problem = random_problem(1_000, 1_000, 24, np.random.default_rng(0))
    cases = {
        "mixing, q integrated out": (Mixing(8), naive.mixing_prior(1.0, 8), 0.0),
        "uniform": (Uniform(8), naive.uniform_prior, 0.0),
        "CRP": (ChineseRestaurant(1.0), naive.crp_prior, 1.0),
    }
    rows: list[list[object]] = []
    for name, (prior, log_prior, gamma) in cases.items():
        chain = make_chain(problem, prior)
        first, state = chain.data.first, chain.state.copy()
        twin = naive.Naive(
            chain.data.likelihood,
            [range(first[i], first[i + 1]) for i in range(problem.n_nodes)],
            state.actions,
            state.labels,
            1.0,
            state.rng,
            clusters=state.arrays["slots"][: state.arrays["n_slots"][0]],
        )

        def plain(twin: naive.Naive = twin, log_prior=log_prior, gamma: float = gamma) -> None:  # type: ignore[no-untyped-def]
            twin.collapsed_actions()
            twin.update_indicators(log_prior, gamma=gamma)

        fast = processor_seconds(chain.sweep, 200)
        slow = processor_seconds(plain, 3)
        rows.append([name, f"{fast * 1e3:.3f}", f"{slow * 1e3:.0f}", f"{slow / fast:.0f}×"])
    return rows


def growth(quick: bool) -> list[list[object]]:
    """Cost a transition as M grows, at 100 transitions a node and A = 8."""
    rows: list[list[object]] = []
    base = None
    for n_transitions in (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        problem = random_problem(n_transitions // 100, n_transitions, 8, np.random.default_rng(0))
        chain = make_chain(problem, Mixing(8))
        cost = processor_seconds(chain.sweep, max(3, 200_000 // n_transitions)) / n_transitions
        base = base or cost
        rows.append([f"{n_transitions:,}", f"{cost * 1e9:.0f}", f"{cost / base:.2f}×"])
    return rows


def memory_of_a_million() -> float:
    """Peak memory, in GB, of a process that samples M = 1,000,000 transitions."""
    return float(in_fresh_process("benchmarks.bench_sweeps", "--memory")["memory"])


def _memory() -> None:
    problem = random_problem(10_000, 1_000_000, 8, np.random.default_rng(0))
    chain = make_chain(problem, Mixing(8))
    chain.sweep()
    print(json.dumps({"memory": peak_memory()}))


def start_up() -> list[list[object]]:
    """Seconds of wall time from nothing, in processes of their own; the best of five."""
    first_sweep = (
        "import numpy as np; from onlooker import Problem; from onlooker.partitions import Mixing; "
        "from onlooker.inference.chain import Chain; "
        "p = Problem(np.arange(50), np.random.default_rng(0).normal(size=(50, 4))); "
        "Chain(p, Mixing(3).sampler(p), alpha=1.0, collapsed=True).sweep()"
    )
    rows: list[list[object]] = []
    for name, code in {
        "an empty process": "",
        "import numpy, scipy": "import numpy, scipy",
        "import onlooker": "import onlooker",
        "to the first sweep, kernels cached": first_sweep,
    }.items():
        times = []
        for _ in range(6):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        rows.append([name, f"{min(times[1:]):.2f}"])
    return rows


def potts_against_neighbours() -> list[list[object]]:
    """What a neighbourhood costs: Potts with 8 neighbours and over all pairs."""
    problem = random_problem(1_000, 1_000, 24, np.random.default_rng(0))
    rows: list[list[object]] = []
    base = processor_seconds(make_chain(problem, Mixing(8)).sweep, 100)
    for name, n_neighbors in {"8 neighbours": 8, "all pairs": None}.items():
        chain = make_chain(problem, Potts(8, n_neighbors=n_neighbors))
        cost = processor_seconds(chain.sweep, 100)
        rows.append([name, f"{cost * 1e3:.3f}", f"{cost / base:.1f}×"])
    return rows


def main(quick: bool = False) -> None:
    """Print all tables."""
    print_table(
        "A collapsed sweep against its plain-Python twin (M = 1,000, A = 24, K = 8)",
        ["model", "kernel, ms", "twin, ms", "ratio"],
        against_the_twin(),
    )
    print_table(
        "Cost a transition (100 transitions a node, A = 8, K = 8)",
        ["transitions", "ns a transition", "against 1,000"],
        growth(quick),
    )
    print_table(
        "Potts (N = M = 1,000)", ["graph", "ms a sweep", "of mixing"], potts_against_neighbours()
    )
    print_table("From nothing", ["until", "seconds"], start_up())
    if not quick:
        print(f"\nPeak memory at 1,000,000 transitions: {memory_of_a_million():.2f} GB")


if __name__ == "__main__":
    if "--memory" in sys.argv:
        _memory()
    else:
        main("--quick" in sys.argv)
