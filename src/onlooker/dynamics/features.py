"""State features derived from tracks: position is often not the whole state.

A storm that moves west is likelier to go on west; where it goes depends on the season too. If such
things are part of the state, the partition prior can tell apart states at the same place:

>>> from onlooker.dynamics import DisplacementDynamics
>>> demos = [[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]]
>>> moving = DisplacementDynamics.compass(4)
>>> states, dynamics = with_features(demos, [Heading(weight=0.5)], moving)
>>> states.states
array([[0. , 0. , 0. , 0. ],
       [1. , 0. , 0.5, 0. ],
       [1. , 1. , 0. , 0.5]])

The dynamics still act on the position alone; features follow from the step that was made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError, as_array, positive_number
from onlooker.demonstrations import Demonstrations, as_states
from onlooker.dynamics.base import (
    Dynamics,
    TransitionLikelihood,
    Values,
    steps_between,
    unknown_parameters,
)
from onlooker.files import decode, encode
from onlooker.hyper import Prior

__all__ = [
    "Cycle",
    "Elapsed",
    "Feature",
    "FeatureDynamics",
    "Heading",
    "PreviousStep",
    "Speed",
    "day_of_year",
    "time_of_day",
    "with_features",
]

_DAY = 86_400.0
_YEAR = 365.2425 * _DAY
_OF_THE_DYNAMICS = (
    "misfit",
    "steps",
    "sigma",
    "angles",
    "bearings",
    "action_rings",
    "action_names",
)


@dataclass(frozen=True)
class Feature:
    """Something about a state besides its position, as columns of numbers.

    Parameters
    ----------
    weight
        How far a difference of 1 in the feature sets two states apart, in the unit of distances
        between positions (kilometres for ``metric="chord"``): the columns are multiplied by it.
    """

    weight: float

    def __post_init__(self) -> None:
        positive_number("weight", self.weight)

    needs_times = False

    @property
    def title(self) -> str:
        """What it is called."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    def in_words(self, columns: Array) -> tuple[str, Array]:
        """What a sentence calls it, and the values of its columns in its own unit."""
        return self.title, columns / self.weight

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """``(n, k)`` from the step that led to each state (0 for a first one) and its time."""
        raise NotImplementedError

    def advance(self, columns: Array, moves: Array, interval: float) -> Array:
        """The columns after one more step; here those of a feature that only the step decides."""
        return self.observe(moves, np.zeros(len(moves)), np.zeros(len(moves)))


@dataclass(frozen=True)
class Heading(Feature):
    """Direction of the last step, a unit vector; 0 if there was none: as far from all headings.

    Opposite headings are ``2 · weight`` apart.
    """

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """The unit vector."""
        length = np.linalg.norm(moves, axis=1, keepdims=True)
        return self.weight * moves / np.where(length > 0, length, 1.0)


@dataclass(frozen=True)
class Speed(Feature):
    """Length of the last step; 0 for a first state.

    Parameters
    ----------
    unit
        Of a logarithm, ``ln(1 + length / unit)``, so that what counts is how many times faster:
        what lies still, drifts and travels are as far from each other. None: the length itself.
    """

    unit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit is not None:
            positive_number("unit", self.unit)

    @property
    def title(self) -> str:
        """That it is a logarithm, where it is."""
        return "speed" if self.unit is None else "log speed"

    def in_words(self, columns: Array) -> tuple[str, Array]:
        """The length itself."""
        values = columns / self.weight
        return "speed", values if self.unit is None else self.unit * np.expm1(values)

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """The length, or its logarithm."""
        length = np.linalg.norm(moves, axis=1, keepdims=True)
        return self.weight * (length if self.unit is None else np.log1p(length / self.unit))


@dataclass(frozen=True)
class PreviousStep(Feature):
    """The last step itself, which stands for the last action; 0 for a first state."""

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """The step."""
        return self.weight * moves


@dataclass(frozen=True)
class Elapsed(Feature):
    """Time since the trajectory began: in the unit of its times, seconds for dates; else steps."""

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """The time since the beginning."""
        return self.weight * elapsed[:, None]

    def advance(self, columns: Array, moves: Array, interval: float) -> Array:
        """One interval later."""
        return columns + self.weight * interval


