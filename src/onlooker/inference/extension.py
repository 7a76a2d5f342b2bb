"""More data for chains that have run: where they go on from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.rollout import draw_actions
from onlooker.inference.draws import Draws
from onlooker.inference.runner import Plan
from onlooker.prediction.neighbours import NeighbourSearch
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.posterior import Posterior


def extension(posterior: Posterior, demos: Any, seed: int, **options: Any) -> Plan:
    """The plan of a run with added demonstrations that starts where `posterior` ended.

    Old nodes and transitions keep what the last draw of each chain says of them. A new node joins
    the nearest old one (where the prior knows no space: any), and new actions are drawn given
    their likelihoods and that draw's policy. `options` replace those of the posterior's plan.
    """
    if not isinstance(demos, Demonstrations):
        demos = Demonstrations(demos)
    problem = posterior.problem.extended(demos)
    rng = np.random.default_rng([seed, 1])
    plan = replace(
        posterior.plan,
        problem=problem,
        chains=posterior.n_chains,
        seed=seed,
        starts=None,
        **options,
    )
    return replace(plan, starts=_starts(posterior, problem, demos, rng))


def _starts(
    posterior: Posterior, problem: Problem, demos: Demonstrations, rng: np.random.Generator
) -> Draws:
    """One point a chain."""
    n_old = posterior.problem.n_nodes
    nearest = _old_nodes(posterior, problem.states[n_old:], rng)
    labels = posterior.labels[:, -1].astype(np.int64)
    links = posterior.links
    starts, ends = demos.transitions()
    last = np.arange(1, posterior.n_chains + 1) * posterior.n_draws - 1
    actions = []
    for chain, policy in enumerate(posterior.predictor.each(starts, last)):
        world: Any = problem.dynamics
        if problem.parameters:
            world = world.at({k: float(posterior.hyper[k][chain, -1]) for k in problem.parameters})
        loglik = world.log_likelihood(starts, ends)
        weights = np.exp(loglik - loglik.max(axis=1, keepdims=True)) * policy
        actions.append(draw_actions(np.cumsum(weights, axis=1), rng))
    arrays = {
        "labels": np.concatenate([labels, labels[:, nearest]], axis=1),
        "actions": np.concatenate([posterior.actions[:, -1].astype(np.int64), actions], axis=1),
        "log_joint": np.asarray(posterior.log_joint[:, -1]),
    }
    for name, values in posterior.hyper.items():
        arrays[f"hyper.{name}"] = np.asarray(values[:, -1])
    if links is not None:
        old = links[:, -1].astype(np.int64)
        arrays["links"] = np.concatenate([old, np.tile(nearest, (len(labels), 1))], axis=1)
    return Draws(arrays)


def _old_nodes(posterior: Posterior, states: Array, rng: np.random.Generator) -> Array:
    """The old node that each new one joins."""
    geometry = posterior.prior.geometry(posterior.problem)
    if geometry is None or len(states) == 0:
        return rng.integers(posterior.problem.n_nodes, size=len(states))
    return np.asarray(NeighbourSearch(geometry).nearest(states))
