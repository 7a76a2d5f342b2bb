"""Finitely many clusters without regard to space: uniform and mixing priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlooker.checks import positive_integer
from onlooker.hyper import Prior, check_hyper
from onlooker.partitions.base import PartitionPrior
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.indicator_samplers import FiniteIndicators


@dataclass
class Uniform(PartitionPrior):
    """All ``K^N`` labelings are equally likely: the paper's non-informative prior.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    """

    n_clusters: int

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        positive_integer("n_clusters", self.n_clusters)

    def sampler(self, problem: Problem) -> FiniteIndicators:
        """Make the sampler."""
        from onlooker.partitions.indicator_samplers import FiniteIndicators

        return FiniteIndicators(problem.layout, self.n_clusters)


@dataclass
class Mixing(PartitionPrior):
    """A finite mixture: ``z_i ~ q``, ``q ~ Dir(γ/K)``.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    concentration
        γ: a number fixes it, a prior infers it. As K grows, the prior tends to the Chinese
        restaurant process with this γ.
    collapsed
        Integrate ``q`` out (faster mixing) rather than draw it.
    """

    n_clusters: int
    concentration: float | Prior = 1.0
    collapsed: bool = True

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        positive_integer("n_clusters", self.n_clusters)
        check_hyper("concentration", self.concentration)
        if not isinstance(self.collapsed, bool | np.bool_):
            raise TypeError(f"collapsed must be True or False, got {self.collapsed!r}")

    def sampler(self, problem: Problem) -> FiniteIndicators:
        """Make the sampler."""
        from onlooker.partitions.indicator_samplers import FiniteIndicators

        return FiniteIndicators(
            problem.layout,
            self.n_clusters,
            gamma=self.concentration,
            collapse_weights=self.collapsed,
        )
