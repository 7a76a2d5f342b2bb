"""What the oracle is made of: set partitions, Dirichlet-multinomials, quadrature."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from agreement import Floats, Partition, canonical
from numpy.typing import ArrayLike
from scipy.special import gammaln


def set_partitions(n_nodes: int) -> list[Partition]:
    """All set partitions of the nodes, as restricted-growth labels."""
    labelings = itertools.product(range(max(n_nodes, 1)), repeat=n_nodes)
    return sorted({canonical(labels) for labels in labelings})


def components(links: Sequence[int]) -> Partition:
    """Connected components of the link graph {(i, links[i])}."""
    labels = list(range(len(links)))
    for i, j in enumerate(links):
        old, new = labels[i], labels[j]
        labels = [new if k == old else k for k in labels]
    return canonical(labels)


def log_dm(xi: ArrayLike, alpha: ArrayLike) -> Floats:
    """ln DM(xi) = ln of Γ(Aα)/Γ(Aα + Σ_j ξ_j) · Π_j Γ(α + ξ_j)/Γ(α); xi is (..., A)."""
    xi = np.asarray(xi, dtype=float)
    alpha = np.asarray(alpha, dtype=float)
    total = xi.shape[-1] * alpha
    per_action = gammaln(alpha[..., None] + xi) - gammaln(alpha)[..., None]
    log_p: Floats = gammaln(total) - gammaln(total + xi.sum(-1)) + per_action.sum(-1)
    return log_p


def is_distribution(parameter: Any) -> bool:
    return hasattr(parameter, "ppf")


def grid(parameter: Any) -> tuple[Floats, Floats]:
    """Quadrature points and weights (they sum to 1) for E[g(x)], x from a distribution.

    A number is one point of weight 1. A distribution is integrated over its quantiles u in (0, 1)
    by the tanh-sinh rule, which forgives singular ends such as ln(1 - u).
    """
    if not is_distribution(parameter):
        return np.array([float(parameter)]), np.ones(1)
    t = np.linspace(-3.0, 3.0, 121)
    tail = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))  # min(u, 1 - u), without cancellation
    values = np.where(t < 0, parameter.ppf(tail), parameter.isf(tail))
    weights = np.cosh(t) * tail * (1.0 - tail)
    return values, weights / weights.sum()
