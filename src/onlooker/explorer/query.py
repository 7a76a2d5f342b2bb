"""Questions about one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker._validation import Array
from onlooker.explorer.study import LEVEL, Study


def at_state(study: Study, state: Any) -> dict[str, Any]:
    """The policy at any state with its interval, and the clusters it may join.

    `state` is an integer, or the coordinates of a real state.
    """
    posterior = study.posterior
    queries, node = posterior._place([state])
    rule = posterior._rule(None, None)
    predictor = posterior._predictor
    mean = posterior._at_nodes[node] if node[0] >= 0 else predictor.elsewhere(queries, rule)
    values = np.empty((len(study.labels), posterior.problem.n_actions))
    chosen = np.empty(len(study.labels), dtype=np.int64)
    for number, clusters in enumerate(predictor.blocks()):
        rng = np.random.default_rng([posterior.plan.seed, number])
        rows = predictor._draw_rows(clusters, queries, node, rule, rng)[:, 0]
        alpha = clusters.hyper["alpha"][:, None]
        theta = rng.standard_gamma(clusters.counts[rows] + alpha)
        total = theta.sum(axis=1, keepdims=True)
        # all of them may underflow where α is tiny: then the likeliest action has it all
        sure = clusters.policy[rows] == clusters.policy[rows].max(axis=1, keepdims=True)
        values[clusters.index] = np.where(total > 0, theta / np.where(total > 0, total, 1), sure)
        chosen[clusters.index] = rows - clusters.first[:-1]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    return {
        "state": np.asarray(queries[0]).tolist(),
        "node": int(node[0]),
        "mean": mean[0].tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "level": LEVEL,
        "candidates": _candidates(study, chosen),
    }


def _candidates(study: Study, chosen: Array) -> list[dict[str, Any]]:
    """In how many draws the state is in a cluster named after each of the reference."""
    names = study.names()
    n_used = np.diff(names.first)
    new = chosen >= n_used
    rows = names.first[:-1] + np.minimum(chosen, n_used - 1)
    parents = np.where(new, -1, names.parents[rows])
    values, counts = np.unique(parents, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    share = counts / counts.sum()
    return [{"cluster": int(values[k]), "share": float(share[k])} for k in order]


def warm_up(study: Study) -> None:
    """Ask once, so that the first click finds every kernel loaded."""
    states = study.posterior.problem.states
    at_state(study, states[0].tolist())
    if states.ndim == 2:  # a place that is no node
        at_state(study, (states.mean(axis=0) + 1e-3 * states.std(axis=0) + 1e-9).tolist())
    study.names()


def shares_at_nodes(study: Study, n: int) -> tuple[Array, Array]:
    """``(N, n)``: the likeliest clusters of every node, named after the reference, and how likely.

    Places that are not needed have a share of 0.
    """
    names = study.names()
    n_nodes, k = len(names.reference), names.n_reference
    counts = np.zeros((n_nodes, k), dtype=np.int32)
    parents = names.parents
    at = np.arange(n_nodes)
    for b, labels in enumerate(names.labels):
        counts[at, parents[names.first[b] + labels]] += 1
    n = min(n, k)
    likely = np.argsort(-counts, axis=1, kind="stable")[:, :n]
    return likely, np.take_along_axis(counts, likely, axis=1) / len(names.labels)
