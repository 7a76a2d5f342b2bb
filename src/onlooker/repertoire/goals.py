"""Intentions: heading for a place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker import geography
from onlooker.checks import Array, finite_array, positive_integer, stored_array
from onlooker.demonstrations import distinct_states
from onlooker.dynamics.base import position_dynamics
from onlooker.planning.bellman import check_discount
from onlooker.repertoire.base import Block, Kind, Part, Picture, World
from onlooker.warnings import RepertoireWarning, warn

_MAX_WORK = 300_000_000  # entries of a table times goals: about ten seconds
_MAX_BITS = 1 << 28  # goals × states × actions
_MAX_PLACES = 4_000  # distinct places that landmarks are chosen from
_TIE = 1e-9


@dataclass(frozen=True)
class Goals(Kind):
    """To head for a place.

    In a finite space: the greedy policy for a reward there, from the table of transitions; ties are
    shared evenly. Where actions are steps: the one that leads most directly to the place, whatever
    its length.

    Parameters
    ----------
    candidates
        At most so many places: all states of a finite space up to there, otherwise where
        trajectories end and landmarks of the visited states.
    discount
        How much a reward is worth a step later; in a finite space only. Smaller ones make policies
        that shun detours less.
    """

    candidates: int | None = None
    discount: float = 0.9

    def __post_init__(self) -> None:
        if self.candidates is not None:
            positive_integer("candidates", self.candidates)
        check_discount(self.discount)

    def build(self, world: World) -> list[Part]:
        """One behaviour for each candidate."""
        most = world.most if self.candidates is None else min(self.candidates, world.most)
        if hasattr(world.dynamics, "matrices"):
            return self._planned(world, most)
        position: Any = position_dynamics(world.dynamics)
        if hasattr(position, "steps") and hasattr(position, "displacements"):
            return [_in_space(world, position, min(most, 300))]
        return []

    def _planned(self, world: World, most: int) -> list[Part]:
        from onlooker.planning import goal_actions
        from onlooker.planning.transitions import as_transitions

        table: Any = world.dynamics
        move = as_transitions(table).without_tails()
        room = _MAX_BITS // (table.n_states * table.n_actions)
        affordable = min(room, int(_MAX_WORK / move.work))
        if min(most, affordable) < 2:
            return []
        goals = np.arange(table.n_states)
        if len(goals) > min(most, affordable):
            goals = _thinned(world, min(most, affordable))
        if affordable < most and len(goals) < table.n_states:
            warn(
                f"a table of {table.n_states} states is large to plan in, so {len(goals)} of them "
                "are goals",
                RepertoireWarning,
            )
        best = goal_actions(move, goals, self.discount)
        return [Part("goals", [f"heads for state {g}" for g in goals], Planned(best, goals))]


def _thinned(world: World, most: int) -> Array:
    """Where trajectories end, the commonest first, then states seen, then any: evenly of each."""
    ends, times = np.unique(world.ends, return_counts=True)
    ends = ends[np.argsort(-times, kind="stable")]
    seen = np.unique(world.demos.states)
    never = np.setdiff1d(np.arange(world.dynamics.n_states), seen)
    chosen = ends[: most // 2]
    for states in (np.setdiff1d(seen, chosen), never):
        few = min(most - len(chosen), len(states))
        along = np.linspace(0, len(states) - 1, few).astype(np.int64)
        chosen = np.concatenate([chosen, states[along]])
    return np.sort(chosen)


@dataclass(frozen=True, eq=False)
class Planned(Block):
    """Greedy policies of a finite space: any of the best actions."""

    best: Array
    """``(n, S, A)``, whether an action is one of the best."""
    goals: Array
    """``(n,)``: the state that each heads for."""

    def __post_init__(self) -> None:
        if self.best.ndim != 3 or self.best.dtype != bool or not self.best.any(axis=2).all():
            raise ValueError("best must be (goals, states, actions) with a best action everywhere")
        stored_array("goals", self.goals, "i", (len(self.best),), 0, self.best.shape[1])

    @property
    def n(self) -> int:
        """How many goals."""
        return len(self.best)

    def policies(self, states: Array) -> Array:
        """All the best alike."""
        best = self.best[:, states].transpose(1, 0, 2)
        return np.asarray(best / best.sum(axis=2, keepdims=True))

    def picture(self, number: int) -> Picture:
        """Its goal."""
        return Picture(self.goals[number : number + 1])


# -- in space --------------------------------------------------------------------------------------


def _in_space(world: World, position: Any, most: int) -> Part:
    steps, on_earth = np.array(position.steps), hasattr(position, "bearings")
    n_dims = steps.shape[1]
    ends = distinct_states(world.ends[:, :n_dims])[0]
    places = distinct_states(world.demos.states[:, :n_dims])[0]
    points = landmarks(ends, places, most, on_earth)
    sizes = _unit(places)[[1, 1]] if on_earth else _unit(places)  # longitudes jump at 180°
    digits = [max(0, 1 - math.floor(math.log10(size))) for size in sizes]
    names = [f"heads for {_name(point, digits, on_earth)}" for point in points]
    return Part("goals", names, Toward(points, steps, on_earth))


def _name(point: Array, digits: list[int], on_earth: bool) -> str:
    """A place, with as many digits as tell it from its neighbours."""
    texts = [f"{abs(x) if on_earth else x:.{n}f}" for x, n in zip(point, digits, strict=True)]
    if not on_earth:
        return f"({', '.join(texts)})".replace("-", "−")
    east, north = point
    return f"({texts[0]}°{'W' if east < 0 else 'E'}, {texts[1]}°{'S' if north < 0 else 'N'})"


def landmarks(first: Array, places: Array, most: int, on_earth: bool) -> Array:
    """Some of `first`, half of what there is room for, and `places` far from all of them.

    Each next landmark is the place that is farthest from those there are.
    """
    seeds = first[np.linspace(0, len(first) - 1, min(len(first), max(1, most // 2))).astype(int)]
    few = np.linspace(0, len(places) - 1, min(len(places), _MAX_PLACES)).astype(int)
    places = places[few]
    spots = geography.in_space(places) if on_earth else places / _unit(places)
    chosen = geography.in_space(seeds) if on_earth else seeds / _unit(places)
    apart = np.full(len(spots), np.inf)
    for spot in chosen:
        apart = np.minimum(apart, ((spots - spot) ** 2).sum(axis=1))
    found: list[int] = []
    while len(seeds) + len(found) < most and apart.max() > 0:
        farthest = int(apart.argmax())
        found.append(farthest)
        apart = np.minimum(apart, ((spots - spots[farthest]) ** 2).sum(axis=1))
    return np.concatenate([seeds, places[found]])


def _unit(values: Array) -> Array:
    """A typical size in each dimension: dimensions may have different units."""
    spread = values.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


@dataclass(frozen=True, eq=False)
class Toward(Block):
    """The steps that lead most directly to a point."""

    points: Array
    """``(n, d)``."""
    steps: Array
    """``(A, d)``."""
    on_earth: bool

    def __post_init__(self) -> None:
        stored_array("points", self.points, "f", (len(self.points), *self.steps.shape[1:]))
        finite_array("steps", self.steps, ndim=2)
        if self.on_earth:
            geography.check_places("points", self.points)

    @property
    def n(self) -> int:
        """How many goals."""
        return len(self.points)

    def policies(self, states: Array) -> Array:
        """All steps of the best direction alike; standing still, or any, at the point itself."""
        away = self._moves(states)
        size = np.sqrt((self.steps**2).mean(axis=0))
        unit = np.where(size > 0, size, 1.0)
        steps, away = self.steps / unit, away / unit
        length = np.linalg.norm(steps, axis=1)
        moving = length > 0
        ahead = away @ (steps / np.where(moving, length, 1.0)[:, None]).T
        far = np.linalg.norm(away, axis=2, keepdims=True)
        there = far[:, :, 0] <= 0.0
        ahead[:, :, ~moving] = np.where(there, 1.0, -np.inf)[:, :, None]
        best = np.greater_equal(ahead, ahead.max(axis=2, keepdims=True) - _TIE * far, out=ahead)
        best /= (best @ np.ones(len(steps)))[:, :, None]
        return np.asarray(best)

    def picture(self, number: int) -> Picture:
        """Its goal."""
        return Picture(self.points[number : number + 1])

    def _moves(self, states: Array) -> Array:
        """``(len(states), n, d)``: from each state to each point."""
        here = states[:, : self.points.shape[1]]
        if not self.on_earth:
            return np.asarray(self.points[None] - here[:, None])
        start = np.repeat(here, self.n, axis=0)
        moves = geography.displacements(start, np.tile(self.points, (len(here), 1)))
        return np.asarray(moves.reshape(len(here), self.n, 2))
