"""The parameters of the Potts model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from onlooker.checks import one_of, positive_integer
from onlooker.gibbs.state import Nothing
from onlooker.hyper import check_hyper
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
from onlooker.partitions.geometry import TOLERANCE, Geometry, symmetrised
from onlooker.partitions.spatial import (
    OFFSET,
    SCALE,
    check_decay,
    check_neighbours,
    similarity_weights,
)

if TYPE_CHECKING:
    from onlooker.partitions.potts.bound import BoundPotts
    from onlooker.problem import Problem


@dataclass(eq=False)
class Potts(PartitionPrior[Nothing]):
    """The Potts model: ``p(z) ∝ exp(β Σ_{i<j} w_ij δ(z_i, z_j))``.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    beta
        Inverse temperature, how strongly near states are drawn together: a number fixes it, a prior
        infers it by the exchange algorithm.
    decay
        From distance to similarity.
    n_neighbors
        Only the nearest so many nodes attract, ``w_ij = ½ f(d_ij) (1[j ∈ N_i] + 1[i ∈ N_j])``;
        None: all pairs, ``w_ij = f(d_ij)``.
    coordinates
        ``(S, d)`` positions of integer states.
    metric
        A name, a callable of two vectors, or a matrix of distances.
    auxiliary_sweeps
        Length of the auxiliary chains by which β is inferred: the longer, the nearer to exact,
        and the less often β is drawn, at the same cost.
    start
        Where chains start: ``"scattered"``, each far from the others, with labels at random, all
        the same, or by the nearest of K nodes; or all alike, with labels at ``"random"``.
    """

    n_clusters: Annotated[int, positive_integer]
    beta: Annotated[Hyper, partial(check_hyper, zero_ok=True)] = 1.6
    decay: Annotated[Decay, check_decay] = field(default_factory=lambda: GaussianDecay(1.0))
    n_neighbors: Annotated[int | None, check_neighbours] = 8
    coordinates: Any = None
    metric: Any = "euclidean"
    auxiliary_sweeps: Annotated[int, positive_integer] = 50
    start: Annotated[
        Literal["scattered", "random"], partial(one_of, choices=("scattered", "random"))
    ] = "scattered"

    key: ClassVar[str] = "potts"
    strategies: ClassVar[tuple[Strategy, ...]] = ("average", "map", "local")
    texts: ClassVar = {
        "beta": HyperText(
            "β",
            "attraction of neighbours",
            "how strongly near states are drawn into one cluster",
        ),
        "scale": SCALE,
        "offset": OFFSET,
    }

    def check(self) -> None:
        """Refuse bad parameters."""
        super().check()
        if not self.decay.is_fixed:
            raise ValueError(
                "the Potts model's decay is fixed: only beta says how strong it is; give numbers "
                "as its scale and offset"
            )

    def hyper(self) -> dict[str, Hyper]:
        """β, and the decay's parameters, which are numbers here."""
        return {"beta": self.beta, "scale": self.decay.scale, "offset": self.decay.offset}

    @property
    def reach(self) -> Reach:
        """By the decay."""
        return Reach(self.decay, self.n_neighbors, TOLERANCE)

    def geometry(self, problem: Problem) -> Geometry:
        """Where the nodes lie."""
        return Geometry(problem.states, self.coordinates, self.metric)

    def bind(self, problem: Problem) -> BoundPotts:
        """Find the neighbours."""
        from onlooker.partitions.potts.bound import BoundPotts

        geometry = self.geometry(problem)
        geometry.warn_if_doubtful(self.decay)
        graph = geometry.similarity(self.decay, self.n_neighbors)
        if self.n_neighbors is not None:
            graph = symmetrised(graph)
        return BoundPotts(
            problem.layout,
            self.n_clusters,
            graph,
            self.beta,
            self.auxiliary_sweeps,
            geometry if self.start == "scattered" else None,
        )

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """``exp(β Σ_j f(d(s*, s_j)) δ(k, z_j))``; the likeliest does not depend on β."""
        score = similarity_weights(drawn, strategy)
        if strategy != "average":
            return score
        return score._replace(beta=drawn.hyper("beta"), n_slots=self.n_clusters)
