"""As many clusters as it takes, near states together: the heart of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from onlooker.checks import positive_integer, positive_number
from onlooker.hyper import Exponential, LogUniform, Prior, check_hyper
from onlooker.partitions.base import PartitionPrior
from onlooker.partitions.decay import Decay, GaussianDecay
from onlooker.partitions.geometry import TOLERANCE, Geometry
from onlooker.partitions.potts.prior import check_spatial
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.links.sampler import LinkOptions, LinkSampler
    from onlooker.problem.problem import Layout


@dataclass(eq=False)
class DistanceDependent(PartitionPrior):
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
        Where chains start: every node linked to its ``"nearest"`` neighbour or to ``"self"``.
    tolerance
        The decaying part of the similarity is stored where it exceeds this share of its maximum.
    reassign
        Passes a sweep in which parts of clusters change sides together with their actions: same
        target. A pass costs about as much as a sweep. Chains that stick need far fewer sweeps,
        above all where states are visited often and actions are hard to tell apart. Nothing is
        done while there are more than 64 clusters.
    """

    self_link: float | Prior = field(default_factory=lambda: Exponential(0.1))
    decay: Decay = field(default_factory=lambda: GaussianDecay(1.0, 0.01))
    n_neighbors: int | None = None
    coordinates: Any = None
    metric: Any = "euclidean"
    self_link_step: Literal["slice", "metropolis"] = "slice"
    start: Literal["nearest", "self"] = "nearest"
    tolerance: float = TOLERANCE
    reassign: int = 0

    collapsed_only: ClassVar[bool] = True

    @classmethod
    def inferred(cls, typical: float = 1.0, **others: Any) -> Self:
        """The prior with ν, the decay's scale and its offset all to be inferred.

        Chains make one pass of reassignment a sweep.

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
        This bound and that of `hyper.CONCENTRATION` were chosen with the paper's examples in
        view; the draws pile up at both.
        """
        typical = positive_number("typical", typical)
        decay = GaussianDecay(LogUniform(typical / 2, 5 * typical), LogUniform(0.003, 0.1))
        parameters: dict[str, Any] = {"decay": decay, "tolerance": 1e-6, "reassign": 1}
        return cls(**(parameters | others))

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        check_hyper("self_link", self.self_link)
        check_spatial(self.decay, self.n_neighbors)
        if self.self_link_step not in ("slice", "metropolis"):
            raise ValueError(
                f"self_link_step must be 'slice' or 'metropolis', got {self.self_link_step!r}"
            )
        if self.start not in ("nearest", "self"):
            raise ValueError(f"start must be 'nearest' or 'self', got {self.start!r}")
        positive_integer("reassign", self.reassign, minimum=0)
        if positive_number("tolerance", self.tolerance) >= 1:
            raise ValueError(f"tolerance must be between 0 and 1, got {self.tolerance}")

    def geometry(self, problem: Problem) -> Geometry:
        """Where the nodes lie."""
        return Geometry(problem.states, self.coordinates, self.metric)

    def sampler(self, problem: Problem) -> LinkSampler:
        """Make the sampler; this finds the neighbours."""
        from onlooker.partitions.links.sampler import LinkOptions, LinkSampler

        nodes = self.geometry(problem).near_order
        layout = problem.layout_by(nodes)
        geometry = Geometry(problem.states[nodes], self.coordinates, self.metric)
        options = LinkOptions(start=self.start, nu_step=self.self_link_step, reassign=self.reassign)
        if not self.decay.is_fixed:
            return self._inferring(layout, geometry, options)
        geometry.warn_if_doubtful(self.decay)
        graph = geometry.similarity(self.decay, self.n_neighbors, tolerance=self.tolerance)
        return LinkSampler(layout, graph, self.self_link, options)

    def _inferring(self, layout: Layout, geometry: Geometry, options: LinkOptions) -> LinkSampler:
        """The sampler that draws the decay's parameters too."""
        from onlooker.partitions.links.scales import DecayLinkSampler, ScaleGrid

        geometry.warn_if_doubtful()
        scales = ScaleGrid(geometry, self.decay, self.n_neighbors, self.tolerance)
        return DecayLinkSampler(layout, scales, self.self_link, options)
