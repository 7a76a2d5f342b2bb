"""Faults that are known, found by a posterior that only knows what is nominal.

A controller is swapped in half of the world, a wind sets in, a sensor freezes: each in a world in
the plane (`CircularMotion`) and in one of 441 states (`GridWorld`), both with an expert that is
erratic outside a radius. The nominal posterior comes from states alone. How well do its scores
tell faulty trajectories from nominal ones, compared with their mean log-likelihood and with their
one most surprising step?

    python examples/faults.py [--quick] [--output DIR] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.anomaly import AnomalyScores, score
from onlooker.dynamics import Dynamics
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion, GridWorld, circular_expert

RADIUS = 5.0
LENGTHS = (10, 60)  # states of a trajectory, at least and at most
METHODS = {
    "any": "all alarms together",
    "score": "score of the behaviour",
    "mean": "mean surprise",
    "max": "largest surprise",
}


@dataclass(frozen=True)
class World:
    """A simulator with a nominal policy, and what a fault does there."""

    name: str
    dynamics: Dynamics
    policy: Callable[[np.ndarray], np.ndarray]
    places: Callable[[np.ndarray], np.ndarray]
    """States as points of the plane."""
    start: Callable[[int, np.random.Generator], np.ndarray]
    blow: Callable[[np.ndarray, float, np.random.Generator], np.ndarray]
    """What a wind of some strength does to states."""
    prior: DistanceDependent
    severities: dict[str, list[float]]


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    n_train: int
    n: int
    n_replicates: int
    max_replicates: int
    severities: slice
    sampling: dict[str, Any]


FULL = Size(100, 100, 200, 1000, slice(None), {"draws": 200, "tune": 200, "chains": 2})
QUICK = Size(30, 20, 100, 100, slice(1, None, 2), {"draws": 60, "tune": 60, "chains": 1})


def expert(points: np.ndarray, n_actions: int) -> np.ndarray:
    """The circling expert; outside the radius it takes any of many directions."""
    n_wide = n_actions // 4
    sure, erratic = (
        circular_expert(points, n_actions=n_actions, radius=RADIUS, spread=spread)
        for spread in (1, n_wide)
    )
    outside = np.linalg.norm(points, axis=1) > RADIUS
    return np.where(outside[:, None], erratic, sure)


def plane() -> World:
    """Example 1's world."""
    world = CircularMotion(radius=RADIUS)

    def start(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-8, 8, size=(n, 2))

    return World(
        "plane",
        world.dynamics,
        lambda states: expert(states, world.n_actions),
        lambda states: states,
        start,
        lambda states, strength, rng: states + np.array([strength, 0.0]),
        DistanceDependent(),
        {"swap": [0.1, 0.2, 0.4, 0.8], "drift": [0.1, 0.2, 0.3, 0.4], "frozen": [1, 2, 4, 8]},
    )


def grid() -> World:
    """Example 2's world."""
    world = GridWorld(sigma=0.5, expert=expert(GridWorld().coordinates, 8))

    def blow(states: np.ndarray, strength: float, rng: np.random.Generator) -> np.ndarray:
        pushed = rng.random(len(states)) < strength
        return np.where(
            pushed & (states < world.n_states - world.size), states + world.size, states
        )

    return World(
        "grid",
        world.dynamics,
        world.policy,
        lambda states: world.coordinates[states],
        lambda n, rng: rng.integers(world.n_states, size=n),
        blow,
        DistanceDependent(decay=GaussianDecay(1.0, offset=0.01), coordinates=world.coordinates),
        {"swap": [0.1, 0.2, 0.4, 0.8], "drift": [0.1, 0.2, 0.4, 0.8], "frozen": [1, 2, 4, 8]},
    )


