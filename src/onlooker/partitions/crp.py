"""As many clusters as it takes, without regard to space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlooker.hyper import Prior, check_hyper
from onlooker.partitions.base import PartitionPrior
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.indicator_samplers import RestaurantIndicators


@dataclass
class ChineseRestaurant(PartitionPrior):
    """The Chinese restaurant process: a Dirichlet process mixture of controllers.

    Parameters
    ----------
    concentration
        γ: the weight of a new cluster against the counts of those there are. A number fixes it, a
        prior infers it.
    """

    concentration: float | Prior = 1.0

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        check_hyper("concentration", self.concentration)

    def sampler(self, problem: Problem) -> RestaurantIndicators:
        """Make the sampler."""
        from onlooker.partitions.indicator_samplers import RestaurantIndicators

        return RestaurantIndicators(problem.layout, self.concentration)
