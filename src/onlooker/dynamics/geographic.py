"""Steps over the Earth, from longitude and latitude."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker import geography
from onlooker.checks import Array
from onlooker.dynamics.displacement import DisplacementDynamics
from onlooker.hyper import Prior


class GeographicDynamics(DisplacementDynamics):
    """Steps in kilometres east and north, for states that are longitude and latitude in degrees.

    A step is laid out in the tangent plane of the state where it starts: its length is that of
    the great circle, its direction the initial bearing. So a step north is as long anywhere, and
    the date line and the poles can be crossed. `sample` returns longitudes from -180 up to
    180.

    The densities of `log_likelihood` are per km² of that tangent plane. The area of the sphere
    itself differs by a factor (``sin(c) / c`` for a step over the angle c: 0.1 % at 500 km) that
    is the same for all actions, so no policy depends on it.

    Parameters
    ----------
    steps
        ``(A, 2)``: km to the east and to the north.
    sigma, step
        Noise in km, and a length that multiplies the steps, as `DisplacementDynamics` takes them.

    Examples
    --------
    >>> dynamics = GeographicDynamics.compass(4, step=111.0, sigma=20.0)
    >>> dynamics.log_likelihood([[179.5, 0.0]], [[-179.5, 0.0]]).argmax()  # over the date line
    np.int64(0)
    """

    def __init__(self, steps: Any, sigma: Any, step: float | Prior = 1.0) -> None:
        super().__init__(steps, sigma, step)
        if self.n_dims != 2:
            raise ValueError(
                f"steps must be (A, 2), km to the east and north, got shape {self.steps.shape}"
            )

    def _check(self, name: str, states: Any) -> Array:
        return geography.check_places(name, super()._check(name, states))

    @staticmethod
    def displacements(states: Array, next_states: Array) -> Array:
        """Km to the east and north of each step, ``(n, 2)``."""
        return geography.displacements(states, next_states)

    @staticmethod
    def destinations(states: Array, moves: Array) -> Array:
        """Where each place gets by a step."""
        return geography.destinations(states, moves)

    @property
    def bearings(self) -> Array:
        """Direction of every action in degrees, clockwise from north."""
        return np.degrees(np.arctan2(self.steps[:, 0], self.steps[:, 1])) % 360
