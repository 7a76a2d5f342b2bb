"""Fit: tracks and a model to a stored posterior."""

from __future__ import annotations

import os
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from onlooker.checks import Setting, SettingError
from onlooker.defaults import default_model
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.actions import action_names
from onlooker.dynamics.base import Dynamics
from onlooker.dynamics.features import with_features
from onlooker.findings.model import dynamics_words, prior_words
from onlooker.findings.opened import OpenedRun
from onlooker.findings.record import HELD_OUT, Record, remove_if_empty
from onlooker.fitting.building import FINITE, make_dynamics, make_features, make_prior
from onlooker.fitting.model_file import Model
from onlooker.fitting.resuming import other_settings, settings_of
from onlooker.fitting.state import chosen_before, look
from onlooker.fitting.wording import as_option, worded
from onlooker.partitions import ScaledAxes
from onlooker.reading.guess import geographic_columns, trajectory_columns
from onlooker.reading.kinds import file_kind
from onlooker.reading.settings import Reading, require_file
from onlooker.reading.tracks import counted
from onlooker.repertoire import Actions
from onlooker.runs.header import StoreMismatchError, read_header
from onlooker.runs.lock import Lock
from onlooker.runs.store import require_empty
from onlooker.sampling import sample
from onlooker.warnings import ConvergenceWarning

Notify = Callable[[str], Any]

_SEED = 0
_CHOSEN = ("nodes", "chains", "tune", "draws")
"""What the default model chooses where nothing is said."""
_HELD_OUT, _MANY = 0.2, 10  # share set aside by default, of so many trajectories or more
REPERTOIRES: dict[str, Any] = {"auto": "auto", "actions": [Actions()]}
"""By their names in a model."""
_BAD = 50.0  # sigma: a step that no behaviour explains
_MAX_LISTED = 20  # unexplained steps that are stored with a run
_NAMES = {"seed": "random_state", "jobs": "n_jobs", "scheduler": "client"}


