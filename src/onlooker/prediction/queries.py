"""What is asked of a posterior: at which states, by which rule, given which starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, positive_integer
from onlooker.demonstrations import as_states, distinct_states
from onlooker.partitions.weights import Strategy, check_strategy, is_spatial
from onlooker.prediction.predictor import Predictor, Rule

if TYPE_CHECKING:
    from onlooker.partitions.base import PartitionPrior
    from onlooker.posterior import Posterior
    from onlooker.problem.problem import Problem


def place(states: Any, nodes: Array) -> tuple[Array, Array]:
    """Query states, and the node that each of them is (-1: none)."""
    queries = as_states(states)
    if queries.shape[1:] != nodes.shape[1:]:
        raise ValueError(
            f"states must be like the nodes' states, {_kind(nodes)}, got {_kind(queries)}; "
            "a single state needs brackets of its own: [state]"
        )
    if len(queries) == 0:
        return queries, np.empty(0, dtype=np.int64)
    index = distinct_states(np.concatenate([nodes, queries]))[1][len(nodes) :]
    return queries, np.where(index < len(nodes), index, -1)


def _kind(states: Array) -> str:
    return "integers" if states.ndim == 1 else f"vectors of dimension {states.shape[1]}"


def make_rule(prior: PartitionPrior, extrapolate: Strategy | None, n_neighbors: int | None) -> Rule:
    """How a policy is continued to states that are no nodes."""
    strategy = check_strategy(prior, extrapolate)
    if n_neighbors is None:
        n_neighbors = getattr(prior, "n_neighbors", None)
    elif not is_spatial(prior):
        raise ValueError(f"n_neighbors means nothing to {type(prior).__name__}")
    else:
        n_neighbors = positive_integer("n_neighbors", n_neighbors)
    return Rule(strategy, n_neighbors)


def drawn_starts(problem: Problem, imputed: Array | None) -> Array | None:
    """``(B, M)``: the node where each transition starts in each draw, where that is not known."""
    incomplete = problem.incomplete
    if imputed is None or incomplete is None or imputed.ndim > 3:
        return None
    chains, draws = imputed.shape[:2]
    path = np.tile(incomplete.observed.astype(imputed.dtype), (chains * draws, 1))
    path[:, incomplete.hidden] = imputed.reshape(len(path), -1)
    return path[:, incomplete.starts]


def likely_cluster(posterior: Posterior, labels: Array, queries: Array, rule: Rule) -> Array:
    """``(n,)``: the likeliest cluster of each query in one partition; -1: one of its own.

    Hyper-parameters are at their posterior means.
    """
    single = Predictor(
        posterior.problem,
        posterior.prior,
        labels[None],
        posterior.actions.reshape(-1, posterior.problem.n_transitions)[:1],
        {name: np.array([values.mean()]) for name, values in posterior.hyper.items()},
        posterior.plan.seed,
    )
    likely = single.likely(queries, rule)[0]
    return np.where(likely > labels.max(), -1, likely)
