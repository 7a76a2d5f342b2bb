"""Trajectories, partitions and policies in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, finite_array
from onlooker.demonstrations import Demonstrations
from onlooker.partitions.geometry import distance_to
from onlooker.plot.base import EXPERT, RECOGNISED, plane_axes, points_of, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NAMED = 8  # clusters that a legend can hold

Extent = tuple[float, float, float, float]


def trajectories(
    demos: Demonstrations | Sequence[Any], ax: Axes | None = None, *, colour: str = "black"
) -> Axes:
    """Draw the states that were seen as thin lines, with a dot where each trajectory starts."""
    demos = Demonstrations(demos)
    points_of("demos", demos.states)
    ax = plane_axes(ax)
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
        One for each cluster; by default `cluster_colours`.
    near, reach
        Points farther than `reach` from all of the ``(m, 2)`` states `near` are paler.
    resolution
        Points along each side.
    """
    ax = plane_axes(ax)
    x = np.linspace(extent[0], extent[1], resolution)
    y = np.linspace(extent[2], extent[3], resolution)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    labels = np.asarray(assign(points))
    pixels = np.ones((len(points), 4))
    if labels.max() >= 0:
        palette = rgb(colours, int(labels.max()) + 1)
        pixels[labels >= 0, :3] = palette[labels[labels >= 0]]
    pixels[:, 3] = 0.55
    if near is not None:
        pixels[distance_to(points, points_of("near", near)) > reach, 3] = 0.18
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
        One for each cluster; by default `cluster_colours`.
    """
    points = points_of("states", states)
    labels = np.asarray(labels)
    if labels.shape != (len(points),) or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be ({len(points)},) integers, one for each state")
    ax = plane_axes(ax)
    palette = rgb(colours, int(labels.max()) + 1)
    sizes = np.bincount(labels)
    style: dict[str, Any] = {"marker": "o", "ls": "", "mec": "black", "mew": 0.3, "ms": 4.0}
    for rank, name in enumerate(np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]):
        label = f"{sizes[name]} states" if rank < _MAX_NAMED else None
        ax.plot(*points[labels == name].T, color=palette[name], label=label, **style)
    return ax


def policy_field(
    states: Any,
    policy: Any,
    angles: Any,
    ax: Axes | None = None,
    *,
    reference: Any = None,
    length: float | None = None,
    names: tuple[str, str] = ("recognised", "expert"),
    colour: str = RECOGNISED,
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
        Of the arrow of a policy that is sure; by default a twentieth of the extent of the points.
    names
        What the legend calls `policy` and `reference`.
    colour
        Of the arrows of `policy`.
    """
    points = points_of("states", states)
    ax = plane_axes(ax)
    if length is None:
        length = float(np.ptp(points, axis=0).max(initial=0.0)) / 20 or 1.0
    style: dict[str, Any] = {
        "angles": "xy",
        "scale_units": "xy",
        "scale": 1 / length,
        "units": "xy",
    }
    if reference is not None:
        steps = _mean_steps("reference", reference, angles, len(points))
        ax.quiver(
            *points.T, *steps.T, color=EXPERT, width=0.3 * length, label=names[1], zorder=2,
            headwidth=2.2, headlength=2.2, headaxislength=2.2, **style,
        )  # fmt: skip
    steps = _mean_steps("policy", policy, angles, len(points))
    ax.quiver(
        *points.T, *steps.T, color=colour, width=0.09 * length, label=names[0], zorder=3,
        headwidth=4, headlength=4, headaxislength=3.5, **style,
    )  # fmt: skip
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
    points = points_of("states", states)
    errors = finite_array("errors", errors, ndim=1)
    x, column = np.unique(points[:, 0], return_inverse=True)
    y, row = np.unique(points[:, 1], return_inverse=True)
    if len(errors) != len(points) or len(x) * len(y) != len(points):
        raise ValueError(
            f"states must be a full grid with one error per point; got {len(points)} points in "
            f"{len(x)} columns and {len(y)} rows, and {len(errors)} errors"
        )
    table = np.empty((len(y), len(x)))
    table[row, column] = errors
    ax = plane_axes(ax)
    low, high = limits if limits is not None else (0.0, float(errors.max()))
    mesh = ax.pcolormesh(x, y, table, cmap="cividis", vmin=low, vmax=high, rasterized=True)
    where: dict[str, Any] = {"cax": cax, "orientation": "horizontal"}
    if cax is None:  # so much room makes it as tall as axes that are about square
        where = {"ax": ax, "fraction": 0.046, "pad": 0.04}
    ax.figure.colorbar(mesh, label=label, **where)
    return ax


def _mean_steps(name: str, policy: Any, angles: Any, n: int) -> Array:
    policy = finite_array(name, policy, ndim=2)
    angles = finite_array("angles", angles, ndim=1)
    if policy.shape != (n, len(angles)):
        raise ValueError(
            f"{name} must be ({n}, {len(angles)}), states by angles, got {policy.shape}"
        )
    return policy @ np.column_stack([np.cos(angles), np.sin(angles)])
