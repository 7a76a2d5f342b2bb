"""Draws on disk while sampling goes on: nothing is ever half written.

A store is a directory::

    run.json                     what it is: sizes, prior, options, seed, versions, command
    problem.npz                  the problem, the trajectories it was made of, and whatever arrays
                                 prior and dynamics hold
    chain-000/part-000001234.npz draws of a chain since its last part, and all that the chain
                                 remembered after so many sweeps, its random generator included
    lock                         who writes

Every file is written under another name, flushed to the disk, and then renamed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array, Setting
from onlooker.files import (
    DamagedFileError,
    parse_json,
    read_arrays,
    refusing_damage,
    within,
    write_arrays,
    write_json,
)
from onlooker.gibbs.state import State
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Runner, Schedule
from onlooker.inference.target import Target
from onlooker.inference.unseen import Unseen
from onlooker.partitions.base import Bound
from onlooker.runs.checking import check_draws, check_state
from onlooker.runs.header import (
    HEADER,
    StoreMismatchError,
    describe_run,
    difference,
    read_header,
)
from onlooker.runs.lock import Lock
from onlooker.warnings import warn

FLUSH_SECONDS = 1.0  # shortest time between two parts of a chain
_MAX_WAIT = 300.0
_SHARE = 0.05  # of a run's time that may be lost by a kill, and that writing may take
PROBLEM = "problem.npz"


# -- the parts of a chain -------------------------------------------------------------------------


class Stored(NamedTuple):
    """What a store holds of a chain."""

    draws: Draws | None = None
    state: State[Any] | None = None
    sweeps: int = 0
    lost: str = ""
    """What could not be read, and why; empty: all could."""


class ChainFolder:
    """The parts of one chain, and when the next one is due."""

    def __init__(self, path: Path, target: Target, schedule: Schedule, run: str) -> None:
        self.path = path
        self._target = target
        self._schedule = schedule
        self._run = run  # fingerprint
        self._began = self._last = time.monotonic()
        self._cost = 0.0
        self._sweeps = 0
        self._kept = 0
        self._last_part: Path | None = None

    def parts(self) -> list[Path]:
        """All parts, oldest first."""
        return parts_of(self.path)

    def read(self, bound: Bound[Any] | None = None, repair: bool = False) -> Stored:
        """The draws, and with `bound`, which its state must fit, where the chain stopped.

        A part that cannot be read (a disk may break its word) ends the chain there; with
        `repair` it is renamed (``.broken``) with all that follow.
        """
        blocks: list[Draws] = []
        read: list[tuple[Path, int]] = []
        damage: DamagedFileError | None = None
        state = None
        for part in self.parts():
            try:
                block, sweeps = self._read_draws(part, blocks)
            except FileNotFoundError:
                continue  # a part without draws, overtaken by the next while we were reading
            except DamagedFileError as error:
                damage = error
                break
            blocks.append(block)
            read.append((part, sweeps))
        while bound is not None and read and state is None:
            try:
                state = self._read_state(read[-1][0], blocks[-1], bound)
            except DamagedFileError as error:
                damage = error
                del blocks[-1], read[-1]
        self._kept = sum(map(len, blocks))
        self._last_part, self._sweeps = read[-1] if read else (None, 0)
        draws = join(blocks) if blocks else None
        if damage is None:
            return Stored(draws, state, self._sweeps)
        if repair:
            for part in set(self.parts()) - {part for part, _ in read}:
                part.replace(part.with_name(f"{part.name}.broken"))
        lost = f"draws of {self.path.name} from number {self._kept} on cannot be read ({damage})"
        return Stored(draws, state, self._sweeps, lost)

    def _read_draws(self, path: Path, before: list[Draws]) -> tuple[Draws, int]:
        """The draws of a part, checked, and the sweeps that its chain had made."""
        arrays = read_arrays(path, ("draws.", "rest"))
        with refusing_damage(path):
            rest = parse_json(str(arrays["rest"]))
            _require_arrays(arrays, rest, "draws.")
            block = Draws(within("draws.", arrays))
            check_draws(block, self._target, lead=1)
            first, sweeps, n_before = rest["first"], rest["sweeps"], sum(map(len, before))
            if rest.get("run", self._run) != self._run:  # older parts do not say
                raise ValueError("it belongs to another run")
            if first != n_before:
                raise ValueError(f"it begins with draw {first}, but {n_before} are before it")
            if type(sweeps) is not int or self._schedule.kept(sweeps) != first + len(block):
                raise ValueError(f"it does not hold what {sweeps} sweeps make")
        return block, sweeps

    def _read_state(self, path: Path, block: Draws, bound: Bound[Any]) -> State[Any]:
        """Where a chain was after a part, checked."""
        target = self._target
        arrays = read_arrays(path, ("state.", "rest"))
        with refusing_damage(path):
            about = parse_json(str(arrays["rest"]))
            _require_arrays(arrays, about, "state.")
            rest = about["state"]
            unseen = None if target.problem.incomplete is None else Unseen
            try:
                state: State[Any] = State.from_arrays(
                    within("state.", arrays), rest, target.prior.state, unseen
                )
            except KeyError as error:
                raise StoreMismatchError(
                    f"{path} holds no {error}, which a chain of this prior remembers now; "
                    "choose another store"
                ) from error
            if state.hyper.keys() != block.hyper.keys():
                raise ValueError("its state has other hyper-parameters than its draws")
            check_state(state, target, bound)
        return state

    def offer(self, runner: Runner, force: bool = False) -> None:
        """Write what `runner` has drawn since the last part, if it is time to."""
        now = time.monotonic()
        wait = max(FLUSH_SECONDS, _SHARE * (now - self._began), self._cost / _SHARE)
        due = force or runner.done or now - self._last >= min(wait, _MAX_WAIT)
        if not due or self.holds(runner):
            return
        try:
            self.write(runner)
        finally:  # what could not be written is tried again when the next part is due
            self._last = time.monotonic()
            self._cost = self._last - now

    @property
    def n_draws(self) -> int:
        """Draws that are stored."""
        return self._kept

    def holds(self, runner: Runner) -> bool:
        """Whether all that `runner` has done is stored."""
        return runner.sweeps == self._sweeps

    def write(self, runner: Runner) -> None:
        """Write a part."""
        block = runner.draws[self._kept - runner.first :]
        state, rest = runner.chain.state.as_arrays()
        arrays = {f"draws.{name}": values for name, values in block.arrays.items()}
        arrays |= {f"state.{name}": values for name, values in state.items()}
        about = {"run": self._run, "first": self._kept, "sweeps": runner.sweeps, "state": rest}
        about["arrays"] = list(arrays)  # whether all are there cannot be seen otherwise
        arrays["rest"] = np.array(json.dumps(about))
        part = self.path / f"part-{runner.sweeps:012d}.npz"
        self.path.mkdir(exist_ok=True)
        try:
            write_arrays(part, arrays)
        except OSError:  # it may be there, and yet be lost by a power cut
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        overtaken = self._last_part if self._kept == 0 else None
        self._last_part, self._sweeps, self._kept = part, runner.sweeps, runner.kept
        if overtaken is not None:
            with contextlib.suppress(OSError):  # it held no draws: it may as well stay
                overtaken.unlink()


def _require_arrays(arrays: dict[str, Array], rest: dict[str, Any], prefix: str) -> None:
    """Refuse a part that lacks arrays it was written with."""
    missing = {name for name in rest.get("arrays", []) if name.startswith(prefix)} - arrays.keys()
    if missing:  # older parts do not say what they hold
        raise ValueError(f"it has no {min(missing)}")


def folder_of(store: Path, chain: int) -> Path:
    """Where the parts of a chain are."""
    return store / f"chain-{chain:03d}"


def parts_of(folder: Path) -> list[Path]:
    """The parts in a chain's folder, oldest first; not their copies by other names."""
    return sorted(folder.glob(f"part-{'[0-9]' * 12}.npz"))


