"""Atlantic storms: steering regimes as a partition of the ocean, and storms that defy them.

What drives a storm is never seen, only where it was every six hours. Directions × speeds are
proposed from the tracks, and the distance-dependent CRP divides the ocean into regions with one
steering law each. Four questions:

1. Which regimes are there? (a map)
2. How well do they predict where a storm goes that was held out? Against the global marginal, a
   nearest-neighbour policy with its best k, and gradient boosting.
3. What does it help to know where a storm comes from, and the season?
4. Which storms are the odd ones out, judged by the others? "Wrong-way" Lenny should be.

    python examples/storms.py [--quick] [--output DIR] [--seed 0] [--jobs N]

The direction of a step is the one of eight sectors (east, north-east, ...) that its displacement
over the sphere points into; steps that stand still have none and are left out. The competitors are
trained on these directions. Ours never sees them: it sees positions, infers latent actions, and
predicts a sector by ``Σ_j p(action j | state) p(sector | action j)``.

Whole storms are held out. Of k and of the settings of boosting the best *on the held-out storms*
counts. Ours (actions, concentration, neighbours, weights of features) was set once, after some
sixty trials on two other splits of the same storms: not on these folds, but on no other storms.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from storms_directions import (
    MARGINAL,
    NAMES,
    OURS,
    Setting,
    boosted_policies,
    log_scores,
    margin,
    neighbour_policies,
    sector_given_action,
    seen_directions,
    summary,
)

from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.anomaly import score
from onlooker.datasets import load_storms
from onlooker.dynamics import Dynamics, GeographicDynamics
from onlooker.dynamics.features import Feature, Heading, day_of_year, with_features
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.warnings import ConvergenceWarning


@dataclass(frozen=True)
class Model:
    """What is known of a storm, and the prior that suits it."""

    features: tuple[Feature, ...]
    metric: str
    n_neighbors: int
    concentration: float
    """Large: regimes stay vague unless many storms agree, as tracks at one place differ much."""


MODELS = {
    "position": Model((), "haversine", 200, 2.0),
    "position, heading, season": Model(
        (Heading(8000.0), day_of_year(500.0)),
        "chord",
        100,
        0.1,  # weights in km, like distances
    ),
}


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    folds: int = 5
    every: int = 1
    """Of so many storms one is used (and Lenny)."""
    chains: int = 4
    tune: int = 60
    draws: int = 20
    thin: int = 3
    ks: tuple[int, ...] = (25, 50, 100, 200, 400, 600, 800, 1200, 1600)
    boosting: tuple[Setting, ...] = (
        (0.1, 100, 20),
        (0.05, 60, 200),
        (0.03, 100, 400),
    )
    """The first is scikit-learn's default."""
    replicates: tuple[int, int] = (200, 2000)
    """Of each storm, and of those that look odd."""


QUICK = Size(2, 5, 1, 15, 5, 1, (25, 100, 400), ((0.1, 10, 100),), (50, 100))


@dataclass(frozen=True)
class Run:
    """How it is computed."""

    size: Size
    seed: int
    jobs: int | None = None


