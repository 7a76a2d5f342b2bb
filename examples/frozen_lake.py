"""FrozenLake 8×8: how many walks over the ice does it take to recognise an optimal expert?

The expert plans by value iteration on a lake where four steps of five go as meant and the others
slip to a side. Seen are the squares it walks over. Errors of the recognised policy, against the
expert's own, by the number of walks:

- of actions: earth mover's distance between directions, in quarter turns (at most 2);
- of next states: earth mover's distance between squares, in squares.

    python examples/frozen_lake.py [--quick] [--output DIR] [--seed 0]

The competitors: behavioural cloning of imputed actions, and maximum entropy IRL, which is told
that the expert is nearly optimal for some reward and given its discount. Ours is told neither.
Errors are given twice: averaged over where the expert walks (by its expected visits), and over all
squares that are not an end, most of which the expert avoids.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from _common import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    counts,
    fit,
    identifiable,
    observe,
    options,
    same_actions,
)

from onlooker import Demonstrations, Posterior
from onlooker.worlds.record import rollout
from onlooker.baselines import BehavioralCloning, MaximumEntropyIRL
from onlooker.dynamics import GymnasiumDynamics
from onlooker.hyper import Gamma
from onlooker.metrics import circular_emd, planar_emd
from onlooker.partitions import DistanceDependent
from onlooker.planning import state_visitation, value_iteration

DISCOUNT = 0.99
LENGTH = 200  # Gymnasium's own limit
ANGLES = np.array([np.pi, -np.pi / 2, 0.0, np.pi / 2])  # left, down, right, up
OURS, CLONING, ENTROPY = "onlooker", "behavioural cloning", "maximum entropy IRL"
COLOURS = {OURS: BLUE, CLONING: ORANGE, ENTROPY: GREEN}
WALKED, ALL = "where the expert walks", "all squares"


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    walks: tuple[int, ...] = (1, 3, 10, 30, 100, 300)
    runs: int = 5
    draws: int = 200
    tune: int = 200
    chains: int = 2
    steps: int = 1000
    """Of maximum entropy IRL, at most."""


QUICK = Size(walks=(2, 30), runs=2, draws=60, tune=60, chains=1, steps=40)


class Lake:
    """The world, its expert, and which of its actions can be told apart."""

    def __init__(self) -> None:
        self.env = gym.make("FrozenLake-v1", map_name="8x8", success_rate=0.8)
        self.dynamics = GymnasiumDynamics(self.env)
        self.squares = np.arange(self.dynamics.n_states)
        row, column = np.divmod(self.squares, 8)
        self.points = np.column_stack([column, -row]).astype(float)
        self.ends = self.dynamics.terminal
        self.expert = value_iteration(self.dynamics, self.dynamics.rewards, DISCOUNT).policy
        visits = state_visitation(self.dynamics, self.expert, self.dynamics.start, horizon=LENGTH)
        live = np.where(self.ends, 0.0, 1.0)
        self.weights = {
            WALKED: visits * live / (visits * live).sum(),
            ALL: live / live.sum(),
        }
        table = self.dynamics.toarray()
        self.mute = np.asarray(same_actions(table).all(axis=(1, 2)))
        """Where all actions do the same."""
        self.twins = ~self.mute & (same_actions(table).sum(axis=(1, 2)) > table.shape[1])
        """Where some, but not all, do the same."""
        self.mixed = ~identifiable(table) & ~self.mute & ~self.twins
        """Where all differ, but different mixtures of them do the same."""

    def walk(self, n: int, rng: np.random.Generator) -> Demonstrations:
        """Let the expert walk."""
        return rollout(self.env, self.expert, n, LENGTH, rng)[0]

    def errors(self, policy: np.ndarray) -> dict[str, np.ndarray]:
        """Both errors at every square."""
        ahead = self.dynamics.next_state_probabilities
        return {
            "action": circular_emd(policy, self.expert, circumference=4.0),
            "next state": planar_emd(
                ahead(self.squares, policy), ahead(self.squares, self.expert), self.points
            ),
        }


def recognise(lake: Lake, demos: Demonstrations, size: Size, seed: int) -> Posterior:
    """Partitions of all squares; the concentration of the controllers is inferred."""
    return fit(
        observe(demos, lake.dynamics, nodes="all"),
        DistanceDependent(coordinates=lake.points),
        seed,
        concentration=Gamma(1.0, 1.0),
        draws=size.draws,
        tune=size.tune,
        chains=size.chains,
    )


def competitors(
    lake: Lake, size: Size, seed: int
) -> dict[str, Callable[[Demonstrations], np.ndarray]]:
    """Policies by other methods."""
    cloning = BehavioralCloning(lake.dynamics, coordinates=lake.points, rounds=3, random_state=seed)
    entropy = MaximumEntropyIRL(lake.dynamics, discount=DISCOUNT, max_iter=size.steps)
    return {
        name: lambda demos, method=method: method.fit(demos).predict_proba(lake.squares)
        for name, method in ((CLONING, cloning), (ENTROPY, entropy))
    }


def learning_curves(lake: Lake, size: Size, seed: int) -> tuple[pd.DataFrame, Posterior]:
    """Mean errors by walks, run and method; and the last posterior of the first run."""
    rows, shown = [], None
    for run in range(size.runs):
        rng = np.random.default_rng(seed + run)
        demos = lake.walk(max(size.walks), rng)
        for walks in size.walks:
            posterior = recognise(lake, demos[:walks], size, seed + run)
            policies = {OURS: posterior.policy(lake.squares)}
            with warnings.catch_warnings():
                # one or two walks do not pin a reward down; what comes out is scored all the same
                warnings.simplefilter("ignore")
                for name, recognised in competitors(lake, size, seed + run).items():
                    policies[name] = recognised(demos[:walks])
            for method, policy in policies.items():
                for kind, error in lake.errors(policy).items():
                    for states, weight in lake.weights.items():
                        rows.append((run, walks, method, states, kind, float(error @ weight)))
        shown = shown or posterior
    assert shown is not None
    columns = ["run", "walks", "method", "states", "kind", "error"]
    return pd.DataFrame(rows, columns=columns), shown


def places(lake: Lake, chosen: np.ndarray) -> str:
    """Squares in words."""
    rows, columns = np.divmod(np.flatnonzero(chosen), 8)
    return ", ".join(f"({r + 1}, {c + 1})" for r, c in zip(rows, columns, strict=True))


def tell(lake: Lake, table: pd.DataFrame, posterior: Posterior) -> dict[str, float]:
    """The finding, in words; returns how wide intervals are, by kind of square."""
    print(
        f"Actions that cannot be told apart. At {lake.mute.sum()} squares (row, column) all four "
        f"do the same: the holes and the goal,\n  {places(lake, lake.mute)}.\n"
        f"  There the policy is not a question that states could answer; errors leave them out.\n"
        f"At {lake.twins.sum()} squares some actions do the same. At {lake.mixed.sum()}, the "
        f"corners {places(lake, lake.mixed)}, the four actions differ but have only three next\n"
        "  states: single actions can be told apart there, mixtures of all four cannot.\n"
        f"At the other {(~lake.mute & ~lake.twins & ~lake.mixed).sum()} squares every policy "
        "shows, given enough visits."
    )
    means = table.groupby(["kind", "states", "method", "walks"])["error"].mean()
    for (kind, states), rows in means.groupby(["kind", "states"], sort=False):
        unit = "quarter turns" if kind == "action" else "squares"
        print(f"\nError of the {kind} [{unit}], {states}:")
        print(rows.droplevel(["kind", "states"]).unstack().round(3).to_string())
    _, low, high = posterior.policy(lake.squares, interval=0.9)
    seen = np.bincount(posterior.problem.node_of, minlength=len(lake.squares))
    best = lake.expert.argmax(axis=1)
    wide = (high - low)[lake.squares, best]
    widths = {
        "often": float(wide[~lake.ends & (seen >= 10)].mean()),
        "rarely": float(wide[~lake.ends & (seen > 0) & (seen < 10)].mean()),
        "never": float(wide[~lake.ends & (seen == 0)].mean()),
        "ends": float(wide[lake.ends].mean()),
    }
    print(
        f"\nThe posterior knows what it does not know. After {table['walks'].max()} walks the 90 % "
        "interval of the probability of the\nexpert's action is, on average, this wide: "
        f"{widths['often']:.2f} at squares seen ten times or more, {widths['rarely']:.2f} at those "
        f"seen less,\n{widths['never']:.2f} at those never seen, {widths['ends']:.2f} at the ends."
    )
    last = means["action"].xs(table["walks"].max(), level="walks")
    print(
        f"Where the expert walks, the action is then {last[WALKED, OURS]:.3f} quarter turns off "
        f"(maximum entropy IRL {last[WALKED, ENTROPY]:.3f}, cloning {last[WALKED, CLONING]:.3f}). "
        f"Over all squares\nit is {last[ALL, OURS]:.2f} against {last[ALL, ENTROPY]:.2f}."
    )
    if last[ALL, OURS] > last[ALL, ENTROPY]:
        print(
            "Who knows that the expert plans, and how far ahead, can tell what it would do where "
            "it never goes; from the walks alone one cannot."
        )
    return widths


def draw(lake: Lake, table: pd.DataFrame, posterior: Posterior, path: Path) -> None:
    """Learning curves, and the recognised policy on the map."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.9), layout="constrained")
    actions, ahead, board = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    for ax, kind, unit in (
        (actions, "action", "quarter turns"),
        (ahead, "next state", "squares"),
    ):
        for method, colour in COLOURS.items():
            for states, style in ((WALKED, "o-"), (ALL, "s--")):
                chosen = table[
                    (table["method"] == method)
                    & (table["kind"] == kind)
                    & (table["states"] == states)
                ]
                by = chosen.groupby("walks")["error"]
                ax.plot(by.mean(), style, color=colour, ms=4, label=f"{method}, {states}")
                ax.fill_between(by.mean().index, by.min(), by.max(), color=colour, alpha=0.15, lw=0)
        ax.set(ylabel=f"earth mover's distance [{unit}]", ylim=(0, None))
        counts(ax, table["walks"].unique(), "walks seen")
        ax.set_title(
            f"Error of the {kind}: mean and range of {table['run'].nunique()} runs", fontsize=11
        )
    figure.legend(
        *actions.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize="small"
    )
    _board(board, lake, posterior, int(table["walks"].max()))
    figure.savefig(path, dpi=150)


