"""How a file of tracks is read; stored with a run, so that later files are read alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from onlooker.checks import Array, Setting, SettingError, boolean, require_texts
from onlooker.reading.csv import load_csv
from onlooker.reading.kinds import csv_options, file_kind, read_tracks
from onlooker.reading.tables import load_parquet
from onlooker.reading.tracks import Cleaning, Tracks

_FORMER = {"every": "interval", "longest": "max_gap"}  # names of cleaning in stores of version 0.1


@dataclass(frozen=True)
class Reading:
    """Columns and cleaning of a file of tracks.

    Attributes
    ----------
    states, trajectory, time
        Names of columns.
    geographic
        Whether states are longitude and latitude.
    line
        Whether whole numbers are positions on a line rather than states of a finite space.
    encoding
        Of a CSV file; None: as its beginning looks.
    cleaning
        Options of `onlooker.reading.Cleaning`.
    """

    states: list[str] | None = None
    trajectory: str | None = None
    time: str | None = None
    geographic: bool = False
    line: bool = False
    encoding: str | None = None
    cleaning: dict[str, Any] = field(default_factory=dict)

    def changed(self, cleaning: dict[str, Any], **columns: Any) -> Self:
        """With what is given instead; None and what is left out stays."""
        given = {name: value for name, value in columns.items() if value is not None}
        return replace(self, **given, cleaning=self.cleaning | cleaning)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Undo `to_dict`, of earlier versions too."""
        cleaning = {_FORMER.get(name, name): value for name, value in stored["cleaning"].items()}
        reading = cls(**{**stored, "cleaning": cleaning})
        Cleaning(**cleaning)
        texts = (reading.trajectory, reading.time, reading.encoding)
        named = [name for name in texts if name is not None]
        require_texts("columns", [*named, *(reading.states or [])])
        boolean("geographic", reading.geographic)
        boolean("line", reading.line)
        return reading

    @property
    def _encoding(self) -> dict[str, Any]:
        return {} if self.encoding is None else {"encoding": self.encoding}

    def read(self, path: Path) -> Tracks:
        """Read a file."""
        require_file(path)
        options = dict(self.cleaning)
        kind = file_kind(path)
        if self.geographic and kind != "gpx" and self.states:
            options.setdefault("geographic", True)
        if self.line and kind in ("csv", "tsv") and self.states:
            options["dtype"] = dict.fromkeys(self.states, "float64")
        if kind in ("csv", "tsv"):
            options |= self._encoding
        tracks = read_tracks(path, self.states, self.trajectory, self.time, **options)
        return tracks.as_positions() if self.line else tracks

    def read_points(self, path: Path) -> Array:
        """States one by one, without trajectories: ``(n,)`` integers or ``(n, d)`` floats."""
        require_file(path)
        kind = file_kind(path)
        if kind not in ("csv", "tsv", "parquet"):
            raise ValueError(f"{path}: points are read from csv, tsv and parquet, not from {kind}")
        if not self.states:
            raise SettingError("name the columns of the state by ", Setting("states"))
        if kind == "parquet":
            table = load_parquet(path, self.states, None, None)
        else:
            options = csv_options(path, self._encoding).options
            table = load_csv(path, self.states, None, None, **options)
        if table.missing.any():
            row = table.where(int(np.argmax(table.missing)))
            raise ValueError(f"{path}: the state in {row} is missing or infinite")
        return table.states


def require_file(path: Path) -> None:
    """Refuse what is no file, in words."""
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a directory, not a file")
