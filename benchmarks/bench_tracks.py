"""Real tracks: whole ones left out, and the edge of the map.

python -m benchmarks tracks            everything: one fold of five, and more where they are kept
python -m benchmarks.bench_tracks storms ships 2    some sets, two folds
ONLOOKER_KEPT=1 python -m benchmarks tracks         what was measured before

All predict the distribution of actions at every state of the tracks that were left out, scored by
``ln Σ_a p(a) ℓ[t, a]``, where ℓ is divided by its largest value for the step: 0 is perfect. Actions
are proposed from the tracks that are learnt from. All get the same inputs: the position,
or the position and the heading, or also the speed; scales are chosen by the library for itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _peers
from benchmarks._measure import RECORD, print_table
from benchmarks._rivals import (
    Steps,
    log_scores,
    rivals,
    shares,
    tuned,
)
from benchmarks._track_sets import HOME, SETS, TrackSet
from onlooker import Demonstrations, sample
from onlooker.choosing.features import choose_state
from onlooker.defaults import default_model
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics
from onlooker.dynamics.base import position_dynamics, steps_between
from onlooker.dynamics.features import Feature, Heading, Speed, with_features

HERE = Path(__file__).parent
FOUND = HOME / "found"
FOLDS = 5
ARMS = {"position": (), "heading": ("heading",), "heading and speed": ("heading", "speed")}
SHORT = {"tune": 60, "draws": 60}  # of four chains where there are no landmarks
OURS, BOTH = "onlooker", "onlooker + forest"


@dataclass
class World:
    """Tracks to learn from and tracks to predict, with actions proposed from the former."""

    dynamics: Any
    train: Demonstrations
    test: Demonstrations

    def steps(self, demos: Demonstrations) -> Steps:
        """As rivals see them."""
        states, following = demos.transitions()
        plain = position_dynamics(self.dynamics)
        before, after = states[:, :2], following[:, :2]
        logs = plain.log_likelihood(before, after)
        centre = self.train.states[:, :2].mean(axis=0)
        places = steps_between(plain, np.tile(centre, (len(before), 1)), before)
        unit = steps_between(
            plain, np.tile(centre, (len(self.train.states), 1)), self.train.states[:, :2]
        ).std()
        inputs, heading, turned = places / unit, None, None
        columns = getattr(self.dynamics, "columns_of", lambda _: None)(Heading)
        if columns is not None:
            vector = states[:, columns]
            vector = vector / np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-12)
            heading = np.arctan2(vector[:, 1], vector[:, 0])
            inputs = np.hstack([inputs, vector])
            speed = self.dynamics.columns_of(Speed)
            if speed is not None:
                usual = np.median(np.linalg.norm(plain.steps, axis=1))
                inputs = np.hstack([inputs, states[:, speed] / usual])
            moved = steps_between(plain, before, after)
            cos, sin = np.cos(-heading), np.sin(-heading)
            back = np.column_stack(
                [cos * moved[:, 0] - sin * moved[:, 1], sin * moved[:, 0] + cos * moved[:, 1]]
            )
            sigma = np.broadcast_to(plain.sigma, len(plain.steps))
            squares = np.square(back[:, None] - plain.steps).sum(axis=2)
            turned = _scaled(-squares / (2 * sigma**2) - 2 * np.log(sigma))
        return Steps(inputs, _scaled(logs), demos.trajectory_of(), heading, turned)


def _scaled(logs: np.ndarray) -> np.ndarray:
    return np.exp(logs - logs.max(axis=1, keepdims=True))


def make_world(
    which: TrackSet, train: Demonstrations, test: Demonstrations, joined: tuple[str, ...]
) -> World:
    """Propose actions from the tracks that are learnt from; features as rivals need them."""
    kind = GeographicDynamics if which.geographic else DisplacementDynamics
    dynamics: Any = kind.from_demonstrations(train)
    return _joined(World(dynamics, train, test), [Heading(1.0), Speed(1.0)][: len(joined)])


def _joined(world: World, features: Sequence[Feature]) -> World:
    if not features:
        return world
    train, dynamics = with_features(world.train, features, world.dynamics)
    return World(dynamics, train, with_features(world.test, features, world.dynamics)[0])


def fit_default(
    which: TrackSet, train: Demonstrations, test: Demonstrations, joined: tuple[str, ...]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Policies of the library's default at states that were left out, and what it chose."""
    plain = make_world(which, train, test, ())
    choice = choose_state(train, plain.dynamics, joined)
    world = plain if choice is None else _joined(plain, choice.features)
    made = default_model(
        world.train,
        world.dynamics,
        metric=None if choice is None else choice.metric,
        repertoire="auto",
        n_jobs=1,
    )
    sizes: dict[str, Any] = {"tune": made.tune, "draws": made.draws}
    if made.problem.landmarks is None:
        sizes = SHORT
    posterior = sample(
        made.problem, made.prior, made.concentration, chains=made.chains, random_state=0,
        n_jobs=1, progress=False, **sizes,
    )  # fmt: skip
    chosen: dict[str, Any] = {"notes": made.notes, "scales": [], "gains": {}}
    if choice is not None:
        chosen["scales"] = [repr(each) for each in (*choice.features, choice.metric)]
        chosen["gains"] = {" and ".join(names): str(gain) for names, gain in choice.gains.items()}
    return posterior.policy(world.test.transitions()[0]), chosen


