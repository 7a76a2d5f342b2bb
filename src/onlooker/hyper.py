"""Priors of hyper-parameters: a number fixes one, a prior infers it.

>>> Gamma(shape=2.0, rate=4.0).mean
0.5
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onlooker.checks import finite_array, positive_integer, positive_number


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


_MOST_COMPONENTS = 100
_TAIL = 0.005  # of a prior without bounds, left out at either end of its grid


@dataclass(frozen=True)
class DirichletMixture:
    """Controllers that differ in concentration: ``θ ~ Σ_g w_g Dir(α_g · 1)``.

    Parameters
    ----------
    alphas
        The concentrations that a controller may have: small ones for those that nearly always
        play the same action, large ones for those that play all of them.
    weights
        How likely each of them is beforehand; rescaled to sum to 1. By default all are alike.
    """

    alphas: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        alphas = finite_array("alphas", self.alphas, ndim=1)
        if not 2 <= len(alphas) <= _MOST_COMPONENTS:
            raise ValueError(
                f"alphas must hold 2 to {_MOST_COMPONENTS} concentrations, got {len(alphas)}; "
                "a number instead of a mixture gives all controllers the same one"
            )
        if self.weights is None:
            weights = np.ones(len(alphas))
        else:
            weights = finite_array("weights", self.weights, ndim=1)
        if len(weights) != len(alphas):
            raise ValueError(
                f"weights must be as many as alphas, got {len(weights)} and {len(alphas)}"
            )
        for name, values in (("alphas", alphas), ("weights", weights)):
            for index, value in enumerate(values):
                positive_number(f"{name}[{index}]", value)
        # arrays are what a store gives back
        object.__setattr__(self, "alphas", tuple(alphas.tolist()))
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))


@dataclass(frozen=True)
class PerController:
    """Each controller has a concentration of its own, with this prior.

    Deterministic and stochastic controllers then live side by side. The prior is discretised:
    `n` values at equal distances in ``ln α``, weighed by its density there. They lie between the
    bounds of a `LogUniform`, else within the central 99 % of the prior.

    >>> PerController(LogUniform(0.01, 10.0), n=4).mixture.alphas
    (0.01, 0.1, 1.0, 10.0)
    """

    prior: Prior = LogUniform(0.02, 10.0)
    n: int = 6

    def __post_init__(self) -> None:
        if isinstance(self.prior, type) or not isinstance(self.prior, Prior):
            raise TypeError(
                f"prior must be a prior such as LogUniform(0.02, 10.0), got {self.prior!r}; "
                "for concentrations of your own choice use DirichletMixture"
            )
        n = positive_integer("n", self.n, minimum=2)
        if n > _MOST_COMPONENTS:
            raise ValueError(f"n must be at most {_MOST_COMPONENTS}, got {n}")

    @cached_property
    def mixture(self) -> DirichletMixture:
        """The mixture of Dirichlet distributions that this stands for."""
        low, high = _range_of(self.prior)
        alphas = np.geomspace(low, high, self.n)
        log_weights = _log_density_of_log(self.prior, alphas)
        weights = np.exp(log_weights - log_weights.max())
        return DirichletMixture(tuple(alphas.tolist()), tuple(weights.tolist()))


Concentration = float | Prior | DirichletMixture | PerController
"""What the controllers' α may be: one for all, fixed or inferred, or one for each."""


def mixture_of(concentration: Concentration) -> DirichletMixture | None:
    """The mixture that a concentration stands for; None if all controllers share one value."""
    if isinstance(concentration, PerController):
        return concentration.mixture
    return concentration if isinstance(concentration, DirichletMixture) else None


def _log_density_of_log(prior: Prior, values: Any) -> Any:
    """``ln p(ln x) = ln p(x) + ln x``."""
    return np.array([prior.logpdf(float(value)) + math.log(value) for value in values])


def _range_of(prior: Prior) -> tuple[float, float]:
    """Between which values nearly all of a prior lies."""
    if isinstance(prior, LogUniform):
        return prior.low, prior.high
    values = np.geomspace(1e-12, 1e12, 4801)
    log_density = _log_density_of_log(prior, values)
    mass = np.cumsum(np.exp(log_density - max(log_density.max(), -1e300)))
    low, high = np.searchsorted(mass / max(mass[-1], 1e-300), [_TAIL, 1 - _TAIL])
    if low >= high:
        raise ValueError(
            f"{prior!r} does not spread over several values between 1e-12 and 1e12; "
            "use a number, or a wider prior"
        )
    return float(values[low]), float(values[high])


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
