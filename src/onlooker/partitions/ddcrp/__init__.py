"""As many clusters as it takes, near states together: the heart of the paper."""

from onlooker.partitions.ddcrp.prior import DistanceDependent

__all__ = ["DistanceDependent"]
