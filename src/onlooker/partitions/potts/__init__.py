"""Finitely many clusters, near states together."""

from onlooker.partitions.potts.prior import Potts

__all__ = ["Potts"]