def rival_policies(world: World, test: Steps) -> dict[str, np.ndarray]:
    """Policies at the steps of the tracks that were left out, by all others."""
    train = world.steps(world.train)
    steps = np.asarray(position_dynamics(world.dynamics).steps)
    found = {}
    for name, candidates in rivals(steps, train.heading is not None):
        found[name] = tuned(candidates, train)(test)
    if train.heading is not None:
        try:
            found["HMM"] = _markov(world, train, test)
        except _peers.Absent as absent:
            print(f"HMM left out: {absent}")
    return found


def _markov(world: World, train: Steps, test: Steps) -> np.ndarray:
    """By hmmlearn, on the logarithm of the length of steps and on turns as unit vectors."""
    plain = position_dynamics(world.dynamics)
    least = float(np.median(np.linalg.norm(plain.steps, axis=1))) / 10

    def seen(demos: Demonstrations, steps: Steps) -> np.ndarray:
        states, following = demos.transitions()
        return _step_and_turn(
            steps_between(plain, states[:, :2], following[:, :2])[:, None], steps, least
        )[:, 0]

    def offered(steps: Steps) -> np.ndarray:
        return _step_and_turn(np.tile(plain.steps, (len(steps.inputs), 1, 1)), steps, least)

    names = np.unique(train.track)
    aside = np.isin(train.track, np.random.default_rng(0).permutation(names)[: -(-len(names) // 5)])
    values = seen(world.train, train)
    inner, outer = train.take(np.flatnonzero(~aside)), train.take(np.flatnonzero(aside))
    asked = {
        "inner.values": values[~aside], "inner.lengths": _lengths(inner.track),
        "outer.values": values[aside], "outer.lengths": _lengths(outer.track),
        "outer.actions": offered(outer),
        "train.values": values, "train.lengths": _lengths(train.track),
        "test.values": seen(world.test, test), "test.lengths": _lengths(test.track),
        "test.actions": offered(test),
    }  # fmt: skip
    found = _peers.ask("hmmlearn", HERE / "_ask_hmm.py", asked, limit=600)
    marginal, best = shares(train.likelihood), (-np.inf, np.zeros(0))
    for name in found:
        if not name.startswith("outer."):
            continue
        for mixed_in in (0.01, 0.03, 0.1, 0.3):
            # densities of actions say where they lie, their shares how often each is chosen
            outer_policy = _mixed(found[name], marginal, mixed_in)
            score = log_scores(outer_policy, outer.likelihood).mean()
            if score > best[0]:
                of_test = found["test." + name.split(".")[1]]
                best = score, _mixed(of_test, marginal, mixed_in)
    if best[0] == -np.inf:
        raise _peers.Absent("no model came to an end")
    return best[1]


def _mixed(policy: np.ndarray, marginal: np.ndarray, share: float) -> np.ndarray:
    return (1 - share) * policy + share * marginal


def _step_and_turn(moved: np.ndarray, steps: Steps, least: float) -> np.ndarray:
    """``(n, k, 3)``: ln length, and the turn as a unit vector, or nothing where it stands."""
    assert steps.heading is not None
    length = np.linalg.norm(moved, axis=2)
    turn = np.arctan2(moved[..., 1], moved[..., 0]) - steps.heading[:, None]
    moves = (length > 0) & np.hypot(steps.inputs[:, 2], steps.inputs[:, 3])[:, None].astype(bool)
    parts = [np.log(length + least), np.cos(turn) * moves, np.sin(turn) * moves]
    return np.stack(parts, axis=2)


def _lengths(track: np.ndarray) -> np.ndarray:
    return np.diff(np.flatnonzero(np.concatenate([[True], np.diff(track) != 0, [True]])))


def halves(demos: Demonstrations, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole tracks to learn from, and those of a fold, which are left out."""
    fold = np.random.default_rng(1).permutation(len(demos)) % FOLDS
    return np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def mean_and_error(scores: np.ndarray, track: np.ndarray) -> tuple[float, float]:
    """Mean a step, and its standard error by track."""
    number = np.unique(track, return_inverse=True)[1]
    size, total = np.bincount(number), np.bincount(number, scores)
    mean, n = scores.mean(), len(size)
    return float(mean), float(
        np.sqrt(np.square(total - mean * size).sum() * n / (n - 1)) / size.sum()
    )


def fold_of_rivals(which: TrackSet, arm: str, number: int) -> dict[str, Any]:
    """Scores of all others on a fold."""
    demos = which.demos()
    train, out = halves(demos, number)
    world = make_world(which, demos[train], demos[out], ARMS[arm])
    test = world.steps(world.test)
    return {
        "scores": {
            name: log_scores(policy, test.likelihood).round(6).tolist()
            for name, policy in rival_policies(world, test).items()
        },
        "track": (number * len(demos) + test.track).tolist(),
    }


def fold_of_ours(which: TrackSet, arm: str, number: int) -> dict[str, Any]:
    """Scores of the default on a fold."""
    demos, began = which.demos(), time.process_time()
    train, out = (demos[some] for some in halves(demos, number))
    policy, chosen = fit_default(which, train, out, ARMS[arm])
    test = make_world(which, train, out, ()).steps(out)
    scores = log_scores(policy, test.likelihood).round(6).tolist()
    return {"scores": scores, **chosen, "seconds": time.process_time() - began}


def whole_tracks(which: TrackSet, arm: str, n_folds: int) -> dict[str, Any]:
    """Scores of all methods, over some of the folds."""
    parts, gains = [], []
    for number in range(n_folds):
        name = f"{which.name}, {arm}, fold {number + 1}"
        others = kept(f"{name}, others", partial(fold_of_rivals, which, arm, number))
        ours = kept(name, partial(fold_of_ours, which, arm, number))
        gains.append(ours["gains"])
        scores = {**others["scores"], OURS: ours["scores"]}
        scores[BOTH] = np.logaddexp(scores[OURS], scores["random forest"]) - np.log(2)
        means = ", ".join(f"{method} {np.mean(each):.3f}" for method, each in scores.items())
        print(f"{name}: {means} ({ours['seconds']:.0f} s)", flush=True)
        print(*ours["scales"], ours["gains"], *ours["notes"], flush=True)
        parts.append(scores | {"track": others["track"]})
    methods = [name for name in parts[0] if all(name in part for part in parts)]
    scores = {name: np.concatenate([part[name] for part in parts]) for name in methods}
    track = scores.pop("track")
    best = max((n for n in scores if n not in (OURS, BOTH)), key=lambda n: scores[n].mean())
    return {
        "scores": {name: mean_and_error(values, track) for name, values in scores.items()},
        "ahead": mean_and_error(scores[OURS] - scores[best], track),
        "gains": gains,
        "tracks": len(np.unique(track)),
        "folds": n_folds,
    }


def kept(name: str, measure: Callable[[], Any]) -> Any:
    """What was measured before, or is now; for as long as ``.benchmarks/tracks/found`` is there."""
    file = _file(name)
    if not file.exists():
        if os.environ.get("ONLOOKER_KEPT"):
            raise _peers.Absent("it was not measured, and ONLOOKER_KEPT is set")
        file.parent.mkdir(parents=True, exist_ok=True)
        found = measure()
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(file)
    return json.loads(file.read_text())


def _file(name: str) -> Path:
    return FOUND / (name.replace(", ", "-").replace(" ", "_") + ".json")


def edge(which: TrackSet) -> dict[str, Any]:
    """The outer eighth of each side of the map left out: scores there, entropy by distance."""
    demos = which.demos()
    states = demos.states
    low, high = np.quantile(states, [0.005, 0.995], axis=0)
    margin = (high - low) / 8
    inside = ((states > low + margin) & (states < high - margin)).all(axis=1)
    pieces: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for track, kept in zip(demos, np.split(inside, demos.offsets[1:-1]), strict=True):
        cuts = np.flatnonzero(np.diff(kept)) + 1
        for piece, sides in zip(np.split(track, cuts), np.split(kept, cuts), strict=True):
            if len(piece) > 1:
                pieces[bool(sides[0])].append(piece)
    if not pieces[False]:
        return {}
    world = make_world(which, Demonstrations(pieces[True]), Demonstrations(pieces[False]), ())
    test, train = world.steps(world.test), world.steps(world.train)
    policy, chosen = fit_default(which, world.train, world.test, ())
    found = {OURS: policy}
    for name, candidates in rivals(np.asarray(position_dynamics(world.dynamics).steps), False):
        if name in ("global marginal", "random forest"):
            found[name] = tuned(candidates, train)(test)
    from scipy.spatial import cKDTree

    away = cKDTree(train.inputs).query(test.inputs)[0]
    entropy = -(policy * np.log(np.maximum(policy, 1e-300))).sum(axis=1)
    thirds = np.array_split(np.argsort(away), 3)
    scores = {name: log_scores(values, test.likelihood) for name, values in found.items()}
    return {
        "scores": {name: mean_and_error(values, test.track) for name, values in scores.items()},
        "ahead": mean_and_error(scores[OURS] - scores["global marginal"], test.track),
        "entropy": [float(entropy[third].mean()) for third in thirds],
        **chosen,
    }


def folds_kept(which: TrackSet, arm: str) -> int:
    """How many folds of all methods were measured before."""
    return sum(_file(f"{which.name}, {arm}, fold {number + 1}").exists() for number in range(FOLDS))


def mean_of_shapes(data: dict[str, Any], arm: str) -> list[object] | None:
    """A row of the means over shapes of LASA; their number is that of independent tracks."""
    of_arm = [data[name] for name in data if name.startswith("LASA") and name.endswith(f", {arm}")]
    if len(of_arm) < 2:
        return None
    names = [name for name in METHODS if all(name in found["scores"] for found in of_arm)]
    scores = {name: np.array([found["scores"][name][0] for found in of_arm]) for name in names}
    best = max((name for name in names if name not in (OURS, BOTH)), key=lambda n: scores[n].mean())
    ahead = scores[OURS] - scores[best]
    error = ahead.std(ddof=1) / np.sqrt(len(ahead))
    cells = [f"{scores[name].mean():.3f}" if name in scores else "–" for name in METHODS]
    n_tracks = sum(found["tracks"] for found in of_arm)
    difference = f"{ahead.mean():+.3f} ± {error:.3f}"
    return [f"LASA, mean of {len(of_arm)}", arm, str(n_tracks), "", *cells, difference]


def main(quick: bool = False, chosen: tuple[str, ...] = (), n_folds: int = 1) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")  # short chains have not converged; they predict
    data: dict[str, Any] = {}
    table, edges = [], []
    for which in SETS:
        if chosen and which.name not in chosen:
            continue
        try:
            which.read()
        except _peers.Absent as absent:
            print(f"{which.name} left out: {absent}")
            continue
        for arm in ARMS:
            n = max(n_folds, 0 if quick else folds_kept(which, arm))
            found = _or_nothing(f"{which.name}, {arm}", partial(whole_tracks, which, arm, n))
            if found:
                data[f"{which.name}, {arm}"] = found
                table.append(_row(which, arm, found))
                print(table[-1], flush=True)
        if not which.name.startswith("LASA"):
            name = f"{which.name}, edge"
            found = _or_nothing(name, partial(kept, name, partial(edge, which)))
            if found:
                data[name] = found
                edges.append(_edge_row(which, found))
                print(edges[-1], flush=True)
    table += [row for arm in ARMS if (row := mean_of_shapes(data, arm)) is not None]
    RECORD["data"]["tracks"] = data
    if table:
        print_table("Tracks left out: mean log score a step ± standard error by track", HEAD, table)
    if edges:
        print_table("The outer eighth of each side of the map left out", EDGE_HEAD, edges)


def _or_nothing(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measure()
    except _peers.Absent as absent:
        print(f"{name} left out: {absent}")
        return {}


METHODS = (
    "global marginal", "k-NN", "random forest", "gradient boosting", "logistic regression", "HMM",
    OURS, BOTH,
)  # fmt: skip
HEAD = ["set", "state", "tracks", "folds", *METHODS, "onlooker − best other"]
EDGE_HEAD = ["tracks", "global marginal", "random forest", OURS, "entropy near", "middle", "far"]


def _row(which: TrackSet, arm: str, found: dict[str, Any]) -> list[object]:
    scores = found["scores"]
    cells = ["–" if name not in scores else f"{scores[name][0]:.3f}" for name in METHODS]
    mean, error = found["ahead"]
    name, part = which.name + " *" * which.tuned, f"{found['folds']} of {FOLDS}"
    return [name, arm, str(found["tracks"]), part, *cells, f"{mean:+.3f} ± {error:.3f}"]


def _edge_row(which: TrackSet, found: dict[str, Any]) -> list[object]:
    scores = found["scores"]
    names = ("global marginal", "random forest", OURS)
    cells = [f"{scores[name][0]:.3f}" for name in names]
    return [which.name, *cells, *(f"{value:.2f}" for value in found["entropy"])]


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    names = [word for word in sys.argv[1:] if not word.isdigit() and word != "--quick"]
    main("--quick" in sys.argv, tuple(names), *numbers)
