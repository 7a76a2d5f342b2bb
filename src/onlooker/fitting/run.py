"""Fit: tracks and a model to a stored posterior."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.features import with_features
from onlooker.findings.names import action_names, short_repr
from onlooker.findings.opened import OpenedRun
from onlooker.findings.record import Record, remove_if_empty
from onlooker.fitting.building import FINITE, make_dynamics, make_features, make_prior
from onlooker.fitting.model_file import Model
from onlooker.fitting.wording import as_option, worded
from onlooker.hyper import CONCENTRATION
from onlooker.problem.problem import Problem
from onlooker.reading.guess import trajectory_columns
from onlooker.reading.kinds import file_kind
from onlooker.reading.settings import Reading, require_file
from onlooker.runs.store import read_header
from onlooker.sampling import sample
from onlooker.warnings import ConvergenceWarning

Notify = Callable[[str], Any]

_SIZES = {"draws": 1000, "tune": 500, "chains": 4, "seed": 0}
_NAMES = {"seed": "random_state", "jobs": "n_jobs", "scheduler": "client"}


@contextmanager
def notes(
    notify: Notify, leave_out: type[Warning] | tuple[type[Warning], ...] = ()
) -> Iterator[None]:
    """Print warnings as notes rather than as Python does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    kept = [
        item.message
        for item in caught
        if issubclass(item.category, UserWarning | RuntimeWarning)
        and not issubclass(item.category, leave_out)
    ]
    for text in dict.fromkeys(map(worded, kept)):
        notify(f"Note: {text.rstrip('.')}.")


def reading_of(file: Path, model: Model) -> Reading:
    """How the model reads tracks; GPX files hold longitude and latitude."""
    data = dict(model.data)
    data.setdefault("geographic", file_kind(file) == "gpx")
    line = "kind" in model.dynamics and model.dynamics["kind"] not in FINITE
    return Reading(**data, line=line, cleaning=model.cleaning)


def fit(file: Path, model: Model, output: Path, *, resume: bool, notify: Notify) -> OpenedRun:
    """Read, propose, sample and store; `notify` is told each step."""
    found = read_header(output)
    if found is not None and not resume:
        raise ValueError(
            f"{output} already holds a run; continue it with --resume, or choose another --output"
        )
    require_file(file)
    reading = reading_of(file, model)
    with notes(notify):
        demos = Demonstrations.from_tracks(reading.read(file))
    if demos.reading is not None:
        notify(demos.reading.describe(as_option))
    if reading.trajectory is None:
        _note_trajectory_columns(file, reading, notify)
    with notes(notify):
        record, demos, problem = prepare(demos, model, reading, notify, os.fspath(file))
        assert problem.dynamics is not None
        prior = make_prior(demos.split(), problem.dynamics, model)
    if demos.is_discrete and not model.prior and prior.reach is None:
        notify(
            "The space is too large for distances between all states: the prior ignores location."
        )
    notify(f"Prior: {short_repr(prior)}.")
    with notes(notify, ConvergenceWarning), remove_if_empty(output):
        if found is None:
            record.write(output)
        posterior = sample(problem, prior, store=output, resume=resume, **_options(model))
    run = OpenedRun.of(posterior, record if found is None else Record.read(output), output)
    return run if run.state == "finished" else OpenedRun.read(output)  # the store may have more


def _note_trajectory_columns(file: Path, reading: Reading, notify: Notify) -> None:
    used = [*(reading.states or []), *([reading.time] if reading.time else [])]
    for name, n_values, n_rows in trajectory_columns(file, used):
        where = "" if n_rows is None else f" in the first {n_rows:,} rows"
        notify(
            f"Note: column {name!r} has {n_values:,} values{where}; if they are trajectories: "
            f"--trajectory {shlex.quote(name)}"
        )


def prepare(
    demos: Demonstrations, model: Model, reading: Reading, notify: Notify, file: str
) -> tuple[Record, Demonstrations, Problem]:
    """Actions and features, what they explain, and the problem they make."""
    seen = demos.split()
    dynamics = make_dynamics(seen, model, geographic=reading.geographic, one_sigma=demos.has_unseen)
    names = model.dynamics.get("names")
    if names is not None and len(names) != dynamics.n_actions:
        raise ValueError(
            f"[dynamics] names has {len(names)} names; there are {dynamics.n_actions} actions"
        )
    explained = _explained(dynamics, demos, notify)
    record = Record(
        file=file,
        reading=reading,
        account=None if demos.reading is None else demos.reading.to_dict(),
        explained=explained,
        names=names or action_names(dynamics, dynamics.n_actions),
    )
    features = make_features(model)
    if features:
        demos, dynamics = with_features(demos, features, dynamics)
        kinds = ", ".join(item["kind"] for item in model.features)
        notify(f"Features in addition to the position: {kinds}.")
    unseen_integers = demos.is_discrete and demos.has_unseen  # which may be any state
    nodes = model.sampling.get("nodes", "all" if unseen_integers else "visited")
    return record, demos, Problem.from_demonstrations(demos, dynamics, nodes=nodes)


def _explained(dynamics: Any, demos: Demonstrations, notify: Notify) -> dict[str, Any] | None:
    """What share of the steps the actions explain, where that is known."""
    if not hasattr(dynamics, "coverage"):
        notify(f"Actions: {dynamics.n_actions}, of {dynamics!r}.")
        return None
    lengths = np.unique(np.round(np.linalg.norm(dynamics.steps, axis=1), 9))
    moves = ", ".join(f"{length:.4g}" for length in lengths if length > 0)
    stay = ", and staying" if 0 in lengths else ""
    n_moving = int((dynamics.steps != 0).any(axis=1).sum())
    n_speeds = int((lengths > 0).sum())
    per = f"{n_moving // n_speeds} directions × " if n_moving % n_speeds == 0 else ""
    coverage = dynamics.coverage(demos)
    notify(f"Actions: {per}steps of {moves}{stay}; noise {_noise(dynamics.sigma)}.")
    notify(str(coverage))
    result = coverage.to_dict()
    result["n_unexplained"] = len(result.pop("unexplained"))
    return result  # type: ignore[no-any-return]


def _noise(sigma: Any) -> str:
    low, high = float(np.min(sigma)), float(np.max(sigma))
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _options(model: Model) -> dict[str, Any]:
    given = {name: value for name, value in model.sampling.items() if name != "nodes"}
    sizes: dict[str, Any] = _SIZES | given
    options = {_NAMES.get(name, name): value for name, value in sizes.items()}
    chosen = model.concentration
    return options | {"concentration": CONCENTRATION if chosen is None else chosen}
