"""MountainCar: the two regions of an expert that pushes along its velocity, from states alone.

The expert pushes to the left where v < 0 and to the right where v ≥ 0. Seen are positions and
velocities. Is the partition of the plane found that the expert uses, at states of other episodes?
And how much noise does it take until it is not?

    python examples/mountain_car.py [--quick] [--output DIR] [--seed 0]

**Scaling.** A position ranges over 1.8, a velocity over 0.14: distances between raw states would
be distances between positions. States are therefore standardised, each coordinate by its mean and
standard deviation in the training episodes. The simulator is asked in its own units, through
`state_of` and `observe` of the dynamics. In these units the prior is the default one,
``DistanceDependent()``.

**Reach.** What a state that was not seen belongs to is decided by the nodes around it. By how many
is chosen by the predictive score of episodes put aside for it; the true regions have no say.

**Noise.** The simulator has none, so each step gives its action away. ``noise`` adds a Gaussian
to position and velocity after each step, here in units of the engine's push (0.001): at 1, a
step is as much the noise's as the expert's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from _common import BLUE, GREEN, ORANGE, RED, SKY, fit, observe, options
from sklearn.metrics import adjusted_rand_score

from onlooker import Demonstrations, Posterior
from onlooker.worlds.record import rollout
from onlooker.dynamics import GymnasiumDynamics
from onlooker.partitions import DistanceDependent

PUSH = 0.001  # what the engine adds to the velocity in a step
REACHES = (1, 3, 10, 30, None)


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    train: int = 10
    aside: int = 5
    held: int = 20
    runs: int = 5
    noises: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
    draws: int = 100
    tune: int = 100
    chains: int = 2


QUICK = Size(train=5, aside=3, held=10, runs=1, noises=(0.0, 2.0), draws=30, tune=60)


class Bumpy(gym.Wrapper):
    """A car that is shaken after each step."""

    def __init__(self, env: gym.Env, noise: float) -> None:
        super().__init__(env)
        self.noise = noise

    def step(self, action: Any) -> Any:
        """One step, then the noise, within the bounds of the world."""
        observation, *rest = self.env.step(action)
        if self.noise > 0:
            world: Any = self.env.unwrapped
            shaken = world.state + world.np_random.normal(0.0, self.noise, size=2)
            world.state = np.clip(shaken, world.low, world.high).astype(np.float64)
            observation = world.state.astype(np.float32)
        return observation, *rest


class Standard:
    """Standardised coordinates, and the way back."""

    def __init__(self, states: np.ndarray) -> None:
        self.mean, self.spread = states.mean(axis=0), states.std(axis=0)

    def to(self, states: np.ndarray) -> np.ndarray:
        """From the world's units."""
        return (states - self.mean) / self.spread

    def back(self, states: np.ndarray) -> np.ndarray:
        """To the world's units."""
        return states * self.spread + self.mean

    def demos(self, demos: Demonstrations) -> Demonstrations:
        """Whole trajectories."""
        return Demonstrations([self.to(path) for path in demos])


def push(state: np.ndarray) -> int:
    """The expert: 0 pushes to the left, 2 to the right."""
    return 2 if state[1] >= 0 else 0


def right(states: np.ndarray) -> np.ndarray:
    """The expert's two regions, of states in the world's units."""
    return states[:, 1] >= 0


@dataclass
class Run:
    """One posterior, and what is asked of it."""

    posterior: Posterior
    standard: Standard
    reach: int | None
    held: np.ndarray
    """States of other episodes, in the world's units."""
    sigma: np.ndarray
    """The noise that was proposed, in the world's units."""

    def assign(self, states: np.ndarray) -> np.ndarray:
        """The region of states in the world's units."""
        return self.posterior.assign(self.standard.to(states), n_neighbors=self.reach)

    def judge(self) -> dict[str, float]:
        """How well the regions agree with the expert's."""
        found, truth = self.assign(self.held), right(self.held)
        everywhere = plane(80)
        # a region goes by what most of its held-out states are
        named = pd.Series(truth).groupby(found).agg(lambda part: part.mean() >= 0.5)
        wrong = named.reindex(found).to_numpy() != truth
        speed = np.abs(self.held[:, 1])
        clear = speed >= PUSH
        nodes = self.standard.back(self.posterior.problem.states)
        return {
            "ari": adjusted_rand_score(truth, found),
            "ari_clear": adjusted_rand_score(truth[clear], found[clear]),
            "ari_default": adjusted_rand_score(
                truth, self.posterior.assign(self.standard.to(self.held))
            ),
            "ari_nodes": adjusted_rand_score(right(nodes), self.posterior.partition()),
            "ari_plane": adjusted_rand_score(right(everywhere), self.assign(everywhere)),
            "wrong": wrong.mean(),
            "fastest_wrong": float(speed[wrong].max(initial=0.0)),
            "slow": float(1 - clear.mean()),
            "regions": float(len(np.unique(found))),
            "controllers": float(self.posterior.n_controllers.mean()),
            "mute": self.posterior.problem.unidentifiable_share,
        }


def plane(n: int) -> np.ndarray:
    """Points all over the plane of positions and velocities."""
    axes = np.linspace(-1.2, 0.6, n), np.linspace(-0.07, 0.07, n)
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def recognise(noise: float, seed: int, size: Size) -> Run:
    """Record episodes, infer the partition, choose its reach."""
    env = Bumpy(gym.make("MountainCar-v0"), noise * PUSH)
    rng = np.random.default_rng(seed)
    train, aside, held = (
        rollout(env, push, n, 200, rng, record="state")[0]
        for n in (size.train, size.aside, size.held)
    )
    standard = Standard(train.states)
    dynamics = GymnasiumDynamics.from_demonstrations(
        env, standard.demos(train), state_of=standard.back, observe=standard.to
    )
    problem = observe(standard.demos(train), dynamics)
    posterior = fit(
        problem, DistanceDependent(), seed, draws=size.draws, tune=size.tune, chains=size.chains
    )
    scores = [
        posterior.log_predictive(standard.demos(aside), n_neighbors=reach).mean()
        for reach in REACHES
    ]
    return Run(
        posterior,
        standard,
        REACHES[int(np.argmax(scores))],
        held.states,
        dynamics.sigma * standard.spread,
    )


