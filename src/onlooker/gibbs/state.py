"""All that a chain remembers, its random generator included."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.arrays import Counts, Data, Slots, Tables

P = TypeVar("P", bound=tuple[Any, ...])
"""What a prior alone remembers: a NamedTuple of arrays."""


class Nothing(NamedTuple):
    """The part of a prior that remembers nothing but labels."""


@dataclass
class State(Generic[P]):
    """One point of a chain: everything that its next sweep depends on.

    What is stored follows from the types: arrays, and NamedTuples of arrays, under their names.
    """

    rng: np.random.Generator
    actions: Array
    """``(M,)``, in the order of the sorted transitions."""
    labels: Array
    """``(N,)``: each node's slot. Slots are names, not ranks: some may be empty."""
    counts: Counts
    slots: Slots
    hyper: dict[str, float]
    partition: P
    controllers: Array | None = None
    """``(slots, A)``: the drawn ones; None if they are integrated out."""
    masses: Array | None = None
    """``(kinds,)``: those of the kinds of behaviours, with sum 1; None: they are known."""
    unseen: Any = None
    """A NamedTuple of arrays: what was not seen, if anything."""
    data: Data = field(default=None, repr=False)  # type: ignore[assignment]
    """Not stored: `Update.prepare` brings it in line with the rest."""
    tables: Tables = field(default=None, repr=False)  # type: ignore[assignment]
    """Not stored: follows from ``hyper["alpha"]`` and `masses`."""

    def copy(self) -> State[P]:
        """An independent copy, generator included."""
        return copy.deepcopy(self)

    @property
    def n_used(self) -> int:
        """Clusters with a node."""
        return int(np.count_nonzero(self.counts.size))

    def grow(self) -> None:
        """Double the number of slots."""
        n = len(self.counts.size)

        def grown(array: Array) -> Array:
            more = np.zeros((2 * n, *array.shape[1:]), dtype=array.dtype)
            more[:n] = array
            return more

        node, *by_slot = self.counts
        self.counts = Counts(node, *map(grown, by_slot))
        order, where, n_used = self.slots
        new = np.arange(n, 2 * n)
        self.slots = Slots(np.concatenate([order, new]), np.concatenate([where, new]), n_used)
        if self.controllers is not None:
            self.controllers = grown(self.controllers)

    # -- storing --------------------------------------------------------------------------------

    def as_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Split into arrays and a JSON-able rest, to be stored."""
        arrays = {"actions": self.actions, "labels": self.labels}
        for name in ("counts", "slots", "partition", "unseen"):
            part = getattr(self, name)
            if part is not None:
                arrays |= {f"{name}.{key}": value for key, value in part._asdict().items()}
        for name in ("controllers", "masses"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        return arrays, {"hyper": self.hyper, "rng": self.rng.bit_generator.state}

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, Array],
        rest: dict[str, Any],
        partition: type[P],
        unseen: type[Any] | None = None,
    ) -> State[P]:
        """Undo `as_arrays`, given the types of what the prior and the unseen states remember."""

        def part(kind: Any, name: str) -> Any:
            return kind(*(arrays[f"{name}.{key}"] for key in kind._fields))

        bits = np.random.PCG64()
        bits.state = rest["rng"]
        if rest["rng"]["state"]["inc"] % 2 == 0:
            raise ValueError("its random generator cannot be in the state that is stored")
        return cls(
            rng=np.random.Generator(bits),
            actions=arrays["actions"],
            labels=arrays["labels"],
            counts=part(Counts, "counts"),
            slots=part(Slots, "slots"),
            hyper=dict(rest["hyper"]),
            partition=part(partition, "partition"),
            controllers=arrays.get("controllers"),
            masses=arrays.get("masses"),
            unseen=None if unseen is None else part(unseen, "unseen"),
        )