@dataclass
class Findings:
    """What came out."""

    scores: dict[str, pd.DataFrame] = field(default_factory=dict)
    """Log predictive probability of each held-out direction, one column a method."""
    anomalies: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Storms, the oddest first."""
    regimes: pd.DataFrame = field(default_factory=pd.DataFrame)


# -- ours ------------------------------------------------------------------------------------------


def fit(demos: Demonstrations, dynamics: Dynamics, model: Model, run: Run) -> Posterior:
    """Sample partitions of the states."""
    prior = DistanceDependent(
        decay=GaussianDecay(1600.0, offset=0.01),  # km
        n_neighbors=model.n_neighbors,
        metric=model.metric,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains are too short to agree
        return sample(
            Problem.from_demonstrations(demos, dynamics),
            prior,
            concentration=model.concentration,
            draws=run.size.draws,
            tune=run.size.tune,
            thin=run.size.thin,
            chains=run.size.chains,
            random_state=run.seed,
            n_jobs=run.jobs,
            progress=False,
        )


def propose(demos: Demonstrations) -> GeographicDynamics:
    """Actions from tracks."""
    return GeographicDynamics.from_demonstrations(demos, 8, 5, noise="resolution", stay=False)


# -- held-out storms -------------------------------------------------------------------------------


def folds(demos: Demonstrations, n: int, seed: int) -> list[np.ndarray]:
    """Trajectories to hold out; all pieces of a storm go together."""
    storms = np.unique(demos.names)
    fold = np.random.default_rng(seed).permutation(len(storms)) % n
    of = fold[np.searchsorted(storms, demos.names)]
    return [np.flatnonzero(of == k) for k in range(n)]


def hold_out(demos: Demonstrations, run: Run) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Score every storm by models that have not seen it."""
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in MODELS}
    judged = []
    for number, held in enumerate(folds(demos, run.size.folds, run.seed)):
        started = time.perf_counter()
        seen, unseen = demos[np.setdiff1d(np.arange(len(demos)), held)], demos[held]
        dynamics = propose(seen)
        for name, model in MODELS.items():
            train, wrapped = with_features(seen, model.features, dynamics)
            test, _ = with_features(unseen, model.features, dynamics)
            posterior = fit(train, wrapped, model, run)
            tables[name].append(compare(posterior, dynamics, train, test, run.size))
            if not model.features:
                judged.append(judge(posterior, test, run))
        means = ", ".join(f"{parts[-1][OURS].mean():.3f}" for parts in tables.values())
        spent = time.perf_counter() - started
        print(f"  fold {number + 1} of {run.size.folds}: ours {means} ({spent:.0f} s)", flush=True)
    anomalies = pd.concat(judged).sort_values("score", ascending=False)
    return {name: pd.concat(parts) for name, parts in tables.items()}, anomalies


def judge(posterior: Posterior, test: Demonstrations, run: Run) -> pd.DataFrame:
    """How odd are storms that were held out?"""
    return score(
        posterior,
        test,
        extrapolate="local",
        n_replicates=run.size.replicates[0],
        max_replicates=run.size.replicates[1],
        random_state=run.seed,
        progress=False,
    ).to_frame()


def compare(
    posterior: Posterior,
    dynamics: GeographicDynamics,
    train: Demonstrations,
    test: Demonstrations,
    size: Size,
) -> pd.DataFrame:
    """``ln p`` of every direction seen in `test`, one column a method."""
    moving, sectors = seen_directions(train)
    states = train.transitions()[0][moving]
    moving, truth = seen_directions(test)
    queries = test.transitions()[0][moving]
    marginal = np.bincount(sectors, minlength=len(NAMES)) / len(sectors)
    predicted = posterior.policy(queries, extrapolate="local") @ sector_given_action(dynamics)
    table = {
        "storm": test.names[test.trajectory_of()[moving]],
        MARGINAL: np.log(marginal[truth]),
        OURS: log_scores(predicted, truth),
    }
    for k, policy in neighbour_policies(states, sectors, queries, size.ks):
        table[f"k-NN, k = {k}"] = log_scores(policy, truth)
    for setting, policy in boosted_policies(states, sectors, queries, size.boosting):
        table[f"boosting, {setting}"] = log_scores(policy, truth)
    return pd.DataFrame(table)


# -- regimes ---------------------------------------------------------------------------------------


def regimes_of(posterior: Posterior, dynamics: GeographicDynamics) -> pd.DataFrame:
    """One row a node: where it is, its regime in the consensus, and the mean step there."""
    east, north = (posterior.policy() @ dynamics.steps).T
    lon, lat = posterior.problem.states.T
    return pd.DataFrame(
        {"lon": lon, "lat": lat, "regime": posterior.partition(), "east": east, "north": north}
    )


