"""What the priors to which location matters share: the checks and the weights of their decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import positive_integer
from onlooker.partitions.base import Drawn, HyperText, Strategy, Weights, by_row, make_weights
from onlooker.partitions.decay import Decay

SCALE = HyperText("", "length scale of the decay", "how far similarity reaches")
OFFSET = HyperText("", "offset of the decay", "similarity that is left at any distance")


def check_decay(name: str, decay: Any) -> None:
    """Refuse what is no decay."""
    if not isinstance(decay, Decay):
        raise TypeError(f"{name} must be a Decay such as GaussianDecay(1.0), got {decay!r}")


def check_neighbours(name: str, n_neighbors: Any) -> None:
    """Refuse what is neither None nor a number of neighbours."""
    if n_neighbors is not None:
        positive_integer(name, n_neighbors)


def similarity_weights(drawn: Drawn, strategy: Strategy) -> Weights:
    """``Σ_{j ∈ C_k} f(d(s*, s_j))``, or by the decaying part alone for ``"local"``."""
    if strategy == "local":
        return make_weights(drawn, factor=np.ones(len(drawn.n_used)))
    offset = drawn.hyper("offset")
    if drawn.n_neighbors is not None:  # only neighbours count, each with the whole of f(d)
        return make_weights(drawn, factor=1 - offset, plus=offset)
    return make_weights(drawn, factor=1 - offset, mass=by_row(drawn, offset) * drawn.size)
