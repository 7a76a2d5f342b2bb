"""The parameters of the distance-dependent Chinese restaurant process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from onlooker.checks import one_of, positive_integer, positive_number, share
from onlooker.hyper import Exponential, LogUniform, check_hyper
from onlooker.partitions.base import (
    Drawn,
    Hyper,
    HyperText,
    PartitionPrior,
    Reach,
    Strategy,
    Weights,
)
from onlooker.partitions.decay import Decay, GaussianDecay
from onlooker.partitions.geometry import TOLERANCE, Geometry
from onlooker.partitions.links.arrays import Forest
from onlooker.partitions.spatial import (
    OFFSET,
    SCALE,
    check_decay,
    check_neighbours,
    similarity_weights,
)

if TYPE_CHECKING:
    from onlooker.partitions.ddcrp.bound import BoundLinks
    from onlooker.problem import Problem

MAX_REASSIGNED = 64
"""Clusters up to which reassignment does something."""


@dataclass(eq=False)
class DistanceDependent(PartitionPrior[Forest]):
    """The distance-dependent Chinese restaurant process.

    Every node links to a node, ``p(c_i = j) ∝ f(d_ij)``, or to itself, ``∝ ν``; the clusters are
    the connected components of the links.

    Parameters
    ----------
    self_link
        ν: a number fixes it, a prior infers it. The default, an exponential with mean 0.1, is the
        one that gives the paper's figures.
    decay
        From distance to similarity; its scale and offset may be priors.
    n_neighbors
        Links go to the nearest so many nodes only; None: to any.
    coordinates
        ``(S, d)`` positions of integer states.
    metric
        A name, a callable of two vectors, or a matrix of distances.
    self_link_step
        How ν is drawn: ``"slice"``, or the paper's ``"metropolis"`` with the prior as proposal.
    start
        Where chains start: ``"scattered"``, each far from the others, with nodes linked to their
        nearest neighbours, to themselves, at random, or into trees as large as can be; or all
        alike, with every node linked to its ``"nearest"`` neighbour or to ``"self"``.
    tolerance
        The decaying part of the similarity is stored where it exceeds this share of its maximum.
    reassign
        Passes per sweep in which parts of clusters change sides together with their actions: same
        target. A pass costs about as much as a sweep. Chains that stick need far fewer sweeps,
        above all where states are visited often and actions are hard to tell apart. Nothing is
        done while there are more than 64 clusters.
    """

    self_link: Annotated[Hyper, check_hyper] = field(default_factory=lambda: Exponential(0.1))
    decay: Annotated[Decay, check_decay] = field(default_factory=lambda: GaussianDecay(1.0, 0.01))
    n_neighbors: Annotated[int | None, check_neighbours] = None
    coordinates: Any = None
    metric: Any = "euclidean"
    self_link_step: Annotated[
        Literal["slice", "metropolis"], partial(one_of, choices=("slice", "metropolis"))
    ] = "slice"
    start: Annotated[
        Literal["scattered", "nearest", "self"],
        partial(one_of, choices=("scattered", "nearest", "self")),
    ] = "scattered"
    tolerance: Annotated[float, share] = TOLERANCE
    reassign: Annotated[int, partial(positive_integer, minimum=0)] = 0

    key: ClassVar[str] = "ddcrp"
    state: ClassVar[type[Forest]] = Forest
    kept: ClassVar[tuple[str, ...]] = ("links",)
    collapsed_only: ClassVar[bool] = True
    strategies: ClassVar[tuple[Strategy, ...]] = ("average", "map", "local")
    texts: ClassVar = {
        "nu": HyperText("ν", "self-link weight", "how readily a state starts a cluster of its own"),
        "scale": SCALE,
        "offset": OFFSET,
    }

    @classmethod
    def paper(cls, typical: float = 1.0, **others: Any) -> Self:
        """The paper's settings: ν inferred, scale and offset fixed.

        Parameters
        ----------
        typical
            The length of a step in the units of the states, which the paper's scale is.
        others
            Other parameters.
        """
        scale = positive_number("typical", typical)
        return cls(**({"decay": GaussianDecay(scale, 0.01)} | others))

    @classmethod
    def inferred(cls, typical: float = 1.0, **others: Any) -> Self:
        """The prior with ν, the decay's scale and its offset all to be inferred.

        Chains make one pass of reassignment per sweep.

        Parameters
        ----------
        typical
            A typical distance in the units of the states, such as a step: the scale is thought
            to lie between half of it and five times it.
        others
            Other parameters.

        Notes
        -----
        The offset is kept above 0.003. Below, the prior alone sprinkles regions with tiny
        clusters of mutually linked neighbours, and far regions hardly ever share a controller.
        This bound was chosen with the paper's examples in view, and draws pile up at it; prefer
        `Regions.inferred`, which needs none.
        """
        typical = positive_number("typical", typical)
        decay = GaussianDecay(LogUniform(typical / 2, 5 * typical), LogUniform(0.003, 0.1))
        parameters: dict[str, Any] = {"decay": decay, "tolerance": 1e-6, "reassign": 1}
        return cls(**(parameters | others))

    def hyper(self) -> dict[str, Hyper]:
        """ν and the decay's parameters."""
        return {"nu": self.self_link, "scale": self.decay.scale, "offset": self.decay.offset}

    @property
    def reach(self) -> Reach:
        """By the decay."""
        return Reach(self.decay, self.n_neighbors, self.tolerance)

    def geometry(self, problem: Problem) -> Geometry:
        """Where the nodes lie."""
        return Geometry(problem.states, self.coordinates, self.metric)

    def bind(self, problem: Problem) -> BoundLinks:
        """Find the neighbours, and an order in which near nodes lie near in memory."""
        from onlooker.partitions.ddcrp.bound import BoundLinks
        from onlooker.partitions.links.scales import ScaleGrid
        from onlooker.partitions.links.similarities import FixedDecay, InferredDecay

        nodes = self.geometry(problem).near_order
        geometry = Geometry(problem.states[nodes], self.coordinates, self.metric)
        similarities: FixedDecay | InferredDecay
        if self.decay.is_fixed:
            geometry.warn_if_doubtful(self.decay)
            similarities = FixedDecay(
                geometry.similarity(self.decay, self.n_neighbors, tolerance=self.tolerance)
            )
        else:
            geometry.warn_if_doubtful()
            similarities = InferredDecay(
                ScaleGrid(geometry, self.decay, self.n_neighbors, self.tolerance)
            )
        return BoundLinks(
            problem.layout_by(nodes),
            similarities,
            self.self_link,
            start=self.start,
            self_link_step=self.self_link_step,
            passes=self.reassign,
        )

    def advice(self, n_clusters: int) -> str:
        """Reassignment, where it would do something."""
        few = n_clusters <= MAX_REASSIGNED
        return "try reassign=1 on the prior" if self.reassign == 0 and few else ""

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """``Σ_{j ∈ C_k} f(d(s*, s_j))``, or ν for a new cluster."""
        score = similarity_weights(drawn, strategy)
        return score if strategy == "local" else score._replace(new=drawn.hyper("nu"))
