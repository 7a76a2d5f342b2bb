"""A stored run as commands find it: its draws, and the record of how its tracks were read."""

from __future__ import annotations

import json
import shutil
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics
from onlooker.files import write_atomically
from onlooker.findings.settled import settle, thinned
from onlooker.reading.settings import Reading, on_a_line
from onlooker.runs.lock import Lock
from onlooker.runs.store import read_header

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.demonstrations import Demonstrations
    from onlooker.posterior import Posterior

_RECORD = "fit.json"
_BROKEN = (OSError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Record:
    """What `onlooker fit` knows of a run besides its draws; in the store as ``fit.json``."""

    file: str | None = None
    reading: Reading = field(default_factory=Reading)
    account: dict[str, Any] | None = None
    """What reading found and dropped."""
    explained: dict[str, Any] | None = None
    """What share of the steps the actions explain."""
    names: list[str] | None = None
    """Of the actions."""

    def write(self, store: Path) -> None:
        """Write it into the store."""
        told = {
            "what": "onlooker fit",
            "file": self.file,
            "reading": self.reading.to_dict(),
            "account": self.account,
            "explained": self.explained,
            "names": self.names,
        }
        text = json.dumps(told, indent=1, default=str).encode()
        write_atomically(store / _RECORD, lambda file: file.write(text))

    @classmethod
    def of(cls, store: Path) -> Record:
        """Read it; an empty one where the run was not made by the command line."""
        try:
            told = json.loads((store / _RECORD).read_text(encoding="utf-8"))
            told.pop("what")
            return cls(**(told | {"reading": Reading(**told["reading"])}))
        except (*_BROKEN, ValueError, AttributeError):
            return cls()


@contextmanager
def kept_if_of_use(store: Path) -> Iterator[None]:
    """Remove the store after an error, unless it was there before or can be resumed."""
    there = store.is_dir()
    fresh = not there or not any(store.iterdir())
    store.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        used = any(store.glob("chain-*/part-*.npz")) or Lock(store).writer() is not None
        if fresh and not used:
            shutil.rmtree(store, ignore_errors=True)
            if there:
                store.mkdir(exist_ok=True)
        raise


@dataclass
class Run:
    """A stored run."""

    path: Path
    posterior: Posterior
    header: dict[str, Any]
    record: Record
    notes: list[str]

    @property
    def states(self) -> list[str]:
        """Names of the dimensions of the position, or of the one integer."""
        n = self.n_position
        given = self.record.reading.states
        if given is not None and len(given) == n:
            return given
        if self.record.reading.geographic:
            return ["lon", "lat"]
        return ["state"] if self.is_discrete else [f"x{i}" for i in range(n)]

    @property
    def is_discrete(self) -> bool:
        """Whether states are integers."""
        return self.posterior.problem.states.ndim == 1

    @property
    def n_position(self) -> int:
        """Dimension of the position."""
        states = self.posterior.problem.states
        n_dims = 1 if self.is_discrete else int(states.shape[1])
        return int(getattr(self.posterior.problem.dynamics, "n_position", n_dims))

    @cached_property
    def table(self) -> pd.DataFrame | None:
        """Diagnostics; None where there are too few draws."""
        return self.posterior.summary() if self.posterior.n_draws >= 4 else None

    @cached_property
    def action_names(self) -> list[str]:
        """What each action is called."""
        from onlooker.findings.words import action_names

        problem = self.posterior.problem
        return self.record.names or action_names(problem.dynamics, problem.n_actions)

    def settle(self) -> None:
        """Find the partition that stands for all draws, and note if not all were looked at."""
        self.notes += thinned(settle(self.posterior, self.path))

    def as_states(self, points: Array) -> Array:
        """Positions as states: features are those of a trajectory that just begins."""
        states = self.posterior.problem.states
        if self.is_discrete:
            if points.ndim == 2 and points.shape[1] == 1:
                points = points[:, 0]
            if points.ndim != 1 or (points != np.floor(points)).any():
                raise ValueError("the states of this run are whole numbers: one each")
            return points.astype(np.int64)
        points = points[:, None] if points.ndim == 1 else points
        points = points.astype(np.float64)
        if points.shape[1] == states.shape[1]:
            return points
        if points.shape[1] == self.n_position:
            dynamics: Any = self.posterior.problem.dynamics
            return np.asarray(dynamics.join(points))
        columns = ", ".join(self.states)
        raise ValueError(
            f"a state of this run has {self.n_position} numbers ({columns}), got {points.shape[1]}"
        )

    def nearest_seen(self, states: Array) -> Array | None:
        """``(n,)``: how far the positions of `states` are from those that were seen; km on Earth.

        None where states are integers, which have no distance.
        """
        from onlooker.dynamics import GeographicDynamics
        from onlooker.geography import arc_of, in_space
        from onlooker.plot import distance_to

        if self.is_discrete:
            return None
        problem, n = self.posterior.problem, self.n_position
        seen = problem.states if problem.paths is None else problem.states[problem.paths.nodes]
        if isinstance(position_dynamics(problem.dynamics), GeographicDynamics):
            return arc_of(distance_to(in_space(states[:, :n]), in_space(seen[:, :n])))
        return distance_to(states[:, :n], seen[:, :n])

    def with_features(self, demos: Demonstrations) -> Demonstrations:
        """Tracks as states of this run."""
        from onlooker.dynamics.features import FeatureDynamics, with_features

        dynamics = self.posterior.problem.dynamics
        if isinstance(dynamics, FeatureDynamics):
            return with_features(demos, dynamics.features, dynamics.dynamics)[0]
        if demos.is_discrete and not self.is_discrete:
            return on_a_line(demos)
        return demos


def require_run(path: Path) -> None:
    """Refuse what is no run at all, in words; a run may still turn out to be damaged."""
    if not path.exists():
        raise ValueError(f"there is no run {str(path)!r}")
    if path.is_dir() and not (path / "run.json").exists():
        raise ValueError(f"{str(path)!r} holds no run: it has no run.json")
    if not path.is_dir() and not _may_be_saved(path):
        raise ValueError(
            f"{path} is not a run; a run is the directory that `onlooker fit --output` wrote, or a "
            "file of Posterior.save"
        )


def _may_be_saved(path: Path) -> bool:
    """Whether a file is an archive of `Posterior.save`, or the torn beginning of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"


def open_run(path: Path) -> Run:
    """Load a store or a file of `Posterior.save`; whatever is wrong with it is one clear line."""
    from onlooker.posterior import Posterior

    require_run(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            header = (read_header(path) if path.is_dir() else None) or {}
        except (*_BROKEN, ValueError) as error:
            raise ValueError(
                f"{path} holds no readable run: run.json is damaged ({error})"
            ) from error
        try:
            posterior = Posterior.load(path)
        except ValueError as error:
            raise ValueError(_what_to_do(path, header, str(error))) from error
        except _BROKEN as error:
            raise ValueError(f"{path} holds no readable run: {error}") from error
    notes = [f"{item.message}." for item in told if item.category is RuntimeWarning]
    if path.is_dir() and Lock(path).writer() is not None:
        notes.append("The run is still being sampled; this is as far as it got.")
    elif header and (posterior.n_draws < header["draws"] or posterior.n_chains < header["chains"]):
        notes.append(
            f"The run was stopped: {posterior.n_draws:,} of {header['draws']:,} draws of "
            f"{posterior.n_chains} of {header['chains']} chains. Its command with --resume goes on."
        )
    return Run(path, posterior, header, Record.of(path), notes)


def _what_to_do(path: Path, header: dict[str, Any], text: str) -> str:
    if "no draws yet" not in text:
        return text
    if Lock(path).writer() is not None:
        return f"{path} is still tuning ({header['options']['tune']} sweeps a chain); wait for it"
    return (
        f"{path} holds no draws: it was stopped before the first; its command with --resume goes on"
    )
