"""Figures of anomaly scores: steps along a trajectory, a trajectory in the plane, p-values.

Like `onlooker.plot`, every function draws into `ax`, or into a new figure, and returns the axes.
Needs matplotlib: ``pip install onlooker[plot]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, finite_array
from onlooker.demonstrations import Demonstrations
from onlooker.plot.base import ALARM, EXPERT, RECOGNISED, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onlooker.anomaly import AnomalyScores

__all__ = ["p_values", "track", "trajectory"]

_MAX_EXCESS = 5.0  # standard deviations at the end of the colour bar


def trajectory(
    scores: AnomalyScores, index: int, ax: Axes | None = None, *, false_alarm: float = 0.05
) -> Axes:
    """Draw both parts of the surprise along one trajectory, step by step.

    Crosses mark steps that no action explains. If the trajectory has a change point at the
    level `false_alarm`, the stretch is shaded and the interval of its onset is drawn above it.
    """
    index = _check_index(scores, index)
    ax = axes(ax)
    chosen = scores.steps.trajectory == index
    step = scores.steps.step[chosen]
    for name, colour in (("action_surprise", RECOGNISED), ("noise_surprise", EXPERT)):
        ax.plot(step, getattr(scores.steps, name)[chosen], "o-", color=colour, ms=3, lw=0.8,
                label=name.replace("_", " "))  # fmt: skip
    ax.axhline(0.0, color="black", lw=0.6)
    lost = ~scores.steps.explained[chosen]
    if lost.any():
        top = np.full(lost.sum(), 0.98)
        ax.plot(step[lost], top, "x", color=ALARM, transform=ax.get_xaxis_transform(),
                clip_on=False, label="no action explains it")  # fmt: skip
    verdict = scores.trajectories
    if verdict.p_change[index] <= false_alarm and verdict.onset[index] >= 0:
        first, last = verdict.onset[index], verdict.end[index]
        ax.axvspan(first - 0.5, last + 0.5, color=ALARM, alpha=0.15, lw=0, label="not nominal")
        low, high = verdict.onset_low[index] - 0.5, verdict.onset_high[index] + 0.5
        ax.plot([low, high], [0.97, 0.97], color=ALARM, lw=3, transform=ax.get_xaxis_transform(),
                solid_capstyle="butt", label="onset")  # fmt: skip
    ax.set(
        xlabel="step",
        ylabel="excess [standard deviations]",
        title=f"{scores.names[index]}: score {verdict.score[index]:.1f}, "
        f"p = {verdict.p_combined[index]:.2g}",
    )
    return ax


def track(
    scores: AnomalyScores,
    demos: Any,
    index: int,
    ax: Axes | None = None,
    *,
    coordinates: Any = None,
) -> Axes:
    """Draw one trajectory in the plane, coloured by excess surprise about actions.

    Parameters
    ----------
    demos
        The demonstrations that were scored.
    coordinates
        ``(S, 2)``: where the states of a finite space lie.
    """
    index = _check_index(scores, index)
    demos = Demonstrations(demos)
    if len(demos) != len(scores) or demos.n_transitions != len(scores.steps.step):
        raise ValueError("demos must be the demonstrations that were scored")
    points = demos[index]
    if coordinates is not None:
        points = finite_array("coordinates", coordinates, ndim=2)[points]
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"demos must lie in the plane, got states of shape {points.shape[1:]}; for integer "
            "states give coordinates="
        )
    ax = axes(ax)
    from matplotlib.collections import LineCollection

    chosen = scores.steps.trajectory == index
    segments = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(segments), cmap="cividis_r", linewidths=2)
    lines.set_array(scores.steps.action_surprise[chosen])
    lines.set_clim(-1.0, _MAX_EXCESS)
    ax.add_collection(lines)
    ax.plot(*points[0], "o", color="white", mec="black", ms=5, label="start")
    lost = ~scores.steps.explained[chosen]
    if lost.any():
        ax.plot(*points[1:][lost].T, "x", color=ALARM, label="no action explains it")
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.set(xlabel="x", ylabel="y")
    ax.figure.colorbar(
        lines, ax=ax, label="excess surprise about actions [standard deviations]", extend="both"
    )
    return ax


def p_values(values: Any, ax: Axes | None = None, *, label: str | None = None) -> Axes:
    """Draw the share of p-values below each level: the diagonal, if they are calibrated.

    The grey band holds the whole curve with probability 0.95 if they are, and independent.
    """
    values = np.sort(finite_array("values", values, ndim=1))
    if len(values) == 0:
        raise ValueError("values holds no p-value")
    from scipy.stats import kstwo

    ax = axes(ax)
    first = not ax.lines
    ax.step(np.r_[0, values, 1], np.r_[0, np.arange(1, len(values) + 1), len(values)] / len(values),
            where="post", label=label)  # fmt: skip
    if first:
        width = kstwo.ppf(0.95, len(values))
        level: Array = np.linspace(0, 1, 101)
        ax.fill_between(level, np.clip(level - width, 0, 1), np.clip(level + width, 0, 1),
                        color="0.85", lw=0, zorder=0)  # fmt: skip
        ax.plot([0, 1], [0, 1], color="0.4", lw=0.8, zorder=1)
    ax.set(xlabel="p-value", ylabel="share below", xlim=(0, 1), ylim=(0, 1))
    return ax


def _check_index(scores: AnomalyScores, index: int) -> int:
    if not -len(scores) <= index < len(scores):
        raise ValueError(f"index must be below {len(scores)}, the number of trajectories")
    return index % len(scores)
