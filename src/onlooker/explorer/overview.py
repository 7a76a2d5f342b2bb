"""All that a page shows of a run before anything is asked, as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array
from onlooker.explorer.matching import block_size
from onlooker.explorer.packing import pack
from onlooker.explorer.pictures import picture
from onlooker.explorer.view import RunView
from onlooker.findings.controllers import Controller, acting
from onlooker.findings.kinds import format_kinds, kinds
from onlooker.findings.model import dynamics_words, prior_words
from onlooker.findings.names import hyper_prior_words, hyper_text, short_repr
from onlooker.findings.verdict import table_rows, verdict
from onlooker.findings.words import angles, in_a_line, in_short
from onlooker.hyper import Prior
from onlooker.prediction.controllers import LEVEL

_MAX_UNSURE = 12
_CLOCKS = {"M": "date", "m": "duration"}
_MAX_REGIONS = 5  # that the page begins with
_MAX_TRACED = 2_000  # draws of a chain that a trace shows


def overview(view: RunView) -> dict[str, Any]:
    """Everything that does not depend on a question; findings that are not there yet are None."""
    reference = view.reference
    return {
        "complete": view.complete,
        "notes": view.notes,
        "run": _run(view),
        "data": _data(view),
        "actions": view.action_names,
        "space": _space(view),
        "reference": pack(reference.labels, "u2"),
        "epoch": reference.epoch,
        "n_reference": reference.n_clusters,
        "is_consensus": view.consensus is not None,
        "draws": _draws(view),
        "traces": _traces(view),
        "counts": _counts(view),
        "kinds": format_kinds(kinds(view.posterior)),
        "verdict": _verdict(view),
        "in_short": _in_short(view),
        "regions": _regions(view),
        "angles": angles(view.run),
        "summary": table_rows(view.run) if _has_table(view) else [],
        "consensus": _consensus(view),
        "membership": None if view.consensus is None else pack(view.consensus.membership),
        "policy": _if_there(view, "policy"),
        "spread": _if_there(view, "spread"),
        "node_moves": pack(view.node_moves)
        if "policy" in view.__dict__ and view.node_moves is not None
        else None,
        "controllers": _controllers(view),
        "unsure": _unsure(view),
        "hyper": _hyper(view),
        "paths": _paths(view),
        "steps": _steps(view),
        "anomaly": _anomaly(view),
        "level": LEVEL,
    }


def _if_there(view: RunView, name: str) -> dict[str, Any] | None:
    return pack(view.__dict__[name]) if name in view.__dict__ else None


def _run(view: RunView) -> dict[str, Any]:
    schedule, header = view.posterior.schedule, view.run.header
    versions = dict(header["versions"])
    return {
        "created": header["created"],
        "versions": versions,
        "shown_by": __version__,
        "seed": str(schedule.seed),
        "prior": prior_words(view.posterior.prior),
        "options": header["options"],
        "planned_draws": header["draws"],
        "planned_chains": header["chains"],
        "command": header.get("command"),
        "call": _call(view),
        "growing": view.run.growing,
    }


def _call(view: RunView) -> str:
    """The call of the library that makes this run again."""
    header, target, schedule = view.run.header, view.posterior.target, view.posterior.schedule
    parts = [
        f"problem, {short_repr(target.prior)}",
        f"concentration={short_repr(target.concentration)}",
        *([] if target.collapsed else ["collapsed=False"]),
        f"draws={header['draws']}, tune={schedule.tune}",
        f"chains={header['chains']}, thin={schedule.thin}",
        f"random_state={schedule.seed}",
    ]
    return f"onlooker.sample({', '.join(parts)})"


def _data(view: RunView) -> dict[str, Any]:
    problem = view.posterior.problem
    lengths: list[int] = [] if problem.paths is None else np.diff(problem.paths.offsets).tolist()
    dynamics = view.run.header["dynamics"]
    return {
        "nodes": problem.n_nodes,
        "transitions": problem.n_transitions,
        "step_time": view.run.step_time,
        "actions": problem.n_actions,
        "trajectories": len(lengths) if problem.paths is not None else None,
        "shortest": min(lengths, default=0),
        "longest": max(lengths, default=0),
        "kind": view.space.kind,
        "dims": None if view.space.kind == "abstract" else view.space.sites.shape[1],
        "dynamics": dynamics_words(problem.dynamics)
        if problem.dynamics is not None
        else (dynamics or {}).get("opaque"),
        "unidentifiable": None if view.run.has_unseen else problem.unidentifiable_share,
        "left": pack(view.run.visits > 0, "u1"),
        "unseen": view.run.has_unseen,
    }


def _space(view: RunView) -> dict[str, Any]:
    space, n_axes = view.space, view.space.sites.shape[1]
    return {
        "kind": space.kind,
        "axes": space.axes,
        "units": space.units,
        "n_position": view.run.n_position if space.kind == "real" else n_axes,
        "features": [
            {
                "name": one.in_words(np.zeros(at.stop - at.start))[0],
                "weight": one.weight,
                "log_unit": getattr(one, "unit", None),
                "first": int(at.start),
                "end": int(at.stop),
            }
            for one, at in view.run.features
        ],
        "sites": pack(space.sites, "f8"),
        "states": None if space.states is None else pack(space.states, "f8"),
        "cell": space.cell,
        "decimals": space.decimals,
        "extent": space.extent,
        "meridian": space.meridian,
        "land": space.land,
        "moves": None if view.moves is None else pack(view.moves),
    }


def _draws(view: RunView) -> dict[str, Any]:
    posterior = view.posterior
    return {
        "chains": posterior.chain_ids,
        "n_draws": posterior.n_draws,
        "n_nodes": posterior.problem.n_nodes,
        "block": block_size(posterior.problem.n_nodes),
    }


def _traces(view: RunView) -> dict[str, Any]:
    """Scalars of every draw; long chains are thinned, and `step` says how."""
    posterior = view.posterior
    step = -(-posterior.n_draws // _MAX_TRACED)
    found: dict[str, Array] = {
        "n_controllers": posterior.n_controllers,
        "log_joint": posterior.log_joint,
        **{name: x for name, x in posterior.hyper.items() if (x != x[0, 0]).any()},
    }
    rows = [
        {
            "name": name,
            "meaning": view.run.scalar_name(name),
            "values": pack(values[:, ::step]),
        }
        for name, values in found.items()
    ]
    return {"step": step, "rows": rows}


def _counts(view: RunView) -> list[dict[str, float]]:
    values, counts = np.unique(view.posterior.n_controllers, return_counts=True)
    return [
        {"k": int(k), "share": float(n / counts.sum())} for k, n in zip(values, counts, strict=True)
    ]


def _verdict(view: RunView) -> dict[str, Any] | None:
    return verdict(view.run) if _has_table(view) else None


def _in_short(view: RunView) -> str | None:
    known = _has_table(view) and view.consensus is not None and not view.run.growing
    return in_short(view.run, verdict(view.run)) if known else None


def _regions(view: RunView) -> list[dict[str, Any]] | None:
    """The largest regions in words: where, and what is mostly done."""
    if _in_short(view) is None:
        return None
    largest = view.regions[:_MAX_REGIONS]
    return [
        {"number": region["controller"] - 1, "text": in_a_line(view.run, region)}
        for region in largest
    ]


def _has_table(view: RunView) -> bool:
    return "table" in view.run.__dict__


def _consensus(view: RunView) -> dict[str, Any] | None:
    found, ball = view.consensus, view.ball
    if found is None or ball is None:
        return None
    return {
        "n_clusters": found.n_clusters,
        "n_acting": len(acting(view.run)) if not view.run.growing else None,
        "expected_loss": found.expected_loss,
        "n_restarts": found.n_restarts,
        "n_agreeing": found.n_agreeing,
        "radius": ball.radius,
        "level": ball.level,
        "fewest": int(ball.upper[0].max()) + 1,
        "most": int(ball.lower[0].max()) + 1,
        "provisional": view.run.growing,
    }


def _controllers(view: RunView) -> list[dict[str, Any]] | None:
    if "controllers" not in view.__dict__:
        return None
    return [_controller(view, one) for one in view.controllers]


def _controller(view: RunView, one: Controller) -> dict[str, Any]:
    return {
        "number": one.number,
        "nodes": one.n_nodes,
        "transitions": one.n_transitions,
        "certainty": one.certainty,
        "mean": one.mean.tolist(),
        "low": one.low.tolist(),
        "high": one.high.tolist(),
        "behaviours": [
            {**done._asdict(), "picture": picture(view, done.behaviour)} for done in one.behaviours
        ],
    }


def _unsure(view: RunView) -> dict[str, list[int]] | None:
    """Nodes whose membership, and whose policy, is least certain."""
    if view.consensus is None:
        return None
    return {
        "membership": np.argsort(view.consensus.membership, kind="stable")[:_MAX_UNSURE].tolist(),
        "policy": np.argsort(-view.spread, kind="stable")[:_MAX_UNSURE].tolist(),
    }


def _hyper(view: RunView) -> list[dict[str, Any]]:
    posterior = view.posterior
    given = view.posterior.target.hyper()
    rows = []
    for name, values in posterior.hyper.items():
        drawn = bool((values != values[0, 0]).any())
        low, high = np.quantile(values, [0.05, 0.95])
        rows.append(
            {
                "name": name,
                "does": hyper_text(posterior.prior, name).effect,
                "text": view.run.hyper_words(name),
                "prior": hyper_prior_words(given[name])
                if isinstance(given.get(name), Prior)
                else None,
                "drawn": drawn,
                "mean": float(values.mean()),
                "sd": float(values.std()),
                "low": float(low),
                "high": float(high),
            }
        )
    return rows


def _paths(view: RunView) -> dict[str, Any] | None:
    paths = view.posterior.problem.paths
    if paths is None:
        return None
    return {
        "nodes": pack(paths.nodes, "u4"),
        "offsets": pack(paths.offsets, "u4"),
        "names": view.run.trajectory_names,
        "times": None if paths.times is None else pack(_as_numbers(paths.times), "f8"),
        "clock": None if paths.times is None else _CLOCKS.get(paths.times.dtype.kind, "number"),
        "rows": None if paths.rows is None else pack(paths.rows, "u4"),
    }


def _as_numbers(times: Array) -> Array:
    """Dates and durations as milliseconds, others as they are."""
    return (
        times.astype(f"{times.dtype.kind}8[ms]").astype(np.int64)
        if times.dtype.kind in "mM"
        else times
    )


def _steps(view: RunView) -> dict[str, Any] | None:
    """Every transition: how surprising it is, and which action it likely was."""
    if "likely_actions" not in view.__dict__ or view.surprise is None:
        return None
    action, share = view.likely_actions
    surprise = view.surprise
    found = {
        "surprise": pack(surprise),
        "typical": float(np.median(surprise)),
        "unusual": float(np.quantile(surprise, 0.95)),
        "action": pack(action, "u2"),
        "share": pack(share),
    }
    if view.anomaly is not None:
        steps = view.anomaly.steps
        found |= {"expected": pack(steps.expected), "p_value": pack(steps.p_value)}
    return found


def _anomaly(view: RunView) -> list[dict[str, Any]] | None:
    """Each trajectory among all of the run."""
    if view.anomaly is None:
        return None
    columns = ("score", "p_combined", "p_change", "onset", "end", "n_unexplained", "behaviour")
    table = view.anomaly.to_dict()["trajectories"]
    rows = zip(*(table[name] for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
