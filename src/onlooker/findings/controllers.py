"""How many controllers there are, where they act, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics
from onlooker.prediction.controllers import LEVEL, Doing, doings, visit_weights

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun
    from onlooker.problem import Problem

_MAX_ACTIONS = 3  # likely ones that are listed
_MAX_CONTROLLERS = 60  # that are described one by one


def n_controllers(run: OpenedRun) -> list[dict[str, float]]:
    """How many there are, and how probable that is; the likeliest first."""
    numbers, counts = np.unique(run.posterior.n_controllers, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        {"number": int(numbers[k]), "probability": float(counts[k] / counts.sum())} for k in order
    ]


def acting(run: OpenedRun) -> Array:
    """Clusters of the consensus partition where some step starts; ends of tracks have none."""
    labels = run.posterior.partition()
    return np.flatnonzero(np.bincount(labels, run.visits) > 0)


def regions(run: OpenedRun) -> list[dict[str, Any]]:
    """The regions of the consensus partition: where they are and what is done there.

    Clusters without a step, of states where tracks end, are none.
    """
    posterior = run.posterior
    labels, policy = posterior.partition(), posterior.policy()
    done = None if posterior.problem.policies is None else doings(posterior, labels)
    found = []
    for cluster in acting(run).tolist():
        nodes = np.flatnonzero(labels == cluster)
        visits = run.visits[nodes]
        mean = visits @ policy[nodes] / visits.sum()
        likely = np.argsort(-mean, kind="stable")[:_MAX_ACTIONS]
        found.append(
            {
                "controller": cluster + 1,
                "states": len(nodes),
                "transitions": round(float(visits.sum())),
                "numbers": _numbers(run, nodes),
                "center": _center(run, nodes),
                "actions": [
                    {"action": int(j), "name": run.action_names[j], "probability": float(mean[j])}
                    for j in likely
                ],
                "behaviours": None if done is None else [one._asdict() for one in done[cluster]],
                "mean_step": _mean_step(posterior.problem.dynamics, mean),
            }
        )
    return found


def _numbers(run: OpenedRun, nodes: Array) -> list[int] | None:
    """The states themselves, where they are numbers."""
    return np.sort(run.posterior.problem.states[nodes]).tolist() if run.is_discrete else None


def _center(run: OpenedRun, nodes: Array) -> list[float] | None:
    """The state nearest to the median: in the midst of most, also of regions that lie apart."""
    if run.is_discrete:
        return None
    places = run.posterior.problem.states[nodes, : run.n_position]
    flat, spread = places, np.ptp(places, axis=0)
    if run.geographic:  # in space: the date line is no seam
        lon, lat = np.radians(places).T
        flat = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
        spread = np.ones(3)
    away = (flat - np.median(flat, axis=0)) / np.where(spread > 0, spread, 1.0)
    return [float(x) for x in places[np.argmin(np.linalg.norm(away, axis=1))]]


def _mean_step(dynamics: Any, policy: Array) -> list[float] | None:
    steps = getattr(position_dynamics(dynamics), "steps", None)
    return None if steps is None else [float(x) for x in policy @ steps]


# -- with intervals -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Controller:
    """One cluster of a partition, and what is done there."""

    number: int
    n_nodes: int
    n_transitions: int
    certainty: float
    mean: Array
    low: Array
    high: Array
    behaviours: list[Doing]
    """The likeliest ones; empty where there is no repertoire."""


def controllers(run: OpenedRun, labels: Array, membership: Array) -> list[Controller]:
    """The clusters of a partition, largest first, with their policies averaged over visits."""
    n_clusters = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=n_clusters)
    chosen = np.argsort(-sizes, kind="stable")[:_MAX_CONTROLLERS]
    weights = visit_weights(labels, run.visits)
    values = _drawn_policies(run, labels, chosen, weights)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    visits = np.bincount(labels, run.visits, minlength=n_clusters)
    policy = run.posterior.policy()
    known = run.posterior.problem.policies is not None
    done = doings(run.posterior, labels) if known else [[] for _ in sizes]
    return [
        Controller(
            int(c),
            int(sizes[c]),
            round(float(visits[c])),
            float(membership[labels == c].mean()),
            weights[labels == c] @ policy[labels == c],
            low[row],
            high[row],
            done[c],
        )
        for row, c in enumerate(chosen)
    ]


def _drawn_policies(run: OpenedRun, labels: Array, chosen: Array, weights: Array) -> Array:
    """``(draws, len(chosen), A)``: a drawn controller, averaged over a cluster's nodes."""
    posterior = run.posterior
    rank = np.full(int(labels.max()) + 1, -1)
    rank[chosen] = np.arange(len(chosen))
    inside = np.flatnonzero(rank[labels] >= 0)
    at = rank[labels[inside]]
    n_all = posterior.n_chains * posterior.n_draws
    act = _actions_of(posterior.problem, labels, chosen, weights)
    values = np.empty((n_all, len(chosen), posterior.problem.n_actions))
    rng = np.random.default_rng(posterior.schedule.seed)
    for clusters in posterior.predictor.blocks():
        theta = clusters.thetas(rng)
        for row, b in enumerate(clusters.index):
            rows = theta[clusters.first[row] : clusters.first[row + 1]]
            width = len(rows)
            pairs = at * width + clusters.labels[row, inside]
            shared = np.bincount(pairs, weights[inside], minlength=len(chosen) * width)
            values[b] = act(shared.reshape(len(chosen), width) @ rows)
    return values


def _actions_of(
    problem: Problem, labels: Array, chosen: Array, weights: Array
) -> Callable[[Array], Array]:
    """What distributions over behaviours, ``(len(chosen), B)``, do at the clusters' nodes."""
    if problem.policies is None:
        return lambda drawn: drawn
    means = np.zeros((len(chosen), problem.n_behaviours, problem.n_actions))
    for row, cluster in enumerate(chosen):
        states, share = problem.states[labels == cluster], weights[labels == cluster]
        for chunk in problem.policies.chunks(len(states)):
            means[row] += np.tensordot(share[chunk], problem.policies(states[chunk]), 1)
    return lambda drawn: np.asarray(np.matmul(drawn[:, None], means)[:, 0])
