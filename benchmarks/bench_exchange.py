"""β of the Potts model by the exchange algorithm: what it costs, how far off it is, where it lands.

    python -m benchmarks.bench_exchange

The auxiliary labelings are drawn by Swendsen–Wang sweeps, of which there can be too few. How many
are enough is measured on a graph that can be enumerated and on that of Example 1, whose normaliser
comes from thermodynamic integration, ``ln Z(β) = ln Z(0) + ∫ E[S]``, by long runs.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from chains import Chain, make_chain
from scipy.interpolate import PchipInterpolator
from scipy.special import logsumexp

from benchmarks._measure import print_table, processor_seconds
from onlooker import Problem, sample
from onlooker.checks import Array
from onlooker.hyper import Gamma
from onlooker.metrics import circular_emd
from onlooker.partitions import GaussianDecay, Potts
from onlooker.partitions.geometry import Geometry, Similarity
from onlooker.partitions.potts.exchange import Exchange, agreement, edges_of, swendsen_wang
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion

PRIOR = Gamma(2.0, 2.0)
BETAS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6)
GRID = np.concatenate([np.arange(0, 0.8, 0.04), np.arange(0.8, 1.2, 0.01), np.arange(1.2, 3, 0.04)])


class FromRandomLabels(Exchange):
    """The auxiliary chain starts at random."""

    def log_likelihood_ratio(
        self, beta: float, candidate: float, labels: Array, rng: np.random.Generator
    ) -> float:
        """As usual, but for the start."""
        start = rng.integers(self.n_clusters, size=len(labels), dtype=np.int32)
        drawn = swendsen_wang(start, self.edges, candidate, self.n_clusters, self.sweeps, rng)
        return (candidate - beta) * (agreement(labels, self.edges) - drawn)


class FromTheLast(Exchange):
    """The auxiliary chain starts where the last one ended."""

    last: Array | None = None

    def log_likelihood_ratio(
        self, beta: float, candidate: float, labels: Array, rng: np.random.Generator
    ) -> float:
        """As usual, but for the start."""
        self.last = labels.copy() if self.last is None else self.last
        drawn = swendsen_wang(self.last, self.edges, candidate, self.n_clusters, self.sweeps, rng)
        return (candidate - beta) * (agreement(labels, self.edges) - drawn)


def draws_given_labels(exchange: Exchange, labels: Array, start: float, steps: int) -> Array:
    """Draws of β, each of them a step."""
    exchange.rate = 1.0
    rng, beta, found = np.random.default_rng(0), start, np.empty(steps)
    for s in range(steps):
        found[s] = beta = exchange.draw(beta, labels, rng)
    return found[steps // 10 :]


def moments(log_z: Callable[[Array], Array], s: float) -> tuple[float, float]:
    """Mean and standard deviation of β given labels of agreement `s`."""
    values = np.linspace(1e-3, 2.9, 20_000)
    log_p = values * s - log_z(values) + np.array([PRIOR.logpdf(v) for v in values])
    p = np.exp(log_p - logsumexp(log_p))
    mean = float(p @ values)
    return mean, float(np.sqrt(p @ (values - mean) ** 2))


def row(name: str, found: Array, mean: float, sd: float) -> list[object]:
    """How far draws are off, in units of the right standard deviation."""
    changed = np.mean(np.diff(found) != 0)
    shift, spread = (found.mean() - mean) / sd, found.std() / sd
    return [name, f"{found.mean():.3f}", f"{shift:+.2f}", f"{spread:.2f}", f"{changed:.2f}"]


def on_a_tiny_graph(steps: int) -> list[list[object]]:
    """Seven nodes, three labels: all of Z enumerated."""
    states = np.random.default_rng(2).uniform(0, 2, size=(7, 2))
    graph = Geometry(states).similarity(GaussianDecay(3.0))
    edges, labels = edges_of(graph), np.array([0, 0, 0, 0, 0, 1, 1], dtype=np.int32)
    every = np.array([agreement(np.array(z), edges) for z in itertools.product(range(3), repeat=7)])
    mean, sd = moments(lambda b: logsumexp(np.outer(b, every), axis=1), agreement(labels, edges))
    rows: list[list[object]] = [["enumerated", f"{mean:.3f}", "0", "1", ""]]
    for sweeps in (1, 2, 5, 10, 50):
        found = draws_given_labels(Exchange(graph, 3, PRIOR, sweeps), labels, mean, steps)
        rows.append(row(f"{sweeps} sweeps", found, mean, sd))
    return rows


def integrated(graph: Similarity, n_labels: int, sweeps: int) -> PchipInterpolator:
    """``ln Z(β) - ln Z(0)`` by long runs along a grid of β."""
    edges, rng = edges_of(graph), np.random.default_rng(5)
    labels = rng.integers(n_labels, size=graph.n_nodes, dtype=np.int32)
    mean = []
    for beta in GRID:
        swendsen_wang(labels, edges, beta, n_labels, 200, rng)
        drawn = [swendsen_wang(labels, edges, beta, n_labels, 1, rng) for _ in range(sweeps)]
        mean.append(np.mean(drawn))
    return PchipInterpolator(GRID, mean).antiderivative()


def example(seed: int) -> Problem:
    """Ten trajectories of a hundred states."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=seed)
    return Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])