@dataclass(frozen=True)
class Cycle(Feature):
    """Phase of a cycle, as a point on a circle: opposite phases are ``2 · weight`` apart.

    Parameters
    ----------
    period
        Length of the cycle in the unit of the times; seconds for dates.
    """

    period: float

    needs_times = True

    @property
    def title(self) -> str:
        """The cycle by its length, where it is that of a day or a year."""
        return {_DAY: "time of day", _YEAR: "day of year"}.get(self.period, super().title)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("period", self.period)

    def observe(self, moves: Array, times: Array, elapsed: Array) -> Array:
        """Cosine and sine of the phase."""
        phase = 2 * np.pi * (times / self.period % 1)
        return self.weight * np.column_stack([np.cos(phase), np.sin(phase)])

    def advance(self, columns: Array, moves: Array, interval: float) -> Array:
        """The circle turned by one interval."""
        turn = 2 * np.pi * interval / self.period
        cos, sin = np.cos(turn), np.sin(turn)
        return columns @ np.array([[cos, sin], [-sin, cos]])


_FEATURES = {kind.__name__: kind for kind in (Heading, Speed, PreviousStep, Elapsed, Cycle)}


def time_of_day(weight: float) -> Cycle:
    """Hour of the day (UTC) of tracks with dates, or with times in seconds from a midnight."""
    return Cycle(weight, _DAY)


def day_of_year(weight: float) -> Cycle:
    """Season of tracks with dates, or with times in seconds from a New Year."""
    return Cycle(weight, _YEAR)


