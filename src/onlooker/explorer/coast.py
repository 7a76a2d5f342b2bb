"""Outlines of the land within a box of longitudes and latitudes; land/README.md has the credits."""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.explorer.packing import pack

Box = tuple[tuple[float, float], tuple[float, float]]
_FINE = 40.0  # degrees: a smaller box gets the finer outlines
_TINY = 1 / 600  # of the box: smaller islands are left out


def land(box: Box) -> dict[str, Any]:
    """The land within a box as closed rings: ``points`` and the ``offsets`` of the rings in them.

    Longitudes of the box may run over ±180°; the land is repeated there.
    """
    (west, east), (south, north) = box
    span = max(east - west, north - south)
    rings = []
    for ring in _outlines("land-50m" if span < _FINE else "land-110m"):
        for turn in 360.0 * np.arange(-2, 3):
            part = ring + np.array([turn, 0.0])
            low, high = part.min(axis=0), part.max(axis=0)
            outside = (low > [east, north]).any() or (high < [west, south]).any()
            if outside or (high - low).max() < _TINY * span:
                continue
            for axis, bound, side in ((0, west, 1), (0, east, -1), (1, south, 1), (1, north, -1)):
                part = _clipped(part, axis, bound, side)
            if len(part) > 2:
                rings.append(part)
    offsets = np.cumsum([0, *map(len, rings)])
    return {
        "points": pack(np.concatenate([np.zeros((0, 2)), *rings])),
        "offsets": pack(offsets, "u4"),
    }


def _clipped(ring: Array, axis: int, bound: float, side: int) -> Array:
    """The part of a closed ring on one side of a bound (Sutherland and Hodgman, 1974)."""
    if len(ring) == 0:
        return ring
    after = np.roll(ring, -1, axis=0)
    inside = side * (ring[:, axis] - bound) >= 0
    crosses = inside != np.roll(inside, -1)
    width = after[:, axis] - ring[:, axis]
    share = np.divide(bound - ring[:, axis], width, out=np.zeros(len(ring)), where=crosses)
    crossing = ring + share[:, None] * (after - ring)
    both = np.stack([ring, crossing], axis=1)
    return both[np.column_stack([inside, crosses])]


@cache
def _outlines(name: str) -> list[Array]:
    """All rings of a TopoJSON file, ``(n, 2)`` in degrees."""
    file = resources.files("onlooker.explorer") / "land" / f"{name}.json.gz"
    data = json.loads(gzip.decompress(file.read_bytes()))
    scale, origin = data["transform"]["scale"], data["transform"]["translate"]
    arcs = [np.cumsum(arc, axis=0) * scale + origin for arc in data["arcs"]]
    rings = []
    for geometry in data["objects"]["land"]["geometries"]:
        for polygon in geometry["arcs"]:
            for ring in polygon:  # ~k: arc k backwards; each begins where the one before ends
                parts = [arcs[k] if k >= 0 else arcs[~k][::-1] for k in ring]
                rings.append(_unwrapped(np.concatenate([part[:-1] for part in parts])))
    return rings


def _unwrapped(ring: Array) -> Array:
    """A ring without jumps over the date line; one around the pole is closed along it."""
    steps = np.diff(ring[:, 0], append=ring[0, 0])
    turns = np.cumsum(-np.rint(steps / 360)) * 360
    ring = ring + np.column_stack([np.concatenate([[0], turns[:-1]]), np.zeros(len(ring))])
    if turns[-1] == 0:
        return ring
    pole = np.copysign(90.0, ring[:, 1].mean())
    closing = ring[0] + [turns[-1], 0.0]
    return np.vstack([ring, closing, [closing[0], pole], [ring[0, 0], pole]])
