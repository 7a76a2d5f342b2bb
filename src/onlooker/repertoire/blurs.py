"""An action and its neighbours as one behaviour: a stochastic expert need not be learnt thrice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.actions import Ring, action_rings
from onlooker.repertoire.base import Everywhere, Kind, Part, World

_MAX_WIDTH = 9


@dataclass(frozen=True)
class Blurs(Kind):
    """An action or one of its neighbours, all alike; each width is a kind. And any action at all.

    Which actions are neighbours the dynamics says: a circle of directions for each speed, a line,
    or the ``action_order`` of a table. Where there is no order, "any action" alone is offered.

    Parameters
    ----------
    widths
        How many actions make a blur: odd numbers from 3 on; None: 3, 5, ... up to two thirds of
        the actions in a row, at most 9.
    """

    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for width in self.widths or ():
            if not isinstance(width, int | np.integer) or width < 3 or width % 2 == 0:
                raise ValueError(f"widths are odd numbers from 3 on, got {width!r}")

    def build(self, world: World) -> list[Part]:
        """A part for each width, and one for "any action"."""
        rings = action_rings(world.dynamics)
        longest = max((len(ring.actions) for ring in rings), default=0)
        widths = self.widths
        if widths is None:
            most = min(max(3, 2 * longest // 3), _MAX_WIDTH)
            widths = tuple(range(3, most + 1, 2))
        parts = [self._part(width, rings, world) for width in widths if width < longest]
        any_action = Everywhere(np.full((1, world.n_actions), 1 / world.n_actions))
        return [*parts, Part("any action", ["any action"], any_action)]

    @staticmethod
    def _part(width: int, rings: list[Ring], world: World) -> Part:
        names, rows = [], []
        for ring in rings:
            if len(ring.actions) <= width:
                continue
            for at in range(len(ring.actions)):
                inside = _window(ring, at, width // 2)
                row = np.zeros(world.n_actions)
                row[inside] = 1 / len(inside)
                rows.append(row)
                names.append(_name(ring, at, width // 2, inside, world.action_names))
        return Part(f"blurs of {width}", names, Everywhere(np.array(rows)))


def _window(ring: Ring, at: int, reach: int) -> Array:
    around = np.arange(at - reach, at + reach + 1)
    if ring.closed:
        return ring.actions[around % len(ring.actions)]
    return ring.actions[around[(around >= 0) & (around < len(ring.actions))]]


def _name(ring: Ring, at: int, reach: int, inside: Array, names: list[str]) -> str:
    if not ring.closed:
        return f"{names[inside[0]]} to {names[inside[-1]]}"
    spread = f"{reach}" if ring.spacing is None else f"{reach * ring.spacing:.3g}°"
    return f"{names[ring.actions[at]]} ± {spread}"
