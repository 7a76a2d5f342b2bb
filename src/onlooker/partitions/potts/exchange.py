"""β of the Potts model: the exchange algorithm with Swendsen–Wang auxiliary draws.

The normaliser of ``p(z | β) = exp(β S(z)) / Z(β)``, ``S(z) = Σ_{i<j} w_ij δ(z_i, z_j)``, is out of
reach. The exchange algorithm (Murray, Ghahramani and MacKay 2006) proposes β′, draws a labeling z′
from the model at β′ and accepts with

    exp{(β′ - β) (S(z) - S(z′))} · p(β′) / p(β) · q(β | β′) / q(β′ | β),

where the normalisers cancel. The labeling z′ comes from a Swendsen–Wang chain that starts at z:
the target is exact if that chain has forgotten its start, and the error falls with its length.
Starting at z is the best of what was tried (`benchmarks/bench_exchange.py`): β settles where
typical labelings have about the agreement of z, so that there is little to forget.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.hyper import Prior
from onlooker.partitions.geometry import Similarity


class Edges(NamedTuple):
    """The pairs ``i < j`` that attract each other."""

    tail: Array
    head: Array
    weight: Array


def edges_of(graph: Similarity) -> Edges:
    """Each pair of a symmetric graph once; there must be no constant similarity."""
    row = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), np.diff(graph.indptr))
    once = (row < graph.indices) & (graph.weights > 0)
    return Edges(row[once], graph.indices[once], graph.weights[once])


@njit(cache=True, nogil=True, error_model="numpy")
def agreement(labels: Array, edges: Edges) -> float:
    """``S(z)``: the total weight of the pairs with equal labels."""
    total = 0.0
    for e in range(len(edges.weight)):
        if labels[edges.tail[e]] == labels[edges.head[e]]:
            total += edges.weight[e]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _root(parent: Array, i: int) -> int:
    """The first node of i's component; halves the path to it on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True, error_model="numpy")
def swendsen_wang(
    labels: Array,
    edges: Edges,
    beta: float,
    n_labels: int,
    sweeps: int,
    rng: np.random.Generator,
) -> float:
    """Draw labels anew from the Potts model, `sweeps` times; returns their ``S(z)``.

    A sweep bonds each pair of equal labels with probability ``1 - exp(-β w_ij)`` and gives every
    component of the bonds a label at random.
    """
    n_nodes = len(labels)
    parent = np.empty(n_nodes, dtype=np.int32)
    for _ in range(sweeps):
        for i in range(n_nodes):
            parent[i] = i
        for e in range(len(edges.weight)):
            i, j = edges.tail[e], edges.head[e]
            if labels[i] == labels[j] and rng.standard_exponential() < beta * edges.weight[e]:
                a, b = _root(parent, i), _root(parent, j)
                if a < b:
                    parent[b] = a
                else:
                    parent[a] = b
        for i in range(n_nodes):
            root = _root(parent, i)  # never after i, hence labelled already
            labels[i] = int(rng.random() * n_labels) if root == i else labels[root]
    return agreement(labels, edges)


_SPENT = 2.0  # Swendsen–Wang sweeps for each sweep of the chain, on average: a quarter of its time
_NARROW, _WIDE = 0.25, 5.0  # steps of β, in units of its standard deviation at most, given labels


class Exchange:
    """Draws β given the labels.

    Steps are normal in ``ln β``. Their width is drawn anew each time, from a range that fits the
    graph: no adaptation that would have to end.

    Parameters
    ----------
    graph
        The Potts model's symmetric similarities, without a constant part.
    n_clusters
        K.
    prior
        Of β.
    sweeps
        Swendsen–Wang sweeps for an auxiliary labeling. The longer they take, the less often β is
        drawn, so that the cost stays the same.
    """

    def __init__(self, graph: Similarity, n_clusters: int, prior: Prior, sweeps: int) -> None:
        if graph.offset > 0:
            raise ValueError(
                "beta cannot be inferred while all pairs attract by a constant: set the decay's "
                "offset to 0, or n_neighbors to a number, or fix beta"
            )
        self.edges = edges_of(graph)
        self.n_clusters = n_clusters
        self.prior = prior
        self.sweeps = sweeps
        self.rate = min(1.0, _SPENT / sweeps)
        # Var S at β = 0, where pairs of labels are independent; more than that for most β.
        variance = float(np.sum(self.edges.weight**2)) * (n_clusters - 1) / n_clusters**2
        unit = 1.0 / math.sqrt(1.0 + variance)
        self.widths = (math.log(_NARROW * unit), math.log(min(_WIDE * unit, 1.0)))

    def draw(self, beta: float, labels: Array, rng: np.random.Generator) -> float:
        """Draw β given the labels, or leave it, most of the time."""
        if rng.random() >= self.rate:
            return beta
        step = math.exp(rng.uniform(*self.widths)) * rng.standard_normal()
        candidate = beta * math.exp(step)
        log_prior = self.prior.logpdf(candidate) if 0 < candidate < math.inf else -math.inf
        if log_prior == -math.inf:
            return beta
        gain = self.log_likelihood_ratio(beta, candidate, labels, rng)
        gain += log_prior - self.prior.logpdf(beta) + step  # ln q(β | β′) / q(β′ | β) = ln β′ / β
        return candidate if math.log1p(-rng.random()) < gain else beta

    def log_likelihood_ratio(
        self, beta: float, candidate: float, labels: Array, rng: np.random.Generator
    ) -> float:
        """An estimate of ``ln p(z | β′) / p(z | β)``, ``(β′ - β) (S(z) - S(z′))``."""
        auxiliary = swendsen_wang(
            labels.copy(), self.edges, candidate, self.n_clusters, self.sweeps, rng
        )
        return (candidate - beta) * (agreement(labels, self.edges) - auxiliary)
