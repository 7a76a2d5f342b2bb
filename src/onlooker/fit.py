"""From a file of tracks to a stored posterior: what ``onlooker fit`` does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.demonstrations import Demonstrations
from onlooker.diagnostics import ConvergenceWarning
from onlooker.dynamics import DisplacementDynamics
from onlooker.inference.problem import Problem
from onlooker.inference.run import sample
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.posterior import Posterior

Say = Callable[[str], Any]


@dataclass(frozen=True)
class Compass:
    """Steps of one length in so many directions; None: taken from the tracks."""

    directions: int = 16
    step: float | None = None
    sigma: float | None = None
    scale: float | None = None
    """Reach of the partition prior."""

    def filled(self, demos: Demonstrations, say: Say) -> Compass:
        """The same with what was left open: the median step, a fifth of it, and itself."""
        states, next_states = demos.transitions()
        median = float(np.median(np.linalg.norm(next_states - states, axis=1)))
        step = median if self.step is None else self.step
        if step == 0:
            raise ValueError("half of the steps or more stand still; give --step and --sigma")
        sigma = step / 5 if self.sigma is None else self.sigma
        scale = step if self.scale is None else self.scale
        say(
            f"Actions: {self.directions} directions, steps of {step:.4g} ± {sigma:.3g}; "
            f"states {scale:.4g} apart are neighbours."
        )
        return Compass(self.directions, step, sigma, scale)


def read(path: Path, states: list[str], trajectory: str | None, time: str | None) -> Demonstrations:
    """Tracks from a CSV or parquet file, by the file's name."""
    reader = Demonstrations.from_csv
    if path.suffix in (".parquet", ".pq"):
        reader = Demonstrations.from_parquet  # type: ignore[assignment]
    demos = reader(path, states, trajectory, time)
    if demos.is_discrete or demos.n_dims != 2:
        raise ValueError(
            f"fit needs two columns of numbers as states, got {', '.join(states)}; for other "
            "spaces use the library: onlooker.sample"
        )
    return demos


def fit(demos: Demonstrations, compass: Compass, say: Say, **options: Any) -> Posterior:
    """Sample the posterior with the distance-dependent CRP; `options` are those of `sample`."""
    compass = compass.filled(demos, say)
    assert compass.step is not None
    assert compass.sigma is not None
    assert compass.scale is not None
    dynamics = DisplacementDynamics.compass(compass.directions, compass.step, compass.sigma)
    problem = Problem.from_demonstrations(demos, dynamics)
    prior = DistanceDependent(decay=GaussianDecay(compass.scale, offset=0.01))
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", ConvergenceWarning)
        posterior = sample(problem, prior, **options)
    for doubt in doubts:
        say(f"Note: {doubt.message}.")
    return posterior


def tell(posterior: Posterior, store: Path, say: Say) -> None:
    """What was found, in words."""
    numbers, counts = np.unique(posterior.n_controllers, return_counts=True)
    share = counts / counts.sum()
    likely = np.argsort(-share)[:4]
    found = ", ".join(f"{numbers[k]} ({share[k]:.0%})" for k in likely)
    say(f"Controllers: {found}.")
    sizes = np.sort(np.bincount(posterior.partition()))[::-1]
    say(f"States in the clusters of the consensus partition: {', '.join(map(str, sizes[:12]))}.")
    say(f"Stored in {store}; in Python: onlooker.Posterior.load({str(store)!r}).")
