"""Do anomaly p-values hold with fitted posteriors, and do they find faults?

    python -m benchmarks.check_anomaly [--seeds 20] [--first 0]
                                       [--only walks|left_out|worlds|faults]

*Walks*: correlated random walks, Lévy walks and Ornstein-Uhlenbeck tracks, none of which the model
can express, fitted with the defaults (actions from the tracks) with the position as state, and with
heading (the weight that `onlooker fit` chooses); chains are short, since whether p-values hold does
not depend on their length. Of new tracks of the same process about 5 % should have p < 0.05, by a
reference of 60 tracks. *Left out*: the same by the 20 tracks of the fit, left out in turn.
*Worlds*: both on Example 1, Example 2a and the storms, with what the model's own p-values say
beside it. *Faults*: the share found at 5 %.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._measure import print_table
from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.anomaly import AnomalyScores, leave_out, score
from onlooker.checks import Array
from onlooker.choosing.features import choose_state
from onlooker.datasets import load_storms
from onlooker.defaults import default_concentration, default_prior
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics
from onlooker.dynamics.features import with_features
from onlooker.worlds import CircularMotion, GridWorld, circular_expert

N_FITTED = 20
N_NEW = 40
N_REFERENCE = 60
N_DRAWS = 50  # of each chain for walks, after as many sweeps
LEVEL = 0.05
Tracks = Callable[[int, np.random.Generator], Demonstrations]


# -- processes ------------------------------------------------------------------------------------


def _summed(steps: Array) -> Demonstrations:
    start = np.zeros((len(steps), 1, 2))
    return Demonstrations(list(np.concatenate([start, np.cumsum(steps, axis=1)], axis=1)))


def correlated_walk(kappa: float, n_steps: int = 20) -> Tracks:
    """Turning angles by von Mises, step lengths by a gamma distribution."""

    def make(n: int, rng: np.random.Generator) -> Demonstrations:
        turns = rng.vonmises(0.0, kappa, (n, n_steps))
        angle = rng.uniform(-np.pi, np.pi, (n, 1)) + np.cumsum(turns, axis=1)
        length = rng.gamma(10.0, 0.1, (n, n_steps, 1))
        return _summed(length * np.stack([np.cos(angle), np.sin(angle)], axis=-1))

    return make


def levy_walk(n: int, rng: np.random.Generator, n_steps: int = 20) -> Demonstrations:
    """Directions at random, step lengths with a tail of power -2.5, cut at 50."""
    angle = rng.uniform(-np.pi, np.pi, (n, n_steps))
    length = np.minimum((1 - rng.random((n, n_steps, 1))) ** (-1 / 1.5), 50.0)
    return _summed(length * np.stack([np.cos(angle), np.sin(angle)], axis=-1))


def ornstein_uhlenbeck(n: int, rng: np.random.Generator, n_steps: int = 20) -> Demonstrations:
    """Positions drawn to the origin."""
    states = [rng.normal(0.0, 2.0, (n, 2))]
    for _ in range(n_steps):
        states.append(0.85 * states[-1] + rng.normal(0.0, 1.0, (n, 2)))
    return Demonstrations(list(np.stack(states, axis=1)))


PROCESSES: dict[str, Tracks] = {
    "correlated walk, κ = 0.5": correlated_walk(0.5),
    "correlated walk, κ = 2": correlated_walk(2.0),
    "correlated walk, κ = 8": correlated_walk(8.0),
    "Lévy walk": levy_walk,
    "Ornstein-Uhlenbeck": ornstein_uhlenbeck,
}


# -- fits -----------------------------------------------------------------------------------------


def fit(
    demos: Demonstrations, dynamics: Any, seed: int, prior: Any = None, draws: int = 100
) -> Posterior:
    """The default model, with short chains."""
    prior = default_prior(demos, dynamics) if prior is None else prior
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(
            Problem.from_demonstrations(demos, dynamics), prior,
            concentration=default_concentration(prior), draws=draws, tune=draws, chains=2,
            random_state=seed, progress=False,
        )  # fmt: skip


def fit_walks(
    train: Demonstrations, heading: bool, seed: int
) -> tuple[Posterior, Callable[[Demonstrations], Demonstrations]]:
    """Actions from the tracks; and how other tracks become states of the posterior."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamics = DisplacementDynamics.from_demonstrations(train)
        if not heading:
            return fit(train, dynamics, seed, draws=N_DRAWS), lambda demos: demos
        choice = choose_state(train, dynamics, ("heading",), seed)
    assert choice is not None

    def as_states(demos: Demonstrations) -> Demonstrations:
        return with_features(demos, choice.features, dynamics)[0]

    states, moving = with_features(train, choice.features, dynamics)
    prior = default_prior(states, moving, choice.metric)
    return fit(states, moving, seed, prior, N_DRAWS), as_states


