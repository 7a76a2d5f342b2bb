"""What was found, in words and as numbers for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics
from onlooker.reading.tracks import counted

if TYPE_CHECKING:
    from onlooker.findings.opened import Run

_ROSE = [
    "N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE",
    "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW",
]  # fmt: skip
_SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "nu": "ν",
    "scale": "The scale of the decay",
    "offset": "The offset of the decay",
}
_LISTED = 12
_LIKELY = 3


def action_names(dynamics: Any, n_actions: int) -> list[str]:
    """Directions and lengths where actions are steps, else numbers."""
    from onlooker.dynamics import GeographicDynamics

    steps = getattr(position_dynamics(dynamics), "steps", None)
    if steps is None:
        return [f"action {j}" for j in range(n_actions)]
    on_earth = isinstance(position_dynamics(dynamics), GeographicDynamics)
    lengths = np.linalg.norm(steps, axis=1)
    speeds = lengths[lengths > 0]
    one_speed = bool(len(speeds)) and bool(np.ptp(speeds) < 1e-9 * speeds.max())
    return [step_name(step, on_earth, one_speed and steps.shape[1] == 2) for step in steps]


def step_name(step: Array, on_earth: bool = False, one_speed: bool = False) -> str:
    """A step as its direction and length; the direction alone where there is one speed."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return "stay"
    if len(step) == 1:
        return f"{step[0]:+.3g}"
    if len(step) > 2:
        return "(" + ", ".join(f"{x:+.3g}" for x in step) + ")"
    if on_earth:
        bearing = rose(math.degrees(math.atan2(step[0], step[1])))
        return bearing if one_speed else f"{bearing} {length:.3g} km"
    angle = _degrees(math.degrees(math.atan2(step[1], step[0])))
    return angle if one_speed else f"{angle} {length:.3g}"


def rose(bearing: float) -> str:
    """One of 16 points of the compass where a bearing is one, else degrees."""
    point = bearing % 360 / 22.5
    if abs(point - round(point)) < 1e-6:
        return _ROSE[round(point) % 16]
    return _degrees(bearing % 360)


def _degrees(angle: float) -> str:
    return f"{round(angle, 1) % 360:g}°"


# -- findings -------------------------------------------------------------------------------------


def controllers(run: Run) -> list[dict[str, float]]:
    """How many there are, and how probable that is; the likeliest first."""
    numbers, counts = np.unique(run.posterior.n_controllers, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        {"number": int(numbers[k]), "probability": float(counts[k] / counts.sum())} for k in order
    ]


def regions(run: Run) -> list[dict[str, Any]]:
    """The clusters of the consensus partition: where they are and what is done there."""
    posterior = run.posterior
    problem, labels, policy = posterior.problem, posterior.partition(), posterior.policy()
    seen = np.bincount(problem.node_of, minlength=problem.n_nodes)
    found = []
    for cluster in range(int(labels.max()) + 1):
        nodes = np.flatnonzero(labels == cluster)
        weights = seen[nodes] if seen[nodes].any() else np.ones(len(nodes))
        acts = weights @ policy[nodes] / weights.sum()
        likely = np.argsort(-acts, kind="stable")[:_LIKELY]
        found.append(
            {
                "controller": cluster + 1,
                "states": len(nodes),
                "transitions": int(seen[nodes].sum()),
                "center": _center(run, nodes),
                "actions": [
                    {"action": int(j), "name": run.action_names[j], "probability": float(acts[j])}
                    for j in likely
                ],
                "mean_step": _mean_step(problem.dynamics, acts),
            }
        )
    return found


def _center(run: Run, nodes: Array) -> list[float] | None:
    if run.is_discrete:
        return None
    places = run.posterior.problem.states[nodes, : run.n_position]
    if not run.record.reading.geographic:
        return [float(x) for x in places.mean(axis=0)]
    lon, lat = np.radians(places).T  # the mean in space: the date line is no seam
    x, y = (np.cos(lat) * np.cos(lon)).mean(), (np.cos(lat) * np.sin(lon)).mean()
    up = np.sin(lat).mean()
    return [math.degrees(math.atan2(y, x)), math.degrees(math.atan2(up, math.hypot(x, y)))]


