"""Gibbs kernels of Bayesian nonparametric inverse reinforcement learning."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.categorical import draw_log


@njit(cache=True, nogil=True)
def sweep_labels(
    loglik: Array,
    log_marginal: Array,
    concentration: float,
    labels: Array,
    goals: Array,
    sizes: Array,
    n_used: int,
    rng: np.random.Generator,
) -> int:
    """Draw the subgoal of every transition in turn (CRP, Neal's Algorithm 2); in place.

    Clusters are kept packed: an emptied one is filled by the last. A label of -1 is not yet
    seated. Returns the number of clusters.
    """
    n_transitions = loglik.shape[0]
    log_weights = np.empty(n_transitions + 1)
    for t in range(n_transitions):
        k = labels[t]
        if k >= 0:
            sizes[k] -= 1
            if sizes[k] == 0:
                n_used -= 1
                if k != n_used:
                    goals[k] = goals[n_used]
                    sizes[k] = sizes[n_used]
                    sizes[n_used] = 0
                    for i in range(n_transitions):
                        if labels[i] == n_used:
                            labels[i] = k
        for k in range(n_used):
            log_weights[k] = np.log(sizes[k]) + loglik[t, goals[k]]
        log_weights[n_used] = np.log(concentration) + log_marginal[t]
        k = draw_log(log_weights, n_used + 1, rng.random())
        if k == n_used:
            goals[k] = draw_log(loglik[t].copy(), loglik.shape[1], rng.random())
            sizes[k] = 0
            n_used += 1
        labels[t] = k
        sizes[k] += 1
    return n_used


@njit(cache=True, nogil=True)
def sweep_goals(
    loglik: Array, labels: Array, goals: Array, n_used: int, rng: np.random.Generator
) -> None:
    """Draw the goal of every cluster given its transitions; in place."""
    n_goals = loglik.shape[1]
    total = np.zeros((n_used, n_goals))
    for t in range(loglik.shape[0]):
        for g in range(n_goals):
            total[labels[t], g] += loglik[t, g]
    for k in range(n_used):
        goals[k] = draw_log(total[k], n_goals, rng.random())
