"""Figures of demonstrations, partitions and policies in the plane.

Every function draws into `ax`, or into a new figure, and returns the axes. Colours are those of
Okabe and Ito and the map "cividis", which most colour-blind people can tell apart. Needs
matplotlib: ``pip install onlooker[plot]``.
"""

from onlooker.partitions.geometry import distance_to
from onlooker.plot.base import cluster_colours, require_matplotlib
from onlooker.plot.charts import n_controllers, rose
from onlooker.plot.plane import partition, policy_error, policy_field, regions, trajectories

__all__ = [
    "cluster_colours",
    "distance_to",
    "n_controllers",
    "partition",
    "policy_error",
    "policy_field",
    "regions",
    "require_matplotlib",
    "rose",
    "trajectories",
]
