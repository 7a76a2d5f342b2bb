"""Questions about one place."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.explorer.study import LEVEL, Study
from onlooker.prediction.predictor import Clusters

_MOST_COUNTED = 4_000_000  # numbers held at a time
_FEWEST = 1000  # controllers drawn at least for an interval


def at_state(study: Study, state: Any) -> dict[str, Any]:
    """The policy at any state with its interval, and the clusters it may join.

    `state` is an integer, or the coordinates of a real state.
    """
    posterior = study.posterior
    queries, node = posterior._place([state])
    rule = posterior._rule(None, None)
    predictor = posterior._predictor
    n_draws, n_actions = len(study.labels), posterior.problem.n_actions
    values = np.empty((-(-_FEWEST // n_draws), n_draws, n_actions))
    mean = np.zeros(n_actions)
    chosen = np.empty(n_draws, dtype=np.int64)
    for number, clusters in enumerate(predictor.blocks()):
        rng = np.random.default_rng([posterior.plan.seed, number])
        for repeat in values:
            rows = predictor._draw_rows(clusters, queries, node, rule, rng)[:, 0]
            repeat[clusters.index] = _thetas(clusters, rows, rng)
        mean += clusters.policy[rows].sum(axis=0) / n_draws
        chosen[clusters.index] = rows - clusters.first[:-1]
    if node[0] < 0 and rule.strategy != "map":  # clusters were drawn: their mixture is exact
        mean = predictor.elsewhere(queries, rule)[0]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values.reshape(-1, n_actions), [tail, 1 - tail], axis=0)
    return {
        "state": np.asarray(queries[0]).tolist(),
        "node": int(node[0]),
        "mean": mean.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "level": LEVEL,
        "candidates": _candidates(study, chosen),
    }


def _thetas(clusters: Clusters, rows: Array, rng: np.random.Generator) -> Array:
    """``θ ~ Dir(ξ + α)`` of one cluster a draw."""
    drawn = rng.standard_gamma(clusters.counts[rows] + clusters.alpha[rows, None])
    total = drawn.sum(axis=1, keepdims=True)
    # all of them may underflow where α is tiny: then one action has it all
    gone = np.flatnonzero(total[:, 0] == 0)
    likely = clusters.policy[rows[gone]].argmax(axis=1)
    drawn[gone, likely] = 1.0
    total[gone] = 1.0
    return np.asarray(drawn / total)


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
    if states.ndim == 2:  # a place that is no node, unless the prior is not known
        with contextlib.suppress(TypeError):
            at_state(study, (states.mean(axis=0) + 1e-3 * states.std(axis=0) + 1e-9).tolist())
    study.names()


def shares_at_nodes(study: Study, n: int) -> tuple[Array, Array]:
    """``(N, n)``: the likeliest clusters of every node, named after the reference, and how likely.

    Places that are not needed have a share of 0.
    """
    names = study.names()
    n_nodes, k = len(names.reference), names.n_reference
    n = min(n, k)
    likely = np.empty((n_nodes, n), dtype=np.int64)
    share = np.empty((n_nodes, n))
    some = max(1, _MOST_COUNTED // max(k, len(names.labels)))
    for start in range(0, n_nodes, some):
        part = slice(start, start + some)
        parents = names.parents[names.first[:-1, None] + names.labels[:, part]]
        counts = np.zeros((parents.shape[1], k), dtype=np.int32)
        np.add.at(counts, (np.arange(len(counts)), parents), 1)
        likely[part] = np.argsort(-counts, axis=1, kind="stable")[:, :n]
        share[part] = np.take_along_axis(counts, likely[part], axis=1) / len(parents)
    return likely, share
