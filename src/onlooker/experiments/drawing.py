"""What the figures have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlooker import plot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers and dashes say it too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (8, 2)),
)

_STYLE: Any = {"font.size": 10, "axes.titlesize": 11, "svg.hashsalt": "onlooker"}


def new_figure(width: float, height: float, layout: Any = "constrained") -> Figure:
    """A figure that needs no window."""
    plot.require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout=layout)
        FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write ``name.png`` and ``name.svg``; return the first."""
    from matplotlib import rc_context

    path = folder / f"{name}.png"
    with rc_context(_STYLE):
        figure.savefig(path, dpi=150)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    return path


def curves(
    ax: Axes,
    table: pd.DataFrame,
    *,
    x: str,
    y: str = "error",
    by: str,
    names: Sequence[str],
    markers: bool = True,
) -> None:
    """Mean over runs with a band of one standard deviation, a line for each of `names`."""
    for index, name in enumerate(names):
        mine = table[table[by] == name]
        if mine.empty:
            continue
        runs = mine.groupby([x, "run"])[y].mean().groupby(level=0)
        mean, sd = runs.mean(), runs.std().fillna(0.0)
        colour = COLOURS[index % len(COLOURS)]
        ax.plot(
            mean.index, mean, color=colour, ls=DASHES[index % len(DASHES)], lw=1.8,
            marker=MARKERS[index % len(MARKERS)] if markers else None, ms=4.5, label=name,
        )  # fmt: skip
        ax.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.18, lw=0)


def legend_below(ax: Axes, columns: int = 3) -> None:
    """Below the axes, where it covers nothing."""
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=columns, frameon=False,
        columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip


def legend_outside(figure: Figure, ax: Axes, columns: int) -> None:
    """Below all panels, where it covers nothing."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2
    )


def size_axes(
    figure: Figure,
    table: pd.DataFrame,
    methods: Sequence[str],
    *,
    uniform: float,
    ylabel: str,
    title: str,
) -> None:
    """Errors against the number of trajectories."""
    ax = figure.subplots()
    curves(ax, table, x="trajectories", by="method", names=methods)
    ax.axhline(uniform, color="0.5", lw=1.2, ls=(0, (2, 2)), label="uniform policy")
    ax.set_xscale("log")
    sizes = sorted(table["trajectories"].unique())
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.set(xlabel="number of trajectories", ylabel=ylabel, title=title, ylim=(0, None))
    legend_outside(figure, ax, 3)