def chain_of(problem: Problem, prior: Potts, sweeps: int) -> Chain:
    """A chain past its first sweeps."""
    rng = np.random.default_rng(1)
    chain = make_chain(problem, prior, rng=rng)
    for _ in range(sweeps):
        chain.sweep()
    return chain


def on_example_1(steps: int, long: int) -> list[list[object]]:
    """Given labels of a chain at β = 1, N = 1,000, K = 8, the 8 nearest neighbours."""
    chain = chain_of(example(0), Potts(8, beta=1.0), 1_000)
    graph, labels = chain.partition.graph, chain.state.labels  # type: ignore[attr-defined]
    mean, sd = moments(integrated(graph, 8, long), agreement(labels, edges_of(graph)))
    rows: list[list[object]] = [[f"integrated (sd {sd:.3f})", f"{mean:.3f}", "0", "1", ""]]
    for name, kind, lengths in (
        ("from z", Exchange, (5, 20, 50, 100)),
        ("from the last", FromTheLast, (20, 50)),
        ("from random labels", FromRandomLabels, (20, 50)),
    ):
        for sweeps in lengths:
            found = draws_given_labels(kind(graph, 8, PRIOR, sweeps), labels, 1.0, steps)
            rows.append(row(f"{sweeps} sweeps {name}", found, mean, sd))
    return rows


def cost() -> float:
    """What inferring β adds to a sweep of Example 1, as a share of it."""
    chain = chain_of(example(0), Potts(8, beta=1.05), 300)
    graph, labels = chain.partition.graph, chain.state.labels  # type: ignore[attr-defined]
    exchange = Exchange(graph, 8, PRIOR, 50)
    share, exchange.rate = exchange.rate, 1.0
    step = partial(exchange.draw, 1.05, labels, np.random.default_rng(0))
    return share * processor_seconds(step, 200) / processor_seconds(chain.sweep, 500)


def where_it_lands(data_sets: int, draws: int) -> list[list[object]]:
    """The posterior of β on simulated data sets."""
    rows: list[list[object]] = []
    for seed in range(data_sets):
        posterior = sample(
            example(seed),
            Potts(8, beta=PRIOR),
            draws=draws,
            tune=draws,
            chains=2,
            random_state=seed,
            progress=False,
            n_jobs=1,
        )
        found = posterior.summary().loc["beta"]
        interval = f"{found['q5']:.3f} – {found['q95']:.3f}"
        rows.append([seed, f"{found['mean']:.3f}", interval, f"{found['r_hat']:.3f}"])
    return rows


def against_a_sweep(data_sets: int, draws: int) -> list[list[object]]:
    """Error of the policy where β is inferred, and where it is fixed: one row a β."""
    world = CircularMotion()

    def error(seed: int, beta: float | Gamma) -> float:
        problem = example(seed)
        posterior = sample(
            problem,
            Potts(8, beta=beta),
            draws=draws,
            tune=draws,
            chains=2,
            random_state=seed,
            progress=False,
        )
        return float(circular_emd(world.policy(problem.states), posterior.policy()).mean())

    rows: list[list[object]] = []
    for beta in (*BETAS, PRIOR):
        errors = [error(seed, beta) for seed in range(data_sets)]
        name = "inferred" if isinstance(beta, Gamma) else f"{beta:g}"
        rows.append([name, f"{np.mean(errors):.3f}", *(f"{one:.3f}" for one in errors)])
    return rows


def main(quick: bool = False) -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")  # chains this short have not converged in everything
    header = ["auxiliary labelings", "mean of β", "off by, sd", "sd, ratio", "moved"]
    print_table(
        "β given labels, 7 nodes, 3 clusters", header, on_a_tiny_graph(5_000 if quick else 40_000)
    )
    print_table(
        "β given labels, Example 1",
        header,
        on_example_1(300 if quick else 3_000, 100 if quick else 1_000),
    )
    print(f"\nInferring β adds {cost():.0%} to a sweep of Example 1.")
    print_table(
        "β on Example 1 (prior Gamma(2, 2), K = 8, α = 1)",
        ["data set", "mean", "90 % interval", "R-hat"],
        where_it_lands(2 if quick else 6, 300 if quick else 2_000),
    )
    n = 2 if quick else 6
    print_table(
        "Error of the policy on Example 1, rad",
        ["β", "mean", *(f"data set {seed}" for seed in range(n))],
        against_a_sweep(n, 100 if quick else 600),
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
