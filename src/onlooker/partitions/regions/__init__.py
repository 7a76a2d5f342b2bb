"""Regions that share controllers: near states together, far regions alike where they are."""

from onlooker.partitions.regions.prior import Regions

__all__ = ["Regions"]
