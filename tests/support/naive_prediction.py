"""The policy at any state as MODEL's table says it, in plain Python: the kernels' slow twin."""

import math

import numpy as np

from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    Mixing,
    Potts,
    Static,
    Uniform,
)


def _decay(prior, hyper):
    scale = hyper.get("scale", prior.decay.scale)
    offset = hyper.get("offset", prior.decay.offset)
    return (lambda d: math.exp(-((d / scale) ** 2))), offset


def _neighbours(distances, n_neighbors):
    order = sorted(range(len(distances)), key=lambda j: distances[j])
    return order if n_neighbors is None else order[:n_neighbors]


def weights(prior, labels, hyper, distances, strategy, n_neighbors):
    """Weight of each cluster of one draw, and of a new one (or of one empty cluster) last.

    Also how many clusters that last one stands for.
    """
    n_used = max(labels) + 1
    size = [labels.count(k) for k in range(n_used)]
    if isinstance(prior, Static):
        return [0.0] * n_used + [1.0], 1
    if isinstance(prior, Uniform):
        return [1.0] * (n_used + 1), prior.n_clusters - n_used
    if isinstance(prior, Mixing):
        share = hyper.get("gamma", prior.concentration) / prior.n_clusters
        return [n + share for n in size] + [share], prior.n_clusters - n_used
    if isinstance(prior, ChineseRestaurant):
        return [float(n) for n in size] + [hyper.get("gamma", prior.concentration)], 1
    g, offset = _decay(prior, hyper)
    near = _neighbours(distances, n_neighbors)
    score = [0.0] * n_used
    for j in near:
        similarity = (1 - offset) * g(distances[j]) + offset
        score[labels[j]] += g(distances[j]) if strategy == "local" else similarity
    if strategy == "local":
        return [*score, 0.0], 0
    if isinstance(prior, DistanceDependent):
        return [*score, hyper["nu"]], 1
    assert isinstance(prior, Potts)
    beta = hyper.get("beta", prior.beta)
    return [math.exp(beta * s) for s in score] + [1.0], prior.n_clusters - n_used


def policy(posterior, distances, strategy, n_neighbors=None):
    """Predictive action distribution of one state at these `distances` to the nodes."""
    problem = posterior.problem
    n_actions = problem.n_actions
    total, n_draws = np.zeros(n_actions), 0
    for chain, draw in np.ndindex(posterior.labels.shape[:2]):
        labels = posterior.labels[chain, draw].tolist()
        hyper = {name: float(values[chain, draw]) for name, values in posterior.hyper.items()}
        controllers = []
        for k in range(max(labels) + 1):
            xi = [hyper["alpha"]] * n_actions
            for t, node in enumerate(problem.node_of):
                if labels[node] == k:
                    xi[posterior.actions[chain, draw, t]] += 1
            controllers.append(np.array(xi) / sum(xi))
        controllers.append(np.full(n_actions, 1 / n_actions))
        weight, n_new = weights(posterior.prior, labels, hyper, distances, strategy, n_neighbors)
        if strategy == "map":
            if n_new == 0:
                weight[-1] = -1.0
            total += controllers[int(np.argmax(weight))]
        else:
            weight[-1] *= n_new
            total += sum(w * c for w, c in zip(weight, controllers, strict=True)) / sum(weight)
        n_draws += 1
    return total / n_draws
