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

import json
import os
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array, Setting
from onlooker.files import read_arrays, within, write_arrays, write_atomically
from onlooker.gibbs.state import State
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Runner, Schedule
from onlooker.inference.target import Target
from onlooker.inference.unseen import Unseen
from onlooker.runs.header import (
    HEADER,
    StoreMismatchError,
    check_header,
    describe_run,
    difference,
    read_header,
    restore_run,
)
from onlooker.runs.lock import Lock
from onlooker.warnings import warn

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.partitions.base import PartitionPrior

__all__ = [
    "NoDrawsYet",
    "Store",
    "StoreMismatchError",
    "describe_run",
    "load_run",
    "read_header",
    "save_run",
]

FLUSH_SECONDS = 1.0  # shortest time between two parts of a chain
_MAX_WAIT = 300.0
_SHARE = 0.05  # of a run's time that may be lost by a kill, and that writing may take
_PROBLEM = "problem.npz"


class NoDrawsYet(ValueError):
    """A store has no draws: it is still tuning, or was stopped before the first."""


_BROKEN = (ValueError, KeyError, EOFError, zipfile.BadZipFile)


# -- the parts of a chain -------------------------------------------------------------------------


class ChainFolder:
    """The parts of one chain, and when the next one is due."""

    def __init__(self, path: Path, target: Target | None = None) -> None:
        self.path = path
        self._target = target
        self._began = self._last = time.monotonic()
        self._cost = 0.0
        self._sweeps = 0
        self._kept = 0
        self._last_part: Path | None = None

    def parts(self) -> list[Path]:
        """All parts, oldest first."""
        return sorted(self.path.glob("part-*.npz"))

    def read_draws(self) -> Draws | None:
        """The draws alone, which takes half the time."""
        return self._read(("draws.", "rest"), repair=False)[0]

    def read(self, repair: bool = False) -> tuple[Draws | None, tuple[State[Any], int] | None]:
        """The draws, and where the chain stopped: its state and number of sweeps.

        A part that cannot be read (a disk may break its word) ends the chain there; with
        `repair` it is removed with all that follow.
        """
        return self._read(("",), repair)

    def _read(
        self, prefixes: tuple[str, ...], repair: bool
    ) -> tuple[Draws | None, tuple[State[Any], int] | None]:
        blocks: list[Draws] = []
        n_kept, where, parts = 0, None, self.parts()
        for number, part in enumerate(parts):
            try:
                arrays = read_arrays(part, prefixes)
                rest = json.loads(str(arrays["rest"]))
                block = Draws(within("draws.", arrays))
                stored = within("state.", arrays)
                if rest["first"] != n_kept:
                    raise ValueError("a part is missing before this one")
                n_kept += len(block)
            except FileNotFoundError:
                continue  # a part without draws, overtaken by the next while we were reading
            except _BROKEN as error:
                warn(
                    f"{part} cannot be read ({error}); the chain goes on from before it",
                    RuntimeWarning,
                )
                if repair:
                    for broken in parts[number:]:
                        broken.unlink()
                break
            blocks.append(block)
            where = (
                (self._state(part, stored, rest["state"]), int(rest["sweeps"])) if stored else None
            )
            self._last_part = part
            self._sweeps, self._kept = int(rest["sweeps"]), n_kept
        return (join(blocks) if blocks else None), where

    def _state(self, part: Path, stored: dict[str, Array], rest: dict[str, Any]) -> State[Any]:
        assert self._target is not None
        unseen = None if self._target.problem.incomplete is None else Unseen
        try:
            return State.from_arrays(stored, rest, self._target.prior.state, unseen)
        except KeyError as error:
            raise StoreMismatchError(
                f"{part} holds no {error}, which a chain of this prior remembers now; "
                "choose another store"
            ) from error

    def offer(self, runner: Runner, force: bool = False) -> None:
        """Write what `runner` has drawn since the last part, if it is time to."""
        now = time.monotonic()
        wait = max(FLUSH_SECONDS, _SHARE * (now - self._began), self._cost / _SHARE)
        due = force or runner.done or now - self._last >= min(wait, _MAX_WAIT)
        if not due or runner.sweeps == self._sweeps:
            return
        self.write(runner)
        self._last = time.monotonic()
        self._cost = self._last - now

    def write(self, runner: Runner) -> None:
        """Write a part."""
        block = runner.draws[self._kept - runner.first :]
        state, rest = runner.chain.state.as_arrays()
        about = {"state": rest, "first": self._kept, "sweeps": runner.sweeps}
        arrays = {f"draws.{name}": values for name, values in block.arrays.items()}
        arrays |= {f"state.{name}": values for name, values in state.items()}
        arrays["rest"] = np.array(json.dumps(about))
        part = self.path / f"part-{runner.sweeps:012d}.npz"
        self.path.mkdir(exist_ok=True)
        write_arrays(part, arrays)
        if self._last_part is not None and self._kept == 0:
            self._last_part.unlink()  # it held no draws, and its state has been overtaken
        self._last_part, self._sweeps, self._kept = part, runner.sweeps, runner.kept


def _folder(store: Path, chain: int) -> Path:
    return store / f"chain-{chain:03d}"


