"""What was found, in words and as numbers for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.diagnostics import at_bounds
from onlooker.dynamics.actions import compass_point, degrees
from onlooker.dynamics.base import position_dynamics
from onlooker.findings.controllers import acting, n_controllers, regions
from onlooker.findings.kinds import format_kinds, kinds
from onlooker.findings.names import hyper_text, place_text
from onlooker.findings.verdict import verdict
from onlooker.prediction.controllers import Doing, with_interval
from onlooker.progress import make_progress
from onlooker.reading.tracks import counted

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun

_MAX_LISTED = 12
_WAYS = "a way of acting", "ways of acting"
_MAX_RANGES = 8
_UNSURE = 0.5  # width of an interval from which on a finding is a perhaps
_MOSTLY = 0.5
_MIN_DRIFT = 0.1  # of the longest step: a mean step that is worth telling


def findings(run: OpenedRun, progress: bool = False) -> dict[str, Any]:
    """Number of controllers, regions, convergence, and what lies at a bound of its prior."""
    from onlooker.consensus.search import n_searches

    with make_progress(progress, n_searches() + 10, "findings", "steps", brief=True) as shown:
        shown.update(0, "diagnostics")
        run.table  # noqa: B018
        shown.advance(5, "consensus")
        run.load_consensus(shown)
        shown.advance(0, "controllers")
        converged = verdict(run)
        found = {
            "in_short": in_short(run, converged),
            "controllers": n_controllers(run),
            "regions": regions(run),
            "kinds": kinds(run.posterior),
            "convergence": converged,
            "at_bounds": [item._asdict() for item in at_bounds(run.posterior)],
        }
        shown.advance(5)
    return found


def in_short(run: OpenedRun, converged: dict[str, Any]) -> str:
    """What was found, how sure that is, and how far to trust it: the first thing to read."""
    likely, n_found = n_controllers(run)[0], len(acting(run))
    low, high = _range(run.posterior.n_controllers)
    if low == high:
        found = (
            f"There {'is' if low == 1 else 'are'} {counted(low, 'controller')} "
            f"({_WAYS[low > 1]}) in nearly all draws"
        )
    else:
        found = (
            f"There are {low} to {high} controllers ({_WAYS[1]}; 90 % of draws), most likely "
            f"{likely['number']:.0f} ({percent(likely['probability'])})"
        )
    if run.posterior.n_regions is not None:
        fewest, most = _range(run.posterior.n_regions)
        several = counted(most, "region")
        found += f", in {several if fewest == most else f'{fewest:,} to {several}'}"
    consensus = f"The consensus partition has {n_found:,}"
    if n_found < low:
        consensus += (
            ", fewer because the draws disagree about borders and it keeps only those that most "
            "draws share"
        )
    elif n_found > high:
        consensus += (
            ", more because states whose controller is uncertain stand apart in it, while each "
            "draw gives them one controller or another"
        )
    return f"{found}. {consensus}. {_trust(converged)}"


def _range(numbers: Array) -> tuple[int, int]:
    """Where 90 % of the draws lie."""
    low, high = np.quantile(numbers, [0.05, 0.95], method="inverted_cdf")
    return int(low), int(high)


def percent(share: float) -> str:
    """A share as in "17 %"."""
    if 0 < share < 0.005:
        return "< 1 %"
    return f"{math.floor(100 * share + 0.5)} %"


def _trust(converged: dict[str, Any]) -> str:
    settled = converged["settled"]
    if converged["level"] == "unknown":
        return "It is too early to tell whether this has settled."
    if settled.get("policy", True) and not settled.get("partition", True):
        return (
            "The policy has settled, the partition has not: trust what is done at each place more "
            "than where one region ends and the next begins."
        )
    if not settled.get("policy", True):
        advice = "" if converged["advice"] is None else f" {converged['advice']}."
        return f"The policy has not settled: read this as a first guess.{advice}"
    return "Policy and partition have settled."


def format_done(run: OpenedRun, found: dict[str, Any]) -> list[str]:
    """What is done where, and how much of it is of each kind of behaviours."""
    sentence = format_kinds(found["kinds"])
    return format_regions(run, found["regions"]) + ([] if sentence is None else [sentence])


def format_regions(run: OpenedRun, found: list[dict[str, Any]]) -> list[str]:
    """One line per controller of the consensus partition; the largest come first."""
    parts = [f"Consensus partition: {counted(len(found), 'controller')}", angles(run)]
    lines = ["; ".join(part for part in parts if part) + "."]
    lines += [f"  {_region(run, region)}" for region in found[:_MAX_LISTED]]
    if len(found) > _MAX_LISTED:
        lines.append(f"  and {len(found) - _MAX_LISTED} smaller ones")
    return lines


def in_a_line(run: OpenedRun, region: dict[str, Any]) -> str:
    """What is mostly done in a region, and where it is; for a page that shows the rest."""
    likely = region["actions"][0]
    what, share = f"{likely['name']} ({percent(likely['probability'])})", likely["probability"]
    unsure = ""
    if region["behaviours"]:
        doing = Doing(**region["behaviours"][0])
        what = f"{doing.name} ({with_interval(doing.mean, doing.low, doing.high)})"
        share = doing.mean
        unsure = "perhaps " if doing.high - doing.low > _UNSURE else ""
    often = unsure + ("mostly" if share >= _MOSTLY else "most often")
    where = f"{percent(region['states'] / run.posterior.problem.n_nodes)} of the states"
    if region["numbers"] is not None:
        where += f": {_ranges(region['numbers'])}"
    if region["center"] is not None:
        where += f", around {place_text(region['center'], run.decimals, run.geographic)}"
    return f"{often} {what}; {where}"


def angles(run: OpenedRun) -> str | None:
    """How directions are counted, where they are angles."""
    steps = getattr(position_dynamics(run.posterior.problem.dynamics), "steps", None)
    if steps is None or run.geographic or np.shape(steps)[1] != 2:
        return None
    return f"directions are counter-clockwise from {run.axes[0]}"


def _region(run: OpenedRun, region: dict[str, Any]) -> str:
    where = ""
    if region["center"] is not None:
        where = f" around {place_text(region['center'], run.decimals, run.geographic)}"
    if region["behaviours"] is None:
        likely = ", ".join(f"{a['name']} ({percent(a['probability'])})" for a in region["actions"])
    else:
        likely = "; ".join(str(Doing(**one)) for one in region["behaviours"])
    if region["numbers"] is not None:
        where = f" ({_ranges(region['numbers'])})"
    text = f"{region['controller']}: {counted(region['states'], 'state')}{where}: {likely}"
    if region["mean_step"] is None or len(region["mean_step"]) != 2:
        return text
    x, y = region["mean_step"]
    steps = getattr(position_dynamics(run.posterior.problem.dynamics), "steps", [])
    if math.hypot(x, y) < _MIN_DRIFT * np.linalg.norm(steps, axis=1).max():
        return text  # steps in all directions, as of what goes straight on or turns
    length = f"{math.hypot(x, y):.3g}"
    if run.geographic:
        point = compass_point(math.degrees(math.atan2(x, y)))
        return f"{text}; on average {length} km towards {point}"
    return f"{text}; on average {length} towards {degrees(math.degrees(math.atan2(y, x)))}"


def _ranges(numbers: list[int]) -> str:
    """Whole numbers in order, such as "0 to 3, 7"; the first few of many."""
    cuts = np.flatnonzero(np.diff(numbers) > 1) + 1
    runs = [(part[0], part[-1]) for part in np.split(np.array(numbers), cuts)]
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in runs[:_MAX_RANGES]]
    return ", ".join(words) + (", ..." if len(runs) > _MAX_RANGES else "")


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
            f"{item['bound']:.4g}: the answer depends on that bound (see docs, Choosing a prior)."
        )
    return lines
