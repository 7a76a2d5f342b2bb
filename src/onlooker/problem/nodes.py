"""Which states carry an indicator: those seen, all, or landmarks that stand for the others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from onlooker.checks import Array, as_array, positive_integer, read_only, require_memory
from onlooker.demonstrations import Demonstrations, as_states, distinct_states

if TYPE_CHECKING:
    from onlooker.problem.problem import Problem

MANY = 2_000
"""Distinct states from which on landmarks stand for them by default."""
MAX_LANDMARKS = 3_000
_PER_NODE = 100  # bytes, of a problem and one chain with the leanest prior


class Places(Protocol):
    """Where nodes lie."""

    def nearest_nodes(self, states: Array, k: int) -> tuple[Array, Array]:
        """The `k` nearest nodes of each state, and their distances."""


@dataclass(frozen=True)
class Landmarks:
    """A random choice of the states seen as nodes; each other state belongs to the nearest of them.

    Parameters
    ----------
    n
        How many, at most: where there are no more states than that, all are nodes.
    per_chain
        Each chain has its own: the mean over such chains predicts as a forest of trees does.
    seed
        Of the choice.
    """

    n: int = MAX_LANDMARKS
    per_chain: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        positive_integer("n", self.n)
        positive_integer("seed", self.seed, minimum=0)

    @classmethod
    def for_states(cls, n_states: int, seed: int = 0) -> Landmarks | None:
        """What so many distinct states should have: half of them, or none where they are few."""
        return cls(min(MAX_LANDMARKS, -(-n_states // 2)), seed=seed) if n_states >= MANY else None

    def choose(self, n_states: int, chain: int) -> Array:
        """The states, by number, that are the nodes of a chain."""
        key = (chain, 0) if self.per_chain else (0, 0)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
        return np.sort(rng.choice(n_states, min(self.n, n_states), replace=False))


class Owners(NamedTuple):
    """How the nodes of a chain stand for all states."""

    whole: Problem
    """The problem with all of them."""
    nodes: Array
    """``(n,)``: the landmarks, by their numbers there."""
    owner: Array
    """``(N,)``: which landmark each state belongs to."""

    def spread(self, values: Array) -> Array:
        """What each landmark has, for every state."""
        return np.asarray(values[self.owner])

    def links(self, link: Array) -> Array:
        """Links between landmarks as links between states: other states link to their landmark."""
        links = self.nodes[self.owner]
        links[self.nodes] = self.nodes[link]
        return links


def at_landmarks(
    problem: Problem, chain: int, places: Callable[[Problem], Places | None]
) -> Problem:
    """The problem whose nodes are the landmarks of a chain, with the same transitions."""
    assert problem.landmarks is not None
    nodes = problem.landmarks.choose(problem.n_nodes, chain)
    coarse = copy.copy(problem)
    coarse.__dict__.pop("layout", None)
    coarse.states = read_only(problem.states[nodes])
    coarse.landmarks, coarse.paths = None, None
    found = places(coarse)
    if found is None:
        raise ValueError(
            "nodes=Landmarks(...) needs a prior by which near states share a cluster, such as "
            "Regions(); use nodes='visited'"
        )
    owner = found.nearest_nodes(problem.states, 1)[0][:, 0].astype(np.int64)
    owner[nodes] = np.arange(len(nodes))
    coarse.node_of = read_only(owner[problem.node_of])
    coarse.owners = Owners(problem, nodes, owner)
    return coarse


def node_states(demos: Demonstrations, nodes: Any, n_states: int | None) -> tuple[Array, Array]:
    """The states of the nodes, and the node of every state seen."""
    if isinstance(nodes, Landmarks):
        nodes = "visited"
    if isinstance(nodes, str):
        if nodes == "visited":
            return demos.distinct()
        if nodes != "all":
            raise ValueError(f"nodes must be 'visited', 'all' or an array, got {nodes!r}")
        if not demos.is_discrete or n_states is None:
            raise ValueError(
                "nodes='all' needs a finite state space; give the extra states as an array instead"
            )
        require_memory(_PER_NODE * n_states, f"{n_states:,} nodes", "use nodes='visited'")
        return np.arange(n_states), demos.states
    extra = as_array("nodes", nodes)
    if not demos.is_discrete and extra.ndim == 1 and extra.dtype.kind in "iu":
        extra = extra.astype(np.float64)  # whole numbers on the real line
    extra = as_states(extra, "nodes")
    if extra.shape[1:] != demos.states.shape[1:]:
        kind = "(n,) integers" if demos.is_discrete else f"(n, {demos.n_dims}) floats"
        raise ValueError(
            f"nodes must be {kind} like the demonstrations, "
            f"got dtype {extra.dtype} and shape {extra.shape}"
        )
    if demos.is_discrete and n_states is not None and extra.max(initial=0) >= n_states:
        where = int(np.argmax(extra >= n_states))
        raise ValueError(
            f"nodes holds {extra[where]} at index {where}; "
            f"the dynamics have states 0 to {n_states - 1}"
        )
    distinct, index = distinct_states(np.concatenate([demos.states, extra]))
    return distinct, index[: len(demos.states)]
