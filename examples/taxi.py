"""Taxi in the rain: where the policy cannot be known, the next state still can.

A taxi fetches a passenger and brings it to a destination on a grid of 5 × 5 squares; in the rain,
one move of five slips to a side. Seen are states alone. Driving into a wall, picking up where
nobody waits and dropping off nobody all leave the state as it is, so no watcher can tell them
apart. The expert is soft-optimal (temperature 1): it dithers, also against walls.

    python examples/taxi.py [--quick] [--output DIR] [--seed 0]

Four questions:

1. At how many states can the policy not be known, and how much of it?
2. How well are the next states of other episodes predicted (mean log probability a step), against
   the expert's own policy, behavioural cloning, a controller of its own for each state, one
   controller for all, and actions at random?
3. Are the stated probabilities right: does what is said to happen in 30 % of the cases do so?
4. Do errors of the next state vanish with more episodes where errors of the action cannot?

Distances between states, which the prior over partitions needs: squares on the grid; another place
of the passenger, or another destination, counts as one square.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
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
    SKY,
    counts,
    fit,
    identifiable,
    observe,
    options,
    same_actions,
)

from onlooker import Demonstrations
from onlooker.worlds.record import rollout
from onlooker.baselines import BehavioralCloning, GlobalMarginal
from onlooker.dynamics import GymnasiumDynamics
from onlooker.hyper import Gamma
from onlooker.metrics import total_variation
from onlooker.partitions import DistanceDependent, Static
from onlooker.planning import soft_value_iteration

OURS, OWN, CLONING = "onlooker (ddCRP)", "a controller a state", "behavioural cloning"
MARGINAL, RANDOM, EXPERT = "one controller", "actions at random", "the expert's own policy"
COLOURS = {OURS: BLUE, OWN: SKY, CLONING: ORANGE, MARGINAL: GREEN}
LENGTH = 201  # Gymnasium's own limit
BINS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
OFTEN = 0.05  # a probability that counts


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    episodes: tuple[int, ...] = (10, 30, 100, 300, 1000)
    shown: int = 100
    """Episodes after which calibration is shown."""
    held: int = 1000
    runs: int = 3
    draws: int = 100
    tune: int = 200
    chains: int = 2


QUICK = Size(episodes=(30, 150), shown=150, held=200, runs=1, draws=40, tune=60, chains=1)


class Rain:
    """The world, its expert, and which of its actions can be told apart."""

    def __init__(self) -> None:
        self.env = gym.make("Taxi-v4", is_rainy=True)
        self.dynamics = GymnasiumDynamics(self.env)
        self.states = np.arange(self.dynamics.n_states)
        self.table = self.dynamics.toarray()
        self.expert = soft_value_iteration(self.dynamics, self.dynamics.rewards, 0.99).policy
        self.live = self._reached() & ~self.dynamics.terminal
        self.same = same_actions(self.table)
        self.identifiable = identifiable(self.table)
        self.alone = self.same.sum(axis=2) == 1
        """``(S, A)``: actions that no other one looks like."""

    def _reached(self) -> np.ndarray:
        """States that episodes can be in."""
        reached = self.dynamics.start > 0
        while True:
            more = reached | (self.table[reached].sum(axis=(0, 1)) > 0)
            if (more == reached).all():
                return reached
            reached = more

    @property
    def coordinates(self) -> np.ndarray:
        """``(S, 11)``: taxi, passenger and destination as points; see the module's text."""
        taxi: Any = self.env.unwrapped
        row, column, passenger, destination = np.array(
            [list(taxi.decode(state)) for state in self.states]
        ).T
        apart = np.sqrt(0.5)  # two corners of a unit simplex times this are 1 apart
        return np.column_stack(
            [row, column, apart * np.eye(5)[passenger], apart * np.eye(4)[destination]]
        )

    def evenly(self, policy: np.ndarray) -> np.ndarray:
        """The policy with the mass of actions that look alike spread evenly among them."""
        return np.einsum("sab,sb->sa", self.same / self.same.sum(axis=2)[:, :, None], policy)

    def ahead(self, policy: np.ndarray) -> np.ndarray:
        """``(S, S)``: probabilities of next states."""
        return self.dynamics.next_state_probabilities(self.states, policy)

    def drive(self, n: int, rng: np.random.Generator) -> Demonstrations:
        """Let the expert drive."""
        return rollout(self.env, self.expert, n, LENGTH, rng)[0]


