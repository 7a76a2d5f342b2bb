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


@dataclass(frozen=True)
class TotalMass:
    """A prior of the sum of a Dirichlet's parameters, ``Aα``, however many they are."""

    prior: Prior

    def __post_init__(self) -> None:
        if isinstance(self.prior, type) or not isinstance(self.prior, Prior):
            raise TypeError(
                f"TotalMass takes a prior such as Exponential(1.0), got {self.prior!r}; a number "
                "is given as concentration=mass / n_actions"
            )

    def over(self, n: int) -> Prior:
        """The prior of one of `n` equal parameters."""
        return Scaled(self.prior, 1 / n)


@dataclass(frozen=True)
class Scaled:
    """The prior of a number times a constant."""

    prior: Prior
    factor: float

    @property
    def mean(self) -> float:
        """Expectation."""
        return self.factor * self.prior.mean

    def logpdf(self, value: float) -> float:
        """Log density."""
        return self.prior.logpdf(value / self.factor) - math.log(self.factor)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return self.factor * self.prior.sample(rng)


def closed_form(prior: Prior) -> tuple[float, float, float, float] | None:
    """``(a, b, low, high)`` of a density ``∝ x^a e^(-bx)`` between low and high; None of others."""
    if type(prior) not in (Exponential, Gamma, LogUniform, Scaled):
        return None  # a subclass may have a density of its own
    match prior:
        case Exponential(mean):
            return 0.0, 1 / mean, 0.0, math.inf
        case Gamma(shape, rate):
            return shape - 1, rate, 0.0, math.inf
        case LogUniform(low, high):
            return -1.0, 0.0, low, high
        case Scaled(inner, factor):
            form = closed_form(inner)
            if form is not None:
                return form[0], form[1] / factor, form[2] * factor, form[3] * factor
    return None


PRIORS = {prior.__name__: prior for prior in (Exponential, Gamma, LogUniform, Beta)}
"""What a stored run may name."""

CONCENTRATION = TotalMass(Exponential(1.0))
"""A prior of the controllers' concentration for when nothing is known of the expert."""


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
