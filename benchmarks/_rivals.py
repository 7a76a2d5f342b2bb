"""What a practitioner would try first: all predict the action of a step from the same inputs.

Nobody sees actions. ``r_t(a) ∝ b̂(a) ℓ[t, a]``, with the shares b̂ of all actions by EM, says which
are likely for a step that was seen; rivals learn these from the position, and from the heading and
the speed where those are part of the state. Each chooses one or two settings by a fifth of the
trajectories it learns from, and how much of b̂ to mix in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

MIXED_IN = (0.01, 0.03, 0.1, 0.3)
"""Shares of the global marginal, of which the best is chosen like any other setting."""


class Steps(NamedTuple):
    """Steps as rivals see them."""

    inputs: np.ndarray
    """``(n, d)``: the state, scaled; the heading as a unit vector."""
    likelihood: np.ndarray
    """``(n, A)``: ``ℓ[t, a]``, the largest of each row being 1."""
    track: np.ndarray
    """``(n,)``: the trajectory of each."""
    heading: np.ndarray | None
    """``(n,)``: an angle, where it is part of the state."""
    turned: np.ndarray | None
    """``(n, A)``: ``ℓ`` of the step turned so that the heading points east."""

    def take(self, rows: np.ndarray) -> Steps:
        """Some of them."""
        parts: Any = (None if part is None else part[rows] for part in self)
        return Steps(*parts)


def shares(likelihood: np.ndarray) -> np.ndarray:
    """The shares of all actions, by EM; none of them is 0."""
    found = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(50):
        found = responsibilities(likelihood, found).mean(axis=0)
        found = (found + 1e-6) / (found + 1e-6).sum()
    return found


def responsibilities(likelihood: np.ndarray, share: np.ndarray) -> np.ndarray:
    """``r_t(a)``."""
    weighted = likelihood * share
    return weighted / weighted.sum(axis=1, keepdims=True)


def log_scores(policy: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """``ln Σ_a p(a) ℓ[t, a]``."""
    return np.log((policy * likelihood).sum(axis=1))


Fit = Callable[[Steps], Callable[[Steps], np.ndarray]]
"""Learns, and returns what predicts policies."""


def tuned(candidates: list[Fit], train: Steps) -> Callable[[Steps], np.ndarray]:
    """The best candidate with the best share of the marginal, learnt anew from everything."""
    names = np.unique(train.track)
    aside = np.isin(train.track, np.random.default_rng(0).permutation(names)[: -(-len(names) // 5)])
    inner, outer = train.take(np.flatnonzero(~aside)), train.take(np.flatnonzero(aside))
    marginal = shares(inner.likelihood)
    found = []
    for candidate in candidates:
        policy = candidate(inner)(outer)
        for mixed_in in MIXED_IN:
            mixed = (1 - mixed_in) * policy + mixed_in * marginal
            found.append((log_scores(mixed, outer.likelihood).mean(), mixed_in, candidate))
    _, mixed_in, best = max(found, key=lambda item: item[0])
    predict, marginal = best(train), shares(train.likelihood)
    return lambda steps: (1 - mixed_in) * predict(steps) + mixed_in * marginal


def _marginal(train: Steps) -> Callable[[Steps], np.ndarray]:
    share = shares(train.likelihood)
    return lambda steps: np.tile(share, (len(steps.inputs), 1))


def _neighbours(k: int, train: Steps) -> Callable[[Steps], np.ndarray]:
    from scipy.spatial import cKDTree

    known = responsibilities(train.likelihood, shares(train.likelihood))
    tree, k = cKDTree(train.inputs), min(k, len(train.inputs))
    return lambda steps: known[tree.query(steps.inputs, k)[1].reshape(-1, k)].mean(axis=1)


def _forest(leaf: int, train: Steps) -> Callable[[Steps], np.ndarray]:
    return _regressed(train, train.likelihood, leaf)


def _regressed(train: Steps, likelihood: np.ndarray, leaf: int) -> Callable[[Steps], np.ndarray]:
    from sklearn.ensemble import RandomForestRegressor

    known = responsibilities(likelihood, shares(likelihood))
    forest = RandomForestRegressor(
        100, min_samples_leaf=leaf, max_features=0.7, random_state=0, n_jobs=1
    ).fit(train.inputs, known)
    return lambda steps: forest.predict(steps.inputs)


def _turning_forest(leaf: int, steps_of: np.ndarray, train: Steps) -> Any:
    """Learns actions relative to the heading, and turns them back."""
    assert train.turned is not None
    predict = _regressed(train, train.turned, leaf)
    return lambda steps: turn_back(predict(steps), steps.heading, steps_of)


def turn_back(policy: np.ndarray, heading: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Policies of actions that are turned by the heading: shared out by the two nearest ones."""
    length = np.linalg.norm(steps, axis=1)
    angle = np.arctan2(steps[:, 1], steps[:, 0])
    out = np.zeros_like(policy)
    for a in range(len(steps)):
        if length[a] == 0:
            out[:, a] += policy[:, a]
            continue
        ring = np.flatnonzero(np.isclose(length, length[a]))
        ring = ring[np.argsort(angle[ring])]
        away = (angle[a] + heading - angle[ring[0]]) % (2 * np.pi) / (2 * np.pi) * len(ring)
        lower = np.floor(away).astype(int) % len(ring)
        part = away - np.floor(away)
        rows = np.arange(len(policy))
        np.add.at(out, (rows, ring[lower]), policy[:, a] * (1 - part))
        np.add.at(out, (rows, ring[(lower + 1) % len(ring)]), policy[:, a] * part)
    return out


def _classified(make: Callable[[], Any], expand: bool, train: Steps) -> Any:
    """A classifier of actions drawn from what is likely."""
    known = responsibilities(train.likelihood, shares(train.likelihood))
    rng = np.random.default_rng(0)
    drawn = (known.cumsum(axis=1) < rng.random((len(known), 1))).sum(axis=1)
    drawn = np.minimum(drawn, known.shape[1] - 1)
    model = make().fit(_expanded(train.inputs) if expand else train.inputs, drawn)

    def predict(steps: Steps) -> np.ndarray:
        out = np.zeros((len(steps.inputs), known.shape[1]))
        out[:, model.classes_] = model.predict_proba(
            _expanded(steps.inputs) if expand else steps.inputs
        )
        return out

    return predict


def _expanded(inputs: np.ndarray) -> np.ndarray:
    """With all squares and products."""
    first, second = np.triu_indices(inputs.shape[1])
    return np.hstack([inputs, inputs[:, first] * inputs[:, second]])


def rivals(steps: np.ndarray, with_heading: bool) -> Iterator[tuple[str, list[Fit]]]:
    """Names, and candidates among which each chooses."""
    from functools import partial

    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    yield "global marginal", [_marginal]
    yield "k-NN", [partial(_neighbours, k) for k in (5, 15, 40, 100)]
    leaves = (3, 10, 30)
    forests: list[Fit] = [partial(_forest, leaf) for leaf in leaves]
    if with_heading:
        forests += [partial(_turning_forest, leaf, steps) for leaf in leaves]
    yield "random forest", forests
    yield "gradient boosting", [
        partial(
            _classified,
            partial(
                HistGradientBoostingClassifier, max_iter=rounds, learning_rate=0.1,
                max_leaf_nodes=8, min_samples_leaf=20, early_stopping=False, random_state=0,
            ),
            False,
        )
        for rounds in (10, 30)
    ]  # fmt: skip
    yield (
        "logistic regression",
        [
            partial(_classified, partial(LogisticRegression, C=c, max_iter=500), True)
            for c in (0.01, 1.0)
        ],
    )
