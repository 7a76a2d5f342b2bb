"""The actions themselves, standing still, and what is done overall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics
from onlooker.repertoire.base import Everywhere, Kind, Part, World

_STAYS = 0.9  # probability of not moving by which an action of a table stays


@dataclass(frozen=True)
class Actions(Kind):
    """Every action by itself: the paper's model."""

    def build(self, world: World) -> list[Part]:
        """One behaviour for each action."""
        return [Part("actions", list(world.action_names), Everywhere(np.eye(world.n_actions)))]


@dataclass(frozen=True)
class Stay(Kind):
    """Not to move, where there is an action that does not."""

    def build(self, world: World) -> list[Part]:
        """One behaviour."""
        still = _still(position_dynamics(world.dynamics))
        if not still.any():
            return []
        return [Part("stay", ["stays"], Everywhere(still[None] / still.sum()))]


def _still(dynamics: Any) -> Array:
    """``(A,)``: which actions do not move."""
    steps = getattr(dynamics, "steps", None)
    if steps is not None:
        return np.asarray(~steps.any(axis=1))
    matrices = getattr(dynamics, "matrices", None)
    if matrices is None:
        return np.zeros(dynamics.n_actions, dtype=bool)
    return np.array([matrix.diagonal().min() >= _STAYS for matrix in matrices])


@dataclass(frozen=True)
class Overall(Kind):
    """The frequencies of all actions taken together: what is left when nothing local is known.

    Actions are not seen, so the frequencies are those that make all steps most likely (EM).
    """

    def build(self, world: World) -> list[Part]:
        """One behaviour."""
        share = world.shares[None]
        return [Part("overall", ["acts as everywhere"], Everywhere(share / share.sum()))]
