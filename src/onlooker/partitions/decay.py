"""From distance to similarity: f(d) = (1 - offset) g(d) + offset."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from onlooker.checks import Array, positive_number
from onlooker.hyper import Prior, check_hyper


@dataclass(frozen=True)
class Decay:
    """A similarity that falls with distance, from 1 at 0 down to `offset`.

    Subclasses say what the decaying part ``g`` is, and where it may be cut off.

    Parameters
    ----------
    scale
        The distance at which similarity fades: a number fixes it, a prior infers it.
    offset
        The similarity that even the farthest states keep, from 0 up to (not including) 1: a
        number, or a prior, of which only the part below 1 counts.
    """

    scale: float | Prior = 1.0
    offset: float | Prior = 0.0

    def __post_init__(self) -> None:
        check_hyper("scale", self.scale)
        check_hyper("offset", self.offset, zero_ok=True)
        if isinstance(self.offset, Prior):
            if not np.isfinite(self.offset.logpdf(min(self.offset.mean, 0.5))):
                raise ValueError(f"offset is below 1; {self.offset} hardly is")
        elif self.offset >= 1:
            raise ValueError(f"offset must be below 1, got {self.offset}")

    @property
    def is_fixed(self) -> bool:
        """Whether scale and offset are numbers."""
        return not isinstance(self.scale, Prior) and not isinstance(self.offset, Prior)

    @property
    def known_scale(self) -> float:
        """The scale, refused while it is a prior."""
        return _number("scale", self.scale)

    @property
    def known_offset(self) -> float:
        """The offset, refused while it is a prior."""
        return _number("offset", self.offset)

    def at(self, scale: float, offset: float) -> Self:
        """The same shape with these numbers."""
        return replace(self, scale=scale, offset=offset)

    def g(self, distance: Array) -> Array:
        """The decaying part, from 1 at distance 0 towards 0."""
        raise NotImplementedError

    def log_g(self, distance: Array) -> Array:
        """``ln g``."""
        return np.log(self.g(distance))

    def log_g_sum(self, distance: Array) -> float:
        """``Σ ln g``."""
        return float(self.log_g(distance).sum())

    def radius(self, tolerance: float) -> float:
        """The distance beyond which ``g`` is below `tolerance`."""
        raise NotImplementedError

    def local(self, distance: Any) -> Array:
        """``(1 - offset) g(d)``: the part that needs neighbours."""
        with np.errstate(over="ignore"):  # beyond the largest float g is 0 all the same
            return (1 - self.known_offset) * self.g(np.asarray(distance, dtype=np.float64))

    def __call__(self, distance: Any) -> Array:
        """``f(d)``."""
        return self.local(distance) + self.known_offset

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
        return np.exp(self.log_g(distance))

    def log_g(self, distance: Array) -> Array:
        """``ln g``."""
        return -((distance / self.known_scale) ** 2)

    def log_g_sum(self, distance: Array) -> float:
        """``Σ ln g``."""
        return -float(distance @ distance) / self.known_scale**2

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        return self.known_scale * math.sqrt(-math.log(tolerance))


@dataclass(frozen=True)
class ExponentialDecay(Decay):
    """``g(d) = exp(-d / scale)``."""

    def g(self, distance: Array) -> Array:
        """The decaying part."""
        return np.exp(-distance / self.known_scale)

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        return -self.known_scale * math.log(tolerance)


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
        return self.known_scale * (1 + 1e-9)


@dataclass(frozen=True)
class LogisticDecay(Decay):
    """A soft window: 1/2 at about `scale`, falling over a range of `width`, 1 at 0."""

    width: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("width", self.width)

    def g(self, distance: Array) -> Array:
        """The decaying part, scaled so that ``g(0) = 1``."""
        edge = self.known_scale / self.width
        return (1 + math.exp(-edge)) / (1 + np.exp(np.minimum(distance / self.width - edge, 700)))

    def radius(self, tolerance: float) -> float:
        """Where ``g`` meets `tolerance`."""
        edge = self.known_scale / self.width
        return self.width * (edge + math.log((1 + math.exp(-edge)) / tolerance - 1))


def _number(name: str, value: float | Prior) -> float:
    """A parameter that is known; one that is to be inferred has no similarities yet."""
    if isinstance(value, int | float):  # looking for a prior takes far longer
        return value
    raise TypeError(f"the decay's {name} is to be inferred; decay.at(scale, offset) fixes it")
