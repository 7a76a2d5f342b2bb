"""One controller per state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlooker.gibbs.arrays import make_slots
from onlooker.gibbs.state import Nothing, State
from onlooker.partitions.base import (
    Bound,
    Drawn,
    Hyper,
    PartitionPrior,
    Start,
    Strategy,
    Weights,
    make_weights,
)

if TYPE_CHECKING:
    from onlooker.gibbs.update import Update
    from onlooker.problem import Layout, Problem


@dataclass
class Static(PartitionPrior[Nothing]):
    """Every state has a controller of its own; nothing is shared and nothing is clustered."""

    key: ClassVar[str] = "static"

    def hyper(self) -> dict[str, Hyper]:
        """None."""
        return {}

    def bind(self, problem: Problem) -> BoundStatic:
        """Nothing to prepare."""
        return BoundStatic(problem.layout)

    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """Any other state has a controller of its own, too."""
        return make_weights(drawn, new=np.ones(len(drawn.n_used)))


class BoundStatic(Bound[Nothing]):
    """Node i is in cluster i."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def start(self, rng: np.random.Generator, chain: int) -> Start[Nothing]:
        """The one partition there is."""
        n = self.layout.n_nodes
        return Start(np.arange(n, dtype=np.int32), make_slots(n, n), Nothing(), {})

    def updates(self, collapsed: bool) -> list[Update[Nothing]]:
        """Nothing to draw."""
        return []

    def log_prior(self, state: State[Nothing]) -> float:
        """The one partition there is has probability 1."""
        return 0.0

    def check(self, state: State[Nothing]) -> None:
        """There is one partition."""
        if not np.array_equal(state.labels, np.arange(self.layout.n_nodes)):
            raise ValueError("labels must be a cluster of its own for each node")
