"""What a chain of the mixing prior remembers."""

from __future__ import annotations

from typing import NamedTuple

from onlooker.checks import Array


class Mixture(NamedTuple):
    """The mixing weights."""

    weights: Array
    """``q``, ``(K,)``; empty where they are integrated out."""
