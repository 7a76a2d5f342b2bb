"""Checks of where states are, and of distances given as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker import geography
from onlooker.checks import Array, as_array, finite_array, positive_number

_LARGEST = 1e150  # a coordinate beyond it has no square


@dataclass(frozen=True)
class ScaledAxes:
    """The Euclidean metric after each coordinate was multiplied by a factor of its own.

    Parameters
    ----------
    factors
        One for each coordinate, features included.
    """

    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        factors = tuple(np.asarray(self.factors).tolist())  # an array, where it was stored
        object.__setattr__(self, "factors", factors)
        for number, factor in enumerate(factors):
            positive_number(f"factors[{number}]", factor)

    def __call__(self, places: Array) -> Array:
        """Where they lie for the Euclidean metric."""
        if places.shape[1] != len(self.factors):
            raise ValueError(
                f"metric has {len(self.factors)} factors; states have {places.shape[1]} coordinates"
            )
        with np.errstate(over="ignore"):
            scaled = places * np.array(self.factors)
        refuse_overflow("metric, with its factors,", scaled)
        return scaled


def in_space(places: Array, metric: str) -> Array:
    """Longitude and latitude as points in space; further columns as further dimensions."""
    if places.shape[1] < 2 or (metric == "haversine" and places.shape[1] > 2):
        more = "; further columns need metric='chord'" if places.shape[1] > 2 else ""
        raise ValueError(
            f"metric {metric!r} is for longitude and latitude, but the states have "
            f"{places.shape[1]} column(s){more}"
        )
    return np.hstack([geography.in_space(places[:, :2]), places[:, 2:]])


def refuse_beyond(states: Array, n_states: int, what: str) -> None:
    """Refuse integer states without a row in a table."""
    if len(states) and states.max() >= n_states:
        where = int(np.argmax(states >= n_states))
        raise ValueError(
            f"state {states[where]} at index {where} has no row in {what} ({n_states} rows)"
        )


def refuse_overflow(name: str, coordinates: Array) -> None:
    """Refuse coordinates whose squares are no numbers."""
    if np.abs(coordinates).max(initial=0.0) > _LARGEST:
        where = int(np.argmax((np.abs(coordinates) > _LARGEST).any(axis=1)))
        raise ValueError(
            f"{name} holds {coordinates[where].tolist()} at index {where}, so far away that "
            "distances overflow; rescale it"
        )


def check_coordinates(coordinates: Any, states: Array) -> Array:
    """Return the positions of integer states as ``(S, d)`` floats."""
    table = as_array("coordinates", coordinates)
    table = finite_array("coordinates", table[:, None] if table.ndim == 1 else table, ndim=2)
    refuse_overflow("coordinates", table)
    if states.ndim == 2:
        raise ValueError("coordinates are for integer states; these states are vectors already")
    refuse_beyond(states, len(table), "coordinates")
    return table


def check_distances(metric: Any) -> Array:
    """Return a matrix of distances: square, symmetric, not negative, 0 on its diagonal."""
    matrix = finite_array("metric", metric, ndim=2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"metric must be a square matrix of distances, got {matrix.shape}")
    if (matrix < 0).any():
        i, j = (int(x) for x in np.argwhere(matrix < 0)[0])
        raise ValueError(f"metric[{i}, {j}] is negative; distances are not")
    own = np.diagonal(matrix)
    if own.any():
        i = int(np.argmax(own != 0))
        raise ValueError(
            f"metric[{i}, {i}] is {own[i]:g}; a state is at distance 0 from itself "
            "(distances are wanted, not similarities)"
        )
    if not np.allclose(matrix, matrix.T):
        i, j = (int(x) for x in np.argwhere(~np.isclose(matrix, matrix.T))[0])
        raise ValueError(f"metric[{i}, {j}] differs from metric[{j}, {i}]; distances are symmetric")
    return matrix
