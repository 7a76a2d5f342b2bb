"""Example 1: what was learned, over the plane."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics import adjusted_rand_score

from onlooker import plot as draw
from onlooker.checks import Array
from onlooker.demo import behaviour
from onlooker.experiments.drawing import new_figure, save
from onlooker.experiments.experiment import Claim, Experiment, Reference, Row, cell
from onlooker.experiments.plane import PlaneConfig, draw_of, make_chain, posterior_of
from onlooker.metrics import circular_emd
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
    world, problem, prior = config.world(), config.problem(run), config.ddcrp()
    chain = make_chain(problem, prior, config, config.stream(run, 1))
    draws = []
    for sweep in range(config.sweeps):
        chain.sweep()
        if sweep >= config.burn_in and (sweep - config.burn_in) % config.thin == 0:
            draws.append(draw_of(chain))
    posterior = posterior_of(problem, prior, config, draws, config.seed)
    rows: list[Row] = []
    for kind, points in (("seen", problem.states), ("grid", config.points())):
        policy = posterior.policy(points)
        error = circular_emd(world.policy(points), policy)
        cluster = posterior.assign(points)
        step = policy @ world.dynamics.steps
        distance = draw.distance_to(points, problem.states)
        rows += [
            {
                "kind": kind,
                "x": float(points[i, 0]),
                "y": float(points[i, 1]),
                "cluster": int(cluster[i]),
                "error": float(error[i]),
                "step_x": float(step[i, 0]),
                "step_y": float(step[i, 1]),
                "distance": float(distance[i]),
            }
            for i in range(len(points))
        ]
    return rows


def plot(table: pd.DataFrame, folder: Path, config: Config) -> Path:
    """Data on the expert's regions, learned partition, policy field, error over the plane."""
    figure = new_figure(11.0, 11.0)
    axes = figure.subplots(2, 2)
    world, run = config.world(), int(table["run"].min())
    mine = table[table["run"] == run]
    seen, grid = mine[mine["kind"] == "seen"], mine[mine["kind"] == "grid"]
    extent = (-config.side, config.side, -config.side, config.side)
    colours = draw.cluster_colours(world.n_sectors)

    ax = axes[0, 0]
    draw.regions(lambda s: behaviour(world, s), extent, ax, colours=list(colours))
    draw.trajectories(config.demonstrations(run), ax)
    ax.set_title("(a) Data of one run on the expert's regions")
    _legend(ax)

    ax = axes[0, 1]
    _partition(ax, world, seen, grid, colours, config)
    ax.set_title("(b) Learned partition of that run")

    ax = axes[1, 0]
    some = grid[grid["distance"] <= config.reach]
    some = some[_sparser(some, config)]
    points = some[["x", "y"]].to_numpy()
    _arrows(ax, points, world.policy(points) @ world.dynamics.steps, "0.55", "expert", 2.2)
    _arrows(ax, points, some[["step_x", "step_y"]].to_numpy(), "#0072B2", "recognised", 1.0)
    ax.set(title="(c) Policy: mean step", aspect="equal")
    _legend(ax)

    ax = axes[1, 1]
    everywhere = table[table["kind"] == "grid"].groupby(["x", "y"])["error"].mean().reset_index()
    bar = ax.inset_axes((0.1, -0.17, 0.8, 0.035))
    draw.policy_error(
        everywhere[["x", "y"]].to_numpy(), everywhere["error"].to_numpy(), ax,
        label="circular EMD [rad]; dashed: the expert's radius", cax=bar,
    )  # fmt: skip
    circle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(world.radius * np.cos(circle), world.radius * np.sin(circle), "w--", lw=1.2)
    n_runs = table["run"].nunique()
    ax.set_title(f"(d) Policy error, mean of {n_runs} runs")
    for ax in axes.flat:
        ax.set(xlim=extent[:2], ylim=extent[2:], xlabel="x [steps]", ylabel="y [steps]")
    return save(figure, folder, "partition")


def _partition(
    ax: Any,
    world: CircularMotion,
    seen: pd.DataFrame,
    grid: pd.DataFrame,
    colours: Array,
    config: Config,
) -> None:
    """Clusters in the colours of the expert's regions that they overlap most."""
    from scipy.optimize import linear_sum_assignment

    states, labels = seen[["x", "y"]].to_numpy(), seen["cluster"].to_numpy()
    n_clusters = int(max(labels.max(), grid["cluster"].max())) + 1
    overlap = np.zeros((len(colours), n_clusters))
    np.add.at(overlap, (behaviour(world, states), labels), 1)
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
    name = f"states, in {len(np.unique(labels))} clusters"
    ax.plot([], [], "o", color="0.5", mec="black", ms=4, label=name)
    ax.plot([], [], "s", color="0.8", ms=7, label="clusters carried to near points")
    _legend(ax)


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


def _legend(ax: Any) -> None:
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False)


def claims(table: pd.DataFrame, config: Config) -> list[Claim]:
    """What the paper says of the learned partition."""
    world = config.world()
    seen = table[table["kind"] == "seen"]
    found = []
    for _, one in seen.groupby("run"):
        truth = behaviour(world, one[["x", "y"]].to_numpy())
        labels = one["cluster"].to_numpy()
        main = {int(np.bincount(labels[truth == k]).argmax()) for k in np.unique(truth)}
        found.append((len(main) == len(np.unique(truth)), adjusted_rand_score(labels, truth)))
    every = np.mean([one[0] for one in found])
    rand = np.mean([one[1] for one in found])
    return [
        Claim(
            "All of the expert's motion patterns are identified (here: in most of the runs).",
            bool(every > 0.5),
            f"in {every:.0%} of the runs each of the 8 patterns has a cluster of its own; "
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