@dataclass
class Findings:
    """What came out."""

    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    """One row a method, run and number of episodes."""
    calibration: dict[str, pd.DataFrame] = field(default_factory=dict)
    """By method: stated and observed frequencies of next states, binned."""
    states: dict[str, float] = field(default_factory=dict)
    """How many states and how much of the policy cannot be known."""


# -- policies --------------------------------------------------------------------------------------


def policies(
    world: Rain, demos: Demonstrations, size: Size, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The policy by each method; and by ours, where the expert is outside its 90 % interval."""
    problem = observe(demos, world.dynamics, nodes="all")
    how = {"draws": size.draws, "tune": size.tune, "chains": size.chains}
    found, missed = {}, {}
    for name, prior in (
        (OURS, DistanceDependent(coordinates=world.coordinates)),
        (OWN, Static()),
    ):
        posterior = fit(problem, prior, seed, concentration=Gamma(1.0, 1.0), **how)
        found[name], low, high = posterior.policy(world.states, interval=0.9)
        missed[name] = (world.expert < low) | (world.expert > high)
    cloning = BehavioralCloning(
        world.dynamics, coordinates=world.coordinates, rounds=3, random_state=seed
    )
    found[CLONING] = cloning.fit(demos).predict_proba(world.states)
    found[MARGINAL] = GlobalMarginal(world.dynamics).fit(demos).predict_proba(world.states)
    return found, missed


# -- judging ---------------------------------------------------------------------------------------


def reliability(world: Rain, policy: np.ndarray, held: Demonstrations) -> pd.DataFrame:
    """Of all next states that some action makes possible: stated probability and frequency.

    The standard error of the frequency counts whole episodes, whose steps are not independent.
    """
    states, next_states = held.transitions()
    episode = held.trajectory_of()
    possible = (world.table > 0).any(axis=1)[states]
    step, target = np.nonzero(possible)
    stated = world.ahead(policy)[states[step], target]
    pairs = pd.DataFrame(
        {
            "bin": np.digitize(stated, BINS[1:-1]),
            "stated": stated,
            "observed": target == next_states[step],
            "episode": episode[step],
        }
    )
    rows = []
    for _, part in pairs.groupby("bin"):
        observed = part["observed"].mean()
        off = (part["observed"] - observed).groupby(part["episode"]).sum()
        error = np.sqrt((off**2).sum()) / len(part)
        rows.append((part["stated"].mean(), observed, error, len(part)))
    return pd.DataFrame(rows, columns=["stated", "observed", "error", "n"])


def calibration_error(table: pd.DataFrame) -> float:
    """Mean distance of stated probabilities and frequencies, over all that was stated."""
    return float(np.average((table["stated"] - table["observed"]).abs(), weights=table["n"]))


def judge(world: Rain, size: Size, seed: int) -> Findings:
    """Fit and score every method."""
    held = world.drive(size.held, np.random.default_rng([seed, 1]))
    states, next_states = held.transitions()
    likelihood = np.exp(world.dynamics.log_likelihood(states, next_states))
    visits = np.bincount(states, minlength=len(world.states)) / len(states)
    truth = world.ahead(world.expert)
    found, rows = Findings(states=not_knowable(world, visits)), []

    lumped = world.evenly(world.expert)

    def score(name: str, policy: np.ndarray) -> dict[str, float | str]:
        # cloning may rule out what then happens: a floor keeps its score finite
        chance = np.maximum((likelihood * policy[states]).sum(axis=1), 1e-6)
        return {
            "method": name,
            "score": float(np.log(chance).mean()),
            "action": float(total_variation(policy, world.expert) @ visits),
            "evenly": float(total_variation(world.evenly(policy), lumped) @ visits),
            "next state": float(total_variation(world.ahead(policy), truth) @ visits),
        }

    for run in range(size.runs):
        demos = world.drive(max(size.episodes), np.random.default_rng([seed, 2, run]))
        for n in size.episodes:
            by_method, missed = policies(world, demos[:n], size, seed + run)
            for name, policy in by_method.items():
                row = {"run": run, "episodes": n, **score(name, policy)}
                if name in missed:
                    within = ~missed[name][visits > 0]
                    alone = world.alone[visits > 0]
                    row |= {"covered": within[alone].mean(), "covered alike": within[~alone].mean()}
                rows.append(row)
            if run == 0 and n == size.shown:
                found.calibration = {
                    name: reliability(world, by_method[name], held) for name in (OURS, CLONING)
                }
    random = np.full_like(world.expert, 1 / world.expert.shape[1])
    for name, policy in ((EXPERT, world.expert), (RANDOM, random)):
        rows.append(score(name, policy))
    found.scores = pd.DataFrame(rows)
    return found


def not_knowable(world: Rain, visits: np.ndarray) -> dict[str, float]:
    """How many states, and how much of the policy, states alone cannot tell."""
    live = world.live
    alike = np.where(world.alone, 0.0, world.expert).sum(axis=1)
    distinct = np.array([len(np.unique(rows.argmax(axis=1))) for rows in world.same])
    return {
        "live": int(live.sum()),
        "not identifiable": int((live & ~world.identifiable).sum()),
        "often": int((live & (alike > OFTEN)).sum()),
        "share": float(alike @ visits),
        "left": float(total_variation(world.evenly(world.expert), world.expert) @ visits),
        **{f"distinct {k}": int((live & (distinct == k)).sum()) for k in range(1, 7)},
    }


# -- words and figure ------------------------------------------------------------------------------


def tell(found: Findings) -> None:
    """The finding, in words."""
    known = found.states
    print(
        f"1. At {known['not identifiable']} of {known['live']} states the policy cannot be known "
        "from states alone: two actions or more do exactly the same.\n   Of the six, "
        + ", ".join(
            f"{k} are distinct at {known[f'distinct {k}']}"
            for k in range(6, 0, -1)
            if known[f"distinct {k}"]
        )
        + f".\n   At {known['often']} states the expert takes such an action with more than "
        f"{OFTEN:.0%}; along its way it does so in {known['share']:.1%} of the steps."
    )
    bounds = found.scores[found.scores["episodes"].isna()].set_index("method")["score"]
    print(
        "\n2. Mean log probability of the next state a step, held-out episodes, by episodes seen\n"
        f"   ({EXPERT}: {bounds[EXPERT]:.3f}; {RANDOM}: {bounds[RANDOM]:.3f}):"
    )
    learnt = found.scores.dropna(subset="episodes")
    learnt = learnt.assign(episodes=learnt["episodes"].astype(int))
    print(learnt.pivot_table("score", "method", "episodes").loc[list(COLOURS)].round(3).to_string())
    print("\n3. Calibration (mean distance of a stated probability from the frequency of its bin):")
    for name, table in found.calibration.items():
        far = ((table["stated"] - table["observed"]).abs() > 2 * table["error"]).sum()
        print(
            f"   {name}: {calibration_error(table):.4f}; {far} of {len(table)} bins off by more "
            "than two standard errors"
        )
    print(f"\n4. Distance (total variation) from the expert, along its way, by {OURS}:")
    ours = learnt[learnt["method"] == OURS].groupby("episodes")
    names = {
        "action": "of actions",
        "evenly": "of actions, look-alikes taken as one",
        "next state": "of next states",
    }
    print(ours[list(names)].mean().rename(columns=names).T.round(3).to_string())
    most = learnt["episodes"].max()
    covered = learnt[learnt["episodes"] == most].groupby("method")[["covered", "covered alike"]]
    covered = covered.mean()
    print(
        f"   Who knew all about the next states would still be {known['left']:.3f} off in the "
        "actions, if he spread what he cannot tell evenly.\n"
        f"   The 90 % intervals of action probabilities hold the expert's, after {most} episodes, "
        f"in {covered.loc[OURS, 'covered']:.0%} of the cases\n   for actions that look like no "
        f"other and {covered.loc[OURS, 'covered alike']:.0%} for look-alikes; with a controller a "
        f"state in {covered.loc[OWN, 'covered']:.0%} and {covered.loc[OWN, 'covered alike']:.0%}."
    )
    if covered.loc[OURS, "covered"] < min(0.85, covered.loc[OWN, "covered"]):
        print(
            "   To share controllers among states whose policies differ a little makes predictions "
            "better, and intervals too narrow."
        )


def draw(found: Findings, path: Path) -> None:
    """Scores, calibration and errors."""
    from matplotlib.figure import Figure

    learnt = found.scores.dropna(subset="episodes")
    bounds = found.scores[found.scores["episodes"].isna()].set_index("method")["score"]
    figure = Figure(figsize=(14, 4.8), layout="constrained")
    scores, stated, errors = figure.subplots(1, 3)
    for name, colour in COLOURS.items():
        by = learnt[learnt["method"] == name].groupby("episodes")["score"]
        scores.fill_between(by.mean().index, by.min(), by.max(), color=colour, alpha=0.2, lw=0)
        scores.plot(by.mean(), "o-", color=colour, label=name, ms=4)
    scores.axhline(bounds[EXPERT], color="black", lw=1.2, label=EXPERT)
    scores.axhline(bounds[RANDOM], color="0.5", lw=1.2, ls=":", label=RANDOM)
    scores.set(ylabel="mean ln p(next state)")
    counts(scores, learnt["episodes"].unique(), "episodes seen")
    scores.set_title("Held-out episodes (higher is better)")
    for (name, table), mark in zip(found.calibration.items(), "os", strict=True):
        stated.errorbar(
            table["stated"],
            table["observed"],
            2 * table["error"],
            fmt=mark,
            color=COLOURS[name],
            ms=5,
            capsize=2,
            label=name,
        )
    stated.plot([0, 1], [0, 1], color="black", lw=0.8, ls="--")
    stated.set(xlabel="stated probability of a next state", ylabel="how often it came (± 2 s.e.)")
    stated.set_ylim(-0.03, 1.03)
    stated.set_title("Are the stated probabilities right?")
    stated.legend(loc="upper left", fontsize="small")
    ours = learnt[learnt["method"] == OURS].groupby("episodes")
    for column, label, colour, style in (
        ("action", "actions", RED, "o-"),
        ("evenly", "actions, look-alikes as one", ORANGE, "s-"),
        ("next state", "next states", BLUE, "D-"),
    ):
        errors.plot(ours[column].mean(), style, color=colour, ms=4, label=label)
    errors.axhline(
        found.states["left"], color=RED, lw=1, ls=":", label="actions: what no data can mend"
    )
    errors.set(ylabel="total variation from the expert", ylim=(0, None))
    counts(errors, learnt["episodes"].unique(), "episodes seen")
    errors.set_title(f"Errors of {OURS}")
    errors.legend(fontsize="small", loc="upper right")
    figure.legend(
        *scores.get_legend_handles_labels(), loc="outside lower left", ncols=6, fontsize="small"
    )
    figure.savefig(path, dpi=150)


def main(arguments: list[str] | None = None) -> Findings:
    """Run it all."""
    chosen = options(__doc__, arguments, "taxi")
    began = time.monotonic()
    found = judge(Rain(), QUICK if chosen.quick else Size(), chosen.seed)
    tell(found)
    found.scores.to_csv(chosen.output / "taxi.csv", index=False)
    draw(found, chosen.output / "taxi.png")
    print(f"\nFigure: {chosen.output / 'taxi.png'}. It took {time.monotonic() - began:.0f} s.")
    return found


if __name__ == "__main__":
    main()
