"""The uniform and the mixing prior, bound to a problem."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from onlooker.checks import Array, stored_array
from onlooker.gibbs.arrays import make_slots
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import Nothing, State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.partitions.base import Bound, Hyper, Start, refuse_clusters, require_slots
from onlooker.partitions.finite.state import Mixture
from onlooker.partitions.indicators import Conditional, draw_indicators, make_conditional
from onlooker.problem import Layout


def uniform_labels(n_clusters: int, n_nodes: int, rng: np.random.Generator) -> Array:
    """Labels drawn uniformly."""
    return rng.integers(n_clusters, size=n_nodes, dtype=np.int32)


class BoundUniform(Bound[Nothing]):
    """Every labeling is equally likely."""

    def __init__(self, layout: Layout, n_clusters: int) -> None:
        refuse_clusters(n_clusters, layout.problem.n_actions)
        self.layout = layout
        self.n_clusters = n_clusters

    def start(self, rng: np.random.Generator, chain: int) -> Start[Nothing]:
        """Labels are uniform."""
        labels = uniform_labels(self.n_clusters, self.layout.n_nodes, rng)
        return Start(labels, make_slots(self.n_clusters, self.n_clusters), Nothing(), {})

    def updates(self, collapsed: bool) -> list[Update[Nothing]]:
        """The indicators."""
        return [UniformIndicators(make_conditional(log_weight=np.zeros(self.n_clusters)))]

    def log_prior(self, state: State[Nothing]) -> float:
        """``-N ln K``."""
        return -self.layout.n_nodes * float(np.log(self.n_clusters))

    def check(self, state: State[Nothing]) -> None:
        """K slots."""
        require_slots(state, self.n_clusters)


class UniformIndicators(Update[Nothing]):
    """``p(z_i = k | z_-i)`` is constant."""

    name = "indicators"

    def __init__(self, conditional: Conditional) -> None:
        self.conditional = conditional

    def __call__(self, state: State[Nothing]) -> Info:
        """Draw every indicator."""
        return {"moved": draw_indicators(state, self.conditional)}


class BoundMixing(Bound[Mixture]):
    """The finite mixture."""

    def __init__(self, layout: Layout, n_clusters: int, gamma: Hyper, collapsed: bool) -> None:
        refuse_clusters(n_clusters, layout.problem.n_actions)
        self.layout = layout
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.collapsed = collapsed

    def start(self, rng: np.random.Generator, chain: int) -> Start[Mixture]:
        """Labels are uniform."""
        labels = uniform_labels(self.n_clusters, self.layout.n_nodes, rng)
        gamma = start_of(self.gamma)
        weights = np.zeros(0)
        if not self.collapsed:
            sizes = np.bincount(labels, minlength=self.n_clusters)
            weights = draw_weights(sizes, gamma, rng)
        slots = make_slots(self.n_clusters, self.n_clusters)
        return Start(labels, slots, Mixture(weights), {"gamma": gamma})

    def updates(self, collapsed: bool) -> list[Update[Mixture]]:
        """The indicators, γ, then the mixing weights."""
        updates: list[Update[Mixture]] = [MixingIndicators(self.n_clusters)]
        if isinstance(self.gamma, Prior):
            updates.append(MixingConcentration(self.gamma))
        if not self.collapsed:
            updates.append(MixingWeights())
        return updates

    def log_prior(self, state: State[Mixture]) -> float:
        """``ln p(z | γ)``, the mixing weights integrated out."""
        return log_labels(state.hyper["gamma"], state.counts.size)

    def check(self, state: State[Mixture]) -> None:
        """K slots, and weights that sum to 1 where they are drawn."""
        require_slots(state, self.n_clusters)
        weights = state.partition.weights
        stored_array("weights", weights, np.float64, (0 if self.collapsed else self.n_clusters,), 0)
        if not self.collapsed and abs(weights.sum() - 1) > 1e-6:
            raise ValueError("weights must sum to 1")


class MixingIndicators(Update[Mixture]):
    """``p(z_i = k | z_-i)`` is ``q_k``, or ``∝ ζ_k + γ/K`` with ``q`` integrated out."""

    name = "indicators"

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters
        self._gamma = math.nan
        self._counting = make_conditional()

    def __call__(self, state: State[Mixture]) -> Info:
        """Draw every indicator."""
        weights, gamma = state.partition.weights, state.hyper["gamma"]
        if len(weights):
            with np.errstate(divide="ignore"):
                prior = make_conditional(log_weight=np.log(weights))
            return {"moved": draw_indicators(state, prior)}
        if gamma != self._gamma:
            n = np.arange(len(state.labels) + 1)
            self._gamma = gamma
            self._counting = make_conditional(log_count=np.log(n + gamma / self.n_clusters))
        return {"moved": draw_indicators(state, self._counting)}


class MixingConcentration(Update[Mixture]):
    """γ given the labels, by slice sampling, with ``q`` integrated out."""

    name = "gamma"

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def __call__(self, state: State[Mixture]) -> Info:
        """Draw γ."""
        state.hyper["gamma"] = slice_sample_log(
            lambda gamma: log_labels(gamma, state.counts.size) + self.prior.logpdf(gamma),
            state.hyper["gamma"],
            state.rng,
        )
        return NO_INFO


class MixingWeights(Update[Mixture]):
    """``q ~ Dir(ζ + γ/K)``."""

    name = "weights"

    def __call__(self, state: State[Mixture]) -> Info:
        """Draw q."""
        weights = draw_weights(state.counts.size, state.hyper["gamma"], state.rng)
        state.partition = Mixture(weights)
        return NO_INFO


def draw_weights(sizes: Array, gamma: float, rng: np.random.Generator) -> Array:
    """``q ~ Dir(ζ + γ/K)``."""
    return np.asarray(rng.dirichlet(sizes + gamma / len(sizes)))


def log_labels(gamma: float, size: Array) -> float:
    """``ln p(z | γ)``, the mixing weights integrated out."""
    share = gamma / len(size)
    return float(
        gammaln(gamma)
        - gammaln(gamma + size.sum())
        + np.sum(gammaln(size + share) - gammaln(share))
    )
