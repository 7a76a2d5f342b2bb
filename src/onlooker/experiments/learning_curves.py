"""Example 1: how fast the models learn, at the states seen and beyond."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onlooker.experiments.drawing import COLOURS, curves, legend_outside, new_figure, save
from onlooker.experiments.experiment import (
    Claim,
    Experiment,
    Reference,
    Row,
    all_of,
    cell,
    smaller,
)
from onlooker.experiments.plane import (
    PlaneConfig,
    draw_of,
    make_chain,
    mean_error,
    near_points,
    posterior_of,
)
from onlooker.inference.chain import Chain
from onlooker.inference.updates import controllers_given_counts
from onlooker.metrics import circular_emd
from onlooker.partitions import Mixing, PartitionPrior, Potts
from onlooker.partitions.base import Strategy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MODELS = (
    "mixture",
    "Potts collapsed, β=1.6",
    "Potts ordinary, β=1.6",
    "Potts collapsed, β=0.8",
    "Potts ordinary, β=0.8",
    "ddCRP",
)
_WAYS: tuple[Strategy, ...] = ("map", "average")
UNTRAINED = 1.396
"""Error of the uniform policy in radians."""


@dataclass(frozen=True)
class Config(PlaneConfig):
    """Error of one Gibbs sample's policy after each sweep."""

    iterations: int = 200
    clusters: int = 8
    """K of the finite models."""
    gamma: float = 1.0
    """Concentration of the mixture's weights, which are integrated out."""
    neighbours: int = 8
    """Of a state in the Potts models; symmetrised."""
    models: tuple[str, ...] = MODELS

    @classmethod
    def quick(cls) -> Self:
        """Few and short runs."""
        return cls(runs=4, iterations=50)

    def prior(self, model: str) -> tuple[PartitionPrior[Any], bool]:
        """The model's prior, and whether its controllers are integrated out."""
        if model == "ddCRP":
            return self.ddcrp(), True
        if model == "mixture":
            return Mixing(self.clusters, self.gamma), True
        beta = float(model.rpartition("=")[2])
        potts = Potts(self.clusters, beta=beta, n_neighbors=self.neighbours, start="random")
        return potts, "collapsed" in model


def run_one(config: Config, run: int) -> list[Row]:
    """Errors at the states seen for every iteration; off them by the last draw."""
    world, problem = config.world(), config.problem(run)
    near = near_points(world, problem, config.reach)
    expert = world.policy(problem.states)
    rows: list[Row] = []
    for model in config.models:
        prior, collapsed = config.prior(model)
        # The stream belongs to the model, whichever others there are.
        rng = config.stream(run, 1 + MODELS.index(model))
        chain = make_chain(problem, prior, config, rng, collapsed)
        for iteration in range(config.iterations + 1):
            if iteration:
                _sweep(chain)
            error = float(circular_emd(expert, chain.policy()).mean())
            rows.append(_row(model, iteration, "seen", error))
        if model == "mixture":  # it knows no nearness: all unseen states are alike to it
            continue
        posterior = posterior_of(chain, [draw_of(chain)], config.seed)
        for how in _WAYS:
            policy = posterior.policy(near, extrapolate=how)
            rows.append(_row(model, config.iterations, how, mean_error(world, near, policy)))
    return rows


def _sweep(chain: Chain) -> None:
    """A sweep whose controllers, if drawn, are those of the partition it ends with."""
    chain.sweep()
    if not chain.target.collapsed:
        chain.state.controllers = controllers_given_counts(chain.state)


def _row(model: str, iteration: int, where: str, error: float) -> Row:
    return {"model": model, "iteration": iteration, "where": where, "error": error}


def plot(table: pd.DataFrame, folder: Path, config: Config) -> Path:
    """Learning curves, and the errors off the trajectories."""
    figure = new_figure(11.0, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    seen = table[table["where"] == "seen"]
    curves(left, seen, x="iteration", by="model", names=MODELS, markers=False)
    left.axhline(UNTRAINED, color="0.5", lw=1.2, ls=(0, (2, 2)), label="uniform policy")
    left.set_xscale("symlog", linthresh=1, linscale=0.4)
    last = int(table["iteration"].max())
    ticks = [tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500) if tick <= last]
    left.set_xticks(ticks, [str(tick) for tick in ticks])
    left.minorticks_off()
    left.set(xlim=(0, last), ylim=(0, None))
    left.set(xlabel="Gibbs sweeps (linear up to 1, then logarithmic)")
    left.set(ylabel="circular EMD to the expert [rad]", title="(a) At the states seen")
    _bars(right, table)
    legend_outside(figure, left, 4)
    return save(figure, folder, "learning-curves")