def below(scores: AnomalyScores, column: str = "p_combined") -> float:
    """The share of p-values below the level."""
    return float(np.mean(getattr(scores.trajectories, column) < LEVEL))


def walks(seeds: range) -> None:
    """Print the share of new tracks that are flagged by a reference that was held out."""

    def judge(posterior: Posterior, new: Any, known: Any, rng: np.random.Generator) -> Any:
        return score(posterior, new, simulate=False, random_state=rng, reference=known)

    _walks(f"by a reference of {N_REFERENCE}", judge, seeds)


def left_out(seeds: range) -> None:
    """The same by the tracks of the fit, left out in turn."""

    def judge(posterior: Posterior, new: Any, known: Any, rng: np.random.Generator) -> Any:
        reference = leave_out(posterior, random_state=rng)
        return score(posterior, new, simulate=False, random_state=rng, reference=reference)

    _walks(f"by {N_FITTED} tracks of the fit, left out in turn", judge, seeds)


def _walks(how: str, judge: Callable[..., AnomalyScores], seeds: range) -> None:
    rows = []
    for name, make in PROCESSES.items():
        for heading in (False, True):
            began, shares = time.perf_counter(), []
            for seed in seeds:
                rng = np.random.default_rng([seed, 7])
                posterior, as_states = fit_walks(make(N_FITTED, rng), heading, seed)
                new, known = as_states(make(N_NEW, rng)), as_states(make(N_REFERENCE, rng))
                found = judge(posterior, new, known, rng)
                shares.append([below(found, column) for column in ("p_value", "p_combined")])
            mean = np.mean(shares, axis=0)
            error = np.std(shares, axis=0) / np.sqrt(len(seeds))
            cells = [f"{m:.1%} ± {e:.1%}" for m, e in zip(mean, error, strict=True)]
            took = time.perf_counter() - began
            rows.append([name, "with heading" if heading else "position", *cells, f"{took:.0f}"])
            print(*rows[-1], np.round(shares, 3).tolist(), sep=" | ", file=sys.stderr, flush=True)
    print_table(
        f"New tracks with p < {LEVEL}, {how}; {len(seeds)} seeds of {N_NEW} tracks",
        ["process", "state", "p_value", "p_combined", "s"],
        rows,
    )


# -- worlds ---------------------------------------------------------------------------------------


def example_1(rng: np.random.Generator) -> tuple[Any, Tracks]:
    """Circular motion in the plane."""
    world = CircularMotion()
    return world.dynamics, lambda n, rng: world.rollout(n, 41, random_state=rng)[0]


def example_2a(rng: np.random.Generator) -> tuple[Any, Tracks]:
    """The grid with its circular policy."""
    world = GridWorld()
    return world.dynamics, lambda n, rng: world.rollout(n, 41, random_state=rng)[0]


