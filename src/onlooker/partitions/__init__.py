"""Which groupings of states are believable: priors over partitions, one a file."""

from onlooker.partitions.base import PartitionPrior
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
from onlooker.partitions.potts.prior import Potts
from onlooker.partitions.static import Static

__all__ = [
    "ChineseRestaurant",
    "Decay",
    "DistanceDependent",
    "ExponentialDecay",
    "GaussianDecay",
    "LogisticDecay",
    "Mixing",
    "PartitionPrior",
    "Potts",
    "Static",
    "Uniform",
    "WindowDecay",
]
