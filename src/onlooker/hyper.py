"""Priors of hyper-parameters: a number fixes one, a prior infers it.

>>> Gamma(shape=2.0, rate=4.0).mean
0.5
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onlooker.checks import positive_number


@runtime_checkable
class Prior(Protocol):
    """The density of a positive hyper-parameter."""

    @property
    def mean(self) -> float:
        """Its expectation, where chains start unless told otherwise."""

    def logpdf(self, value: float) -> float:
        """Log density; ``-inf`` outside the support."""

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""


@dataclass(frozen=True)
class Exponential:
    """Exponential with the given *mean* (not rate)."""

    mean: float

    def __post_init__(self) -> None:
        positive_number("mean", self.mean)

    def logpdf(self, value: float) -> float:
        """Log density."""
        return -math.log(self.mean) - value / self.mean if value >= 0 else -math.inf

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.exponential(self.mean))


@dataclass(frozen=True)
class Gamma:
    """Gamma with a shape and a *rate*: mean ``shape / rate``."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        positive_number("shape", self.shape)
        positive_number("rate", self.rate)

    @property
    def mean(self) -> float:
        """Expectation."""
        return self.shape / self.rate

    def logpdf(self, value: float) -> float:
        """Log density."""
        if value <= 0:
            return -math.inf
        return (
            self.shape * math.log(self.rate)
            - math.lgamma(self.shape)
            + (self.shape - 1) * math.log(value)
            - self.rate * value
        )

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.gamma(self.shape, 1 / self.rate))


@dataclass(frozen=True)
class LogUniform:
    """Uniform in the logarithm, between `low` and `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        positive_number("low", self.low)
        positive_number("high", self.high)
        if math.log(self.low) >= math.log(self.high):
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")

    @property
    def mean(self) -> float:
        """Expectation."""
        return (self.high - self.low) / (math.log(self.high) - math.log(self.low))

    def logpdf(self, value: float) -> float:
        """Log density."""
        if not self.low <= value <= self.high:
            return -math.inf
        return -math.log(value) - math.log(math.log(self.high) - math.log(self.low))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return min(max(value, self.low), self.high)  # rounding must not leave the support


@dataclass(frozen=True)
class Beta:
    """Beta: for a probability, with mean ``a / (a + b)``."""

    a: float
    b: float

    def __post_init__(self) -> None:
        positive_number("a", self.a)
        positive_number("b", self.b)

    @property
    def mean(self) -> float:
        """Expectation."""
        return self.a / (self.a + self.b)

    def logpdf(self, value: float) -> float:
        """Log density."""
        if not 0 < value < 1:
            return -math.inf
        return (
            math.lgamma(self.a + self.b)
            - math.lgamma(self.a)
            - math.lgamma(self.b)
            + (self.a - 1) * math.log(value)
            + (self.b - 1) * math.log1p(-value)
        )

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.beta(self.a, self.b))


PRIORS = {prior.__name__: prior for prior in (Exponential, Gamma, LogUniform, Beta)}
"""What a stored run may name."""

CONCENTRATION = LogUniform(0.25, 10.0)
"""A prior of α for when nothing is known of the expert.

Its lower end matters where every state is seen once. There, a controller that draws its actions at
random and a mosaic of regions, each with one action, explain the same steps equally well; a
smaller α prefers the mosaic.
"""


def check_hyper(name: str, value: Any, *, zero_ok: bool = False) -> None:
    """Refuse what is neither a positive number nor a prior."""
    if isinstance(value, type) or not isinstance(value, Prior | numbers.Real):
        what = value.__name__ if isinstance(value, type) else type(value).__name__
        raise TypeError(
            f"{name} must be a number or a prior such as Gamma(2.0, 1.0) of onlooker.hyper, "
            f"got {what}"
        )
    if not isinstance(value, Prior):
        positive_number(name, value, zero_ok=zero_ok)
