"""Finitely many clusters that like to be contiguous."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlooker.checks import positive_integer
from onlooker.hyper import Prior, check_hyper
from onlooker.partitions.base import PartitionPrior
from onlooker.partitions.decay import Decay, GaussianDecay
from onlooker.partitions.geometry import Geometry, symmetrised
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.indicator_samplers import FiniteIndicators


@dataclass(eq=False)
class Potts(PartitionPrior):
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
    """

    n_clusters: int
    beta: float | Prior = 1.6
    decay: Decay = field(default_factory=lambda: GaussianDecay(1.0))
    n_neighbors: int | None = 8
    coordinates: Any = None
    metric: Any = "euclidean"
    auxiliary_sweeps: int = 50

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        positive_integer("n_clusters", self.n_clusters)
        check_hyper("beta", self.beta, zero_ok=True)
        check_spatial(self.decay, self.n_neighbors)
        if not self.decay.is_fixed:
            raise ValueError(
                "the Potts model's decay is fixed: only beta says how strong it is; give numbers "
                "as its scale and offset"
            )
        positive_integer("auxiliary_sweeps", self.auxiliary_sweeps)

    def geometry(self, problem: Problem) -> Geometry:
        """Where the nodes lie."""
        return Geometry(problem.states, self.coordinates, self.metric)

    def sampler(self, problem: Problem) -> FiniteIndicators:
        """Make the sampler; this finds the neighbours."""
        from onlooker.partitions.indicator_samplers import FiniteIndicators

        geometry = self.geometry(problem)
        geometry.warn_if_doubtful(self.decay)
        graph = geometry.similarity(self.decay, self.n_neighbors)
        if self.n_neighbors is not None:
            graph = symmetrised(graph)
        return FiniteIndicators(
            problem.layout,
            self.n_clusters,
            graph=graph,
            beta=self.beta,
            auxiliary_sweeps=self.auxiliary_sweeps,
        )


def check_spatial(decay: Any, n_neighbors: Any) -> None:
    """Refuse a decay or a neighbourhood that is none."""
    if not isinstance(decay, Decay):
        raise TypeError(f"decay must be a Decay such as GaussianDecay(1.0), got {decay!r}")
    if n_neighbors is not None:
        positive_integer("n_neighbors", n_neighbors)
