"""GPX files: the tracks of satellite receivers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn, Unpack
from xml.parsers import expat

import numpy as np

from onlooker.checks import Array
from onlooker.files import open_regular
from onlooker.reading.cleaning import clean
from onlooker.reading.tracks import Cleaning, CleaningOptions, Table, Tracks

_BLOCK = 1 << 16


def read_gpx(
    path: str | os.PathLike[str],
    metres: bool = False,
    origin: tuple[float, float] | None = None,
    **cleaning: Unpack[CleaningOptions],
) -> Tracks:
    """One trajectory per track segment; see `Demonstrations.from_gpx`."""
    if origin is not None and not metres:
        raise ValueError("origin is where metres are counted from: it needs metres=True")
    points = _Points(os.fspath(path))
    with open_regular(path) as file:
        points.parse(iter(lambda: file.read(_BLOCK), b""))
    table = points.table()
    options: CleaningOptions = {**cleaning}
    if metres:
        table.states, note = _in_metres(table.states, origin)
        table.columns = ["east", "north"]
        table.notes.append(note)
    else:
        options.setdefault("geographic", True)
    return clean(table, Cleaning(**options))


def _in_metres(places: Array, origin: tuple[float, float] | None) -> tuple[Array, str]:
    from onlooker.geography import displacements

    if origin is None:
        # the mean direction, not the mean longitude: tracks may cross the date line
        known = places[np.isfinite(places).all(axis=1)]
        angles = np.radians(known[:, 0])
        lon = np.degrees(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))
        origin = (float(lon), float(known[:, 1].mean()))
    start = np.broadcast_to(np.asarray(origin, dtype=np.float64), places.shape)
    note = f"Metres east and north of longitude {origin[0]:.6f}, latitude {origin[1]:.6f}."
    return 1000.0 * displacements(start, places), note


@dataclass
class _Points:
    """Track points as the parser meets them."""

    name: str
    lon: list[float] = field(default_factory=list)
    lat: list[float] = field(default_factory=list)
    time: list[int | None] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    segment: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    n_tracks: int = 0
    has_routes: bool = False
    _open: list[str] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _title: str = ""

    def parse(self, blocks: Iterator[bytes]) -> None:
        """Read the file without ever holding it as a tree."""
        parser = expat.ParserCreate(namespace_separator=" ")
        self._parser = parser
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.StartDoctypeDeclHandler = self._doctype
        try:
            for block in blocks:
                parser.Parse(block, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise ValueError(
                f"{self.name}, line {error.lineno}: not well-formed XML ({reason})"
            ) from error

    def _refuse(self, reason: str) -> NoReturn:
        raise ValueError(f"{self.name}, line {self._parser.CurrentLineNumber}: {reason}")

    def _doctype(self, *_: Any) -> None:
        # entities declared there can grow a small file to gigabytes
        self._refuse("a document type (DOCTYPE) is declared, which GPX has no use for; remove it")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if not self._open and tag != "gpx":
            self._refuse(f"not a GPX file: it starts with <{tag}>")
        if tag == "trk":
            self.n_tracks += 1
            self._title = f"track {self.n_tracks}"
        elif tag == "rte":
            self.has_routes = True
        elif tag == "trkseg":
            self.names.append(self._title)
        elif tag == "trkpt":
            self._point(attributes)
        self._open.append(tag)
        self._text.clear()

    def _point(self, attributes: dict[str, str]) -> None:
        if self._open[-1:] != ["trkseg"]:
            self._refuse("a <trkpt> outside of a <trkseg>")
        self.lon.append(self._degrees(attributes, "lon", 180.0))
        self.lat.append(self._degrees(attributes, "lat", 90.0))
        self.time.append(None)
        self.line.append(self._parser.CurrentLineNumber)
        self.segment.append(len(self.names) - 1)

    def _degrees(self, attributes: dict[str, str], name: str, limit: float) -> float:
        try:
            value = float(attributes[name])
        except KeyError:
            self._refuse(f"a <trkpt> without {name}")
        except ValueError:
            self._refuse(f"{name}={attributes[name]!r} is not a number")
        if np.isfinite(value) and abs(value) > limit:
            self._refuse(f"{name}={attributes[name]!r} is beyond {limit:g} degrees")
        return value  # what is not finite is a missing value, for the user to choose

    def _end(self, _: str) -> None:
        tag = self._open.pop()
        parent = self._open[-1] if self._open else ""
        text = "".join(self._text).strip()
        if tag == "time" and parent == "trkpt":
            self.time[-1] = self._nanoseconds(text)
        elif tag == "name" and parent == "trk" and text:
            self._title = text  # GPX has it before the segments
        self._text.clear()

    def _nanoseconds(self, text: str) -> int:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self._refuse(f"{text!r} is not an ISO date")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000

    def table(self) -> Table:
        """The points as a table; times only if any point has one."""
        if not self.lon:
            routes = " (it has routes, which are plans, not tracks)" if self.has_routes else ""
            raise ValueError(f"{self.name} holds no track point{routes}")
        timeless = np.array([moment is None for moment in self.time])
        times = None
        if not timeless.all():
            numbers = [0 if moment is None else moment for moment in self.time]
            times = np.array(numbers, dtype=np.int64).view("datetime64[ns]")
        states = np.column_stack([self.lon, self.lat])
        used, segments = np.unique(self.segment, return_inverse=True)
        line = self.line
        return Table(
            states=states,
            missing=~np.isfinite(states).all(axis=1),
            groups=segments.astype(np.int32),
            names=[self.names[k] for k in used],
            times=times,
            timeless=None if times is None else timeless,
            columns=["lon", "lat"],
            where=lambda row: f"the track point at line {line[row]}",
            trajectory="trkseg",
            time="time",
        )
