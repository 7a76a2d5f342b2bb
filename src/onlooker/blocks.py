"""What is too large for memory, or for the cache, is done in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

ENTRIES = 1 << 22
"""Numbers that are held at a time."""


def slices_of(n: int, width: int, entries: int = ENTRIES) -> Iterator[slice]:
    """Slices of `n` rows of `width` numbers each, of at most so many numbers, or of one row."""
    size = max(1, entries // width)
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))
