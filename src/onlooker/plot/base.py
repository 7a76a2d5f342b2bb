"""What all figures share: axes, colours and points of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, finite_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours; wine in place of their black, which is kept for data.
_OKABE_ITO = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#882255",
)  # fmt: skip
RECOGNISED = "#0072B2"
EXPERT = "#E69F00"
ALARM = "#D55E00"


def require_matplotlib() -> None:
    """Refuse early, and say what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install onlooker[plot]") from error


def pyplot() -> Any:
    """``matplotlib.pyplot``, imported when a figure is made."""
    require_matplotlib()
    import matplotlib.pyplot as pyplot

    return pyplot


def axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    return ax if ax is not None else pyplot().subplots()[1]


def plane_axes(ax: Axes | None) -> Axes:
    """The same, with equal scales."""
    ax = axes(ax)
    ax.set_aspect("equal")
    ax.set(xlabel="x", ylabel="y")
    return ax


def cluster_colours(n: int) -> Array:
    """``(n, 3)``: a colour for each cluster; after eight they return darker."""
    require_matplotlib()
    from matplotlib.colors import to_rgb

    base = np.array([to_rgb(colour) for colour in _OKABE_ITO])
    index = np.arange(n)
    return base[index % len(base)] * 0.6 ** (index // len(base))[:, None]


def rgb(colours: Sequence[Any] | None, n: int) -> Array:
    """``(n, 3)``: the colours given, or those of `cluster_colours`."""
    from matplotlib.colors import to_rgb

    if colours is None:
        return cluster_colours(n)
    if len(colours) < n:
        raise ValueError(f"colours holds {len(colours)} colours for {n} clusters")
    return np.array([to_rgb(colour) for colour in colours])


def points_of(name: str, states: Any) -> Array:
    """States as ``(n, 2)`` points of the plane."""
    points = np.asarray(states)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"{name} must be (n, 2) points of the plane, got shape {points.shape}; "
            "for integer states pass their coordinates"
        )
    return finite_array(name, points, ndim=2)
