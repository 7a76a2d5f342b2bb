"""What of a problem's trajectories was seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onlooker.checks import Array
from onlooker.hyper import Prior
from onlooker.reading.states import is_hidden


@dataclass(frozen=True)
class Incomplete:
    """What of a problem's trajectories was seen."""

    observed: Array
    """All states, unseen ones marked."""
    offsets: Array
    noise: float | Prior = 0.0
    """Standard deviation of Gaussian noise on every seen coordinate."""

    @property
    def exact(self) -> bool:
        """Whether what was seen was seen without noise."""
        return not isinstance(self.noise, Prior) and self.noise == 0.0

    @cached_property
    def hidden(self) -> Array:
        """Indices of states that were not, or not entirely, seen."""
        return np.flatnonzero(is_hidden(self.observed))

    @cached_property
    def starts(self) -> Array:
        """Index of the first state of every transition."""
        keep = np.ones(len(self.observed), dtype=bool)
        keep[self.offsets[1:] - 1] = False
        return np.flatnonzero(keep)
