"""The Chinese restaurant process, bound to a problem."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from onlooker.checks import Array
from onlooker.gibbs.arrays import make_slots
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import Nothing, State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.partitions.base import Bound, Hyper, Start
from onlooker.partitions.indicators import draw_indicators, make_conditional
from onlooker.problem import Layout

_N_START = 8  # clusters that chains start with, at most


class BoundRestaurant(Bound[Nothing]):
    """As many clusters as it takes."""

    def __init__(self, layout: Layout, gamma: Hyper) -> None:
        self.layout = layout
        self.gamma = gamma

    def start(self, rng: np.random.Generator, chain: int) -> Start[Nothing]:
        """Labels are uniform over a few clusters."""
        n_start = min(_N_START, self.layout.n_nodes)
        drawn = rng.integers(n_start, size=self.layout.n_nodes)
        labels = np.unique(drawn, return_inverse=True)[1]  # no empty cluster is in use
        slots = make_slots(n_start + 1, int(labels.max()) + 1)
        return Start(labels.astype(np.int32), slots, Nothing(), {"gamma": start_of(self.gamma)})

    def updates(self, collapsed: bool) -> list[Update[Nothing]]:
        """The indicators, then γ."""
        updates: list[Update[Nothing]] = [RestaurantIndicators(self.layout.n_nodes)]
        if isinstance(self.gamma, Prior):
            updates.append(RestaurantConcentration(self.gamma))
        return updates

    def log_prior(self, state: State[Nothing]) -> float:
        """``ln p(z | γ)``."""
        return log_partition(state.hyper["gamma"], state.counts.size)

    def check(self, state: State[Nothing]) -> None:
        """A cluster without nodes is closed."""
        if not state.counts.size[state.slots.order[: state.slots.n[0]]].all():
            raise ValueError("slots.n counts a slot without nodes")


class RestaurantIndicators(Update[Nothing]):
    """``p(z_i = k | z_-i) ∝ ζ_k``, or γ for a new cluster (Neal's Algorithms 2 and 3)."""

    name = "indicators"

    def __init__(self, n_nodes: int) -> None:
        with np.errstate(divide="ignore"):
            self._conditional = make_conditional(log_count=np.log(np.arange(n_nodes + 1)))

    def __call__(self, state: State[Nothing]) -> Info:
        """Draw every indicator, while clusters come and go."""
        prior = self._conditional._replace(new=state.hyper["gamma"])
        return {"moved": draw_indicators(state, prior)}


class RestaurantConcentration(Update[Nothing]):
    """γ given the labels, by slice sampling."""

    name = "gamma"

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def __call__(self, state: State[Nothing]) -> Info:
        """Draw γ."""
        state.hyper["gamma"] = slice_sample_log(
            lambda gamma: log_partition(gamma, state.counts.size) + self.prior.logpdf(gamma),
            state.hyper["gamma"],
            state.rng,
        )
        return NO_INFO


def log_partition(gamma: float, size: Array) -> float:
    """``ln γ^K Π_k (ζ_k - 1)! Γ(γ) / Γ(γ + N)``."""
    used = size[size > 0]
    return float(
        len(used) * np.log(gamma)
        + gammaln(used).sum()
        + gammaln(gamma)
        - gammaln(gamma + size.sum())
    )