# -- the store ------------------------------------------------------------------------------------


class Store:
    """A directory that a run writes to; a context manager that holds its lock."""

    def __init__(
        self, path: str | os.PathLike[str], target: Target, schedule: Schedule, resume: bool
    ) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._target, self._schedule = target, schedule
        self._resume = resume
        self._lock = Lock(self.path)
        self.folders = [
            ChainFolder(_folder(self.path, chain), target) for chain in range(schedule.chains)
        ]

    def stored(self, chain: int) -> tuple[Draws | None, State[Any] | None, int]:
        """The draws of a chain, and its state after so many sweeps."""
        draws, where = self.folders[chain].read(repair=True)
        return draws, *(where or (None, 0))

    def offer(self, runner: Runner, force: bool) -> None:
        """Write what a chain has drawn, if it is time to; never what an error left behind."""
        if runner.error is None:
            self.folders[runner.index].offer(runner, force)

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
        header, arrays = describe_run(self._target, self._schedule)
        found = read_header(self.path)
        if found is None:
            names = (item.name for item in self.path.iterdir())
            others = [name for name in names if name not in _OWN and not name.startswith(".")]
            if others:
                raise StoreMismatchError(
                    f"{self.path} holds other files ({min(others)}, ...); choose an empty directory"
                )
            write_arrays(self.path / _PROBLEM, arrays)
        else:
            self._compare(header, found)
            header["created"] = found["created"]
            header["draws"] = max(header["draws"], found["draws"])
            header["chains"] = max(header["chains"], found["chains"])
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()
        if header != found:
            text = json.dumps(header, indent=1)
            write_atomically(self.path / HEADER, lambda file: file.write(text.encode()))

    def _compare(self, header: dict[str, Any], found: dict[str, Any]) -> None:
        if not self._resume:
            raise StoreMismatchError(
                f"{self.path} holds a run already; give ",
                Setting("resume", (True,)),
                " to go on with it, or another ",
                Setting("store"),
            )
        if found["versions"]["onlooker"] != __version__:
            raise StoreMismatchError(
                f"{self.path} was written by onlooker {found['versions']['onlooker']}, this is "
                f"{__version__}: the same draws cannot be promised; use that version, or start anew"
            )
        if found["fingerprint"] == header["fingerprint"]:
            return
        for name in ("problem", "prior", "options", "seed", "dynamics"):
            if found[name] != header[name]:
                differs = difference(name, found[name], header[name])
                raise StoreMismatchError(
                    f"{self.path} holds another run ({differs}); choose another ", Setting("store")
                )
        raise StoreMismatchError(
            f"{self.path} holds another run (its data differ); choose another ", Setting("store")
        )


_OWN = {"lock", _PROBLEM, "fit.json"}  # the last is written by the command line, beforehand


# -- runs in one file, or from a store ------------------------------------------------------------

Run = tuple[Target, Schedule, Draws, list[int]]
"""What was sampled, for how long, the draws of all chains, and the chains' numbers."""


def save_run(
    path: str | os.PathLike[str],
    target: Target,
    schedule: Schedule,
    draws: Draws,
    chain_ids: list[int],
) -> None:
    """Write a run to one NumPy archive."""
    header, arrays = describe_run(target, schedule)
    header["chain_ids"] = chain_ids
    arrays = {f"run.{name}": values for name, values in arrays.items()}
    arrays |= {f"draws.{name}": values for name, values in draws.arrays.items()}
    arrays["header"] = np.array(json.dumps(header))
    write_atomically(
        Path(path),
        lambda file: np.savez_compressed(file, **arrays),  # type: ignore[arg-type]
    )


def load_run(
    path: str | os.PathLike[str],
    prior: PartitionPrior[Any] | None = None,
    dynamics: Dynamics | None = None,
) -> Run:
    """Read what `save_run` wrote, or a store."""
    path = Path(path)
    if path.is_dir():
        return _load_store(path, prior, dynamics)
    try:
        arrays = read_arrays(path)
        header = json.loads(str(arrays["header"]))
    except FileNotFoundError:
        raise
    except _BROKEN as error:
        raise ValueError(f"{path} was not written by Posterior.save") from error
    header = check_header(header, path)
    target, schedule = restore_run(header, within("run.", arrays), prior, dynamics)
    return target, schedule, Draws(within("draws.", arrays)), header["chain_ids"]


def _load_store(path: Path, prior: PartitionPrior[Any] | None, dynamics: Dynamics | None) -> Run:
    header = read_header(path)
    if header is None:
        raise ValueError(f"{path} is no store: it has no {HEADER}")
    target, schedule = restore_run(header, read_arrays(path / _PROBLEM), prior, dynamics)
    found = {}
    for chain in range(schedule.chains):
        draws = ChainFolder(_folder(path, chain)).read_draws()
        if draws is not None and len(draws) > 0:
            found[chain] = draws
    if not found:
        raise NoDrawsYet(f"{path} holds no draws yet; wait until tuning is over")
    shortest = min(len(draws) for draws in found.values())
    stacked = join([draws[:shortest] for draws in found.values()], axis="chain")
    return target, replace(schedule, draws=shortest), stacked, list(found)