def simulate(
    world: World, n: int, rng: np.random.Generator, fault: str = "", severity: float = 0.0
) -> tuple[Demonstrations, np.ndarray]:
    """Trajectories of many lengths, and the first step of each that the fault touches (-1: none).

    The fault sets in after half of a trajectory. ``swap``: with probability `severity`, the
    action at a place right of the origin is the opposite one. ``drift``: a wind of strength
    `severity`. ``frozen``: the last `severity` states repeat the one before them.
    """
    lengths = rng.integers(LENGTHS[0], LENGTHS[1] + 1, size=n)
    begins = lengths // 2
    onset = np.full(n, -1) if fault in ("", "swap") else begins
    if fault == "frozen":
        onset = lengths - 1 - int(severity)
    states = [world.start(n, rng)]
    for t in range(lengths.max() - 1):
        here = states[-1]
        cumulative = np.cumsum(world.policy(here), axis=1)
        actions = (cumulative < rng.random(n)[:, None] * cumulative[:, -1:]).sum(axis=1)
        if fault == "swap":
            wrong = (t >= begins) & (t < lengths - 1) & (rng.random(n) < severity)
            wrong &= world.places(here)[:, 0] > 0
            onset = np.where(wrong & (onset < 0), t, onset)
            n_actions = cumulative.shape[1]
            actions = np.where(wrong, (actions + n_actions // 2) % n_actions, actions)
        moved = world.dynamics.sample(here, actions, rng)
        if fault == "drift":
            blown = world.blow(moved, severity, rng)
            moved = np.where((t >= begins).reshape(-1, *[1] * (moved.ndim - 1)), blown, moved)
        states.append(moved)
    paths = [
        np.array(path[:length]) for path, length in zip(np.stack(states, 1), lengths, strict=True)
    ]
    if fault == "frozen":
        for path, first in zip(paths, onset, strict=True):
            path[first + 1 :] = path[first]
    return Demonstrations(paths), onset


def fit(world: World, size: Size, seed: int) -> Posterior:
    """The posterior over the nominal policy, from nominal trajectories."""
    demos, _ = simulate(world, size.n_train, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few hundred draws do here
        return sample(
            Problem.from_demonstrations(demos, world.dynamics),
            world.prior,
            random_state=seed,
            **size.sampling,
        )


def oddity(scores: AnomalyScores, known: AnomalyScores) -> pd.DataFrame:
    """What each method calls the oddity of each trajectory.

    All alarms together: compared with those of other nominal trajectories, `known`.
    """
    surprise = np.minimum(scores.steps.surprise, 1e3)  # the baselines know no infinity
    by = pd.Series(surprise).groupby(scores.steps.trajectory)
    together = -scores.against(known, "any")
    return pd.DataFrame(
        {"any": together, "score": scores.trajectories.score, "mean": by.mean(), "max": by.max()}
    )


def judge(
    world: World, posterior: Posterior, size: Size, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """AUC of every fault, severity and method; and how nominal trajectories fare."""
    rng = np.random.default_rng(seed + 1)
    n = size.n

    def scored(demos: Demonstrations) -> AnomalyScores:
        return score(
            posterior,
            demos,
            n_replicates=size.n_replicates,
            max_replicates=size.max_replicates,
            random_state=rng,
        )

    nominal, known = (scored(simulate(world, n, rng)[0]) for _ in range(2))
    usual = oddity(nominal, known)
    rows = []
    for fault, severities in world.severities.items():
        for severity in severities[size.severities]:
            demos, onset = simulate(world, 2 * n, rng, fault, severity)
            chosen = np.flatnonzero(onset >= 0)[:n]  # a fault that touched nothing is none
            demos, onset = demos[chosen], onset[chosen]
            found = scored(demos)
            odd = oddity(found, known)
            truth = np.r_[np.zeros(n), np.ones(len(chosen))]
            row = {"world": world.name, "fault": fault, "severity": severity}
            for method in METHODS:
                row[method] = roc_auc_score(truth, np.r_[usual[method], odd[method]])
            table = found.trajectories
            seen = table.p_change <= 0.01
            row["alarms"] = float(np.mean(table.p_any <= 0.01))
            row["located"] = float(seen.mean())
            if seen.any():
                row["steps off"] = float(np.median(np.abs(table.onset - onset)[seen]))
            rows.append(row)
    long = nominal.trajectories.n_steps >= np.median(nominal.trajectories.n_steps)
    nominal_alarms = {
        "p": nominal.trajectories.p_value,
        "any": nominal.trajectories.p_any,
        "conformal": nominal.against(known, "any"),
        "long": long,
    }
    return pd.DataFrame(rows), nominal_alarms


def tell(table: pd.DataFrame, nominal: dict[str, dict]) -> None:
    """The finding, in words."""
    print("\nAUC by fault and severity (0.5: no better than a coin, 1: perfect):\n")
    print(table.round(2).to_string(index=False))
    print(
        "\nalarms: share with p_any ≤ 0.01. located: share with p_change ≤ 0.01; steps off: median"
    )
    print("distance of the onset found from the true one.\n")
    for name, found in nominal.items():
        low = found["any"] <= 0.05
        print(
            f"Nominal trajectories in the {name} with p_any ≤ 0.05: {low.mean():.0%} "
            f"({low[found['long']].mean():.0%} of the longer half, "
            f"{low[~found['long']].mean():.0%} of the shorter); "
            f"p_value ≤ 0.05: {(found['p'] <= 0.05).mean():.0%}; against other nominal ones: "
            f"{(found['conformal'] <= 0.05).mean():.0%}."
        )
    for world, rows in table.groupby("world", sort=False):
        together, best = rows["any"].mean(), rows[["mean", "max"]].max(axis=1).mean()
        print(
            f"{str(world).capitalize()}: all alarms together have an AUC of {together:.2f} on "
            f"average over faults and severities, the better baseline each time {best:.2f}."
        )
    weak = table[table[["any", "score"]].max(axis=1) < 0.75]
    if len(weak):
        where = ", ".join(f"{r.fault} {r.severity:g} ({r.world})" for r in weak.itertuples())
        print(f"It fails (AUC below 0.75) at: {where}.")


def draw(table: pd.DataFrame, nominal: dict[str, dict], path: Path) -> None:
    """One row of panels a world: AUC by fault, and the p-values of nominal trajectories."""
    from matplotlib.figure import Figure

    from onlooker.plot import anomaly as plot_anomaly

    colours = dict(zip(METHODS, ("#0072B2", "#56B4E9", "#E69F00", "#D55E00"), strict=True))
    units = {"swap": "share of wrong actions", "drift": "strength of the wind", "frozen": "steps"}
    figure = Figure(figsize=(12, 6.2), layout="constrained")
    panels = figure.subplots(len(nominal), 4)
    for row, (name, found) in zip(panels, nominal.items(), strict=True):
        for ax, fault in zip(row, units, strict=False):
            rows = table[(table["world"] == name) & (table["fault"] == fault)]
            for method, label in METHODS.items():
                at = np.arange(len(rows))
                ax.plot(at, rows[method], "o-", color=colours[method], label=label, ms=4)
            ax.set_xticks(at, [f"{x:g}" for x in rows["severity"]])
            ax.axhline(0.5, color="0.6", lw=0.8, ls=":")
            ax.set(title=f"{name}: {fault}", xlabel=units[fault], ylim=(0.2, 1.03))
        row[0].set_ylabel("area under the ROC curve")
        plot_anomaly.p_values(found["any"], row[3], label="p_any")
        plot_anomaly.p_values(found["p"], row[3], label="p_value")
        plot_anomaly.p_values(found["conformal"], row[3], label="against nominal ones")
        row[3].set(title=f"{name}: nominal trajectories")
        row[3].legend(fontsize="small", loc="lower right")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run both worlds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small: a taste, not a result")
    parser.add_argument("--output", type=Path, default=Path("faults"), help="directory")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    size = QUICK if chosen.quick else FULL
    tables, nominal = [], {}
    for world in (plane(), grid()):
        posterior = fit(world, size, chosen.seed)
        print(f"{world.name}: {posterior!r}")
        table, nominal[world.name] = judge(world, posterior, size, chosen.seed)
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    table.to_csv(chosen.output / "faults.csv", index=False)
    tell(table, nominal)
    draw(table, nominal, chosen.output / "faults.png")
    print(f"\nFigure: {chosen.output / 'faults.png'}. It took {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()
