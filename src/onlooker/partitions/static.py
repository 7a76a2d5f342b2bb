"""One controller a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlooker.partitions.base import PartitionPrior
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.partition import FixedPartition


@dataclass
class Static(PartitionPrior):
    """Every state has a controller of its own; nothing is shared and nothing is clustered."""

    def sampler(self, problem: Problem) -> FixedPartition:
        """Make the sampler."""
        from onlooker.partitions.partition import FixedPartition

        return FixedPartition(problem.layout)
