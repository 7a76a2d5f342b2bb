"""How regions go on to states that are no nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.checks import Array, positive_integer, positive_number

_LEAST, _MOST = 1e-150, 1e150  # products of which are numbers


@dataclass(frozen=True)
class Continuation:
    """Whether a state that is no node belongs to a region that was seen, and to which.

    With ``u_j = -ln g(d_j)`` of the nodes, it stands by itself with probability ``f = ν / (ν + Σ_j
    exp(-reach u_j))``; else it joins the region of node j ``∝ exp(-sharpness u_j)``. With all at
    1 and the ν that was drawn this is the model itself; other values may predict better where data
    are not made by the model, and are chosen by what was left out.

    Parameters
    ----------
    sharpness
        τ: how much nearer nodes count more.
    reach
        τ₀: the smaller, the farther a state still belongs to what was seen.
    alone
        ν*: the weight of a region of its own; None: ν as drawn.
    shrinkage
        κ: in mean policies, a node has the frequencies of what was done there, shrunk to its
        controller as if that had been seen κ times, ``(φ_j + κ θ_k) / (n_j + κ)``; None: its
        controller's policy. Credible intervals are those of controllers.
    overall
        A state by itself has the policy of all states taken together, each controller by its share
        of them, rather than that of a new region, which takes each by its share of regions.
    local
        Distances to a node count in units of how far apart nodes lie around it, as they always do
        where landmarks stand for many states: where few were seen, each of them reaches farther.
    nearest
        So many nodes are near at any state: τ is such that the last of them counts 1/e times as
        much as the first, however far away both are; None: τ is `sharpness`.
    """

    sharpness: float = 1.0
    reach: float = 1.0
    alone: float | None = None
    shrinkage: float | None = None
    overall: bool = False
    local: bool = False
    nearest: int | None = None

    def __post_init__(self) -> None:
        for name in ("sharpness", "reach", "alone", "shrinkage"):
            value = getattr(self, name)
            if value is None and name in ("alone", "shrinkage"):
                continue
            if not _LEAST <= positive_number(name, value) <= _MOST:
                raise ValueError(f"{name} must be from {_LEAST} to {_MOST}, got {value}")
        for name in ("overall", "local"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.nearest is not None and positive_integer("nearest", self.nearest) < 2:
            raise ValueError("nearest must be at least 2, got 1")

    def sharpness_at(self, above: Array) -> float | Array:
        """τ, or ``(n, 1)`` of the states whose nodes have these ``u_j`` above the least."""
        if self.nearest is None:
            return self.sharpness
        k = min(self.nearest, above.shape[1]) - 1
        last = np.partition(above, k, axis=1)[:, k : k + 1]
        with np.errstate(divide="ignore"):
            return np.where(last < np.inf, np.minimum(1 / last, _MOST), self.sharpness)

    @property
    def is_model(self) -> bool:
        """Whether this is the model itself."""
        return self == Continuation()
