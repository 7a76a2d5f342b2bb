"""Which groupings of states are believable: priors over partitions, a folder or file each."""

from typing import Any

from onlooker.partitions.base import PartitionPrior
from onlooker.partitions.continuation import Continuation
from onlooker.partitions.crp import ChineseRestaurant
from onlooker.partitions.ddcrp import DistanceDependent
from onlooker.partitions.decay import (
    Decay,
    ExponentialDecay,
    GaussianDecay,
    LogisticDecay,
    WindowDecay,
)
from onlooker.partitions.finite import Mixing, Uniform
from onlooker.partitions.places import ScaledAxes
from onlooker.partitions.potts import Potts
from onlooker.partitions.regions import Regions
from onlooker.partitions.static import Static

PRIORS: dict[str, type[PartitionPrior[Any]]] = {
    prior.key: prior
    for prior in (Static, Uniform, Mixing, Potts, ChineseRestaurant, DistanceDependent, Regions)
}
"""Every prior by its name in files: the one place outside its own folder that names a prior."""

__all__ = [
    "PRIORS",
    "ChineseRestaurant",
    "Continuation",
    "Decay",
    "DistanceDependent",
    "ExponentialDecay",
    "GaussianDecay",
    "LogisticDecay",
    "Mixing",
    "PartitionPrior",
    "Potts",
    "Regions",
    "ScaledAxes",
    "Static",
    "Uniform",
    "WindowDecay",
]