class FeatureDynamics:
    """Dynamics of positions, for states that are positions followed by features.

    The likelihood is that of the positions: features follow from the step, so they cost nothing
    and tell nothing. `sample` moves the position, then brings the features up to date.

    Parameters
    ----------
    dynamics
        How positions move. Where it has ``displacements``, these are the steps of the features.
    features
        What follows the position, in this order.
    n_dims
        Dimension of the position.
    interval
        Time that one step takes.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        features: Sequence[Feature],
        n_dims: int,
        interval: float = 1.0,
    ) -> None:
        self.dynamics = dynamics
        self.features = tuple(features)
        self.n_position = n_dims
        self.interval = positive_number("interval", interval)
        empty = np.zeros((1, n_dims))
        widths = [f.observe(empty, np.zeros(1), np.zeros(1)).shape[1] for f in self.features]
        ends = np.cumsum([n_dims, *widths])
        self._columns = [slice(a, b) for a, b in pairwise(ends)]
        self.n_dims = int(ends[-1])

    def __getattr__(self, name: str) -> Any:
        if name in _OF_THE_DYNAMICS:  # what the actions are like
            return getattr(self.dynamics, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return self.dynamics.n_actions

    @property
    def parameters(self) -> dict[str, Prior]:
        """What is unknown about how positions move."""
        return unknown_parameters(self.dynamics)

    def at(self, values: Values) -> FeatureDynamics:
        """The dynamics with known parameters."""
        known: Any = self.dynamics
        return FeatureDynamics(known.at(values), self.features, self.n_position, self.interval)

    def transition_likelihood(self, states: Any, next_states: Any) -> TransitionLikelihood:
        """The likelihood of transitions as a function of the parameters."""
        from onlooker.dynamics.unknown import likelihood_of

        before, after = self.positions(states), self.positions(next_states, "next_states")
        return likelihood_of(self.dynamics, before, after)

    def __repr__(self) -> str:
        names = ", ".join(type(feature).__name__ for feature in self.features)
        return f"FeatureDynamics({self.dynamics!r}, {names})"

    def positions(self, states: Any, name: str = "states") -> Array:
        """The position of each state; `name` is for the message of an error."""
        return self._check(name, states)[:, : self.n_position]

    def _check(self, name: str, states: Any) -> Array:
        array = as_states(states, name)
        if array.ndim != 2 or array.shape[1] != self.n_dims:
            raise ValueError(
                f"{name} must be (n, {self.n_dims}), {self.n_position} of position and "
                f"{self.n_dims - self.n_position} of features, got shape {array.shape}; "
                "`join` puts both together"
            )
        return array

    @property
    def parts(self) -> list[tuple[Feature, slice]]:
        """Each feature, and where it is in a state."""
        return list(zip(self.features, self._columns, strict=True))

    @property
    def feature_names(self) -> list[str]:
        """What each number of a state after its position is called."""
        names = []
        for feature, where in self.parts:
            name = feature.title
            width = where.stop - where.start
            names += [name] if width == 1 else [f"{name} {i + 1}" for i in range(width)]
        return names

    def columns_of(self, kind: type[Feature]) -> slice | None:
        """Where in a state the first feature of this kind is; None: there is none."""
        for feature, where in self.parts:
            if isinstance(feature, kind):
                return where
        return None

    def join(
        self, positions: Any, moves: Any = None, times: Any = None, elapsed: Any = None
    ) -> Array:
        """States at `positions`: with the step that led there, its time, and the time since.

        What is left out is 0: no step, the beginning of time, a trajectory that just begins.
        """
        positions = as_states(positions, "positions")
        n = len(positions)
        moves = np.zeros((n, self.n_position)) if moves is None else as_array("moves", moves)
        seconds = np.zeros(n) if times is None else _numbers(as_array("times", times))
        since = np.zeros(n) if elapsed is None else as_array("elapsed", elapsed)
        for name, values, shape in (
            ("positions", positions, (n, self.n_position)),
            ("moves", moves, (n, self.n_position)),
            ("times", seconds, (n,)),
            ("elapsed", since, (n,)),
        ):
            if values.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {values.shape}")
        columns = [feature.observe(moves, seconds, since) for feature in self.features]
        return np.hstack([positions, *columns])

    def log_likelihood(self, states: Any, next_states: Any) -> Array:
        """``ln T(x' | x, j)`` of the positions x, as ``(n, A)``."""
        return self.dynamics.log_likelihood(
            self.positions(states), self.positions(next_states, "next_states")
        )

    def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array:
        """Draw the next positions, and bring the features up to date."""
        states = self._check("states", states)
        before = states[:, : self.n_position]
        after = self.dynamics.sample(before, actions, rng)
        moves = steps_between(self.dynamics, before, after)
        columns = [
            feature.advance(states[:, where], moves, self.interval) for feature, where in self.parts
        ]
        return np.hstack([after, *columns])

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """JSON and arrays that `from_arrays` rebuilds the dynamics from."""
        from onlooker.dynamics.codec import encode_dynamics

        arrays: dict[str, Array] = {}
        inner = encode_dynamics(self.dynamics, arrays, name)
        features = [encode(feature, name, arrays, _FEATURES) for feature in self.features]
        if any("opaque" in part for part in (inner, *features)):
            return None
        return {
            "class": type(self).__name__,
            "dynamics": inner,
            "features": features,
            "n_dims": self.n_position,
            "interval": self.interval,
        }, arrays

    @classmethod
    def from_arrays(
        cls, description: dict[str, Any], arrays: dict[str, Array], name: str
    ) -> FeatureDynamics:
        """Undo `to_arrays`."""
        from onlooker.dynamics.codec import decode_part

        inner = decode_part(description["dynamics"], arrays, name)
        features = [decode(feature, arrays, _FEATURES) for feature in description["features"]]
        return cls(inner, features, description["n_dims"], description["interval"])


def with_features(
    demos: Demonstrations | Any, features: Sequence[Feature], dynamics: Dynamics
) -> tuple[Demonstrations, FeatureDynamics]:
    """Append features to the states of tracks; returns these and the dynamics that go with them.

    Parameters
    ----------
    demos
        Tracks of positions, with `times` where a feature needs them. In simulations of the
        dynamics one step takes their median interval.
    features
        What to append, such as ``[Heading(5.0), day_of_year(2.0)]``.
    dynamics
        How positions move.
    """
    demos = Demonstrations(demos)
    if demos.is_discrete:
        raise ValueError("features are for states that are positions; these are integers")
    if demos.has_unseen:
        raise SettingError(
            "features need every position of a track, and some were not seen: leave the features "
            "out, or choose ",
            Setting("missing", ("interpolate", "split")),
        )
    features = list(features)
    for number, feature in enumerate(features):
        if not isinstance(feature, Feature):
            raise TypeError(
                f"features[{number}] must be a Feature such as Heading(weight), got {feature!r}"
            )
        if feature.needs_times and demos.times is None:
            raise ValueError(
                f"features[{number}], {feature!r}, needs the times of the states: give "
                "Demonstrations(..., times=...), or the time column when reading them"
            )
    starts, first = demos.transition_starts(), demos.offsets[:-1]
    moves = np.zeros(demos.states.shape)
    moves[starts + 1] = steps_between(dynamics, *demos.transitions())
    number = np.arange(len(demos.states)) - np.repeat(first, demos.lengths)
    times = number.astype(np.float64) if demos.times is None else _numbers(demos.times)
    wrapped = FeatureDynamics(
        dynamics, features, demos.n_dims, float(np.median(times[starts + 1] - times[starts]))
    )
    elapsed = times - np.repeat(times[first], demos.lengths)
    states = wrapped.join(demos.states, moves, times, elapsed)
    return demos.with_states(as_states(states, "states with features")), wrapped


def _numbers(times: Array) -> Array:
    """Dates and durations in seconds (dates from 1970 on); numbers as they are."""
    if times.dtype.kind in "mM":
        whole = times.astype(f"{times.dtype.kind}8[us]").astype(np.int64)
        return whole / 1e6
    return times.astype(np.float64)
