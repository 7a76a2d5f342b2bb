"""What a chain over regions remembers beside labels."""

from __future__ import annotations

from typing import NamedTuple

from onlooker.checks import Array


class Sharing(NamedTuple):
    """Links, which make regions, and how many regions each controller has.

    The slots in use are the first ones: controllers are tidied after every update.
    """

    link: Array
    """``c_i``."""
    siblings: Array
    """As in `onlooker.partitions.links.arrays.Forest`."""
    n_regions: Array
    """``(slots,)``: ``m_k``."""
    adapted: Array
    """What tuning found: the longest step on the grid of scales that links are carried along, and
    how many controllers there is room for while actions are summed out."""
