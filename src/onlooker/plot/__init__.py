"""Pictures of demonstrations, partitions and policies in the plane.

Every function draws into `ax`, or into a new figure, and returns the axes. Colours are those of
Okabe and Ito and the map "cividis", which most colour-blind people can tell apart. Needs
matplotlib: ``pip install onlooker[plot]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, finite_array
from onlooker.demonstrations import Demonstrations
from onlooker.partitions.geometry import distance_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.projections.polar import PolarAxes

__all__ = [
    "cluster_colours",
    "distance_to",
    "n_controllers",
    "partition",
    "policy_error",
    "policy_field",
    "regions",
    "require_matplotlib",
    "rose",
    "trajectories",
]

# Okabe and Ito's colours; wine in place of their black, which is kept for data.
_OKABE_ITO = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#882255",
)  # fmt: skip
_RECOGNISED = "#0072B2"
_EXPERT = "#E69F00"
_MOST_NAMED = 8  # clusters that a legend can hold

Extent = tuple[float, float, float, float]


def trajectories(
    demos: Demonstrations | Sequence[Any], ax: Axes | None = None, *, colour: str = "black"
) -> Axes:
    """Draw the states that were seen as thin lines, with a dot where each trajectory starts."""
    demos = Demonstrations(demos)
    _points("demos", demos.states)
    ax = _plane(ax)
    for index, path in enumerate(demos):
        ax.plot(*path.T, color=colour, lw=0.7, alpha=0.6, label=None if index else "trajectory")
    start = demos.states[demos.offsets[:-1]]
    ax.plot(*start.T, "o", color="white", mec=colour, ms=4, label="start")
    return ax


def regions(
    assign: Callable[[Array], Array],
    extent: Extent,
    ax: Axes | None = None,
    *,
    colours: Sequence[Any] | None = None,
    near: Any = None,
    reach: float = 1.0,
    resolution: int = 151,
) -> Axes:
    """Shade the plane by cluster.

    Parameters
    ----------
    assign
        From ``(n, 2)`` points to ``(n,)`` clusters, e.g. `Posterior.assign`; -1 stays white.
    extent
        ``(left, right, bottom, top)``.
    colours
        One a cluster; by default `cluster_colours`.
    near, reach
        Points farther than `reach` from all of the ``(m, 2)`` states `near` are paler.
    resolution
        Points along each side.
    """
    ax = _plane(ax)
    x = np.linspace(extent[0], extent[1], resolution)
    y = np.linspace(extent[2], extent[3], resolution)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    labels = np.asarray(assign(points))
    pixels = np.ones((len(points), 4))
    if labels.max() >= 0:
        palette = _rgb(colours, int(labels.max()) + 1)
        pixels[labels >= 0, :3] = palette[labels[labels >= 0]]
    pixels[:, 3] = 0.55
    if near is not None:
        pixels[distance_to(points, _points("near", near)) > reach, 3] = 0.18
    image = pixels.reshape(resolution, resolution, 4)
    ax.imshow(image, extent=extent, origin="lower", interpolation="nearest", zorder=0)
    ax.set(xlim=extent[:2], ylim=extent[2:])
    return ax


def partition(
    states: Any, labels: Any, ax: Axes | None = None, *, colours: Sequence[Any] | None = None
) -> Axes:
    """Draw each state as a dot in the colour of its cluster; labels for a legend hold the sizes.

    Parameters
    ----------
    states, labels
        ``(n, 2)`` points and their ``(n,)`` clusters, e.g. of `Posterior.partition`.
    colours
        One a cluster; by default `cluster_colours`.
    """
    points = _points("states", states)
    labels = np.asarray(labels)
    if labels.shape != (len(points),) or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be ({len(points)},) integers, one a state")
    ax = _plane(ax)
    palette = _rgb(colours, int(labels.max()) + 1)
    sizes = np.bincount(labels)
    style: dict[str, Any] = {"marker": "o", "ls": "", "mec": "black", "mew": 0.3, "ms": 4.0}
    for rank, name in enumerate(np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]):
        label = f"{sizes[name]} states" if rank < _MOST_NAMED else None
        ax.plot(*points[labels == name].T, color=palette[name], label=label, **style)
    return ax


def policy_field(
    states: Any,
    policy: Any,
    angles: Any,
    ax: Axes | None = None,
    *,
    reference: Any = None,
    length: float = 1.0,
    names: tuple[str, str] = ("recognised", "expert"),
    colour: str = _RECOGNISED,
) -> Axes:
    """Draw the mean step of a policy at each state: the surer of its direction, the longer.

    Parameters
    ----------
    states, policy
        ``(n, 2)`` points and the ``(n, A)`` action probabilities there.
    angles
        ``(A,)``: the direction of each action, in radians.
    reference
        Another policy, ``(n, A)``, drawn beneath as broad arrows.
    length
        Of the arrow of a policy that is sure.
    names
        What the legend calls `policy` and `reference`.
    colour
        Of the arrows of `policy`.
    """
    points = _points("states", states)
    ax = _plane(ax)
    style: dict[str, Any] = {
        "angles": "xy",
        "scale_units": "xy",
        "scale": 1 / length,
        "units": "xy",
    }
    if reference is not None:
        steps = _mean_steps("reference", reference, angles, len(points))
        ax.quiver(
            *points.T, *steps.T, color=_EXPERT, width=0.3 * length, label=names[1], zorder=2,
            headwidth=2.2, headlength=2.2, headaxislength=2.2, **style,
        )  # fmt: skip
    steps = _mean_steps("policy", policy, angles, len(points))
    ax.quiver(
        *points.T, *steps.T, color=colour, width=0.09 * length, label=names[0], zorder=3,
        headwidth=4, headlength=4, headaxislength=3.5, **style,
    )  # fmt: skip
    return ax


def n_controllers(counts: Any, ax: Axes | None = None, *, truth: int | None = None) -> Axes:
    """Draw the probability of each number of controllers.

    Parameters
    ----------
    counts
        A `Posterior`, or its ``n_controllers``: integers of any shape.
    truth
        The right number, where it is known.
    """
    drawn = np.asarray(getattr(counts, "n_controllers", counts)).ravel()
    if drawn.dtype.kind not in "iu" or drawn.size == 0:
        raise ValueError("counts must be a Posterior or hold integers, one a draw")
    ax = _axes(ax)
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    numbers, times = np.unique(drawn, return_counts=True)
    bars = ax.bar(numbers, times / drawn.size, color=_RECOGNISED, width=0.8, label="posterior")
    seen = [f"{share:.0%}" if share >= 0.005 else "" for share in times / drawn.size]
    ax.bar_label(bars, seen, padding=2)
    if truth is not None:
        ax.axvline(truth, color=_EXPERT, lw=2.5, ls="--", ymax=0.8, zorder=3, label="expert")
        ax.set_xlim(min(truth, numbers[0]) - 1.5, max(truth, numbers[-1]) + 1.5)
    ax.set(xlabel="number of controllers", ylabel="probability")
    ax.margins(y=0.2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return ax


def policy_error(
    states: Any,
    errors: Any,
    ax: Axes | None = None,
    *,
    label: str = "error [rad]",
    limits: tuple[float, float] | None = None,
    cax: Axes | None = None,
) -> Axes:
    """Colour the points of a regular grid by a number, e.g. the error of a policy there.

    Parameters
    ----------
    states, errors
        ``(n, 2)`` points, every crossing of some columns and rows, and their ``(n,)`` numbers.
    label
        Of the colour bar.
    limits
        Numbers at the ends of the colour bar.
    cax
        Axes for a horizontal colour bar; by default room for a standing one is taken from `ax`.
    """
    points = _points("states", states)
    errors = finite_array("errors", errors, ndim=1)
    x, column = np.unique(points[:, 0], return_inverse=True)
    y, row = np.unique(points[:, 1], return_inverse=True)
    if len(errors) != len(points) or len(x) * len(y) != len(points):
        raise ValueError(
            f"states must be a full grid with one error a point; got {len(points)} points in "
            f"{len(x)} columns and {len(y)} rows, and {len(errors)} errors"
        )
    table = np.empty((len(y), len(x)))
    table[row, column] = errors
    ax = _plane(ax)
    low, high = limits if limits is not None else (0.0, float(errors.max()))
    mesh = ax.pcolormesh(x, y, table, cmap="cividis", vmin=low, vmax=high, rasterized=True)
    where: dict[str, Any] = {"cax": cax, "orientation": "horizontal"}
    if cax is None:  # so much room makes it as tall as axes that are about square
        where = {"ax": ax, "fraction": 0.046, "pad": 0.04}
    ax.figure.colorbar(mesh, label=label, **where)
    return ax


def rose(
    policy: Any,
    angles: Any,
    ax: PolarAxes | None = None,
    *,
    low: Any = None,
    high: Any = None,
    reference: Any = None,
    names: tuple[str, str, str] = ("recognised", "expert", "90 % interval"),
) -> PolarAxes:
    """Draw the action probabilities at one state around the compass.

    Parameters
    ----------
    policy, angles
        ``(A,)`` probabilities, and the direction of each action in radians.
    ax
        Axes with ``projection="polar"``.
    low, high
        ``(A,)``: the ends of an interval, drawn as whiskers.
    reference
        Another policy, ``(A,)``, drawn as an outline.
    names
        What the legend calls `policy`, `reference` and the interval.
    """
    policy = finite_array("policy", policy, ndim=1)
    angles = finite_array("angles", angles, ndim=1)
    if policy.shape != angles.shape:
        raise ValueError(f"policy has {len(policy)} actions but there are {len(angles)} angles")
    if ax is None:
        ax = _pyplot().subplots(subplot_kw={"projection": "polar"})[1]
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    width = 2 * np.pi / len(policy)
    ax.bar(angles, policy, width=0.85 * width, color=_RECOGNISED, alpha=0.8, label=names[0])
    if reference is not None:
        edge: dict[str, Any] = {"color": "none", "edgecolor": _EXPERT, "linewidth": 2}
        shown = np.asarray(reference) > 0
        heights = np.asarray(reference)[shown]
        ax.bar(angles[shown], heights, width=width, label=names[1], **edge)
    if low is not None and high is not None:
        ax.vlines(angles, low, high, color="black", lw=1.2, label=names[2], zorder=4)
    between = np.deg2rad(22.5 + 45 * np.arange(8))  # the labels go where there are no bars
    crowd = np.maximum(np.cos(between[:, None] - angles), 0) ** 4 @ policy
    ax.set_rlabel_position(float(np.rad2deg(between[crowd.argmin()])))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.tick_params("y", labelsize="small")
    return ax


def cluster_colours(n: int) -> Array:
    """``(n, 3)``: a colour a cluster; after eight they come back darker."""
    require_matplotlib()
    from matplotlib.colors import to_rgb

    base = np.array([to_rgb(colour) for colour in _OKABE_ITO])
    index = np.arange(n)
    return base[index % len(base)] * 0.6 ** (index // len(base))[:, None]


def _rgb(colours: Sequence[Any] | None, n: int) -> Array:
    from matplotlib.colors import to_rgb

    if colours is None:
        return cluster_colours(n)
    if len(colours) < n:
        raise ValueError(f"colours holds {len(colours)} colours for {n} clusters")
    return np.array([to_rgb(colour) for colour in colours])


def _points(name: str, states: Any) -> Array:
    points = np.asarray(states)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"{name} must be (n, 2) points of the plane, got shape {points.shape}; "
            "for integer states pass their coordinates"
        )
    return finite_array(name, points, ndim=2)


def _mean_steps(name: str, policy: Any, angles: Any, n: int) -> Array:
    policy = finite_array(name, policy, ndim=2)
    angles = finite_array("angles", angles, ndim=1)
    if policy.shape != (n, len(angles)):
        raise ValueError(
            f"{name} must be ({n}, {len(angles)}), states by angles, got {policy.shape}"
        )
    return policy @ np.column_stack([np.cos(angles), np.sin(angles)])


def require_matplotlib() -> None:
    """Refuse early, and say what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install onlooker[plot]") from error


def _pyplot() -> Any:
    require_matplotlib()
    import matplotlib.pyplot as pyplot

    return pyplot


def _axes(ax: Axes | None) -> Axes:
    return ax if ax is not None else _pyplot().subplots()[1]


def _plane(ax: Axes | None) -> Axes:
    ax = _axes(ax)
    ax.set_aspect("equal")
    ax.set(xlabel="x", ylabel="y")
    return ax
