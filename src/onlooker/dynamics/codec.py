"""Dynamics as JSON and arrays, without pickle: a file must never run code."""

from __future__ import annotations

from typing import Any, Protocol

from onlooker.checks import Array
from onlooker.dynamics.base import Dynamics
from onlooker.dynamics.displacement import DisplacementDynamics
from onlooker.dynamics.features import FeatureDynamics
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.dynamics.simulated import SimulatedGymnasium
from onlooker.dynamics.slippery import SlipperyDynamics
from onlooker.dynamics.tabular import TabularDynamics
from onlooker.files import CannotDecode


class Storable(Dynamics, Protocol):
    """A dynamics that can be rebuilt from a file."""

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """JSON with the name of the class, and arrays whose names start with `name`.

        None: this one has parts, such as functions, that a file cannot hold.
        """

    @classmethod
    def from_arrays(
        cls, description: dict[str, Any], arrays: dict[str, Array], name: str
    ) -> Dynamics:
        """Undo `to_arrays`; raises `CannotDecode` where that is not possible here."""


CLASSES: dict[str, type[Storable]] = {
    "DisplacementDynamics": DisplacementDynamics,
    "FeatureDynamics": FeatureDynamics,
    "GeographicDynamics": GeographicDynamics,
    "SimulatedGymnasium": SimulatedGymnasium,
    "SlipperyDynamics": SlipperyDynamics,
    "TabularDynamics": TabularDynamics,
}


def encode_dynamics(
    dynamics: Dynamics | None, arrays: dict[str, Array], name: str = "dynamics"
) -> Any:
    """Return JSON and add to `arrays`; what cannot be stored is only named."""
    if dynamics is None:
        return None
    if isinstance(dynamics, tuple(CLASSES.values())):
        storable: Any = dynamics
        stored = storable.to_arrays(name)
        # A subclass of the user's own may move differently: its name is not known here.
        if stored is not None and isinstance(dynamics, CLASSES.get(stored[0]["class"], ())):
            arrays |= stored[1]
            return stored[0]
    kind = type(dynamics)
    return {"opaque": f"{kind.__module__}.{kind.__qualname__}"}


def decode_dynamics(
    description: Any, arrays: dict[str, Array], name: str = "dynamics"
) -> Dynamics | None:
    """Undo `encode_dynamics`; None where the dynamics were not stored, or not by this version."""
    if description is None:
        return None
    try:
        return decode_part(description, arrays, name)
    except CannotDecode:
        return None


def decode_part(description: dict[str, Any], arrays: dict[str, Array], name: str) -> Dynamics:
    """The same for a dynamics that another is made of: raises `CannotDecode`."""
    kind = CLASSES.get(description.get("class", ""))
    if kind is None:
        raise CannotDecode(description.get("class", description.get("opaque")))
    return kind.from_arrays(description, arrays, name)
