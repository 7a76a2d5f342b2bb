"""Scores of the trajectories that a posterior was sampled from, each by chains without it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.anomaly.result import AnomalyScores
from onlooker.anomaly.scoring import score
from onlooker.demonstrations import Demonstrations
from onlooker.problem.problem import Problem
from onlooker.progress import make_progress
from onlooker.repertoire import Actions
from onlooker.sampling import sample

if TYPE_CHECKING:
    from onlooker.posterior import Posterior

MAX_FOLDS = 10
_DRAWS = 100  # of each of two chains, after as many sweeps


def leave_out(
    posterior: Posterior,
    *,
    random_state: Any = None,
    progress: bool = False,
    **options: Any,
) -> AnomalyScores:
    """A reference for `score` where no other nominal trajectories are at hand.

    Short chains (two of 100 draws after 100 sweeps) sample the posterior anew without each
    trajectory, which they then score; of more than 10 trajectories, a tenth at a time. Dynamics
    and prior stay as they are. Pieces that share a name stay together.

    Parameters
    ----------
    posterior
        The nominal posterior, with at least two trajectories.
    random_state
        Seed or generator.
    progress
        Whether to show a bar.
    options
        As in `score`.
    """
    demos = seen_trajectories(posterior)
    names, group = np.unique(demos.names, return_inverse=True)
    if len(names) < 2:
        raise ValueError("a single trajectory cannot be left out; give reference trajectories")
    rng = np.random.default_rng(random_state)
    n_folds = min(len(names), MAX_FOLDS)
    fold = rng.permutation(np.arange(len(names)) % n_folds)[group]
    parts: list[AnomalyScores] = []
    with make_progress(progress, n_folds, "leaving trajectories out", "parts") as bar:
        for number in range(n_folds):
            others = _sample_from(posterior, demos[fold != number], rng)
            judged = demos[fold == number]
            parts.append(score(others, judged, simulate=False, random_state=rng, **options))
            bar.advance(1)
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    return joined


def seen_trajectories(posterior: Posterior) -> Demonstrations:
    """The trajectories that a posterior was sampled from; refused where it does not know them."""
    problem = posterior.problem
    if problem.paths is None or problem.dynamics is None or problem.incomplete is not None:
        what = "some of its states were not seen"
        if problem.incomplete is None:
            what = "it holds single steps, or no dynamics"
        raise ValueError(f"no trajectory can be left out: {what}; give reference trajectories")
    paths = problem.paths
    tracks = np.split(problem.states[paths.nodes], paths.offsets[1:-1])
    return Demonstrations(tracks, names=paths.names)


def _sample_from(
    posterior: Posterior, demos: Demonstrations, rng: np.random.Generator
) -> Posterior:
    target = posterior.target
    dynamics: Any = target.problem.dynamics
    every = target.problem.n_nodes == getattr(dynamics, "n_states", -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the whole data all was said before
        problem = Problem.from_demonstrations(
            demos,
            dynamics,
            nodes="all" if every else "visited",
            repertoire=target.problem.policies or [Actions()],
        )
        return sample(
            problem, target.prior, target.concentration, target.collapsed,
            draws=_DRAWS, tune=_DRAWS, chains=2, random_state=rng, progress=False,
        )  # fmt: skip