def stored_draws(store: Path, schedule: Schedule, chain: int) -> int:
    """How many draws of a chain are in a store, by the names of its parts."""
    parts = parts_of(folder_of(store, chain))
    return schedule.kept(int(parts[-1].stem[5:]) if parts else 0)


# -- the store ------------------------------------------------------------------------------------


class Store:
    """A directory that a run writes to; a context manager that holds its lock."""

    def __init__(
        self, path: str | os.PathLike[str], target: Target, schedule: Schedule, resume: bool
    ) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._header, self._arrays = describe_run(target, schedule)
        self._resume = resume
        self._waiting: set[int] = set()  # chains whose draws could not be written
        self._lock = Lock(self.path)
        self.folders = [
            ChainFolder(folder_of(self.path, chain), target, schedule, self._header["fingerprint"])
            for chain in range(schedule.chains)
        ]

    def stored(self, chain: int, bound: Bound[Any]) -> tuple[Draws | None, State[Any] | None, int]:
        """The draws of a chain, and its state after so many sweeps."""
        found = self.folders[chain].read(bound, repair=True)
        if found.lost:
            warn(f"{found.lost}; they are drawn again", RuntimeWarning)
        return found.draws, found.state, found.sweeps

    def offer(self, runner: Runner, force: bool) -> None:
        """Write what a chain has drawn, if it is time to; never what an error left behind.

        A disk that is full stops no chain: draws stay in memory until they can be written.
        """
        if runner.error is not None:
            return
        folder = self.folders[runner.index]
        try:
            with runner.at_rest:  # after Ctrl-C its thread may be amid a sweep
                folder.offer(runner, force)
        except OSError as error:
            if runner.index not in self._waiting:
                self._waiting.add(runner.index)
                warn(
                    f"draws of {folder.path.name} cannot be stored now ({error}); they stay in "
                    "memory, sampling goes on, and storing is tried again",
                    RuntimeWarning,
                )
        else:
            if folder.holds(runner):
                self._waiting.discard(runner.index)

    def finish(self, runners: list[Runner]) -> None:
        """Write all that is not yet, and warn of what cannot be."""
        for runner in runners:
            self.offer(runner, force=True)
        unstored = [
            f"{n} of {self.folders[runner.index].path.name}"
            for runner in runners
            if runner.index in self._waiting
            and (n := runner.kept - self.folders[runner.index].n_draws)
        ]
        if unstored:
            warn(
                f"draws that could not be stored: {', '.join(unstored)}; with space on the disk, "
                "resuming draws them again",
                RuntimeWarning,
            )

    def __enter__(self) -> Store:
        self._lock.__enter__()
        try:
            self._open()
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._lock.__exit__()

    def _open(self) -> None:
        header = self._header
        found = read_header(self.path)
        if found is None:
            require_empty(self.path)
            write_arrays(self.path / PROBLEM, self._arrays)
        else:
            self._compare(header, found)
            self._mend_problem()
            header["created"] = found["created"]
            header["draws"] = max(header["draws"], found["draws"])
            header["chains"] = max(header["chains"], found["chains"])
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()
        self._header = found or {}
        self._write(header)

    def _mend_problem(self) -> None:
        """Write the problem again, which is known here, where it cannot be read."""
        try:
            stored = read_arrays(self.path / PROBLEM)
            missing = self._arrays.keys() - stored.keys() - _OPTIONAL
            if not missing:
                return
            reason = f"it has no {min(missing)}"
        except (DamagedFileError, FileNotFoundError) as error:
            reason = str(error)
        warn(f"{self.path / PROBLEM} is written again: {reason}", RuntimeWarning)
        write_arrays(self.path / PROBLEM, self._arrays)

    def _write(self, header: dict[str, Any]) -> None:
        if header != self._header:
            write_json(self.path / HEADER, header)
        self._header = header

    def plan(self, schedule: Schedule) -> None:
        """Take note of how many draws are wanted now, and what ends sampling."""
        try:
            self._write({**self._header, "draws": schedule.draws, "end": schedule.end})
        except OSError as error:
            warn(
                f"{self.path / HEADER} cannot be written now ({error}); sampling goes on",
                RuntimeWarning,
            )

    def _compare(self, header: dict[str, Any], found: dict[str, Any]) -> None:
        if not self._resume:
            raise StoreMismatchError(
                f"{self.path} holds a run already; give ",
                Setting("resume", (True,)),
                " to continue it, or another ",
                Setting("store"),
            )
        if found["versions"]["onlooker"] != __version__:
            raise StoreMismatchError(
                f"{self.path} was written by onlooker {found['versions']['onlooker']}, this is "
                f"{__version__}: the same draws cannot be promised; use that version, or start anew"
            )
        for name in ("numpy", "numba"):
            there, here = found["versions"].get(name), header["versions"][name]
            if there != here:
                warn(
                    f"{self.path} was written with {name} {there}, this is {here}: draws from "
                    "here on may differ from those of an unbroken run",
                    RuntimeWarning,
                )
        if found["fingerprint"] == header["fingerprint"]:
            return
        differing = [name for name in _TOLD if found.get(name) != header.get(name)]
        differs = "its data differ"
        if differing and self._has_these_states():
            name = differing[0]
            differs = difference(name, found.get(name), header.get(name))
        raise StoreMismatchError(
            f"{self.path} holds another run ({differs}); choose another ", Setting("store")
        )

    def _has_these_states(self) -> bool:
        """Whether the stored states are those of this run, if there are as many.

        Where they are not, all else that differs follows from them.
        """
        try:
            stored = read_arrays(self.path / PROBLEM, ("states",))["states"]
        except (DamagedFileError, FileNotFoundError, KeyError):
            return True
        here = self._arrays["states"]
        return stored.shape != here.shape or np.array_equal(stored, here)


def require_empty(path: Path) -> None:
    """Refuse a directory with files that are not of a run; one that is missing is fine."""
    names = [item.name for item in path.iterdir()] if path.is_dir() else []
    others = [name for name in names if name not in _OWN and not name.startswith(".")]
    if others:
        raise StoreMismatchError(
            f"{path} holds other files ({min(others)}, ...); choose an empty directory"
        )


_TOLD = ("problem", "prior", "options", "seed", "dynamics", "observation_noise", "landmarks")
"""Parts of a header that say how a run differs from another."""
_OPTIONAL = {"trajectory_names"}  # runs stored before there were names can go on
_OWN = {"lock", PROBLEM, "fit.json", "held_out.npz"}  # the last two: by the command line, before