def _bars(ax: Axes, table: pd.DataFrame) -> None:
    names = [name for name in MODELS if name != "mixture" and (table["model"] == name).any()]
    for index, (how, label, hatch) in enumerate(
        (("map", "most probable cluster", ""), ("average", "all clusters mixed", "////"))
    ):
        off = table[table["where"] == how].groupby("model")["error"]
        mean, sd = off.mean().reindex(names), off.std().fillna(0.0).reindex(names)
        place = np.arange(len(names)) + 0.4 * index - 0.2
        colours = [COLOURS[MODELS.index(name)] for name in names]
        ax.barh(
            place, mean, 0.38, xerr=sd, color=colours, edgecolor="black", hatch=hatch,
            alpha=1.0 if index == 0 else 0.55, error_kw={"capsize": 2, "lw": 1},
        )  # fmt: skip
        ax.barh([0], [np.nan], color="0.8", edgecolor="black", hatch=hatch, label=label)
    ax.axvline(UNTRAINED, color="0.5", lw=1.2, ls=(0, (2, 2)))
    ax.set_yticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
    ax.invert_yaxis()
    ax.set(xlabel="circular EMD to the expert [rad]", title="(b) Off the trajectories, last draw")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


_AT = (0, 1, 2, 5, 10, 20, 50, 100, 200)
_CURVES: dict[str, tuple[int, tuple[float, ...], float | None, float]] = {
    # runs; errors at _AT; standard deviations at 10 and 200 sweeps
    MODELS[0]: (100, (1.388, 1.371, 1.362, 1.355, 1.354, 1.353, 1.357, 1.364, 1.365), None, 0.017),
    MODELS[1]: (100, (1.388, 1.319, 1.217, 1.050, 0.921, 0.811, 0.696, 0.630, 0.586), 0.109, 0.094),
    MODELS[2]: (100, (1.387, 1.339, 1.269, 1.119, 0.995, 0.862, 0.719, 0.645, 0.592), 0.094, 0.111),
    MODELS[3]: (60, (1.388, 1.341, 1.243, 0.822, 0.572, 0.477, 0.444, 0.435, 0.431), 0.083, 0.038),
    MODELS[4]: (60, (1.389, 1.362, 1.314, 1.031, 0.646, 0.510, 0.469, 0.453, 0.449), 0.091, 0.045),
    MODELS[5]: (40, (1.345, 1.231, 1.061, 0.660, 0.494, 0.452, 0.449, 0.449, 0.450), 0.045, 0.024),
}
_OFF = {
    "ddCRP": (40, 0.454, 1.06),
    "Potts collapsed, β=0.8": (60, 0.457, 0.76),
    "Potts collapsed, β=1.6": (100, 0.599, 0.67),
}


def _references() -> tuple[Reference, ...]:
    found = []
    for model, (runs, errors, sd_10, sd_200) in _CURVES.items():
        for iteration, error in zip(_AT, errors, strict=True):
            sd = {10: sd_10, 200: sd_200}.get(iteration)
            where = cell(model=model, iteration=iteration, where="seen")
            found.append(Reference(f"{model}, {iteration} sweeps", error, runs, where, sd))
    for model, (runs, most, mixed) in _OFF.items():
        found.append(
            Reference(f"{model}, off, most probable cluster", most, runs, _off(model, "map"))
        )
        name = f"{model}, off, all clusters mixed"
        found.append(Reference(name, mixed, runs, _off(model, "average"), digits=2))
    return tuple(found)


def _off(model: str, how: str) -> Any:
    return cell(model=model, where=how, iteration=200)


def claims(table: pd.DataFrame, config: Config) -> list[Claim]:
    """What the paper says of Example 1's learning curves."""
    seen = table[table["where"] == "seen"]
    last = int(seen["iteration"].max())
    early = min(10, last)
    mean = seen.groupby(["model", "iteration"])["error"].mean()

    def at(model: str, iteration: int) -> dict[str, object]:
        return {"model": model, "iteration": iteration, "where": "seen"}

    mixture = float(mean[MODELS[0], last])
    faster = [
        smaller(
            table, at(f"Potts collapsed, β={beta}", early), at(f"Potts ordinary, β={beta}", early)
        )
        for beta in ("1.6", "0.8")
    ]
    fastest = [smaller(table, at("ddCRP", early), at(model, early)) for model in MODELS[:-1]]
    listed = ", ".join(f"{model} {mean[model, early]:.3f}" for model in MODELS)
    return [
        Claim(
            "The mixture without regard to space learns next to nothing.",
            mixture > 0.9 * UNTRAINED,
            f"error {mixture:.3f} rad after {last} sweeps; {UNTRAINED} without any learning",
        ),
        Claim(
            "Potts models mix faster with the controllers integrated out.",
            all_of(faster),
            f"after {early} sweeps: {listed}",
        ),
        Claim(
            "The ddCRP mixes fastest of all.",
            all_of(fastest),
            f"after {early} sweeps: {listed}",
        ),
    ]


EXPERIMENT = Experiment(
    name="learning-curves",
    title="Example 1: learning curves",
    config=Config,
    run_one=run_one,
    plot=plot,
    references=_references(),
    claims=claims,
    caption=(
        "Error of the policy of one Gibbs sample against the number of sweeps (a), mean over runs "
        "with a band of one standard deviation; (b) at points of a 21×21 grid within 1.0 of the "
        "data, for two ways to carry the last draw to unseen states."
    ),
    remarks=(
        "Ordinary Gibbs sampling of the Potts model is shown with the controllers drawn anew after "
        "the labels of a sweep: with that order the curves agree with the reference."
    ),
)
