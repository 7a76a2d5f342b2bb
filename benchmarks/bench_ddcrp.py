"""The ddCRP's sweep: against the plain twin, as N grows, and with very many transitions.

python -m benchmarks ddcrp
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import naive
import numpy as np
from chains import Chain, make_chain
from naive_links import NaiveLinks

from benchmarks._measure import (
    in_fresh_process,
    keep,
    peak_memory,
    print_table,
    processor_seconds,
)
from benchmarks._models import plane
from onlooker import Problem
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.partitions.ddcrp.bound import shortcuts_for
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion, GridWorld


def chain_of(problem: Problem, prior: DistanceDependent, sweeps: int) -> Chain:
    """A chain past its first sweeps."""
    chain = make_chain(problem, prior, rng=np.random.default_rng(0))
    for _ in range(sweeps):
        chain.sweep()
    return chain


def against_the_twin() -> list[object]:
    """Example 1: N = 1,000, A = 24, all pairs, offset 0.01."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    problem = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])
    chain = chain_of(problem, DistanceDependent(0.024), 50)
    graph = chain.bound.similarities.similarity  # type: ignore[attr-defined]
    near = [
        list(zip(graph.indices[a:b].tolist(), graph.weights[a:b].tolist(), strict=True))
        for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    ]
    state = chain.state.copy()
    links = NaiveLinks(state.partition.link, state.counts.node, near, graph.offset, 1.0, state.rng)
    first = state.data.first
    rest = naive.Naive(
        state.data.likelihood[state.data.row],
        [range(first[i], first[i + 1]) for i in range(problem.n_nodes)],
        state.actions,
        state.labels,
        1.0,
        state.rng,
    )

    def plain() -> None:
        rest.collapsed_actions()
        links.list_in_links()
        links.update_links(0.024)

    fast = processor_seconds(chain.sweep, 200)
    slow = processor_seconds(plain, 1)
    return [f"{fast * 1e3:.2f}", f"{slow:.1f}", f"{slow / fast:,.0f}×"]


def _grow(n_nodes: int) -> None:
    """Measure one size, in a process of its own: as by default, and with one set of short cuts."""
    prior = DistanceDependent(0.1, GaussianDecay(1.0, offset=10 / n_nodes))
    chain = chain_of(plane(n_nodes), prior, 5)
    bound: Any = chain.bound
    repeats = 200 if n_nodes <= 1_000 else 20 if n_nodes <= 10_000 else 3
    cost = processor_seconds(chain.sweep, repeats) / n_nodes
    result = {
        "n": n_nodes,
        "cost": cost,
        "memory": peak_memory(),
        "clusters": chain.n_controllers,
        "neighbours": len(bound.similarities.similarity.indices) / n_nodes,
    }
    chain.updates[-1].shortcuts = shortcuts_for(1_000_000)  # type: ignore[attr-defined]
    result["same"] = processor_seconds(chain.sweep, repeats) / n_nodes
    print(json.dumps(result))


def growth(sizes: list[int]) -> list[dict[str, float]]:
    """Cost a node at constant density, the offset scaled as 1/N."""
    return [in_fresh_process("benchmarks.bench_ddcrp", "--grow", str(n)) for n in sizes]


def growth_rows(found: list[dict[str, float]]) -> list[list[object]]:
    """The same as rows of a table."""
    base, same = found[0]["cost"], found[0]["same"]
    return [
        [
            f"{one['n']:,}",
            f"{one['cost'] * 1e6:.2f}",
            f"{one['cost'] / base:.2f}×",
            f"{one['same'] / same:.2f}×",
            f"{one['memory']:.2f}",
            f"{one['clusters']:,}",
            f"{one['neighbours']:.0f}",
        ]
        for one in found
    ]


def very_many_transitions() -> list[object]:
    """The finite case: 441 nodes and a million transitions, against `np.exp` of the matrix."""
    world = GridWorld()
    demos, _ = world.rollout(100_000, 11, random_state=0)
    problem = Problem.from_demonstrations(
        demos, world.dynamics, nodes="all", repertoire=[Actions()]
    )
    prior = DistanceDependent(0.1, coordinates=world.coordinates)
    chain = chain_of(problem, prior, 5)
    loglik = np.maximum(problem.loglik, -700.0)
    sweep = processor_seconds(chain.sweep, 12)
    exp = processor_seconds(lambda: np.exp(loglik), 12)
    sweep = min(sweep, processor_seconds(chain.sweep, 12))
    return [
        f"{problem.n_transitions:,}",
        f"{sweep * 1e3:.1f}",
        f"{exp * 1e3:.1f}",
        f"{sweep / exp:.2f}",
    ]


def main(quick: bool = False) -> None:
    """Print all tables."""
    print_table(
        "441 nodes and very many transitions (A = 8)",
        ["transitions", "sweep, ms", "np.exp(loglik), ms", "sweep in calls of np.exp"],
        [very_many_transitions()],
    )
    sizes = [1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    found = growth(sizes)
    print_table(
        "Cost at constant density, all pairs, offset ∝ 1/N (A = 8)",
        [
            "nodes",
            "µs a node",
            "against 1,000",
            "large-N short cuts at both ends",
            "peak memory, GB",
            "clusters",
            "neighbours",
        ],
        growth_rows(found),
    )
    keep("growth", found)
    print_table(
        "A sweep of Example 1 against its plain-Python twin (N = 1,000, A = 24, all pairs)",
        ["kernel, ms", "twin, s", "ratio"],
        [against_the_twin()],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out N = 1,000,000")
    parser.add_argument("--grow", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.grow:
        _grow(arguments.grow)
    else:
        main(arguments.quick)
