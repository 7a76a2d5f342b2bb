"""One step of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic

from onlooker.checks import Array
from onlooker.gibbs.state import P, State

Info = Mapping[str, float]
"""What an update reports of itself, such as its acceptance: kept beside the draws, by name."""

NO_INFO: Info = {}


class Update(Generic[P]):
    """Draws some of the unknowns given all the others, in place."""

    name: ClassVar[str]
    """Under which `Info` is kept."""

    def begin(self, state: State[P]) -> None:
        """Give a chain that starts the hyper-parameters and parts that this update draws.

        Labels, actions and counts are not there yet.
        """

    def prepare(self, state: State[P]) -> None:
        """Bring the derived arrays in line with the state: at the start, and after loading."""

    def __call__(self, state: State[P]) -> Info:
        """Draw."""
        raise NotImplementedError

    def adapt(self, state: State[P], info: Info) -> None:
        """Learn from what a sweep of tuning reported; later sweeps change nothing here.

        What is learnt belongs to the state, so that it is stored.
        """

    def kept(self, state: State[P]) -> dict[str, Array]:
        """What is kept of a draw that only this update knows."""
        return {}

    def log_density(self, state: State[P]) -> float:
        """A term of ``ln p`` that only this update knows."""
        return 0.0


class Placeholder(Update[Any]):
    """Stands for updates that somebody else knows."""

    name = "placeholder"


ACTIONS = Placeholder()
"""Among the updates of a prior: draw all actions once more here."""
