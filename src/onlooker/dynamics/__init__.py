"""How the world moves: T(s' | s, a) for each of finitely many candidate actions."""

from onlooker.dynamics.base import Dynamics, UncertainDynamics
from onlooker.dynamics.displacement import DisplacementDynamics
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.dynamics.gymnasium import GymnasiumDynamics
from onlooker.dynamics.perturbed import PerturbedDynamics
from onlooker.dynamics.slippery import SlipperyDynamics
from onlooker.dynamics.tabular import TabularDynamics

__all__ = [
    "DisplacementDynamics",
    "Dynamics",
    "GeographicDynamics",
    "GymnasiumDynamics",
    "PerturbedDynamics",
    "SlipperyDynamics",
    "TabularDynamics",
    "UncertainDynamics",
]
