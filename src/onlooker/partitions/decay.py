"""From distance to similarity: f(d) = (1 - offset) g(d) + offset."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from onlooker._validation import Array, positive_number


@dataclass(frozen=True)
class Decay:
    """A similarity that falls with distance, from 1 at 0 down to `offset`.

    Subclasses say what the decaying part ``g`` is, and where it may be cut off.

    Parameters
    ----------
    scale
        The distance at which similarity fades.
    offset
        The similarity that even the farthest states keep, from 0 up to (not including) 1.
    """

    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        positive_number("scale", self.scale)
        if positive_number("offset", self.offset, zero_ok=True) >= 1:
            raise ValueError(f"offset must be below 1, got {self.offset}")

    def g(self, distance: Array) -> Array:
        """The decaying part, from 1 at distance 0 towards 0."""
        raise NotImplementedError

    def radius(self, tolerance: float) -> float:
        """The distance beyond which ``g`` is below `tolerance`."""
        raise NotImplementedError

    def local(self, distance: Any) -> Array:
        """``(1 - offset) g(d)``: the part that needs neighbours."""
        with np.errstate(over="ignore"):  # beyond the largest float g is 0 all the same
            return (1 - self.offset) * self.g(np.asarray(distance, dtype=np.float64))

    def __call__(self, distance: Any) -> Array:
        """``f(d)``."""
        return self.local(distance) + self.offset

    # scikit-learn's way of reaching nested parameters, e.g. `partition__decay__scale`

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def set_params(self, **params: Any) -> Self:
        """Return a copy with other parameters (decays do not change)."""
        for name in params:
            if name not in self.__dataclass_fields__:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; "
                    f"it has {', '.join(self.__dataclass_fields__)}"
                )
        return replace(self, **params)


@dataclass(frozen=True)
class GaussianDecay(Decay):
    """``g(d) = exp(-d² / scale²)``: note that there is no factor 2."""

    def g(self, distance: Array) -> Array:
        """The decaying part."""
        return np.exp(-((distance / self.scale) ** 2))

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        return self.scale * math.sqrt(-math.log(tolerance))


@dataclass(frozen=True)
class ExponentialDecay(Decay):
    """``g(d) = exp(-d / scale)``."""

    def g(self, distance: Array) -> Array:
        """The decaying part."""
        return np.exp(-distance / self.scale)

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        return -self.scale * math.log(tolerance)


@dataclass(frozen=True)
class WindowDecay(Decay):
    """``g(d) = 1`` up to `scale`, 0 beyond.

    Rounding is forgiven: on a grid of step 0.1, neighbours are 0.1 apart whatever the last bit.
    """

    def g(self, distance: Array) -> Array:
        """The decaying part."""
        return (distance <= self.radius(0.0)).astype(np.float64)

    def radius(self, tolerance: float) -> float:
        """The edge of the window."""
        return self.scale * (1 + 1e-9)


@dataclass(frozen=True)
class LogisticDecay(Decay):
    """A soft window: 1/2 at about `scale`, falling over a range of `width`, 1 at 0."""

    width: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("width", self.width)

    def g(self, distance: Array) -> Array:
        """The decaying part, scaled so that ``g(0) = 1``."""
        edge = self.scale / self.width
        return (1 + math.exp(-edge)) / (1 + np.exp(np.minimum(distance / self.width - edge, 700)))

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        edge = self.scale / self.width
        return self.width * (edge + math.log((1 + math.exp(-edge)) / tolerance - 1))
