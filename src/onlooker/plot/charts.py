"""Distributions: of the number of controllers, and of the actions at one state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import finite_array
from onlooker.plot.base import EXPERT, RECOGNISED, axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.projections.polar import PolarAxes


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
        raise ValueError("counts must be a Posterior or hold integers, one for each draw")
    ax = axes(ax)
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    numbers, times = np.unique(drawn, return_counts=True)
    bars = ax.bar(numbers, times / drawn.size, color=RECOGNISED, width=0.8, label="posterior")
    seen = [f"{100 * share:.0f} %" if share >= 0.005 else "" for share in times / drawn.size]
    ax.bar_label(bars, seen, padding=2)
    if truth is not None:
        ax.axvline(truth, color=EXPERT, lw=2.5, ls="--", ymax=0.8, zorder=3, label="expert")
        ax.set_xlim(min(truth, numbers[0]) - 1.5, max(truth, numbers[-1]) + 1.5)
    ax.set(xlabel="number of controllers", ylabel="probability")
    ax.margins(y=0.2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
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
        ax = pyplot().subplots(subplot_kw={"projection": "polar"})[1]
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    width = 2 * np.pi / len(policy)
    ax.bar(angles, policy, width=0.85 * width, color=RECOGNISED, alpha=0.8, label=names[0])
    if reference is not None:
        edge: dict[str, Any] = {"color": "none", "edgecolor": EXPERT, "linewidth": 2}
        shown = np.asarray(reference) > 0
        heights = np.asarray(reference)[shown]
        ax.bar(angles[shown], heights, width=width, label=names[1], **edge)
    if low is not None and high is not None:
        ax.vlines(angles, low, high, color="black", lw=1.2, label=names[2], zorder=4)
    between = np.deg2rad(22.5 + 45 * np.arange(8))  # the labels go where there are no bars
    crowd = np.maximum(np.cos(between[:, None] - angles), 0) ** 4 @ policy
    ax.set_rlabel_position(float(np.rad2deg(between[crowd.argmin()])))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    ax.tick_params("y", labelsize="small")
    return ax
