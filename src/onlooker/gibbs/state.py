"""All that a chain remembers, its random generator included."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array


class Data(NamedTuple):
    """What the kernels read: transitions sorted by node, and their scaled likelihoods."""

    first: Array
    """``(N + 1,)``: node i owns transitions ``first[i]`` to ``first[i + 1] - 1``."""
    likelihood: Array
    """``(M, A)``."""


class Counts(NamedTuple):
    """The sufficient statistics, kept up to date by every kernel."""

    node: Array
    """``φ``, ``(N, A)``: how often each action is played at each node."""
    cluster: Array
    """``ξ``, ``(slots, A)``: the same by cluster."""
    total: Array
    """``(slots,)``: transitions in each cluster, ``Σ_j ξ_kj``."""
    size: Array
    """``ζ``, ``(slots,)``: nodes in each cluster."""


class Tables(NamedTuple):
    """The prior of the controllers, ``Dir(α · 1)``.

    Logarithms of rising factorials, so that no kernel calls ``lgamma``:
    ``ln DM(ξ) = Σ_j action[ξ_j] - total[Σ_j ξ_j]``.
    """

    action: Array
    """``(M + 1,)``: ``ln Γ(α + n) - ln Γ(α)`` for ``n = 0 … M``."""
    total: Array
    """``(M + 1,)``: ``ln Γ(Aα + n) - ln Γ(Aα)`` for ``n = 0 … M``."""
    alpha: float


def make_tables(alpha: float, n_actions: int, n_transitions: int) -> Tables:
    """Tabulate the two factors of ``DM`` for counts up to `n_transitions`."""
    return Tables(
        _log_rising(alpha, n_transitions), _log_rising(n_actions * alpha, n_transitions), alpha
    )


def _log_rising(start: float, n: int) -> Array:
    """``ln Γ(start + m) - ln Γ(start)`` for ``m = 0 … n``: sums of logarithms, as DM has them."""
    table = np.zeros(n + 1)
    row = table[1:]
    np.add(start, np.arange(n), out=row)
    np.cumsum(np.log(row, out=row), out=row)
    return table


@dataclass
class State:
    """One point of a chain: everything that its next sweep depends on."""

    rng: np.random.Generator
    actions: Array
    """``(M,)``, in the order of the sorted transitions."""
    labels: Array
    """``(N,)``: each node's slot. Slots are names, not ranks: some may be empty."""
    counts: Counts
    hyper: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    """What a scheme or a prior adds: controllers, mixing weights, links and their lists."""

    def copy(self) -> State:
        """An independent copy, generator included."""
        return copy.deepcopy(self)

    def as_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Split into arrays and a JSON-able rest, to be stored."""
        arrays = {"actions": self.actions, "labels": self.labels}
        arrays |= {f"counts.{name}": value for name, value in self.counts._asdict().items()}
        arrays |= {f"arrays.{name}": value for name, value in self.arrays.items()}
        rest: dict[str, Any] = {"hyper": self.hyper, "rng": self.rng.bit_generator.state}
        return arrays, rest

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], rest: dict[str, Any]) -> State:
        """Undo `as_arrays`."""
        rng = np.random.Generator(getattr(np.random, rest["rng"]["bit_generator"])())
        rng.bit_generator.state = rest["rng"]
        return cls(
            rng=rng,
            actions=arrays["actions"],
            labels=arrays["labels"],
            counts=Counts(*(arrays[f"counts.{name}"] for name in Counts._fields)),
            hyper=dict(rest["hyper"]),
            arrays=_below("arrays.", arrays),
        )


def _below(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names start so, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }


def count(actions: Array, labels: Array, first: Array, n_actions: int, n_slots: int) -> Counts:
    """Count everything from scratch."""
    n_nodes = len(labels)
    node = np.zeros((n_nodes, n_actions), dtype=np.int32)
    node_of = np.repeat(np.arange(n_nodes), np.diff(first))
    np.add.at(node, (node_of, actions), 1)
    cluster = np.zeros((n_slots, n_actions), dtype=np.int32)
    np.add.at(cluster, labels, node)
    return Counts(
        node,
        cluster,
        cluster.sum(axis=1, dtype=np.int64),
        np.bincount(labels, minlength=n_slots).astype(np.int64),
    )
