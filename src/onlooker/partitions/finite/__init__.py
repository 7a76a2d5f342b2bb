"""Finitely many clusters without regard to location: uniform and mixing priors."""

from onlooker.partitions.finite.prior import Mixing, Uniform

__all__ = ["Mixing", "Uniform"]
