"""The parameters of the Chinese restaurant process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from onlooker.gibbs.state import Nothing
from onlooker.hyper import check_hyper
from onlooker.partitions.base import (
    Drawn,
    Hyper,
    HyperText,
    PartitionPrior,
    Strategy,
    Weights,
    make_weights,
)

if TYPE_CHECKING:
    from onlooker.partitions.crp.bound import BoundRestaurant
    from onlooker.problem import Problem


@dataclass
class ChineseRestaurant(PartitionPrior[Nothing]):
    """The Chinese restaurant process: a Dirichlet process mixture of controllers.

    Parameters
    ----------
    concentration
        γ: the weight of a new cluster against the counts of those there are. A number fixes it, a
        prior infers it.
    """

    concentration: Annotated[Hyper, check_hyper] = 1.0

    key: ClassVar[str] = "crp"
    texts: ClassVar = {
        "gamma": HyperText(
            "γ", "concentration of the partition", "the larger, the more clusters before data"
        )
    }

    def hyper(self) -> dict[str, Hyper]:
        """γ."""
        return {"gamma": self.concentration}

    def bind(self, problem: Problem) -> BoundRestaurant:
        """Nothing to prepare."""
        from onlooker.partitions.crp.bound import BoundRestaurant

        return BoundRestaurant(problem.layout, self.concentration)

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """``ζ_k``, or γ for a new cluster."""
        return make_weights(drawn, mass=drawn.size.astype(np.float64), new=drawn.hyper("gamma"))
