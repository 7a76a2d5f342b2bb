"""Questions about one place."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array
from onlooker.explorer.view import RunView
from onlooker.prediction.controllers import LEVEL

_MAX_COUNTED = 4_000_000  # numbers held at a time


def at_state(view: RunView, state: Any) -> dict[str, Any]:
    """The policy at any state with its interval, and the clusters it may join.

    `state` is an integer, or the coordinates of a real state.
    """
    posterior = view.posterior
    predictor = posterior.predictor
    queries, node = predictor.place([state])
    policy = posterior.policy(queries, interval=LEVEL)
    chosen = predictor.clusters_at(queries, node, predictor.rule())[:, 0]
    return {
        "state": np.asarray(queries[0]).tolist(),
        "node": int(node[0]),
        "mean": policy.mean[0].tolist(),
        "low": policy.low[0].tolist(),
        "high": policy.high[0].tolist(),
        "level": LEVEL,
        "candidates": _candidates(view, chosen),
    }


def _candidates(view: RunView, chosen: Array) -> list[dict[str, Any]]:
    """In how many draws the state is in a cluster named after each of the reference."""
    names = view.names()
    n_used = np.diff(names.first)
    new = chosen >= n_used
    rows = names.first[:-1] + np.minimum(chosen, n_used - 1)
    parents = np.where(new, -1, names.parents[rows])
    values, counts = np.unique(parents, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    share = counts / counts.sum()
    return [{"cluster": int(values[k]), "share": float(share[k])} for k in order]


def warm_up(view: RunView) -> None:
    """Ask once, so that the first click finds every kernel loaded."""
    states = view.posterior.problem.states
    at_state(view, states[0].tolist())
    if states.ndim == 2:  # a place that is no node, unless the prior is not known
        with contextlib.suppress(TypeError):
            at_state(view, (states.mean(axis=0) + 1e-3 * states.std(axis=0) + 1e-9).tolist())
    view.names()


def shares_at_nodes(view: RunView, n: int) -> tuple[Array, Array]:
    """``(N, n)``: the likeliest clusters of every node, named after the reference, and how likely.

    Places that are not needed have a share of 0.
    """
    names = view.names()
    n_nodes, k = len(names.reference), names.n_reference
    n = min(n, k)
    likely = np.empty((n_nodes, n), dtype=np.int64)
    share = np.empty((n_nodes, n))
    for part in slices_of(n_nodes, max(k, len(names.labels)), _MAX_COUNTED):
        parents = names.parents[names.first[:-1, None] + names.labels[:, part]]
        counts = np.zeros((parents.shape[1], k), dtype=np.int32)
        np.add.at(counts, (np.arange(len(counts)), parents), 1)
        likely[part] = np.argsort(-counts, axis=1, kind="stable")[:, :n]
        share[part] = np.take_along_axis(counts, likely[part], axis=1) / len(parents)
    return likely, share
