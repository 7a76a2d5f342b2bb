"""Accuracy a second on the storms: ours against behavioural cloning with scikit-learn.

python -m benchmarks cloning

One fifth of the storms is held out, and the direction of each step (eight sectors) is to be
predicted. Classifiers are trained on the directions themselves; ours never sees them. Seconds are
of processor time on one core, training and prediction together. One per cent of the marginal is
mixed into what a classifier says, else one impossible step would make its score minus infinity.
Their settings are usual ones; of boosting also some that were tuned to these data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import _storms as storms
from benchmarks._measure import keep, print_table
from onlooker import Demonstrations
from onlooker.datasets import load_storms
from onlooker.dynamics.features import with_features

MIXED_IN = 0.01
BUDGETS = {
    "onlooker, 20 sweeps": storms.Size(chains=1, tune=10, draws=10, thin=1),
    "onlooker, 80 sweeps": storms.Size(chains=1, tune=40, draws=20, thin=2),
    "onlooker, 4 × 120 sweeps": storms.Size(),
    "onlooker, 4 × 480 sweeps": storms.Size(tune=240, draws=80, thin=3),
}


def classifiers() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a practitioner would try."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    yield (
        "logistic regression, cubic",
        lambda: make_pipeline(
            StandardScaler(),
            PolynomialFeatures(3, include_bias=False),
            StandardScaler(),
            LogisticRegression(max_iter=1000),
        ),
    )
    for k in (100, 400):
        yield (
            f"k-NN, k = {k}",
            lambda k=k: make_pipeline(StandardScaler(), KNeighborsClassifier(k)),
        )
    yield (
        "random forest, leaves of 20",
        lambda: RandomForestClassifier(100, min_samples_leaf=20, random_state=0, n_jobs=1),
    )
    yield "boosting, defaults", lambda: HistGradientBoostingClassifier(random_state=0)
    yield (
        "boosting, tuned",
        lambda: HistGradientBoostingClassifier(
            learning_rate=0.05, max_iter=60, min_samples_leaf=200, random_state=0
        ),
    )
    yield (
        "neural network, 64 units",
        lambda: make_pipeline(
            StandardScaler(),
            MLPClassifier((64,), early_stopping=True, max_iter=100, random_state=0),
        ),
    )


def by_classifier(
    make: Callable[[], Any], train: np.ndarray, sectors: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, float]:
    """Probabilities of the sectors, and seconds."""
    from threadpoolctl import threadpool_limits

    n = storms.SECTORS
    marginal = np.bincount(sectors, minlength=n) / len(sectors)
    probabilities = np.zeros((len(test), n))
    with threadpool_limits(1):
        began = time.process_time()
        model = make().fit(train, sectors)
        probabilities[:, model.classes_] = model.predict_proba(test)
        seconds = time.process_time() - began
    return (1 - MIXED_IN) * probabilities + MIXED_IN * marginal, seconds


def by_us(
    size: storms.Size, model: storms.Model, seen: Demonstrations, queries: np.ndarray
) -> tuple[np.ndarray, float]:
    """The same of ours; proposing actions counts, compiling does not."""
    began = time.process_time()
    dynamics = storms.propose(seen)
    train, wrapped = with_features(seen, model.features, dynamics)
    posterior = storms.fit(train, wrapped, model, size)
    policy = posterior.policy(queries, extrapolate="local")
    predicted = policy @ storms.sector_given_action(dynamics)
    return predicted, time.process_time() - began


def split(every: int) -> tuple[Demonstrations, Demonstrations]:
    """Storms to learn from and storms to predict."""
    demos = load_storms().demos
    chosen = np.unique(demos.names)[::every]
    demos = demos[np.isin(demos.names, chosen)]
    held = storms.folds(demos, 5, 0)[0]
    return demos[np.setdiff1d(np.arange(len(demos)), held)], demos[held]


def error_of(difference: np.ndarray, storm: np.ndarray) -> float:
    """Standard error of a mean difference a step; whole storms are independent, steps are not."""
    apart = np.bincount(np.unique(storm, return_inverse=True)[1], difference - difference.mean())
    return float(np.sqrt((apart**2).sum()) / len(difference))


def main(quick: bool = False) -> None:
    """Print a table for each set of features."""
    seen, unseen = split(8 if quick else 1)
    data = {}
    for known, model in storms.MODELS.items():
        dynamics = storms.propose(seen)
        train, _ = with_features(seen, model.features, dynamics)
        test, _ = with_features(unseen, model.features, dynamics)
        moving, sectors = storms.seen_directions(train)
        states = train.transitions()[0][moving]
        moving, truth = storms.seen_directions(test)
        queries = test.transitions()[0][moving]
        storm = test.names[test.trajectory_of()[moving]]
        budgets = dict(list(BUDGETS.items())[: 2 if quick else None])
        tiny = storms.Size(chains=1, tune=2, draws=10, thin=1)
        by_us(tiny, model, seen, queries)  # compiles, and imports what diagnoses draws
        marginal = np.bincount(sectors, minlength=storms.SECTORS) / len(sectors)
        scores = {"global marginal": (np.log(marginal[truth]), 0.0)}
        for name, make in classifiers():
            policy, seconds = by_classifier(make, states, sectors, queries)
            scores[name] = storms.log_scores(policy, truth), seconds
        for name, size in budgets.items():
            policy, seconds = by_us(size, model, seen, queries)
            scores[name] = storms.log_scores(policy, truth), seconds
        ours = scores[list(BUDGETS)[1 if quick else 2]][0]
        floor = scores["global marginal"][0].mean()
        rows = []
        for name, (score, seconds) in scores.items():
            difference = score - ours
            rows.append(
                [
                    name,
                    f"{score.mean():.4f}",
                    f"{difference.mean():+.4f} ± {error_of(difference, storm):.4f}",
                    f"{seconds:.2f}",
                    f"{1e3 * (score.mean() - floor) / seconds:,.1f}" if seconds else "",
                ]
            )
        print_table(
            f"Knowing {known}: {len(truth):,} held-out steps of {len(set(storm))} storms, "
            f"{len(states):,} to learn from",
            [
                "method",
                "mean ln p",
                "against ours by default",
                "seconds",
                "millinats above the marginal, a second",
            ],
            rows,
        )
        data[known] = {name: [float(s.mean()), t] for name, (s, t) in scores.items()}
    keep("scores", data)


if __name__ == "__main__":
    main("--quick" in sys.argv)
