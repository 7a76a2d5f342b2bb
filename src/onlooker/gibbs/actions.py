"""The latent actions: ``p(a_t = j) ∝ ℓ[t, j] · policy_j``."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Counts, Data, Tables


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(weights: Array, cumulative: Array, uniform: float) -> int:
    """Draw an index with probability proportional to `weights`; -1 if all are zero.

    The search counts instead of leaving early: a branch that cannot be foretold costs more than
    the comparisons it saves.
    """
    n = len(weights)
    total = 0.0
    for j in range(n):
        total += weights[j]
        cumulative[j] = total
    if total <= 0.0:
        return -1
    target = uniform * total
    if target >= total:  # rounding must not reach an outcome of weight zero
        target = np.nextafter(total, 0.0)
    drawn = 0
    for j in range(n - 1):
        drawn += cumulative[j] <= target
    return drawn


@njit(cache=True, nogil=True, error_model="numpy")
def draw_from_likelihood(actions: Array, data: Data, rng: np.random.Generator) -> None:
    """Draw every action from its likelihood alone: where chains start."""
    cumulative = np.empty(data.likelihood.shape[1])
    for t in range(len(actions)):
        actions[t] = _draw(data.likelihood[data.row[t]], cumulative, rng.random())


@njit(cache=True, nogil=True, error_model="numpy")
def collapsed_actions(
    actions: Array,
    labels: Array,
    counts: Counts,
    data: Data,
    tables: Tables,
    rng: np.random.Generator,
) -> None:
    """Draw every action with the controllers integrated out.

    ``p(a_t = j) ∝ ℓ[t, j] · (ξ_kj - 1[a_t = j] + α)``, ``k`` being the cluster of the
    transition's node.
    """
    n_nodes, n_actions = counts.node.shape
    alpha = tables.alpha * tables.share
    policy = np.empty(n_actions)
    weights = np.empty(n_actions)
    cumulative = np.empty(n_actions)
    for i in range(n_nodes):
        start, stop = data.first[i], data.first[i + 1]
        if stop == start:
            continue
        # Counts stay in `policy`, as n + α, until the node is done: every number is written anew
        # from the whole number that it stands for, so that no rounding adds up.
        cluster = counts.cluster[labels[i]]
        for j in range(n_actions):
            policy[j] = cluster[j] + alpha[j]
        for t in range(start, stop):
            old = actions[t]
            likelihood = data.likelihood[data.row[t]]
            for j in range(n_actions):
                weights[j] = likelihood[j] * policy[j]
            without = np.rint(policy[old] - alpha[old]) - 1.0 + alpha[old]
            weights[old] = likelihood[old] * without
            new = _draw(weights, cumulative, rng.random())
            actions[t] = new
            policy[old] = without
            policy[new] = np.rint(policy[new] - alpha[new]) + 1.0 + alpha[new]
        for j in range(n_actions):
            gained = int(np.rint(policy[j] - alpha[j])) - cluster[j]
            cluster[j] += gained
            counts.node[i, j] += gained


@njit(cache=True, nogil=True, error_model="numpy")
def ordinary_actions(
    actions: Array,
    labels: Array,
    counts: Counts,
    data: Data,
    controllers: Array,
    rng: np.random.Generator,
) -> None:
    """Draw every action given the controllers: ``p(a_t = j) ∝ ℓ[t, j] · θ_kj``."""
    n_nodes, n_actions = counts.node.shape
    weights = np.empty(n_actions)
    cumulative = np.empty(n_actions)
    for i in range(n_nodes):
        k = labels[i]
        for t in range(data.first[i], data.first[i + 1]):
            for j in range(n_actions):
                weights[j] = data.likelihood[data.row[t], j] * controllers[k, j]
            new = _draw(weights, cumulative, rng.random())
            if new < 0:  # every product underflowed: the old action stands
                continue
            old = actions[t]
            actions[t] = new
            counts.cluster[k, old] -= 1
            counts.cluster[k, new] += 1
            counts.node[i, old] -= 1
            counts.node[i, new] += 1
