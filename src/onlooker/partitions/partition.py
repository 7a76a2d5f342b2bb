"""What every sampler of the partition offers, and the one with nothing to sample."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.state import Data, State
from onlooker.partitions.indicators import Scheme, Slots
from onlooker.problem.problem import Layout

Start = tuple[Array, dict[str, Array], dict[str, float]]
"""Labels to start from, with the arrays and hyper-parameters that go with them."""


class PartitionSampler(Protocol):
    """Draws the partition given actions and controllers."""

    layout: Layout
    """How nodes and transitions lie in the kernels' arrays."""
    n_slots: int
    """Slots to start with."""

    def start(self, rng: np.random.Generator) -> Start:
        """Draw where to start."""

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw the partition, and the hyper-parameters of its prior, once."""

    def log_prior(self, state: State) -> float:
        """``ln p(z)`` or ``ln p(c)``; the Potts model's without its normaliser."""


class FixedPartition:
    """Every node is its own cluster: the static model."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.n_slots = layout.n_nodes

    def start(self, rng: np.random.Generator) -> Start:
        """Node i is in cluster i."""
        return np.arange(self.n_slots, dtype=np.int32), {}, {}

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Nothing to draw."""

    def log_prior(self, state: State) -> float:
        """The one partition there is has probability 1."""
        return 0.0


def slots_of(state: State) -> Slots:
    """Which slots are in use."""
    return Slots(state.arrays["slots"], state.arrays["slot_at"], state.arrays["n_slots"])


def slot_arrays(slots: Slots) -> dict[str, Array]:
    """The same as arrays of a state."""
    return {"slots": slots.order, "slot_at": slots.where, "n_slots": slots.n}
