"""Longitude and latitude: distances, displacements and destinations on a sphere.

Places are ``(n, 2)`` arrays of longitude and latitude in degrees, in this order (x before y);
lengths are in kilometres on a sphere of the Earth's mean radius, which is within 0.6 % of the
ellipsoid. Longitudes are angles: they may run over 180° either way, across the date line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array, finite_array

EARTH_RADIUS = 6371.0088
"""Mean radius of the Earth in km."""


def check_places(name: str, places: Any) -> Array:
    """Return `places` as ``(n, 2)`` floats with latitudes between -90 and 90."""
    array = finite_array(name, places, ndim=2)
    if array.shape[1] != 2:
        raise ValueError(
            f"{name} must be (n, 2): longitude and latitude in degrees, got shape {array.shape}"
        )
    bad = np.abs(array[:, 1]) > 90
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"{name} holds the latitude {array[where, 1]:g} at index {where}; give longitude "
            "first, then latitude between -90 and 90, both in degrees"
        )
    return array


def displacements(start: Any, end: Any) -> Array:
    """How far east and north of `start` lies `end`, ``(n, 2)`` in km.

    The great circle between the two, laid down in the tangent plane of `start` with its length
    and its initial bearing (the azimuthal equidistant projection; the sphere's logarithm). At a
    pole, north is the way on along the meridian of the given longitude.
    """
    start, end = check_places("start", start), check_places("end", end)
    lat, lat2 = np.radians(start[:, 1]), np.radians(end[:, 1])
    lon = np.radians(_wrapped(end[:, 0] - start[:, 0]))
    # `end` in the frame (east, north, up) of `start`; no difference of near numbers
    bulge = 2 * np.cos(lat2) * np.sin(lon / 2) ** 2
    east = np.cos(lat2) * np.sin(lon)
    north = np.sin(lat2 - lat) + np.sin(lat) * bulge
    up = np.cos(lat2 - lat) - np.cos(lat) * bulge
    level = np.hypot(east, north)
    angle = np.arctan2(level, up)
    stretch = np.divide(angle, level, out=np.ones_like(level), where=level > 0)
    return EARTH_RADIUS * stretch[:, None] * np.column_stack([east, north])


def destinations(places: Any, moves: Any) -> Array:
    """Where one gets from `places` by `moves`, km east and north: undoes `displacements`."""
    places, moves = check_places("places", places), finite_array("moves", moves, ndim=2)
    if moves.shape != places.shape:
        raise ValueError(f"moves must be (n, 2) like places {places.shape}, got {moves.shape}")
    lat = np.radians(places[:, 1])
    angle = np.hypot(moves[:, 0], moves[:, 1]) / EARTH_RADIUS
    level = np.sinc(angle / np.pi)[:, None] * moves / EARTH_RADIUS  # sin(c)/c, 1 at 0
    up = np.cos(angle)
    outward = up * np.cos(lat) - level[:, 1] * np.sin(lat)
    north = up * np.sin(lat) + level[:, 1] * np.cos(lat)
    lon = places[:, 0] + np.degrees(np.arctan2(level[:, 0], outward))
    return np.column_stack(
        [_wrapped(lon), np.degrees(np.arctan2(north, np.hypot(outward, level[:, 0])))]
    )


def in_space(places: Any) -> Array:
    """Places as points of the sphere in space, ``(n, 3)`` in km: straight lines are chords."""
    lon, lat = np.radians(check_places("places", places)).T
    level = np.cos(lat)
    return EARTH_RADIUS * np.column_stack([level * np.cos(lon), level * np.sin(lon), np.sin(lat)])


def arc_of(chord: Any) -> Array:
    """Length along the sphere of a straight line through it, both in km."""
    half = np.minimum(np.asarray(chord) / (2 * EARTH_RADIUS), 1.0)
    return 2 * EARTH_RADIUS * np.arcsin(half)


def chord_of(arc: Any) -> Array:
    """Length of the straight line below an arc, both in km; at most the diameter."""
    quarter = np.minimum(np.asarray(arc) / (2 * EARTH_RADIUS), np.pi / 2)
    return 2 * EARTH_RADIUS * np.sin(quarter)


def _wrapped(lon: Array) -> Array:
    wrapped = (lon + 180) % 360 - 180
    return np.where(wrapped >= 180, -180.0, wrapped)  # rounding of tiny negatives
