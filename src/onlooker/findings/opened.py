"""One reader of a run, fresh or stored: its draws, its names, its consensus, and how far it got."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import warnings
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlooker.checks import Array, one_of, stored_array
from onlooker.consensus.stability import Stability
from onlooker.dynamics.actions import action_names
from onlooker.dynamics.base import position_dynamics
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.files import open_regular, parse_json, read_arrays, write_arrays
from onlooker.findings.names import (
    axis_names,
    decimals,
    feature_text,
    hyper_words,
    place_text,
    scalar_name,
)
from onlooker.findings.record import BROKEN, HELD_OUT, Record
from onlooker.reading.tracks import counted, span
from onlooker.runs.header import (
    HEADER,
    StoreMismatchError,
    check_header,
    describe_run,
    read_header,
)
from onlooker.runs.loading import NoDrawsYet
from onlooker.runs.lock import Lock
from onlooker.runs.store import stored_draws

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.consensus import ConsensusResult
    from onlooker.demonstrations import Demonstrations
    from onlooker.dynamics.features import Feature
    from onlooker.posterior import Posterior
    from onlooker.progress import Progress

_CONSENSUS = "consensus.npz"
_MAX_LABELS = 2_000_000  # of the draws that a consensus is computed from; half a minute or so


@dataclass
class OpenedRun:
    """A run with everything that is known about it.

    Attributes
    ----------
    posterior
        The draws.
    header
        The description of the run that is stored with the draws.
    record
        What `onlooker fit` stored besides; empty where the run was made in Python.
    path
        The store, or the file of `Posterior.save`; None if the run is in memory only.
    growing
        Whether the run was still being sampled when it was read.
    remarks
        What reading and the consensus gave reason to say, such as a damaged part.
    """

    posterior: Posterior
    header: dict[str, Any]
    record: Record = field(default_factory=Record)
    path: Path | None = None
    growing: bool = False
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, posterior: Posterior, record: Record | None = None, path: Path | None = None
    ) -> OpenedRun:
        """A run that was just sampled; `path` is its store."""
        header = None if path is None else read_header(path)
        return cls(
            posterior,
            header or describe_run(posterior.target, posterior.schedule)[0],
            record or Record(),
            path,
        )

    @classmethod
    def read(cls, path: Path) -> OpenedRun:
        """Read a store or a file of `Posterior.save`; whatever is wrong with it is one clear line.

        Raises
        ------
        NoDrawsYet
            If a store has no draws, yet or at all.
        ValueError
            If there is no run, or it cannot be read.
        """
        from onlooker.posterior import Posterior

        require_run(path)
        growing = path.is_dir() and Lock(path).writer() is not None
        record = Record.read(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            header = _read_header(path)
            try:
                posterior = Posterior.load(path)
            except NoDrawsYet as error:
                raise NoDrawsYet(_without_draws(path, header, record, growing)) from error
            except BROKEN as error:
                raise ValueError(f"{path} holds no readable run: {error}") from error
        remarks = [f"{item.message}." for item in caught if item.category is RuntimeWarning]
        return cls(posterior, header, record, path, growing, remarks)

    # -- how far it got -------------------------------------------------------------------------

    @property
    def state(self) -> Literal["growing", "stopped", "finished"]:
        """Whether the run is sampled, was stopped early, or has all draws that were planned."""
        if self.growing:
            return "growing"
        posterior, header = self.posterior, self.header
        whole = posterior.n_draws >= header["draws"] and posterior.n_chains >= header["chains"]
        return "finished" if whole and posterior.ended != "auto" else "stopped"

    @property
    def n_stored(self) -> int:
        """Draws that the store holds of every chain; fewer than were made if a disk was full."""
        if self.path is None or not self.path.is_dir():
            return self.posterior.n_draws
        schedule, chains = self.posterior.schedule, self.posterior.chain_ids
        return min(stored_draws(self.path, schedule, int(chain)) for chain in chains)

    @property
    def progress(self) -> str:
        """The state in a sentence."""
        posterior, header = self.posterior, self.header
        chains = counted(posterior.n_chains, "chain")
        if posterior.n_chains < header["chains"]:
            chains = f"{posterior.n_chains} of {counted(header['chains'], 'chain')}"
        have = f"{posterior.n_draws:,} of {header['draws']:,} draws of {chains}"
        if self.state == "growing":
            return f"Sampling goes on: {have}."
        if self.state == "finished":
            return f"Finished: {have}."
        return f"The run was stopped: {have}. {_how_to_continue(self.record)}."

    @property
    def notes(self) -> list[str]:
        """What a reader should know: remarks, what the model misses, whether the run goes on."""
        progress = [] if self.state == "finished" else [self.progress]
        return [*self.remarks, *self.record.advice, *progress]

    # -- names ----------------------------------------------------------------------------------

    @property
    def is_discrete(self) -> bool:
        """Whether states are integers."""
        return self.posterior.problem.states.ndim == 1

    @property
    def n_position(self) -> int:
        """Dimension of the position: that of the states without their features."""
        return int(getattr(self.posterior.problem.dynamics, "n_position", self._n_dims))

    @property
    def _n_dims(self) -> int:
        return 1 if self.is_discrete else int(self.posterior.problem.states.shape[1])

    @property
    def columns(self) -> list[str]:
        """Names of the dimensions of the position, or of the one integer."""
        given = self.record.reading.states
        if self.is_discrete:
            return given or ["state"]
        if given is None and self.geographic:
            given = ["lon", "lat"]
        return axis_names(given, self.n_position)

    @property
    def geographic(self) -> bool:
        """Whether positions are longitude and latitude."""
        moving = position_dynamics(self.posterior.problem.dynamics)
        on_earth = self.record.reading.geographic or isinstance(moving, GeographicDynamics)
        return on_earth and not self.is_discrete and self.n_position == 2

    @property
    def axes(self) -> list[str]:
        """Names of all dimensions of a state, those of its features last."""
        position = ["longitude", "latitude"] if self.geographic else self.columns
        features = getattr(self.posterior.problem.dynamics, "feature_names", [])
        return axis_names(position, self.n_position, features)

    @property
    def features(self) -> list[tuple[Feature, slice]]:
        """What follows the position, and where it is in a state."""
        return list(getattr(self.posterior.problem.dynamics, "parts", []))

    @property
    def units(self) -> list[str]:
        """Units of the `axes`; empty where they are not known."""
        n_rest = len(self.axes) - self.n_position
        return ["°" if self.geographic else ""] * self.n_position + [""] * n_rest

    @cached_property
    def decimals(self) -> list[int]:
        """For each of the `axes`, the digits after the point that tell its values apart."""
        problem, states = self.posterior.problem, self.posterior.problem.states
        if self.is_discrete:
            return [0]
        steps = np.zeros((0, states.shape[1]))
        if problem.paths is not None:
            steps = np.delete(
                np.diff(states[problem.paths.nodes], axis=0),
                problem.paths.offsets[1:-1] - 1,
                axis=0,
            )
        return [decimals(x, step) for x, step in zip(states.T, steps.T, strict=True)]

    @cached_property
    def action_names(self) -> list[str]:
        """What each action is called."""
        problem = self.posterior.problem
        given = self.record.names
        if given is not None and len(given) == problem.n_actions:
            return given
        return action_names(problem.dynamics, problem.n_actions)

    def state_text(self, node: int) -> str:
        """The state of a node, such as "state 3" or "(4.95, −0.1; heading 90°)"."""
        return self.text_of(self.posterior.problem.states[node])

    def text_of(self, state: Array, digits: list[int] | None = None) -> str:
        """The same of any state; `digits` are those after the points of its coordinates."""
        if self.is_discrete:
            return f"state {state}"
        where = digits or self.decimals
        place = place_text(state[: self.n_position].tolist(), where, self.geographic)
        features = [
            feature_text(*feature.in_words(state[where]), self.geographic)
            for feature, where in self.features
        ]
        return f"{place[:-1]}; {', '.join(features)})" if features else place

    def scalar_name(self, name: str) -> str:
        """What a row of `table` is, in words."""
        return scalar_name(self.posterior.prior, name, self.state_text, self.action_names)

    def hyper_words(self, name: str) -> str:
        """A hyper-parameter, with its unit where that is known."""
        prior = self.posterior.prior
        in_km = self.geographic and name == "scale" and getattr(prior, "metric", None) == "chord"
        return hyper_words(prior, name) + (" [km]" if in_km else "")

    @property
    def trajectory_names(self) -> list[str] | None:
        """Names of the trajectories; None where they have numbers only."""
        paths = self.posterior.problem.paths
        return None if paths is None or paths.names is None else list(paths.names.tolist())

    @property
    def step_time(self) -> str | None:
        """How long a step takes, such as "6 h", or "6 h (median)"; None without dates."""
        paths = self.posterior.problem.paths
        if paths is None or paths.times is None or paths.times.dtype.kind not in "mM":
            return None
        steps = np.delete(np.diff(paths.times), paths.offsets[1:-1] - 1)
        seconds = steps / np.timedelta64(1, "s")
        if not len(seconds):
            return None
        usual = float(np.median(seconds))
        return span(usual) + ("" if (seconds == usual).all() else " (median)")

    # -- findings -------------------------------------------------------------------------------

    @cached_property
    def table(self) -> pd.DataFrame:
        """Diagnostics of label-free quantities."""
        return self.posterior.summary()

    @property
    def stability(self) -> Stability | None:
        """How far chains with landmarks of their own agree; None where all have the same nodes."""
        return self.posterior.stability

    @property
    def has_unseen(self) -> bool:
        """Whether some states were not seen, or seen with noise, and are inferred as well."""
        return self.posterior.problem.incomplete is not None

    @cached_property
    def visits(self) -> Array:
        """``(N,)``: transitions from each node; the mean over draws where states are unseen."""
        problem, starts = self.posterior.problem, self.posterior.predictor.starts
        if starts is None:
            return np.bincount(problem.node_of, minlength=problem.n_nodes)
        return np.bincount(starts.ravel(), minlength=problem.n_nodes) / len(starts)

    def load_consensus(self, progress: Progress | None = None) -> ConsensusResult:
        """The consensus that the store has, or a new one, which is then stored.

        Where all draws would take longer than about half a minute, it is computed from every k-th
        draw, and a remark says so. `progress` is advanced by `consensus.search.n_searches`.
        """
        posterior = self.posterior
        n_draws, n_nodes = posterior.n_draws, posterior.problem.n_nodes
        each = max(2, _MAX_LABELS // (posterior.n_chains * n_nodes))
        step = max(1, -(-n_draws // each))
        about = {"chains": posterior.chain_ids, "draws": n_draws, "step": step, "nodes": n_nodes}
        result = None if self.path is None else _read_consensus(self.path, about)
        from onlooker.consensus.search import consensus, n_searches

        if result is None and self.path is None and step == 1:
            result = posterior.consensus()  # which may have been computed already
        if result is not None and progress is not None:
            progress.advance(n_searches())
        if result is None:
            labels = posterior.labels[:, ::step]
            result = consensus(labels, random_state=0, progress=progress)
            if self.path is not None and self.path.is_dir():
                with contextlib.suppress(OSError):  # a store may be read-only
                    _write_consensus(self.path, about, result)
        posterior.use_consensus(result)
        remark = f"The consensus is computed from one draw in {step}, to save time."
        if step > 1 and remark not in self.remarks:
            self.remarks.append(remark)
        return result

    # -- other states ---------------------------------------------------------------------------

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
        columns = ", ".join(self.columns)
        raise ValueError(
            f"a state of this run has {self.n_position} numbers ({columns}), got {points.shape[1]}"
        )

    def nearest_seen(self, states: Array) -> Array | None:
        """``(n,)``: how far the positions of `states` are from those that were seen; km on Earth.

        None where states are integers, which have no distance.
        """
        from onlooker.geography import arc_of, in_space
        from onlooker.partitions.geometry import distance_to

        if self.is_discrete:
            return None
        problem, n = self.posterior.problem, self.n_position
        seen = problem.states if problem.paths is None else problem.states[problem.paths.nodes]
        if self.geographic:
            return arc_of(distance_to(in_space(states[:, :n]), in_space(seen[:, :n])))
        return distance_to(states[:, :n], seen[:, :n])

    def held_out(self) -> Demonstrations | None:
        """The trajectories that `onlooker fit` set aside, as states of this run."""
        from onlooker.demonstrations import Demonstrations

        if self.path is None or not self.record.held_out:
            return None
        return self.with_features(Demonstrations.load(self.path / HELD_OUT).split())

    def with_features(self, demos: Demonstrations) -> Demonstrations:
        """Tracks as states of this run."""
        from onlooker.dynamics.features import FeatureDynamics, with_features

        dynamics = self.posterior.problem.dynamics
        if isinstance(dynamics, FeatureDynamics):
            return with_features(demos, dynamics.features, dynamics.dynamics)[0]
        if demos.is_discrete and not self.is_discrete:
            return demos.as_positions()
        return demos


# -- on disk --------------------------------------------------------------------------------------


def require_run(path: Path) -> None:
    """Refuse what is no run at all, in words; a run may still turn out to be damaged."""
    if not path.exists():
        raise ValueError(f"there is no run {str(path)!r}")
    if path.is_dir() and not (path / HEADER).exists():
        raise ValueError(f"{str(path)!r} holds no run: it has no {HEADER}")
    if not path.is_dir() and not _may_be_saved(path):
        raise ValueError(
            f"{path} is not a run; a run is the directory that `onlooker fit --output` wrote, or a "
            "file of Posterior.save"
        )


def _may_be_saved(path: Path) -> bool:
    """Whether a file is an archive of `Posterior.save`, or the torn beginning of an archive."""
    with open_regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return "header.npy" in archive.namelist()
        except (OSError, zipfile.BadZipFile):
            file.seek(0)
            return file.read(4) == b"PK\3\4"


def _read_header(path: Path) -> dict[str, Any]:
    try:
        if path.is_dir():
            header = read_header(path)
            if header is None:
                raise ValueError(f"{HEADER} is gone")
            return header
        return check_header(parse_json(str(read_arrays(path, ("header",))["header"])), path)
    except StoreMismatchError:
        raise
    except (*BROKEN, ValueError) as error:
        raise ValueError(f"{path} holds no readable run: {HEADER} is damaged ({error})") from error


def _without_draws(path: Path, header: dict[str, Any], record: Record, growing: bool) -> str:
    if growing:
        return f"{path} is still tuning ({header['options']['tune']} sweeps per chain); wait for it"
    parts = any(path.glob("chain-*/part-*.npz"))
    why = "its parts cannot be read" if parts else "it was stopped before the first"
    return f"{path} holds no draws: {why}. {_how_to_continue(record)}"


def _how_to_continue(record: Record) -> str:
    if record.file is None:
        return "Sampling with resume=True continues it"
    return "The same command with --resume continues it"


def _write_consensus(path: Path, about: dict[str, Any], result: ConsensusResult) -> None:
    numbers = dataclasses.asdict(result)
    arrays = {name: numbers.pop(name) for name in ("labels", "membership")}
    text = np.array(json.dumps({"about": about, "found": numbers}))
    write_arrays(path / _CONSENSUS, arrays | {"told": text})


def _read_consensus(path: Path, about: dict[str, Any]) -> ConsensusResult | None:
    from onlooker.consensus import ConsensusResult, canonical

    try:
        arrays = read_arrays(path / _CONSENSUS)
        stored = parse_json(str(arrays["told"]))
        if stored["about"] != about:
            return None  # the run has grown since
        labels, membership = arrays["labels"], arrays["membership"]
        n_nodes = about["nodes"]
        stored_array("labels", labels, "i", (n_nodes,), 0, n_nodes)
        stored_array("membership", membership, "f", (n_nodes,), 0.0, 1 + 1e-9)
        known = stored["found"]
        if not np.array_equal(canonical(labels), labels) or known["n_clusters"] != labels.max() + 1:
            return None
        one_of("loss", known["loss"], ("vi", "binder"))
        return ConsensusResult(labels=labels, membership=membership, **stored["found"])
    except (*BROKEN, ValueError):
        return None
