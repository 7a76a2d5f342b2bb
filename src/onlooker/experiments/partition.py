"""Example 1: what was learned, over the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onlooker import plot as draw
from onlooker.checks import Array
from onlooker.demonstrations import Demonstrations
from onlooker.experiments.drawing import legend_below, new_figure, save
from onlooker.experiments.experiment import Claim, Experiment, Reference, Row, cell
from onlooker.experiments.plane import PlaneConfig, draw_of, make_chain, posterior_of
from onlooker.metrics import circular_emd
from onlooker.posterior import Posterior
from onlooker.worlds import CircularMotion

if TYPE_CHECKING:
    import pandas as pd

_FADED = 0.15  # grey of clusters that match none of the expert's


@dataclass(frozen=True)
class Config(PlaneConfig):
    """The ddCRP's posterior mean policy and consensus partition."""

    sweeps: int = 500
    burn_in: int = 200
    thin: int = 3
    side: float = 10.0
    """Half the width of the square that is shown."""
    grid: int = 41
    """Points along a side of it."""

    @classmethod
    def quick(cls) -> Self:
        """Few and short runs."""
        return cls(runs=2, sweeps=150, burn_in=90)

    def points(self) -> Array:
        """The points of the square."""
        axis = np.linspace(-self.side, self.side, self.grid)
        return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def run_one(config: Config, run: int) -> list[Row]:
    """Policy, error and consensus cluster at the states seen and on a grid over the plane."""
    problem, prior = config.problem(run), config.ddcrp()
    chain = make_chain(problem, prior, config, config.stream(run, 1))
    draws = []
    for sweep in range(config.sweeps):
        chain.sweep()
        if sweep >= config.burn_in and (sweep - config.burn_in) % config.thin == 0:
            draws.append(draw_of(chain))
    posterior = posterior_of(chain, draws, config.seed)
    return rows_of(posterior, config)


def rows_of(posterior: Posterior, config: Config) -> list[Row]:
    """What the posterior says at the states seen and at the points of the square."""
    world, states = config.world(), posterior.problem.states
    rows: list[Row] = []
    for kind, points in (("seen", states), ("grid", config.points())):
        policy = posterior.policy(points, extrapolate="map")
        columns = {
            "x": points[:, 0],
            "y": points[:, 1],
            "cluster": posterior.assign(points),
            "error": circular_emd(world.policy(points), policy),
            **dict(zip(("step_x", "step_y"), (policy @ world.dynamics.steps).T, strict=True)),
            "distance": draw.distance_to(points, states),
        }
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows += [{"kind": kind, **dict(zip(columns, row, strict=True))} for row in values]
    return rows


def plot(table: pd.DataFrame, folder: Path, config: Config) -> Path:
    """Data on the expert's regions, learned partition, policy field, error over the plane."""
    figure = new_figure(11.0, 11.0)
    run = int(table["run"].min())
    panels(figure.subplots(2, 2).ravel(), table, config.demonstrations(run), config)
    return save(figure, folder, "partition")


def panels(axes: Sequence[Any], table: pd.DataFrame, demos: Demonstrations, config: Config) -> None:
    """Draw the first run and the error of all runs into four axes."""
    world, n_runs = config.world(), table["run"].nunique()
    first = table[table["run"] == table["run"].min()]
    seen, grid = first[first["kind"] == "seen"], first[first["kind"] == "grid"]
    extent = (-config.side, config.side, -config.side, config.side)
    colours = draw.cluster_colours(world.n_sectors)

    ax = axes[0]
    draw.regions(world.controllers, extent, ax, colours=list(colours))
    draw.trajectories(demos, ax)
    _wanted_directions(ax, world, config.side)
    ax.set_title("(a) What was seen, on the expert's controllers")
    legend_below(ax)

    ax = axes[1]
    _partition(ax, world, seen, grid, colours, config)
    ax.set_title("(b) Recognised controllers")

    ax = axes[2]
    some = grid[grid["distance"] <= config.reach]
    some = some[_sparser(some, config)]
    points = some[["x", "y"]].to_numpy()
    _arrows(ax, points, world.policy(points) @ world.dynamics.steps, "0.55", "expert", 2.2)
    _arrows(ax, points, some[["step_x", "step_y"]].to_numpy(), "#0072B2", "recognised", 1.0)
    ax.set(title="(c) Policy: mean step", aspect="equal")
    legend_below(ax)

    ax = axes[3]
    everywhere = table[table["kind"] == "grid"].groupby(["x", "y"])["error"].mean().reset_index()
    bar = ax.inset_axes((0.1, -0.17, 0.8, 0.035))
    draw.policy_error(
        everywhere[["x", "y"]].to_numpy(), everywhere["error"].to_numpy(), ax,
        label="circular EMD [rad]; dashed: the expert's radius", cax=bar,
    )  # fmt: skip
    circle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(world.radius * np.cos(circle), world.radius * np.sin(circle), "w--", lw=1.2)
    ax.set_title("(d) Policy error" + (f", mean of {n_runs} runs" if n_runs > 1 else ""))
    for ax in axes:
        ax.set(xlim=extent[:2], ylim=extent[2:], xlabel="x [steps]", ylabel="y [steps]")


