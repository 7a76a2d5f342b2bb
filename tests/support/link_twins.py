"""Chains of linked nodes, and their plain-Python twins."""

import numpy as np
from chains import make_chain
from naive_links import NaiveLinks

from onlooker import Problem
from onlooker.partitions import DistanceDependent

ALPHA = 0.6


def make_problem(seed, n_nodes=30, n_transitions=70, n_actions=5):
    """Random transitions: some nodes with many, some with one, some with none."""
    rng = np.random.default_rng(seed)
    node_of = rng.integers(n_nodes, size=n_transitions)
    loglik = rng.normal(scale=2.0, size=(n_transitions, n_actions))
    loglik[rng.random(loglik.shape) < 0.2] = -np.inf
    loglik[:, 0] = 0.0
    return Problem(node_of, loglik, rng.uniform(0, 4, size=(n_nodes, 2)))


def link_chain(seed, start, **parameters):
    problem = make_problem(seed)
    prior = DistanceDependent(0.3, start=start, reassign=1, **parameters)
    rng = np.random.default_rng(seed + 1000)
    return make_chain(problem, prior, alpha=ALPHA, rng=rng)


def link_twin(chain):
    graph = chain.bound.similarities.similarity
    rows = [slice(a, b) for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]
    near = [
        list(zip(graph.indices[r].tolist(), graph.weights[r].tolist(), strict=True)) for r in rows
    ]
    state = chain.state.copy()
    twin = NaiveLinks(state.partition.link, state.counts.node, near, graph.offset, ALPHA, state.rng)
    twin.list_in_links()
    return twin
