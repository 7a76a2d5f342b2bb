"""How a file of tracks is read; stored with a run, so that later files are read alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from onlooker.checks import Array
from onlooker.demonstrations import Demonstrations
from onlooker.reading.kinds import _kind, read

Say = Callable[[str], Any]

_CHOICE = re.compile(r"\b(missing|duplicates|gaps)=('\w+'(?:(?:, | or )'\w+')*)")
_COLUMN = re.compile(r"\b(states|trajectory|time)=(?=\W|$)")


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
    cleaning
        Options of `onlooker.reading.tracks.Cleaning`.
    """

    states: list[str] | None = None
    trajectory: str | None = None
    time: str | None = None
    geographic: bool = False
    line: bool = False
    cleaning: dict[str, Any] = field(default_factory=dict)

    def changed(self, cleaning: dict[str, Any], **columns: Any) -> Self:
        """With what is given instead; None and what is left out stays."""
        given = {name: value for name, value in columns.items() if value is not None}
        return replace(self, **given, cleaning=self.cleaning | cleaning)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def read(self, path: Path) -> Demonstrations:
        """Read a file; errors speak of the command line's options."""
        require_file(path)
        options = dict(self.cleaning)
        kind = _kind(path)
        if self.geographic and kind != "gpx" and self.states:
            options.setdefault("periodic", {self.states[0]: 360.0})
        if self.line and kind in ("csv", "tsv") and self.states:
            options["dtype"] = dict.fromkeys(self.states, "float64")
        if kind in ("npy", "gpx"):
            self._refuse_columns(kind)
        try:
            demos = read(path, self.states, self.trajectory, self.time, **options)
        except (ValueError, TypeError) as error:
            raise ValueError(_with_file(path, in_options(str(error)))) from error
        return on_a_line(demos) if self.line and demos.is_discrete else demos

    def _refuse_columns(self, kind: str) -> None:
        for name in ("states", "trajectory", "time"):
            if getattr(self, name) is not None:
                raise ValueError(f"a {kind} file has no columns to name; leave out --{name}")

    def read_points(self, path: Path) -> Array:
        """States one by one, without trajectories: ``(n,)`` integers or ``(n, d)`` floats."""
        from onlooker.reading.csv import load_csv
        from onlooker.reading.tables import load_parquet, read_table

        require_file(path)
        kind = _kind(path)
        if kind not in ("csv", "tsv", "parquet"):
            raise ValueError(f"{path}: points are read from csv, tsv and parquet, not from {kind}")
        if not self.states:
            raise ValueError("name the columns of the state: --states")
        if kind == "parquet":
            table = read_table(load_parquet(path, self.states, None, None), self.states, None, None)
        else:
            options = {"sep": "\t"} if kind == "tsv" else {}
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


def in_options(text: str) -> str:
    """A message of the library in the words of the command line."""
    text = _COLUMN.sub(r"--\1", _CHOICE.sub(_as_option, text))
    return text.replace("another store", "another --output").replace("resume=True", "--resume")


def _as_option(found: re.Match[str]) -> str:
    """``missing='split' or 'drop'`` as ``--missing split or --missing drop``."""
    return re.sub(r"'(\w+)'", rf"--{found[1]} \1", found[2])


def _with_file(path: Path, text: str) -> str:
    return text if path.name in text else f"{path}: {text}"


def on_a_line(demos: Demonstrations) -> Demonstrations:
    """Whole numbers as positions: ``(n, 1)`` floats."""
    return Demonstrations._from_flat(
        demos.states[:, None].astype(np.float64),
        demos.offsets,
        demos.names,
        demos.times,
        demos.account,
    )
