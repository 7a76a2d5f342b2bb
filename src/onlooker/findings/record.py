"""What `onlooker fit` stores of a run besides its draws."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onlooker.files import write_atomically
from onlooker.reading.settings import Reading
from onlooker.runs.lock import Lock

BROKEN = (OSError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile)
"""What reading a damaged file may raise, besides ValueError."""
_RECORD = "fit.json"


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
        record = {"what": "onlooker fit"} | asdict(self)
        text = json.dumps(record, indent=1, default=str).encode()
        write_atomically(store / _RECORD, lambda file: file.write(text))

    @classmethod
    def read(cls, store: Path) -> Record:
        """Read it; an empty one where the run was not made by the command line."""
        try:
            record = json.loads((store / _RECORD).read_text(encoding="utf-8"))
            record.pop("what")
            return cls(**(record | {"reading": Reading.from_dict(record["reading"])}))
        except (*BROKEN, ValueError, AttributeError):
            return cls()


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
