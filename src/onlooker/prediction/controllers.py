"""What each consensus controller does, in words, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlooker.checks import Array

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.posterior import Posterior

_MAX_NAMED, _MIN_NAMED = 3, 0.1  # behaviours in the words, and the share of one


def controllers(posterior: Posterior, level: float = 0.9) -> pd.DataFrame:
    """One row a cluster of the consensus partition, the largest first; see `Posterior`."""
    import pandas as pd

    problem, result = posterior.problem, posterior.consensus()
    labels, n = result.labels, result.n_clusters
    visits = np.bincount(problem.node_of, minlength=problem.n_nodes)
    weights = np.where(np.bincount(labels, visits)[labels] > 0, visits, 1.0)
    total = np.bincount(labels, weights)
    mean = np.zeros((n, problem.n_behaviours))
    np.add.at(mean, labels, weights[:, None] * posterior.behaviours())
    mean /= total[:, None]
    leading = mean.argmax(axis=1)
    drawn = _drawn(posterior, labels, weights / total[labels], leading)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    names = problem.behaviours
    return pd.DataFrame(
        {
            "states": np.bincount(labels, minlength=n),
            "share": np.bincount(labels, visits, minlength=n) / len(problem.node_of),
            "certainty": np.bincount(labels, result.membership) / np.bincount(labels),
            "does": [_words(row, names) for row in mean],
            "behaviour": [names[b] for b in leading],
            "probability": mean[np.arange(n), leading],
            "low": low,
            "high": high,
        },
        index=pd.RangeIndex(1, n + 1, name="controller"),
    )


def _drawn(posterior: Posterior, labels: Array, weights: Array, leading: Array) -> Array:
    """``(draws, clusters)``: a drawn controller's probability of a cluster's leading behaviour."""
    rng = np.random.default_rng(posterior.schedule.seed)
    values = np.zeros((posterior.n_chains * posterior.n_draws, len(leading)))
    for clusters in posterior.predictor.blocks():
        theta = clusters.thetas(rng)
        for row, b in enumerate(clusters.index):
            at_nodes = theta[clusters.first[row] + clusters.labels[row], leading[labels]]
            values[b] = np.bincount(labels, weights * at_nodes, minlength=len(leading))
    return values


def _words(mean: Array, names: list[str]) -> str:
    """The likeliest behaviours with their probabilities."""
    order = np.argsort(-mean, kind="stable")[:_MAX_NAMED]
    likely = [b for b in order if mean[b] >= _MIN_NAMED] or order[:1]
    return ", ".join(f"{names[b]} ({mean[b]:.0%})" for b in likely)
