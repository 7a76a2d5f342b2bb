"""The figure of storms.py: regimes on a map, the odd ones out, and who predicts how well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from storms_directions import MARGINAL, OURS, summary

from onlooker import Demonstrations

if TYPE_CHECKING:
    from storms import Findings

WINDOW = (-105.0, -5.0, 7.0, 62.0)  # degrees: west, east, south, north
MOST_REGIMES = 10
GREY = "0.8"


def draw(found: Findings, demos: Demonstrations, path: Path) -> None:
    """Four panels, written to `path`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 10), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplot_mosaic(
        [["map", "odd"], ["few", "bars"], ["more", "bars"]], height_ratios=[2.5, 1, 1]
    )
    _regimes(axes["map"], found)
    _anomalies(axes["odd"], found, demos)
    for place, name in zip(("more", "few"), found.scores, strict=True):
        _neighbours(axes[place], found, name)
    axes["more"].set_xlabel("k")
    axes["few"].set_title("Held-out storms: k-NN, which sees directions, and ours", fontsize=11)
    _methods(axes["bars"], found)
    figure.savefig(path, dpi=110)


def _map(ax: Any) -> None:
    """A plain graticule."""
    west, east, south, north = WINDOW
    ax.set(xlim=(west, east), ylim=(south, north), aspect=1 / np.cos(np.radians(30)))
    ax.set_xticks(np.arange(-100, 0, 10), [f"{-lon}°W" for lon in range(-100, 0, 10)])
    ax.set_yticks(np.arange(10, 61, 10), [f"{lat}°N" for lat in range(10, 61, 10)])
    ax.grid(color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=8)


def _regimes(ax: Any, found: Findings) -> None:
    from matplotlib import colormaps

    _map(ax)
    nodes = found.regimes
    colours = colormaps["tab10"]
    small = nodes[nodes["regime"] >= MOST_REGIMES]
    ax.scatter(small["lon"], small["lat"], s=1.5, color=GREY, linewidths=0)
    large = nodes[nodes["regime"] < MOST_REGIMES]
    ax.scatter(
        large["lon"], large["lat"], s=2.5, c=colours(large["regime"].to_numpy()), linewidths=0
    )
    # mean steps on a grid of 5 degrees, where there are enough fixes
    cell = nodes.assign(x=(nodes["lon"] // 5) * 5 + 2.5, y=(nodes["lat"] // 5) * 5 + 2.5)
    steps = cell.groupby(["x", "y"])[["east", "north"]].agg(["mean", "size"])
    steps = steps[steps["east", "size"] >= 8].reset_index()
    shrink = 1 / np.cos(np.radians(30))  # arrows point as on the ground, in the map's proportions
    ax.quiver(
        steps["x"],
        steps["y"],
        steps["east", "mean"] * shrink,
        steps["north", "mean"],
        angles="xy",
        width=0.0025,
        color="black",
        zorder=3,
    )
    n_regimes = nodes["regime"].nunique()
    largest = f", the largest {MOST_REGIMES} in colour" if n_regimes > MOST_REGIMES else ""
    ax.set_title(f"{n_regimes} steering regimes{largest}; arrows: mean step", fontsize=11)


def _anomalies(ax: Any, found: Findings, demos: Demonstrations) -> None:
    _map(ax)
    for track in demos:
        ax.plot(*track.T, color=GREY, linewidth=0.4, zorder=1)
    names = list(found.anomalies.index[:3])
    if "Lenny 1999" not in names:
        names.append("Lenny 1999")
    for name, colour in zip(
        names, ("crimson", "tab:blue", "tab:green", "tab:orange"), strict=False
    ):
        row = found.anomalies.loc[name]
        for piece in demos[demos.names == name]:
            ax.plot(*piece.T, color=colour, linewidth=2, zorder=2)
            ax.plot(*piece[0], "o", color=colour, markersize=6, zorder=3)
        ax.plot([], [], "-o", color=colour, label=f"{row['rank']:.0f}. {name} ({row['score']:.1f})")
    ax.legend(loc="upper right", fontsize=9, title="rank, storm (score); dot: start")
    ax.set_title("The odd ones out, judged by models that had not seen them", fontsize=11)


def _neighbours(ax: Any, found: Findings, name: str) -> None:
    means = found.scores[name].drop(columns="storm").mean()
    curve = means[means.index.str.startswith("k-NN")]
    ks = [int(label.split("= ")[1]) for label in curve.index]
    ax.plot(ks, curve, "o-", color="0.5", label=f"k-NN ({name})")
    ax.axhline(means[OURS], color="crimson", linestyle="--", label=f"onlooker ({name})")
    ax.set(xscale="log", ylabel="mean ln p")
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.minorticks_off()
    ax.legend(fontsize=8, loc="lower center")
    ax.grid(color="0.9")


def _methods(ax: Any, found: Findings) -> None:
    labels: list[str] = []
    values, colours = [], []
    for name, table in found.scores.items():
        for method, value in summary(table).items():
            if method == MARGINAL and labels:
                continue
            labels.append(f"{method}\n({name})" if method != MARGINAL else method)
            values.append(value)
            colours.append("crimson" if method == OURS else "0.6")
    place = np.arange(len(labels))[::-1]
    ax.barh(place, values, color=colours)
    for y, value in zip(place, values, strict=True):
        ax.text(value, y, f"{value:.3f} ", ha="right", va="center", fontsize=9)
    ax.set_yticks(place, labels, fontsize=8)
    ax.set(xlim=(min(values) * 1.12, 0), xlabel="mean ln p(direction), higher (shorter) is better")
    ax.set_title("Who predicts the direction of a held-out storm", fontsize=11)
