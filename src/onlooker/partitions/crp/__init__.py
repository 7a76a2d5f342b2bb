"""As many clusters as it takes, without regard to location."""

from onlooker.partitions.crp.prior import ChineseRestaurant

__all__ = ["ChineseRestaurant"]