@contextmanager
def notes(
    notify: Notify, leave_out: type[Warning] | tuple[type[Warning], ...] = ()
) -> Iterator[None]:
    """Print warnings as notes, as they come, rather than as Python does."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        wanted = issubclass(category, UserWarning | RuntimeWarning)
        text = worded(message)
        if wanted and not issubclass(category, leave_out) and text not in said:
            said.add(text)
            notify(f"Note: {text.rstrip('.')}.")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def reading_of(file: Path, model: Model) -> Reading:
    """How the model reads tracks; GPX files hold longitude and latitude."""
    data = {name: value for name, value in model.data.items() if name != "hold_out"}
    data.setdefault("geographic", file_kind(file) == "gpx")
    line = "kind" in model.dynamics and model.dynamics["kind"] not in FINITE
    return Reading(**data, line=line, cleaning=model.cleaning)


def fit(
    file: Path,
    model: Model,
    output: Path,
    *,
    resume: bool,
    notify: Notify,
    replace_run: bool = False,
) -> OpenedRun:
    """Read, propose, sample and store; `notify` is told each step."""
    require_file(file)
    found = read_header(output)
    if found is not None and replace_run:
        if Lock(output).writer() is not None:
            raise ValueError(f"{output} is being written by another process; stop it first")
    elif found is not None and not resume:
        raise ValueError(
            f"{output} already holds a run; continue it with --resume, replace it with --force, or "
            "choose another --output"
        )
    if found is None and resume:
        raise ValueError(f"{output} holds no run to resume; leave --resume out to start one")
    if found is None:
        require_empty(output)  # before anything that takes time
    reading = reading_of(file, model)
    with notes(notify):
        demos = Demonstrations.from_tracks(reading.read(file))
    if demos.reading is not None:
        notify(demos.reading.describe(as_option))
    if reading.trajectory is None:
        _note_trajectory_columns(file, reading, notify)
    if reading.states:
        _note_places(reading.states, reading.geographic, demos, notify)
    kept = found is not None and not replace_run and Record.readable(output)
    before = Record.read(output) if kept else None
    account = None if demos.reading is None else demos.reading.to_dict()
    demos, aside = set_aside(demos, model, None if before is None else before.held_out or [])
    if aside is not None:
        n_aside, n_tracks = len(set(aside.names)), len(set(demos.names)) + len(set(aside.names))
        notify(
            f"Set aside: {n_aside} of {counted(n_tracks, 'trajectory')}, to calibrate the p-values "
            "of onlooker anomaly (--hold-out 0 fits all)."
        )
    with notes(notify):
        record, demos, dynamics, metric = prepare(
            demos, model, reading, notify, os.fspath(file), before
        )
        settings = settings_of(model, _options_seed(model))
        record = replace(record, account=account, settings=settings)
        made = default_model(
            demos,
            dynamics,
            prior=make_prior(demos.split(), dynamics, model, metric) if model.prior else None,
            metric=metric,
            concentration=model.concentration,
            **cast("dict[str, Any]", {name: model.sampling.get(name) for name in _CHOSEN}),
            repertoire=None if model.repertoire is None else REPERTOIRES[model.repertoire],
            seed=_options_seed(model),
            n_jobs=model.sampling.get("jobs"),
            progress=True,
        )
    problem, prior = made.problem, made.prior
    for note in made.notes:
        notify(note)
    if demos.is_discrete and not model.prior and prior.reach is None:
        notify(
            "The space is too large for distances between all states: the prior ignores location."
        )
    notify(f"Prior: {prior_words(prior)}.")
    if found is not None and replace_run:
        shutil.rmtree(output)  # only now: what was wrong with the file would have been said
    with notes(notify, ConvergenceWarning), remove_if_empty(output):
        if before is None:
            if aside is not None:
                record = replace(record, held_out=list(dict.fromkeys(aside.names.tolist())))
                aside.save(output / HELD_OUT)
            record.write(output)
        try:
            posterior = sample(
                problem,
                prior,
                made.concentration,
                chains=made.chains,
                tune=made.tune,
                draws=made.draws,
                store=output,
                resume=resume,
                **_options(model),
            )
        except StoreMismatchError as error:
            stored = None if before is None else before.settings
            raise other_settings(output, stored, settings) or error from error
    run = OpenedRun.of(posterior, before or record, output)
    if run.state == "finished" or run.n_stored < posterior.n_draws:
        return run
    return OpenedRun.read(output)  # which may have more draws


def set_aside(
    demos: Demonstrations, model: Model, before: list[str] | None
) -> tuple[Demonstrations, Demonstrations | None]:
    """The trajectories to fit, and those that are left for calibration, if any.

    Pieces of a trajectory that share its name stay together. A run that is resumed sets aside
    what it did `before`.
    """
    share, names = model.data.get("hold_out"), np.unique(demos.names)
    if before is None:
        if share is None:
            share = _HELD_OUT if len(names) >= _MANY else 0.0
        n_aside = round(share * len(names))
        if share > 0 and not 0 < n_aside < len(names):
            raise SettingError(
                f"cannot set aside {100 * share:.0f} % of {counted(len(names), 'trajectory')}: "
                "give another share, or 0 for none, by ",
                Setting("hold_out"),
            )
        rng = np.random.default_rng([_options_seed(model), len(names)])
        before = rng.choice(names, n_aside, replace=False).tolist()
    elif share is not None and round(share * len(names)) != len(before):
        raise SettingError(
            f"the run has set aside {len(before)} of {counted(len(names), 'trajectory')}: leave "
            "out ",
            Setting("hold_out"),
        )
    aside = np.isin(demos.names, before)
    return (demos[~aside], demos[aside]) if aside.any() else (demos, None)


def _options_seed(model: Model) -> int:
    return int(model.sampling.get("seed", _SEED))


def _note_trajectory_columns(file: Path, reading: Reading, notify: Notify) -> None:
    used = [*(reading.states or []), *([reading.time] if reading.time else [])]
    for name, n_values, n_rows in trajectory_columns(file, used, reading.encoding):
        where = "" if n_rows is None else f" in the first {n_rows:,} rows"
        notify(
            f"Note: column {name!r} has {n_values:,} values{where}; if they are trajectories: "
            f"--trajectory {shlex.quote(name)}"
        )


def _note_places(
    columns: list[str], geographic: bool, demos: Demonstrations, notify: Notify
) -> None:
    places = geographic_columns(columns, demos.states)
    if geographic and places is not None and places != columns:
        notify(
            f"Note: --geographic takes {columns[0]!r} as longitude and {columns[1]!r} as latitude; "
            f"if it is the other way round: --states {','.join(map(shlex.quote, places))}"
        )
    elif not geographic and places is not None:
        order = "" if places == columns else f"--states {','.join(map(shlex.quote, places))} "
        notify(
            f"Note: {places[0]!r} and {places[1]!r} look like longitude and latitude; if they are "
            f"degrees: {order}--geographic"
        )


def _note_bad_fixes(unexplained: list[dict[str, Any]], notify: Notify) -> None:
    if unexplained and unexplained[0]["misfit"] > _BAD:
        notify(
            "Note: the worst of these look like bad fixes, which distort all that follows; "
            "--max-speed with --missing split (or drop) leaves them out."
        )


def prepare(
    demos: Demonstrations,
    model: Model,
    reading: Reading,
    notify: Notify,
    file: str,
    before: Record | None = None,
) -> tuple[Record, Demonstrations, Dynamics, ScaledAxes | None]:
    """Actions and what they explain, the states with their features, and a metric for them.

    A run that is resumed has the state that was chosen `before`.
    """
    seen = demos.split()
    dynamics = make_dynamics(seen, model, geographic=reading.geographic, one_sigma=demos.has_unseen)
    names = model.dynamics.get("names")
    if names is not None and len(names) != dynamics.n_actions:
        raise ValueError(
            f"[dynamics] names has {len(names)} names; there are {dynamics.n_actions} actions"
        )
    explained = _explained(dynamics, demos, notify)
    if explained is not None and "max_speed" not in model.cleaning:
        _note_bad_fixes(explained["unexplained"], notify)
    record = Record(
        file=file,
        reading=reading,
        explained=explained,
        names=names or action_names(dynamics, dynamics.n_actions),
    )
    if isinstance(model.features, list):
        features = make_features(model)
        demos, dynamics = with_features(demos, features, dynamics)
        kinds = ", ".join(item["kind"] for item in model.features)
        notify(f"Features in addition to the position: {kinds}.")
        return record, demos, dynamics, None
    if before is not None and before.state is not None and model.features is None:
        features, metric = chosen_before(before.state)
    else:
        found = look(demos, dynamics, model.features, _options_seed(model), reading.states)
        for sentence in found.sentences:
            notify(sentence)
        record = replace(record, state=found.to_dict(), advice=found.advice)
        features, metric = found.features, found.metric
    if features:
        demos, dynamics = with_features(demos, features, dynamics)
    return record, demos, dynamics, metric


def _explained(dynamics: Any, demos: Demonstrations, notify: Notify) -> dict[str, Any] | None:
    """What share of the steps the actions explain, where that is known."""
    if not hasattr(dynamics, "coverage"):
        notify(f"Actions: {dynamics_words(dynamics)}.")
        return None
    coverage = dynamics.coverage(demos)
    notify(f"Actions: {dynamics_words(dynamics)}.")
    notify(str(coverage))
    return coverage.to_dict(_MAX_LISTED) | {"n_unexplained": len(coverage.unexplained)}


def _options(model: Model) -> dict[str, Any]:
    """Of `sample`; what the default model chooses is left out."""
    given: dict[str, Any] = {"seed": _SEED} | model.sampling
    return {_NAMES.get(name, name): given[name] for name in given if name not in _CHOSEN}
