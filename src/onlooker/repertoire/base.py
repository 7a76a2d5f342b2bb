"""Behaviours: policies with names, of several kinds, evaluated together at any states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from onlooker.blocks import slices_of
from onlooker.checks import Array, as_policy, stored_array
from onlooker.demonstrations import Demonstrations, distinct_states
from onlooker.dynamics.actions import action_names
from onlooker.gibbs.arrays import smallest_int

_ROUNDS = 20  # of EM
_LOST = 1e-20  # weights below are lost in rounding beside all others


@dataclass(frozen=True)
class World:
    """What a kind of behaviours is made for."""

    dynamics: Any
    demos: Demonstrations
    most: int = 500
    """Candidates that a kind may have, where it can do with fewer."""

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.dynamics.n_actions)

    @cached_property
    def action_names(self) -> list[str]:
        """A name for each action."""
        return action_names(self.dynamics, self.n_actions)

    @cached_property
    def shares(self) -> Array:
        """``(A,)``: of each action in all steps, those that make these most likely (EM)."""
        loglik = self.dynamics.log_likelihood(*self.demos.transitions())
        likelihood = np.exp(loglik - loglik.max(axis=1, keepdims=True))
        share = np.full(self.n_actions, 1 / self.n_actions)
        for _ in range(_ROUNDS):
            joint = likelihood * share
            share = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        return np.asarray(share)

    @property
    def ends(self) -> Array:
        """The last state of each trajectory."""
        return self.demos.states[self.demos.offsets[1:] - 1]


class Picture(NamedTuple):
    """What a behaviour is drawn as: the goals that it heads for, or the actions that it takes."""

    goals: Array | None = None
    """``(n,)`` states or ``(n, d)`` positions."""
    actions: Array | None = None


class Block(ABC):
    """Policies of some behaviours: a dataclass of arrays and numbers, so that it can be stored."""

    @property
    @abstractmethod
    def n(self) -> int:
        """How many behaviours."""

    @abstractmethod
    def policies(self, states: Array) -> Array:
        """``(len(states), n, A)``: ``π_b(a | s)``."""

    def picture(self, number: int) -> Picture | None:
        """What behaviour `number` is drawn as; None: it cannot be drawn in one place."""
        return None

    def likelihood(self, states: Array, likelihood: Array) -> Array:
        """``(len(states), n)``: ``Σ_a π_b(a | s) T(s' | s, a)`` of as many transitions."""
        return np.asarray(np.matmul(self.policies(states), likelihood[:, :, None])[:, :, 0])

    def mixed(self, states: Array, weights: Array) -> Array:
        """``(..., len(states), A)``: ``Σ_b weights[..., s, b] π_b(a | s)``."""
        n, width = weights.shape[-2:]
        by_state = weights.reshape(-1, n, width).transpose(1, 0, 2)
        mixed = np.matmul(by_state, self.policies(states)).transpose(1, 0, 2)
        return mixed.reshape(*weights.shape[:-1], mixed.shape[-1])


class Part(NamedTuple):
    """Behaviours of one kind, with their names."""

    kind: str
    names: list[str]
    block: Block


class Kind(ABC):
    """A kind of behaviours, or several: a dataclass of settings."""

    @abstractmethod
    def build(self, world: World) -> list[Part]:
        """What this world offers of it; empty: nothing."""


@dataclass(frozen=True, eq=False)
class Everywhere(Block):
    """Policies that are the same at all states."""

    table: Array
    """``(n, A)``."""

    def __post_init__(self) -> None:
        as_policy("table", self.table, self.table.shape)

    @property
    def n(self) -> int:
        """How many behaviours."""
        return len(self.table)

    def policies(self, states: Array) -> Array:
        """The same for all."""
        return np.broadcast_to(self.table, (len(states), *self.table.shape))

    def likelihood(self, states: Array, likelihood: Array) -> Array:
        """One product of matrices."""
        return np.asarray(likelihood @ self.table.T)

    def mixed(self, states: Array, weights: Array) -> Array:
        """One product of matrices."""
        return np.asarray(weights @ self.table)

    def picture(self, number: int) -> Picture | None:
        """Its actions."""
        return Picture(actions=np.flatnonzero(self.table[number]))


@dataclass(frozen=True, eq=False)
class Known(Block):
    """One policy, known at some states only."""

    states: Array
    table: Array
    """``(len(states), A)``."""
    name: str = ""

    def __post_init__(self) -> None:
        as_policy("table", self.table, (len(self.states), *self.table.shape[1:]))

    @property
    def n(self) -> int:
        """One."""
        return 1

    def policies(self, states: Array) -> Array:
        """Looked up."""
        index = distinct_states(np.concatenate([self.states, states]))[1]
        place = np.full(int(index.max(initial=-1)) + 1, -1)
        place[index[: len(self.states)]] = np.arange(len(self.states))
        found = place[index[len(self.states) :]]
        if (found < 0).any():
            where = int(np.argmin(found))
            raise TypeError(
                f"the behaviour {self.name!r} is code of your own, which is not stored, so it is "
                f"not known at state {states[where]}: only at the states of the run; set "
                "problem.policies to those of a problem made with it"
            )
        return np.asarray(self.table[found][:, None])


@dataclass(frozen=True, eq=False)
class Own(Block):
    """A policy of the user's own."""

    policy: Callable[[Array], Any]
    name: str
    n_actions: int

    @property
    def n(self) -> int:
        """One."""
        return 1

    def policies(self, states: Array) -> Array:
        """As the callable says."""
        given = as_policy(
            f"policy of {self.name!r}", self.policy(states), (len(states), self.n_actions)
        )
        return given[:, None]

    def known_at(self, states: Array) -> Known:
        """What of it can be stored."""
        return Known(states, self.policies(states)[:, 0], self.name)


@dataclass(frozen=True, eq=False)
class Merged(Block):
    """Behaviours that do the same wherever somebody was seen, as one: elsewhere their mean."""

    block: Block
    group: Array
    """``(block.n,)``: the number of the merged behaviour of each."""

    def __post_init__(self) -> None:
        stored_array("group", self.group, "i", (self.block.n,), 0, self.block.n)
        if len(np.unique(self.group)) != self.n:
            raise ValueError("group must have a member for each number")

    @property
    def n(self) -> int:
        """How many are left."""
        return int(self.group.max()) + 1

    @cached_property
    def _mean(self) -> Array:
        together = self.group == np.arange(self.n)[:, None]
        return np.asarray(together / together.sum(axis=1, keepdims=True))

    def policies(self, states: Array) -> Array:
        """Their mean."""
        return np.asarray(np.matmul(self._mean, self.block.policies(states)))

    def picture(self, number: int) -> Picture | None:
        """The goals of all."""
        members = [self.block.picture(int(k)) for k in np.flatnonzero(self.group == number)]
        goals = [one.goals for one in members if one is not None and one.goals is not None]
        return Picture(np.concatenate(goals)) if goals else members[0]


@dataclass(frozen=True, eq=False)
class Behaviour(Kind):
    """A behaviour of your own.

    Parameters
    ----------
    name
        What it does, in words.
    policy
        A callable from states, ``(n,)`` integers or ``(n, d)`` floats, to ``(n, A)``
        probabilities of actions.
    kind
        Behaviours of one kind share a mass.

    Examples
    --------
    >>> Behaviour("go east", policy=lambda states: np.tile([1.0, 0.0], (len(states), 1))).name
    'go east'
    """

    name: str
    policy: Callable[[Array], Any] = field(repr=False)
    kind: str = "own"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a text, got {self.name!r}")
        if not callable(self.policy):
            raise TypeError(
                f"policy of {self.name!r} must be a callable from states to (n, A) probabilities, "
                f"got {self.policy!r}"
            )

    def build(self, world: World) -> list[Part]:
        """Itself."""
        return [Part(self.kind, [self.name], Own(self.policy, self.name, world.n_actions))]


class Policies:
    """The policies of all behaviours of a repertoire, kind after kind."""

    def __init__(self, parts: list[Part], n_actions: int) -> None:
        self.kinds = list(dict.fromkeys(part.kind for part in parts))
        self.parts = sorted(parts, key=lambda part: self.kinds.index(part.kind))
        self.n_actions = n_actions
        self.names = [name for part in self.parts for name in part.names]
        sizes = [part.block.n for part in self.parts]
        self._ends = np.cumsum([0, *sizes])
        self.kind_of = np.repeat([self.kinds.index(part.kind) for part in self.parts], sizes)

    @property
    def n_behaviours(self) -> int:
        """B."""
        return len(self.names)

    def _blocks(self) -> Iterator[tuple[slice, Block]]:
        for part, start, stop in zip(self.parts, self._ends[:-1], self._ends[1:], strict=True):
            yield slice(int(start), int(stop)), part.block

    def picture(self, behaviour: int) -> Picture | None:
        """What a behaviour is drawn as."""
        part = int(np.searchsorted(self._ends, behaviour, side="right")) - 1
        return self.parts[part].block.picture(behaviour - int(self._ends[part]))

    def chunks(self, n: int, times: int = 1) -> Iterator[slice]:
        """Slices of `n` states whose policies memory should hold `times` over."""
        return slices_of(n, self.n_behaviours * self.n_actions * times)

    def __call__(self, states: Array) -> Array:
        """``(n, B, A)``: ``π_b(a | s)``; for many states see `chunks`."""
        out = np.empty((len(states), self.n_behaviours, self.n_actions))
        for where, block in self._blocks():
            out[:, where] = block.policies(states)
        return out

    def mixed(self, states: Array, weights: Array) -> Array:
        """``(..., n, A)``: ``Σ_b weights[..., n, b] π_b(a | s_n)``."""
        out = np.zeros((*weights.shape[:-1], self.n_actions))
        for chunk in self.chunks(len(states)):
            for where, block in self._blocks():
                out[..., chunk, :] += block.mixed(states[chunk], weights[..., chunk, where])
        return out

    def chosen(self, states: Array, weights: Array, rows: Array) -> Array:
        """``(D, n, A)``: the same with ``weights[rows[d, n]]``, ``(rows, B)``, at state n.

        Controllers put nearly all their weight on few behaviours: only those are mixed.
        """
        some = csr_array(np.where(weights > _LOST, weights, 0.0))
        out = np.empty((*rows.shape, self.n_actions))
        for chunk in self.chunks(len(states)):
            for place, policies in enumerate(self(states[chunk]), chunk.start):
                out[:, place] = some[rows[:, place]] @ policies
        return out

    def log_likelihood(self, states: Array, loglik: Array) -> Array:
        """``(n, B)``: ``ln Σ_a π_b(a | s) T(s' | s, a)`` from ``ln T``, ``(n, A)``."""
        shift = loglik.max(axis=1, keepdims=True)
        shift[~np.isfinite(shift)] = 0.0
        out = np.empty((len(states), self.n_behaviours))
        with np.errstate(divide="ignore"):
            for chunk in self.chunks(len(states)):
                likelihood = np.exp(loglik[chunk] - shift[chunk])
                for where, block in self._blocks():
                    if _is_every_action(block):  # as they are, to the last bit
                        out[chunk, where] = loglik[chunk]
                        continue
                    mixed = block.likelihood(states[chunk], likelihood)
                    out[chunk, where] = np.log(mixed) + shift[chunk]
        return out

    def actions_given(
        self, states: Array, behaviours: Array, loglik: Array | None, rng: np.random.Generator
    ) -> Array:
        """Draw ``p(a | b, s, s') ∝ π_b(a | s) T(s' | s, a)``, ``(D, n)`` like `behaviours`.

        ``ln T`` is ``(n, A)``; without it, from ``π_b(a | s)`` alone.
        """
        uniforms = np.asarray(rng.random(behaviours.shape))
        out = np.empty(behaviours.shape, dtype=smallest_int(self.n_actions))
        for chunk in self.chunks(len(states)):
            n = len(states[chunk])
            pair = behaviours[:, chunk] + np.arange(n) * self.n_behaviours
            drawn = np.zeros(n * self.n_behaviours, dtype=bool)
            drawn[pair] = True  # of hundreds of behaviours few are drawn at a state
            weights = self(states[chunk]).reshape(-1, self.n_actions)[drawn]
            if loglik is not None:
                of_state = np.flatnonzero(drawn) // self.n_behaviours
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs = np.log(weights) + loglik[chunk][of_state]
                    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            running = np.cumsum(weights, axis=1)
            place = np.cumsum(drawn) - 1
            for some in slices_of(len(behaviours), n * self.n_actions):
                rows: Array = running[place[pair[some]]]
                top = rows[:, :, -1]
                target = np.minimum(uniforms[some, chunk] * top, np.nextafter(top, 0.0))
                out[some, chunk] = (rows <= target[:, :, None]).sum(axis=2)
        return out

    @property
    def are_actions(self) -> bool:
        """Whether behaviours are nothing but the actions, each once."""
        return len(self.parts) == 1 and _is_every_action(self.parts[0].block)


def _is_every_action(block: Block) -> bool:
    return isinstance(block, Everywhere) and bool(
        block.table.shape[0] == block.table.shape[1] and (block.table == np.eye(block.n)).all()
    )


# -- behaviours that are the same ------------------------------------------------------------------


def merge_equal(part: Part, states: Array, n_actions: int) -> Part:
    """One behaviour for those of a kind that have the same policy at all `states`.

    Policies are told apart by two weighted sums over states and actions.
    """
    block, rng = part.block, np.random.default_rng(0)
    marks = np.zeros((block.n, 2))
    for rows in slices_of(len(states), block.n * n_actions):
        some = states[rows]
        weights = rng.random((len(some), n_actions, 2))
        marks += np.einsum("nba,nam->bm", block.policies(some), weights)
    size = np.maximum(np.abs(marks).max(axis=0), 1.0)
    order = np.lexsort(np.round(marks / size, 10).T)
    apart = np.abs(np.diff(marks[order], axis=0) / size).max(axis=1, initial=0.0) > 1e-10
    number = np.concatenate([[0], np.cumsum(apart)])
    group = np.empty(block.n, dtype=np.int64)
    group[order] = number
    first = np.unique(group, return_index=True)[1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    group = rank[group]  # numbered by first appearance
    if len(first) == block.n:
        return part
    together: list[list[str]] = [[] for _ in first]
    for name, k in zip(part.names, group, strict=True):
        together[k].append(name)
    return Part(part.kind, [_joined(names) for names in together], Merged(block, group))


def _joined(names: list[str]) -> str:
    if len(names) <= 3:
        return " or ".join(names)
    return f"{names[0]} or {len(names) - 1} others that agree with it"
