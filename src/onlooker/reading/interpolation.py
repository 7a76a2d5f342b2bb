"""Between two states: straight lines, the short way round where a dimension wraps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onlooker.checks import Array, positive_number


def between(missing: Array, groups: Array) -> tuple[Array, Array, Array]:
    """Rows that are missing between two that are not, and these two, within one group."""
    index = np.arange(len(missing))
    before = np.maximum.accumulate(np.where(missing, -1, index))
    after = np.minimum.accumulate(np.where(missing, len(index), index)[::-1])[::-1]
    holes = np.flatnonzero(missing & (before >= 0) & (after < len(index)))
    left, right = before[holes], after[holes]
    # groups are contiguous: if both ends are of one group, so is all between
    inside = groups[left] == groups[right]
    return holes[inside], left[inside], right[inside]


@dataclass(frozen=True)
class PeriodicAxes:
    """Which dimensions of a state wrap round, and from where."""

    periods: Mapping[int, float]
    lows: Mapping[int, float]

    @classmethod
    def of_columns(
        cls, states: Array, periodic: Mapping[Any, float] | None, columns: list[Any]
    ) -> Self:
        """Periods by name of column; values come back to within a period of the lowest seen."""
        periods, lows = {}, {}
        for column, period in (periodic or {}).items():
            if column not in columns or states.ndim == 1:
                named = ", ".join(map(str, columns)) if states.ndim == 2 else "there is none"
                raise ValueError(f"periodic names {column!r}, which is no real state: {named}")
            dim = columns.index(column)
            periods[dim] = positive_number(f"periodic[{column!r}]", period)
            known = states[:, dim]
            lows[dim] = float(np.min(known, where=np.isfinite(known), initial=np.inf))
        return cls(periods, lows)

    def nearest(self, differences: Array) -> Array:
        """The short way round, in place."""
        for dim, period in self.periods.items():
            differences[:, dim] -= period * np.round(differences[:, dim] / period)
        return differences

    def wrap(self, states: Array) -> Array:
        """Values within one period, in place; those that are stay as they are, to the bit."""
        for dim, period in self.periods.items():
            states[:, dim] -= period * np.floor((states[:, dim] - self.lows[dim]) / period)
        return states

    def fill(self, states: Array, holes: Array, left: Array, right: Array, share: Array) -> None:
        """Put what is missing at `holes` on the line from `left` to `right`, in place."""
        rise = self.nearest(states[right] - states[left])
        filled = self.wrap(states[left] + share[:, None] * rise)
        there = np.isfinite(states[holes])  # a part of the state may be known
        states[holes] = np.where(there, states[holes], filled)

    def along(self, states: Array, times: Array, grid: Array) -> Array:
        """The path through `states` at the times of `grid`."""
        path = np.array(states)
        for dim, period in self.periods.items():
            path[:, dim] = np.unwrap(path[:, dim], period=period)
        return self.wrap(np.column_stack([np.interp(grid, times, column) for column in path.T]))
