"""What each controller of a partition does, in words, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlooker.checks import Array

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.posterior import Posterior

LEVEL = 0.9
"""Probability of credible intervals."""
_MAX_NAMED, _MIN_NAMED = 3, 0.1  # behaviours in the words, and the share of one


class Doing(NamedTuple):
    """A behaviour of a controller, with its probability."""

    behaviour: int
    name: str
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name}, {with_interval(self.mean, self.low, self.high)}"


def with_interval(mean: float, low: float, high: float) -> str:
    """A probability and its interval, such as "82 % [70–90]"."""
    return f"{100 * mean:.0f} % [{100 * low:.0f}–{100 * high:.0f}]"


def controllers(posterior: Posterior) -> pd.DataFrame:
    """One row a cluster of the consensus partition, the largest first; see `Posterior`."""
    import pandas as pd

    problem, result = posterior.problem, posterior.consensus()
    labels, n = result.labels, result.n_clusters
    done = doings(posterior, labels)
    return pd.DataFrame(
        {
            "states": np.bincount(labels, minlength=n),
            "share": np.bincount(labels[problem.node_of], minlength=n) / len(problem.node_of),
            "certainty": np.bincount(labels, result.membership) / np.bincount(labels),
            "does": ["; ".join(map(str, several)) for several in done],
            "behaviour": [several[0].name for several in done],
            "probability": [several[0].mean for several in done],
            "low": [several[0].low for several in done],
            "high": [several[0].high for several in done],
        },
        index=pd.RangeIndex(1, n + 1, name="controller"),
    )


def visit_weights(labels: Array, visits: Array) -> Array:
    """``(N,)``: the share of each node in the visits of its cluster; without any all are alike."""
    weights = np.where(np.bincount(labels, visits)[labels] > 0, visits, 1.0)
    return np.asarray(weights / np.bincount(labels, weights)[labels])


def doings(posterior: Posterior, labels: Array) -> list[list[Doing]]:
    """The likeliest behaviours of each cluster of a partition of the nodes, averaged over visits.

    Intervals are those of a drawn controller.
    """
    problem, n = posterior.problem, int(labels.max()) + 1
    weights = visit_weights(labels, np.bincount(problem.node_of, minlength=problem.n_nodes))
    mean = np.zeros((n, problem.n_behaviours))
    np.add.at(mean, labels, weights[:, None] * posterior.behaviours())
    top = np.argsort(-mean, axis=1, kind="stable")[:, :_MAX_NAMED]
    drawn = _drawn(posterior, labels, weights, top)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    names = problem.behaviours
    return [
        [
            Doing(int(b), names[b], float(mean[c, b]), float(low[c, k]), float(high[c, k]))
            for k, b in enumerate(top[c])
            if k == 0 or mean[c, b] >= _MIN_NAMED
        ]
        for c in range(n)
    ]


def _drawn(posterior: Posterior, labels: Array, weights: Array, top: Array) -> Array:
    """``(draws, clusters, k)``: a drawn controller's probabilities of a cluster's behaviours."""
    rng = np.random.default_rng(posterior.schedule.seed)
    n, width = top.shape
    values = np.zeros((posterior.n_chains * posterior.n_draws, n, width))
    for clusters in posterior.predictor.blocks():
        theta = clusters.thetas(rng)
        for row, draw in enumerate(clusters.index):
            own = clusters.first[row] + clusters.labels[row]
            for k in range(width):
                at_nodes = weights * theta[own, top[labels, k]]
                values[draw, :, k] = np.bincount(labels, at_nodes, minlength=n)
    return values