def tell(run: Run, table: pd.DataFrame) -> None:
    """The finding, in words."""
    first = table.iloc[0]
    reach = "all nodes" if run.reach is None else f"the {run.reach} nearest node(s)"
    print(
        f"Without noise: {first['regions']:.0f} regions at {len(run.held):,} states of episodes "
        f"not seen. Adjusted Rand index against v < 0, v ≥ 0: {first['ari']:.3f} "
        f"({first['ari_nodes']:.3f} at the states that were seen)."
    )
    print(
        f"  {first['wrong']:.2%} of the states are on the wrong side, the fastest of them at "
        f"|v| = {first['fastest_wrong']:.4f}; the top speed is 0.07. The index counts all states, "
        f"also the\n  {first['slow']:.1%} slower than one push, {PUSH}, where the side is a matter "
        f"of a single step. Without those: {first['ari_clear']:.3f}."
    )
    print(
        f"  {first['mute']:.1%} of the steps seen would have been the same with any action (the "
        "car stops at the left wall):\n  they tell nothing, but their states count."
    )
    print(
        f"  Predictive scores chose {reach} to decide; with all nodes (the default of `assign`) "
        f"the index would be {first['ari_default']:.3f}.\n  Over the whole plane, most of which no "
        f"episode visits, it is {first['ari_plane']:.3f}."
    )
    print("\nWith noise, in units of the push (mean, least and most of the runs):")
    for noise, rows in table.groupby("noise"):
        ari = rows["ari"]
        print(
            f"  {noise:4.2f}: index {ari.mean():.3f} ({ari.min():.3f} to {ari.max():.3f}), "
            f"{rows['controllers'].mean():.1f} controllers a draw"
        )
    lost = table.groupby("noise")["ari"].mean()
    failed = lost.index[lost < 0.5]
    if len(failed):
        print(f"From a noise of {failed[0]:g} pushes on, the regions are not found.")


def draw(run: Run, table: pd.DataFrame, path: Path) -> None:
    """The regions without noise, and the index against the noise."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, other = figure.subplots(1, 2, width_ratios=(1.5, 1))
    found, truth = run.assign(run.held), right(run.held)
    most_right = pd.Series(truth).groupby(found).mean()
    named = most_right.reindex(found).to_numpy() >= 0.5
    grid = plane(161)
    shade = most_right.reindex(run.assign(grid)).fillna(0.5).to_numpy().reshape(161, 161)
    left.contourf(
        np.linspace(-1.2, 0.6, 161),
        np.linspace(-0.07, 0.07, 161),
        shade,
        levels=[-0.1, 0.5, 1.1],
        colors=[SKY, ORANGE],
        alpha=0.25,
    )
    for side, colour in ((False, BLUE), (True, RED)):
        chosen = (named == side) & (named == truth)
        left.plot(*run.held[chosen].T, ".", ms=3, color=colour)
    left.plot(*run.held[named != truth].T, "kx", ms=6, mew=1.5)
    left.axhline(0.0, color="black", lw=1, ls="--")
    left.set(
        xlabel="position",
        ylabel="velocity",
        xlim=(-1.2, 0.6),
        ylim=(-0.07, 0.07),
        title=f"Regions without noise; adjusted Rand index {table['ari'].iloc[0]:.3f}",
    )
    keys = [
        Line2D([], [], ls="", marker=".", color=RED, label="pushes right (shade: assigned)"),
        Line2D([], [], ls="", marker=".", color=BLUE, label="pushes left"),
        Line2D([], [], ls="", marker="x", color="black", label="wrong side"),
        Line2D([], [], ls="--", color="black", label="the expert's boundary"),
    ]
    figure.legend(handles=keys, loc="outside lower left", ncols=4, fontsize="small")
    by = table.groupby("noise")["ari"]
    other.fill_between(by.mean().index, by.min(), by.max(), color=GREEN, alpha=0.2, lw=0)
    other.plot(by.mean(), "o-", color=GREEN)
    other.axhline(0.95, color="0.5", lw=1, ls=":")
    other.set(
        xlabel="noise of a step [pushes]",
        ylabel="adjusted Rand index, held-out states",
        ylim=(-0.05, 1.03),
        title=f"With noise: mean and range of {table['seed'].nunique()} run(s)",
    )
    figure.savefig(path, dpi=150)


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    """Run it all; returns one row a run."""
    chosen = options(__doc__, arguments, "mountain_car")
    began = time.monotonic()
    size = QUICK if chosen.quick else Size()
    rows, first = [], None
    for noise in size.noises:
        for seed in range(chosen.seed, chosen.seed + size.runs):
            run = recognise(noise, seed, size)
            first = first or run
            rows.append({"noise": noise, "seed": seed, "reach": run.reach, **run.judge()})
    table = pd.DataFrame(rows)
    assert first is not None
    print(f"{first.posterior!r}; noise proposed for the dynamics: {first.sigma.round(5).tolist()}")
    tell(first, table)
    table.to_csv(chosen.output / "mountain_car.csv", index=False)
    draw(first, table, chosen.output / "mountain_car.png")
    print(
        f"\nFigure: {chosen.output / 'mountain_car.png'}. It took {time.monotonic() - began:.0f} s."
    )
    return table


if __name__ == "__main__":
    main()
