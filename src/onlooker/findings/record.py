"""What `onlooker fit` stores of a run besides its draws."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onlooker.checks import require_texts
from onlooker.files import read_json, write_json
from onlooker.reading.settings import Reading
from onlooker.runs.lock import Lock

BROKEN = (OSError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile)
"""What reading a damaged file may raise, besides ValueError."""
_RECORD = "fit.json"
HELD_OUT = "held_out.npz"
"""Trajectories that were set aside."""


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
    held_out: list[str] | None = None
    """Names of trajectories that were set aside for calibration."""
    state: dict[str, Any] | None = None
    """What joins the position, and what that gains on left-out trajectories."""
    advice: list[str] = field(default_factory=list)
    """What the model misses, a sentence each, with its remedy."""
    settings: dict[str, str] | None = None
    """What was asked for, by names of options and of keys of a model file."""

    def write(self, store: Path) -> None:
        """Write it into the store."""
        record = {"what": "onlooker fit"} | asdict(self)
        write_json(store / _RECORD, record, default=str)

    @classmethod
    def read(cls, store: Path) -> Record:
        """Read it; an empty one where the run was not made by the command line."""
        try:
            stored = read_json(store / _RECORD)
            stored.pop("what")
            record = cls(**(stored | {"reading": Reading.from_dict(stored["reading"])}))
            record._check()
        except (*BROKEN, ValueError, AttributeError):
            return cls()
        return record

    @classmethod
    def readable(cls, store: Path) -> bool:
        """Whether it can be read, or was never written."""
        return not (store / _RECORD).exists() or cls.read(store) != cls()

    def _check(self) -> None:
        for name, value, kind in (
            ("file", self.file, str),
            ("account", self.account, dict),
            ("explained", self.explained, dict),
            ("state", self.state, dict),
            ("settings", self.settings, dict),
        ):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} is {value!r}")
        if self.names is not None:
            require_texts("names", self.names)
        if self.held_out is not None:
            require_texts("held_out", self.held_out)
        require_texts("advice", self.advice)


@contextmanager
def remove_if_empty(store: Path) -> Iterator[None]:
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