def storms(rng: np.random.Generator) -> tuple[Any, Tracks]:
    """Atlantic storms, as they come; each is taken once."""
    demos = load_storms().demos
    demos = demos[demos.lengths >= 10]
    order = iter(rng.permutation(len(demos)).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamics = GeographicDynamics.from_demonstrations(demos)
    return dynamics, lambda n, rng: demos[[next(order) for _ in range(n)]]


def worlds(seeds: range) -> None:
    """Print the share of new nominal tracks that are flagged, and where p_model lies."""
    rows = []
    for make in (example_1, example_2a, storms):
        began, shares = time.perf_counter(), []
        for seed in seeds:
            rng = np.random.default_rng([seed, 8])
            dynamics, tracks = make(rng)
            posterior = fit(tracks(20, rng), dynamics, seed)
            known, new = tracks(N_REFERENCE, rng), tracks(N_NEW, rng)
            found = score(posterior, new, reference=known, n_replicates=50, random_state=rng)
            others = found.calibrated(leave_out(posterior, random_state=rng))
            by_model = found.trajectories.p_model
            shares.append([below(found), below(others), below(found, "p_model"), by_model.mean()])
        mean = np.mean(shares, axis=0)
        took = time.perf_counter() - began
        cells = [f"{m:.1%}" for m in mean[:3]]
        rows.append([make.__doc__, *cells, f"{mean[3]:.2f}", f"{took:.0f}"])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print_table(
        f"New nominal tracks with p < {LEVEL}, {len(seeds)} seeds of {N_NEW} tracks",
        ["world", "reference of 60", "20 left out in turn", "p_model", "mean p_model", "s"],
        rows,
    )


# -- faults ---------------------------------------------------------------------------------------


def faults(seeds: range) -> None:
    """Print the share of faulty tracks that are found."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        rng = np.random.default_rng([seed, 9])
        for name, share in _one_world_of_faults(rng, seed):
            found.setdefault(name, []).append(share)
    rows = [[name, f"{np.mean(shares):.0%}"] for name, shares in found.items()]
    print_table(f"Found with p < {LEVEL}, {len(seeds)} seeds", ["fault", "share"], rows)


def _one_world_of_faults(rng: np.random.Generator, seed: int) -> Iterator[tuple[str, float]]:
    world = CircularMotion(radius=5.0)
    posterior = fit(_faulty(world, 100, rng), world.dynamics, seed)
    known = score(posterior, _faulty(world, N_REFERENCE, rng), simulate=False, random_state=rng)
    for fault, severity in (
        ("none", 0.0), ("swap", 0.2), ("swap", 0.8), ("drift", 0.1), ("drift", 0.3),
        ("frozen", 1), ("frozen", 4), ("random", 0.2),
    ):  # fmt: skip
        new = _faulty(world, N_NEW, rng, fault, severity)
        scores = score(posterior, new, simulate=False, random_state=rng, reference=known)
        yield f"{fault} {severity:g}", below(scores)


def _faulty(
    world: CircularMotion, n: int, rng: np.random.Generator, fault: str = "", severity: float = 0
) -> Demonstrations:
    """The tracks of docs/gallery/faults.md; faults begin after half of their steps."""
    lengths = rng.integers(10, 61, size=n)
    states = [rng.uniform(-8, 8, size=(n, 2))]
    for t in range(int(lengths.max()) - 1):
        here = states[-1]
        late = t >= lengths // 2
        sure, erratic = (
            circular_expert(here, n_actions=24, radius=5.0, spread=spread) for spread in (1, 6)
        )
        outside = np.linalg.norm(here, axis=1) > 5.0
        cumulative = np.cumsum(np.where(outside[:, None], erratic, sure), axis=1)
        actions = (cumulative < rng.random(n)[:, None] * cumulative[:, -1:]).sum(axis=1)
        hit = rng.random(n) < severity
        if fault == "swap":
            actions = np.where(late & hit & (here[:, 0] > 0), (actions + 12) % 24, actions)
        elif fault == "random":
            actions = np.where(hit, rng.integers(24, size=n), actions)
        moved = world.dynamics.sample(here, actions, rng)
        if fault == "drift":
            moved[late] += [severity, 0.0]
        states.append(moved)
    paths = [
        path[:length].copy() for path, length in zip(np.stack(states, 1), lengths, strict=True)
    ]
    if fault == "frozen":
        for path in paths:
            path[-int(severity) :] = path[-int(severity) - 1]
    return Demonstrations(paths)


def main(seeds: int = 20, only: str = "", first: int = 0) -> None:
    """Print the tables."""
    for part in (walks, left_out, worlds, faults):
        if only in ("", part.__name__):
            part(range(first, first + seeds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", choices=["", "walks", "left_out", "worlds", "faults"])
    options = parser.parse_args()
    main(options.seeds, options.only, options.first)