def tell_regimes(nodes: pd.DataFrame, most: int = 6) -> None:
    """The largest regimes in words."""
    sizes = nodes["regime"].value_counts()
    share = sizes.head(most).sum() / len(nodes)
    print(
        f"{len(sizes)} steering regimes in the consensus, with {share:.0%} of the fixes in the "
        f"largest {min(most, len(sizes))}:"
    )
    for regime in sizes.index[:most]:
        own = nodes[nodes["regime"] == regime]
        east, north = own["east"].mean(), own["north"].mean()
        way = NAMES[round(np.arctan2(north, east) / (2 * np.pi / len(NAMES))) % len(NAMES)]
        print(
            f"  {len(own) / len(nodes):4.0%} around {own['lat'].median():.0f}°N "
            f"{-own['lon'].median():.0f}°W: {way:2s} at {np.hypot(east, north) / 6:.0f} km/h"
        )


# -- the whole -------------------------------------------------------------------------------------


def explore(run: Run, output: Path) -> Findings:
    """Answer the four questions; draws `storms.png` and writes tables to `output`."""
    demos = load_storms().demos
    chosen = np.unique(demos.names)[:: run.size.every]
    demos = demos[np.isin(demos.names, [*chosen, "Lenny 1999"])]
    dynamics = propose(demos)
    print(f"{len(set(demos.names))} storms, {demos.n_transitions:,} steps of six hours.")
    print(f"Actions proposed: {dynamics!r}\n{dynamics.account}")
    found = Findings()

    print("Held-out storms, mean log predictive probability of the direction (8 sectors):")
    found.scores, found.anomalies = hold_out(demos, run)
    tell_scores(found.scores)
    found.anomalies = tell_anomalies(found.anomalies)

    posterior = fit(demos, dynamics, MODELS["position"], run)
    found.regimes = regimes_of(posterior, dynamics)
    tell_regimes(found.regimes)

    output.mkdir(parents=True, exist_ok=True)
    from storms_figure import draw

    draw(found, demos, output / "storms.png")
    means = pd.DataFrame(
        {name: table.drop(columns="storm").mean() for name, table in found.scores.items()}
    )
    means.to_csv(output / "storms_scores.csv")
    found.anomalies.to_csv(output / "storms_anomalies.csv")
    print(f"Drawn: {output / 'storms.png'}; tables beside it.")
    return found


def tell_scores(scores: dict[str, pd.DataFrame]) -> None:
    """Who predicts how well, and whether ours beats the best k-NN."""
    for name, table in scores.items():
        print(f"Knowing {name}, {len(table):,} steps of {table['storm'].nunique()} storms:")
        for method, value in summary(table).items():
            print(f"  {method:24s} {value:.4f}")
        best, gain, error = margin(table)
        ahead = "ours is ahead" if gain > 0 else "k-NN is ahead"
        if abs(gain) < 2 * error:
            ahead += ", but within two standard errors: as good as a tie"
        print(f"  Ours less the best k-NN ({best[6:]}): {gain:+.4f} ± {error:.4f} nats a step;")
        print(f"  {ahead}.")


def tell_anomalies(anomalies: pd.DataFrame, least: int = 10) -> pd.DataFrame:
    """The odd ones out among tracks of at least so many fixes."""
    ranked = anomalies[anomalies["n_steps"] >= least - 1].copy()
    ranked.insert(0, "rank", np.arange(1, len(ranked) + 1))
    print(f"The most anomalous of {len(ranked)} tracks of {least} fixes or more:")
    for name, row in ranked.head(5).iterrows():
        print(f"  {row['rank']:.0f}. {name}: score {row['score']:.1f}, p = {row['p_value']:.2g}")
    lenny = ranked.loc["Lenny 1999", "rank"]
    print(f"Lenny (1999), which crossed the Caribbean the wrong way, is number {lenny!s}.")
    return ranked


def main(arguments: list[str] | None = None) -> Findings:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few storms, few sweeps")
    parser.add_argument("--output", type=Path, default=Path("storms"), help="directory to write to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None, help="chains at the same time")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    size = QUICK if options.quick else Size()
    found = explore(Run(size, options.seed, options.jobs), options.output)
    print(f"Took {time.perf_counter() - started:.0f} s.")
    return found


if __name__ == "__main__":
    main()
