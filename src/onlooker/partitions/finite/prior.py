"""The parameters of the uniform and the mixing prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from onlooker.checks import boolean, positive_integer
from onlooker.gibbs.state import Nothing
from onlooker.hyper import check_hyper
from onlooker.partitions.base import (
    Drawn,
    Hyper,
    HyperText,
    PartitionPrior,
    Strategy,
    Weights,
    by_row,
    make_weights,
)
from onlooker.partitions.finite.state import Mixture

if TYPE_CHECKING:
    from onlooker.partitions.finite.bound import BoundMixing, BoundUniform
    from onlooker.problem import Problem


@dataclass
class Uniform(PartitionPrior[Nothing]):
    """All ``K^N`` labelings are equally likely: the paper's non-informative prior.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    """

    n_clusters: Annotated[int, positive_integer]

    key: ClassVar[str] = "uniform"

    def hyper(self) -> dict[str, Hyper]:
        """None."""
        return {}

    def bind(self, problem: Problem) -> BoundUniform:
        """Nothing to prepare."""
        from onlooker.partitions.finite.bound import BoundUniform

        return BoundUniform(problem.layout, self.n_clusters)

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """All clusters are equally likely; for ``"map"`` the largest stands for them."""
        if strategy == "map":
            return make_weights(drawn, mass=drawn.size.astype(np.float64))
        empty = (self.n_clusters - drawn.n_used).astype(np.float64)
        return make_weights(drawn, mass=np.ones(len(drawn.size)), new=empty)


@dataclass
class Mixing(PartitionPrior[Mixture]):
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

    n_clusters: Annotated[int, positive_integer]
    concentration: Annotated[Hyper, check_hyper] = 1.0
    collapsed: Annotated[bool, boolean] = True

    key: ClassVar[str] = "mixing"
    state: ClassVar[type[Mixture]] = Mixture
    texts: ClassVar = {
        "gamma": HyperText(
            "γ", "concentration of the partition", "the larger, the more clusters before data"
        )
    }

    def hyper(self) -> dict[str, Hyper]:
        """γ."""
        return {"gamma": self.concentration}

    def bind(self, problem: Problem) -> BoundMixing:
        """Nothing to prepare."""
        from onlooker.partitions.finite.bound import BoundMixing

        return BoundMixing(problem.layout, self.n_clusters, self.concentration, self.collapsed)

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """``ζ_k + γ/K``: ``E[q_k | z]`` up to a factor, even where ``q`` was drawn."""
        share = drawn.hyper("gamma") / self.n_clusters
        empty = self.n_clusters - drawn.n_used
        if strategy == "map":
            empty = np.minimum(empty, 1)
        return make_weights(drawn, mass=drawn.size + by_row(drawn, share), new=share * empty)
