"""What was found, in words and as numbers for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from onlooker.diagnostics import at_bounds
from onlooker.dynamics.actions import compass_point, degrees
from onlooker.findings.controllers import n_controllers, regions
from onlooker.findings.names import coordinate, hyper_text
from onlooker.findings.verdict import verdict
from onlooker.reading.tracks import counted

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun

_MAX_LISTED = 12


def findings(run: OpenedRun) -> dict[str, Any]:
    """Number of controllers, regions, convergence, and what lies at a bound of its prior."""
    run.load_consensus()
    return {
        "controllers": n_controllers(run),
        "regions": regions(run),
        "convergence": verdict(run),
        "at_bounds": [item._asdict() for item in at_bounds(run.posterior)],
    }


def format_controllers(numbers: list[dict[str, Any]]) -> str:
    """One line."""
    likely = ", ".join(f"{item['number']} ({item['probability']:.0%})" for item in numbers[:4])
    return f"Controllers: {likely}."


def format_regions(run: OpenedRun, found: list[dict[str, Any]]) -> list[str]:
    """One line per region; the largest come first."""
    lines = [f"Consensus partition: {counted(len(found), 'region')}."]
    lines += [f"  {_region(run, region)}" for region in found[:_MAX_LISTED]]
    if len(found) > _MAX_LISTED:
        lines.append(f"  and {len(found) - _MAX_LISTED} smaller ones")
    return lines


def _region(run: OpenedRun, region: dict[str, Any]) -> str:
    where = ""
    if region["center"] is not None:
        where = " around " + ", ".join(
            f"{name} {coordinate(x, digits)}"
            for name, x, digits in zip(run.axes, region["center"], run.decimals, strict=False)
        )
    likely = ", ".join(f"{a['name']} ({a['probability']:.0%})" for a in region["actions"])
    text = f"{region['controller']}: {counted(region['states'], 'state')}{where}: {likely}"
    if region["mean_step"] is None or len(region["mean_step"]) != 2:
        return text
    x, y = region["mean_step"]
    length = f"{math.hypot(x, y):.3g}"
    if run.geographic:
        point = compass_point(math.degrees(math.atan2(x, y)))
        return f"{text}; on average {length} km towards {point}"
    return f"{text}; on average {length} towards {degrees(math.degrees(math.atan2(y, x)))}"


def format_convergence(found: dict[str, Any]) -> str:
    """A title and its reasons."""
    return f"{found['title']}. {' '.join(found['sentences'])}"


def format_bounds(run: OpenedRun, found: list[dict[str, Any]]) -> list[str]:
    """One line for each hyper-parameter that lies at a bound of its prior."""
    lines = []
    for item in found:
        text = hyper_text(run.posterior.prior, item["name"])
        lines.append(
            f"{text.symbol or f'The {text.name}'} lies at the {item['side']} bound of its prior, "
            f"{item['bound']:.4g}: the answer depends on that bound (see docs, Limits)."
        )
    return lines