def _mean_step(dynamics: Any, acts: Array) -> list[float] | None:
    steps = getattr(position_dynamics(dynamics), "steps", None)
    return None if steps is None else [float(x) for x in acts @ steps]


def convergence(run: Run) -> dict[str, Any]:
    """Whether the chains agree, in words that suit a terminal."""
    from onlooker.findings.verdict import verdict

    told = verdict(run.posterior, run.table)
    sentences = list(told["sentences"])
    if told["level"] in ("good", "fair", "bad"):
        sentences = [*sentences[:2], _advice(told, run)]
    return {
        "level": told["level"],
        "title": told["title"],
        "sentences": sentences,
        "r_hat": told.get("r_hat"),
        "ess": told.get("ess"),
    }


def _advice(told: dict[str, Any], run: Run) -> str:
    if told["level"] == "good":
        return "Probabilities can be taken as they are."
    more = "The same command with --resume and more --draws goes on from here"
    if told["r_hat"] is None or told["r_hat"] > 1.01:
        more = "Give the next run more --tune and --draws"
    rough = "are rough" if told["level"] == "fair" else "may depend on where the chains started"
    return f"Probabilities {rough}. {more}."


def findings(run: Run) -> dict[str, Any]:
    """Number of controllers, regions, convergence, and what lies at a bound of its prior."""
    from onlooker.diagnostics import at_bounds

    run.settle()
    return {
        "controllers": controllers(run),
        "regions": regions(run),
        "convergence": convergence(run),
        "at_bounds": [one._asdict() for one in at_bounds(run.posterior)],
    }


def tell_controllers(found: list[dict[str, Any]]) -> str:
    """One line."""
    likely = ", ".join(f"{one['number']} ({one['probability']:.0%})" for one in found[:4])
    return f"Controllers: {likely}."


def tell_regions(run: Run, found: list[dict[str, Any]]) -> list[str]:
    """One line a region; the largest come first."""
    lines = [f"Consensus partition: {counted(len(found), 'region')}."]
    lines += [f"  {_region(run, one)}" for one in found[:_LISTED]]
    if len(found) > _LISTED:
        lines.append(f"  and {len(found) - _LISTED} smaller ones")
    return lines


def _region(run: Run, one: dict[str, Any]) -> str:
    where = ""
    if one["center"] is not None:
        where = " around " + ", ".join(
            f"{name} {x:.4g}" for name, x in zip(run.states, one["center"], strict=False)
        )
    likely = ", ".join(f"{a['name']} ({a['probability']:.0%})" for a in one["actions"])
    told = f"{one['controller']}: {counted(one['states'], 'state')}{where}: {likely}"
    if one["mean_step"] is None or len(one["mean_step"]) != 2:
        return told
    x, y = one["mean_step"]
    far = f"{math.hypot(x, y):.3g}"
    if run.record.reading.geographic:
        point = _ROSE[round(math.degrees(math.atan2(x, y)) % 360 / 22.5) % 16]
        return f"{told}; on average {far} km towards {point}"
    return f"{told}; on average {far} towards {_degrees(math.degrees(math.atan2(y, x)))}"


def tell_convergence(found: dict[str, Any]) -> str:
    """A title and its reasons."""
    return f"{found['title']}. {' '.join(found['sentences'])}"


def tell_bounds(found: list[dict[str, Any]]) -> list[str]:
    """One line for each hyper-parameter that lies at a bound of its prior."""
    return [
        f"{_SYMBOLS.get(one['name'], one['name'])} lies at the {one['side']} bound of its prior, "
        f"{one['bound']:.4g}: the answer depends on that bound (see docs, Limits)."
        for one in found
    ]