def _board(ax: Any, lake: Lake, posterior: Posterior, walks: int) -> None:
    from matplotlib.patches import Patch, Rectangle

    from onlooker import plot

    seen = np.bincount(posterior.problem.node_of, minlength=len(lake.squares)) > 0
    for point, mute, mixed, visited in zip(lake.points, lake.mute, lake.mixed, seen, strict=True):
        colour, hatch = ("0.8" if mute else "white" if visited else "#F3E9D2"), ""
        if mute or mixed:
            hatch = "xxx" if mute else "///"
        ax.add_patch(
            Rectangle(point - 0.5, 1, 1, facecolor=colour, edgecolor="0.6", hatch=hatch, lw=0.6)
        )
    live = ~lake.mute
    plot.policy_field(
        lake.points[live],
        posterior.policy(lake.squares)[live],
        ANGLES,
        ax,
        reference=lake.expert[live],
        length=0.45,
    )
    for name, square in (("S", 0), ("G", 63)):
        ax.text(*(lake.points[square] + [-0.42, 0.42]), name, va="top", weight="bold", color=RED)
    ax.set(xlim=(-0.55, 7.55), ylim=(-7.55, 0.55), xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set_title(f"Recognised from {walks} walks (blue) and the expert (orange)", fontsize=11)
    keys = [
        Patch(facecolor="0.8", edgecolor="0.6", hatch="xxx", label="all actions do the same"),
        Patch(facecolor="white", edgecolor="0.6", hatch="///", label="mixtures do the same"),
        Patch(facecolor="#F3E9D2", edgecolor="0.6", label="never seen"),
    ]
    ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize="small")


def main(arguments: list[str] | None = None) -> tuple[pd.DataFrame, dict[str, float], Lake]:
    """Run it all; returns the errors, the widths of intervals and the world."""
    chosen = options(__doc__, arguments, "frozen_lake")
    began = time.monotonic()
    lake = Lake()
    table, posterior = learning_curves(lake, QUICK if chosen.quick else Size(), chosen.seed)
    widths = tell(lake, table, posterior)
    table.to_csv(chosen.output / "frozen_lake.csv", index=False)
    draw(lake, table, posterior, chosen.output / "frozen_lake.png")
    print(
        f"\nFigure: {chosen.output / 'frozen_lake.png'}. It took {time.monotonic() - began:.0f} s."
    )
    return table, widths, lake


if __name__ == "__main__":
    main()
