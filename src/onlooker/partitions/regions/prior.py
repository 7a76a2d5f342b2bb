"""The parameters of regions that share controllers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from onlooker.checks import positive_number
from onlooker.hyper import Exponential, Gamma, LogUniform, Prior, check_hyper
from onlooker.partitions.base import (
    Drawn,
    Hyper,
    HyperText,
    PartitionPrior,
    Reach,
    Strategy,
    Weights,
    by_row,
    make_weights,
)
from onlooker.partitions.continuation import Continuation
from onlooker.partitions.decay import Decay, GaussianDecay
from onlooker.partitions.geometry import Geometry
from onlooker.partitions.regions.state import Sharing
from onlooker.partitions.spatial import SCALE, check_decay, check_neighbours

if TYPE_CHECKING:
    from onlooker.partitions.regions.bound import BoundRegions
    from onlooker.problem import Problem


def _check_decay(name: str, decay: Any) -> None:
    check_decay(name, decay)
    if isinstance(decay.offset, Prior) or decay.offset != 0:
        raise ValueError(
            f"{name} must have no offset, got {decay.offset}: far regions share a controller by "
            "sharing, not by links"
        )


def _check_continuation(name: str, continuation: Any) -> None:
    if not isinstance(continuation, Continuation):
        raise TypeError(f"{name} must be a Continuation, got {continuation!r}")


@dataclass(eq=False)
class Regions(PartitionPrior[Sharing]):
    """Regions that share controllers.

    Every node links to a node, ``p(c_i = j) ∝ g(d_ij)``, or to itself, ``∝ ν``; the connected
    components of the links are regions. A region takes one of the controllers, each ``∝`` how many
    regions have it, or a new one, ``∝ γ``.

    Parameters
    ----------
    self_link
        ν: a number fixes it, a prior infers it.
    decay
        From distance to similarity, without an offset; its scale may be a prior.
    sharing
        γ: how readily a region takes a controller of its own; a number fixes it, a prior infers it.
    n_neighbors
        Links go to the nearest so many nodes only; None: to any.
    coordinates
        ``(S, d)`` positions of integer states.
    metric
        A name, a callable of two vectors, or a matrix of distances.
    continuation
        How regions go on to states that are no nodes; the default is the model itself.
    """

    self_link: Annotated[Hyper, check_hyper] = field(default_factory=lambda: Exponential(0.1))
    decay: Annotated[Decay, _check_decay] = field(default_factory=lambda: GaussianDecay(1.0))
    sharing: Annotated[Hyper, check_hyper] = field(default_factory=lambda: Gamma(1.0, 1.0))
    n_neighbors: Annotated[int | None, check_neighbours] = None
    coordinates: Any = None
    metric: Any = "euclidean"
    continuation: Annotated[Continuation, _check_continuation] = field(default=Continuation())

    key: ClassVar[str] = "regions"
    state: ClassVar[type[Sharing]] = Sharing
    kept: ClassVar[tuple[str, ...]] = ("regions",)
    collapsed_only: ClassVar[bool] = True
    passes: ClassVar[int] = 16
    strategies: ClassVar[tuple[Strategy, ...]] = ("average", "map", "local")
    texts: ClassVar = {
        "nu": HyperText("ν", "self-link weight", "how readily a state starts a region of its own"),
        "gamma": HyperText("γ", "sharing", "how readily a region takes a controller of its own"),
        "scale": SCALE,
    }

    @classmethod
    def inferred(cls, typical: float = 1.0, **others: Any) -> Self:
        """Everything inferred, with proper priors.

        Parameters
        ----------
        typical
            A typical distance in the units of the states, such as a step: the scale is thought
            to lie between half of it and five times it.
        others
            Other parameters.
        """
        typical = positive_number("typical", typical)
        return cls(**({"decay": GaussianDecay(LogUniform(typical / 2, 5 * typical))} | others))

    def hyper(self) -> dict[str, Hyper]:
        """ν, γ and the scale."""
        return {"nu": self.self_link, "gamma": self.sharing, "scale": self.decay.scale}

    @property
    def reach(self) -> Reach:
        """By the decay."""
        from onlooker.partitions.regions.scales import TOLERANCE

        return Reach(self.decay, self.n_neighbors, TOLERANCE, self.continuation)

    def geometry(self, problem: Problem) -> Geometry:
        """Where the nodes lie."""
        return Geometry(problem.states, self.coordinates, self.metric)

    def bind(self, problem: Problem) -> BoundRegions:
        """Find an order in which near nodes lie near in memory; neighbours are found as needed."""
        from onlooker.partitions.regions.bound import BoundRegions
        from onlooker.partitions.regions.scales import Scales

        nodes = self.geometry(problem).near_order
        geometry = Geometry(problem.states[nodes], self.coordinates, self.metric)
        geometry.warn_if_doubtful(self.decay if self.decay.is_fixed else None)
        scales = Scales(geometry, self.decay, self.n_neighbors)
        return BoundRegions(problem.layout_by(nodes), scales, self.self_link, self.sharing)

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """``Σ_{j ∈ C_k} g(d(s*, s_j)) + ν m_k/(m + γ)``, and ``ν γ/(m + γ)`` for a new controller.

        A state by itself, which has weight ν, takes its controller as any region does, or, if the
        continuation says so, as any state.
        """
        near = make_weights(drawn, factor=np.ones(len(drawn.n_used)))
        if strategy == "local":
            return near
        nu, gamma = drawn.hyper("nu"), drawn.hyper("gamma")
        if self.continuation.alone is not None:
            nu = np.full(len(nu), self.continuation.alone)
        shared = drawn.size if self.continuation.overall else drawn.n_regions
        alone = nu / (np.add.reduceat(shared, drawn.first[:-1]) + gamma)
        return near._replace(mass=by_row(drawn, alone) * shared, new=alone * gamma)
