"""All that a page shows of a run before anything is asked, as JSON."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array
from onlooker.explorer.matching import block_size
from onlooker.explorer.packing import pack
from onlooker.explorer.study import LEVEL, Controller, Study
from onlooker.findings.verdict import meaning, table_rows, verdict
from onlooker.hyper import Prior
from onlooker.runs.codec import UnknownPrior

_MOST_UNSURE = 12
_MOST_TRACED = 2_000  # draws of a chain that a trace shows
_FRACTION = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")

_WHAT_IT_DOES = {
    "alpha": "how alike the actions of a controller are: below 1 it prefers a few of them",
    "gamma": "the larger, the more clusters before data",
    "beta": "how strongly near states are drawn into one cluster",
    "nu": "how readily a state starts a cluster of its own",
    "scale": "how far similarity reaches",
    "offset": "similarity that is left at any distance",
}


def overview(study: Study) -> dict[str, Any]:
    """Everything that does not depend on a question; findings that are not there yet are None."""
    reference = study.reference
    return {
        "complete": study.complete,
        "notes": study.notes,
        "run": _run(study),
        "data": _data(study),
        "space": _space(study),
        "reference": pack(reference.labels, "u2"),
        "epoch": reference.epoch,
        "n_reference": reference.n_clusters,
        "is_consensus": study.consensus is not None,
        "draws": _draws(study),
        "traces": _traces(study),
        "counts": _counts(study),
        "verdict": _verdict(study),
        "summary": table_rows(study.summary),
        "consensus": _consensus(study),
        "membership": None if study.consensus is None else pack(study.consensus.membership),
        "policy": _if_there(study, "policy"),
        "spread": _if_there(study, "spread"),
        "node_moves": pack(study.node_moves)
        if "policy" in study.__dict__ and study.node_moves is not None
        else None,
        "controllers": _controllers(study),
        "unsure": _unsure(study),
        "hyper": _hyper(study),
        "paths": _paths(study),
        "steps": _steps(study),
        "anomaly": _anomaly(study),
        "level": LEVEL,
    }


def _if_there(study: Study, name: str) -> dict[str, Any] | None:
    return pack(study.__dict__[name]) if name in study.__dict__ else None


def _run(study: Study) -> dict[str, Any]:
    plan, header = study.posterior.plan, study.header
    versions = dict(header["versions"])
    return {
        "created": header["created"],
        "versions": versions,
        "shown_by": __version__,
        "seed": str(plan.seed),
        "prior": rounded(in_short(study.posterior.prior)),
        "options": header["options"],
        "planned_draws": header["draws"],
        "planned_chains": header["chains"],
        "command": header.get("command"),
        "call": _call(study),
        "growing": study.growing,
    }


def in_short(value: Any) -> str:
    """A prior as its call, without what is left at its default; arrays are only named.

    The decay is told in any case: it is in the units of the data.
    """
    if isinstance(value, np.ndarray | list | tuple):
        return f"<{'×'.join(map(str, np.shape(value)))} array>"
    if isinstance(value, UnknownPrior):
        return value.text
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    told = []
    for item in dataclasses.fields(value):
        given = getattr(value, item.name)
        if item.name == "decay":
            told.append(f"decay={given!r}")
            continue
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        if repr(given) != repr(default):
            told.append(f"{item.name}={in_short(given)}")
    return f"{type(value).__name__}({', '.join(told)})"


def rounded(text: str) -> str:
    """The text with its fractions at 4 significant digits: to be read, not to be run."""
    return _FRACTION.sub(lambda found: repr(float(f"{float(found[0]):.4g}")), text)


def _call(study: Study) -> str:
    """The call of the library that makes this run again."""
    plan, header = study.posterior.plan, study.header
    parts = [
        f"problem, {in_short(plan.prior)}",
        f"concentration={plan.concentration!r}",
        *([] if plan.collapsed else ["collapsed=False"]),
        f"draws={header['draws']}, tune={plan.tune}, chains={header['chains']}, thin={plan.thin}",
        f"random_state={plan.seed}",
    ]
    return f"onlooker.sample({', '.join(parts)})"


def _data(study: Study) -> dict[str, Any]:
    problem = study.posterior.problem
    lengths: list[int] = [] if problem.paths is None else np.diff(problem.paths.offsets).tolist()
    dynamics = study.header["dynamics"]
    return {
        "nodes": problem.n_nodes,
        "transitions": problem.n_transitions,
        "actions": problem.n_actions,
        "trajectories": len(lengths) if problem.paths is not None else None,
        "shortest": min(lengths, default=0),
        "longest": max(lengths, default=0),
        "kind": study.space.kind,
        "dims": None if study.space.kind == "abstract" else study.space.sites.shape[1],
        "dynamics": repr(problem.dynamics)
        if problem.dynamics is not None
        else (dynamics or {}).get("opaque"),
        "unidentifiable": problem.unidentifiable_share,
        "without_transition": problem.n_nodes - len(np.unique(problem.node_of)),
    }


def _space(study: Study) -> dict[str, Any]:
    space = study.space
    edges = study.edges if space.kind == "abstract" else None
    return {
        "kind": space.kind,
        "axes": space.axes,
        "sites": pack(space.sites, "f8"),
        "states": None if space.states is None else pack(space.states, "f8"),
        "cell": space.cell,
        "moves": None if study.moves is None else pack(study.moves),
        "edges": None if edges is None or len(edges) == 0 else pack(edges, "u4"),
        "graph": None if study.graph is None else pack(study.graph),
    }


def _draws(study: Study) -> dict[str, Any]:
    posterior = study.posterior
    return {
        "chains": posterior.chain_ids,
        "n_draws": posterior.n_draws,
        "n_nodes": posterior.problem.n_nodes,
        "block": block_size(posterior.problem.n_nodes),
    }


def _traces(study: Study) -> dict[str, Any]:
    """Scalars of every draw; long chains are thinned, and `step` says how."""
    posterior = study.posterior
    step = -(-posterior.n_draws // _MOST_TRACED)
    found: dict[str, Array] = {
        "n_controllers": posterior.n_controllers,
        "log_joint": posterior.log_joint,
        **{name: x for name, x in posterior.hyper.items() if (x != x[0, 0]).any()},
    }
    rows = [
        {"name": name, "meaning": meaning(name), "values": pack(values[:, ::step])}
        for name, values in found.items()
    ]
    return {"step": step, "rows": rows}


def _counts(study: Study) -> list[dict[str, float]]:
    values, counts = np.unique(study.posterior.n_controllers, return_counts=True)
    return [
        {"k": int(k), "share": float(n / counts.sum())} for k, n in zip(values, counts, strict=True)
    ]


def _verdict(study: Study) -> dict[str, Any] | None:
    if study.summary is None:
        return None
    return verdict(study.posterior, study.summary)


def _consensus(study: Study) -> dict[str, Any] | None:
    found, ball = study.consensus, study.ball
    if found is None or ball is None:
        return None
    return {
        "n_clusters": found.n_clusters,
        "expected_loss": found.expected_loss,
        "n_restarts": found.n_restarts,
        "n_agreeing": found.n_agreeing,
        "radius": ball.radius,
        "level": ball.level,
        "fewest": int(ball.upper[0].max()) + 1,
        "most": int(ball.lower[0].max()) + 1,
        "provisional": study.growing,
    }


def _controllers(study: Study) -> list[dict[str, Any]] | None:
    if "controllers" not in study.__dict__:
        return None
    return [_controller(one) for one in study.controllers]


def _controller(one: Controller) -> dict[str, Any]:
    return {
        "number": one.number,
        "nodes": one.n_nodes,
        "transitions": one.n_transitions,
        "certainty": one.certainty,
        "mean": one.mean.tolist(),
        "low": one.low.tolist(),
        "high": one.high.tolist(),
    }


def _unsure(study: Study) -> dict[str, list[int]] | None:
    """Nodes whose membership, and whose policy, is least certain."""
    if study.consensus is None:
        return None
    return {
        "membership": np.argsort(study.consensus.membership, kind="stable")[:_MOST_UNSURE].tolist(),
        "policy": np.argsort(-study.spread, kind="stable")[:_MOST_UNSURE].tolist(),
    }


def _hyper(study: Study) -> list[dict[str, Any]]:
    posterior = study.posterior
    given = _given(study)
    rows = []
    for name, values in posterior.hyper.items():
        drawn = bool((values != values[0, 0]).any())
        low, high = np.quantile(values, [0.05, 0.95])
        rows.append(
            {
                "name": name,
                "does": _WHAT_IT_DOES.get(name, ""),
                "prior": rounded(in_short(given[name]))
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


def _given(study: Study) -> dict[str, Any]:
    """What each hyper-parameter was set to: a number, or a prior."""
    prior = study.posterior.prior
    decay = getattr(prior, "decay", None)
    return {
        "alpha": study.posterior.plan.concentration,
        "gamma": getattr(prior, "concentration", None),
        "beta": getattr(prior, "beta", None),
        "nu": getattr(prior, "self_link", None),
        "scale": getattr(decay, "scale", None),
        "offset": getattr(decay, "offset", None),
    }


def _paths(study: Study) -> dict[str, Any] | None:
    paths = study.posterior.problem.paths
    if paths is None:
        return None
    return {
        "nodes": pack(paths.nodes, "u4"),
        "offsets": pack(paths.offsets, "u4"),
        "names": None if paths.names is None else paths.names.tolist(),
    }


def _steps(study: Study) -> dict[str, Any] | None:
    """Every transition: how surprising it is, and which action it likely was."""
    if "likely_actions" not in study.__dict__:
        return None
    action, share = study.likely_actions
    surprise = study.surprise
    found = {
        "surprise": pack(surprise),
        "typical": float(np.median(surprise)),
        "unusual": float(np.quantile(surprise, 0.95)),
        "action": pack(action, "u2"),
        "share": pack(share),
    }
    if study.anomaly is not None:
        steps = study.anomaly.steps
        found |= {"expected": pack(steps.expected), "p_value": pack(steps.p_value)}
    return found


def _anomaly(study: Study) -> list[dict[str, Any]] | None:
    """Each trajectory among simulations of itself."""
    if study.anomaly is None:
        return None
    columns = ("score", "p_any", "p_change", "onset", "end", "n_unexplained")
    table = study.anomaly.to_dict()["trajectories"]
    rows = zip(*(table[name] for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