def _wanted_directions(ax: Any, world: CircularMotion, side: float) -> None:
    """One arrow per region of the expert, so that colour is not the only sign."""
    sector = 2 * np.pi * np.arange(world.n_sectors) / world.n_sectors
    circle = np.column_stack([np.cos(sector), np.sin(sector)])
    middle = np.concatenate([0.6 * world.radius * circle, 0.5 * (world.radius + side) * circle])
    steps = world.policy(middle) @ world.dynamics.steps
    ax.quiver(
        *middle.T, *steps.T, angles="xy", scale_units="xy", scale=0.55, units="xy", width=0.3,
        color="white", edgecolor="black", linewidth=0.8, zorder=5,
    )  # fmt: skip
    ax.plot([], [], ">", color="white", mec="black", ms=8, label="wanted direction")


def _partition(
    ax: Any,
    world: CircularMotion,
    seen: pd.DataFrame,
    grid: pd.DataFrame,
    colours: Array,
    config: Config,
) -> None:
    """Regions in the colours of the expert's controllers that they overlap most."""
    from scipy.optimize import linear_sum_assignment

    states, labels = seen[["x", "y"]].to_numpy(), seen["cluster"].to_numpy()
    n_clusters = int(max(labels.max(), grid["cluster"].max())) + 1
    overlap = np.zeros((len(colours), n_clusters))
    np.add.at(overlap, (world.controllers(states), labels), 1)
    mine = np.full((n_clusters, 3), _FADED)
    for controller, cluster in zip(*linear_sum_assignment(-overlap), strict=True):
        mine[cluster] = colours[controller]
    sorted_grid = grid.sort_values(["y", "x"])
    shade = 0.45 * mine[sorted_grid["cluster"].to_numpy()] + 0.55
    shade[sorted_grid["distance"].to_numpy() > config.reach] = 1.0
    half = config.side / (config.grid - 1)
    box = (-config.side - half, config.side + half) * 2
    picture = shade.reshape(config.grid, config.grid, 3)
    ax.imshow(picture, extent=box, origin="lower", interpolation="nearest")
    ax.scatter(*states.T, s=7, color=mine[labels], edgecolor="black", linewidth=0.2)
    name = f"states, {len(np.unique(labels))} controllers"
    ax.plot([], [], "o", color="0.5", mec="black", ms=4, label=name)
    ax.plot([], [], "s", color="0.8", ms=7, label="carried to near points")
    legend_below(ax)


def _sparser(grid: pd.DataFrame, config: Config) -> Array:
    """Points of a coarser grid, so that arrows do not overlap."""
    step = max(1, round(1.5 * (config.grid - 1) / (2 * config.side)))
    index = np.rint((grid[["x", "y"]].to_numpy() / config.side + 1) / 2 * (config.grid - 1))
    return np.asarray((index % step == 0).all(axis=1))


def _arrows(ax: Any, points: Array, steps: Array, colour: str, label: str, width: float) -> None:
    ax.quiver(
        *points.T, *steps.T, angles="xy", scale_units="xy", scale=0.8, units="xy",
        width=0.07 * width, color=colour,
    )  # fmt: skip
    ax.plot([], [], ">", color=colour, ms=7, label=label)


def claims(table: pd.DataFrame, config: Config) -> list[Claim]:
    """What the paper says of the learned partition."""
    from sklearn.metrics import adjusted_rand_score

    world = config.world()
    seen = table[table["kind"] == "seen"]
    found = []
    for _, one in seen.groupby("run"):
        truth = world.controllers(one[["x", "y"]].to_numpy())
        labels = one["cluster"].to_numpy()
        main = {int(np.bincount(labels[truth == k]).argmax()) for k in np.unique(truth)}
        found.append((len(main) == len(np.unique(truth)), adjusted_rand_score(truth, labels)))
    every = np.mean([one[0] for one in found])
    rand = np.mean([one[1] for one in found])
    return [
        Claim(
            "All of the expert's motion patterns are identified (here: in most of the runs).",
            bool(every > 0.5),
            f"in {100 * every:.0f} % of the runs each of the 8 patterns has a cluster of its own; "
            f"adjusted Rand index {rand:.2f} on average",
        )
    ]


EXPERIMENT = Experiment(
    name="partition",
    title="Example 1: learned partition, policy and error over the plane",
    config=Config,
    run_one=run_one,
    plot=plot,
    references=(
        Reference(
            "policy averaged over draws, error at the states seen",
            0.425,
            40,
            cell(kind="seen"),
            digits=2,
        ),
    ),
    claims=claims,
    caption=(
        "One run's data with the expert's regions (a), the consensus partition that the ddCRP "
        "learned from them (b) and the mean step of its policy beside the expert's (c); the "
        "policy's error over the plane, averaged over runs (d)."
    ),
)
