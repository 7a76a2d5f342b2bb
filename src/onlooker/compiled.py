"""Numba's `njit`, once stale kernels are out of the way.

Numba's cache does not notice an edit in a function or a type that was imported from another file:
old code runs on, or, where a type has another name now, loading it fails. So kernels that were
compiled before the newest file of the package was written are removed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from numba import njit

__all__ = ["clear_stale", "njit"]


def clear_stale(package: Path) -> None:
    """Remove compiled kernels that are older than some file of the package."""
    cached = list(package.rglob("*.nbi"))
    if not cached:
        return
    edited = max(path.stat().st_mtime for path in package.rglob("*.py"))
    with contextlib.suppress(OSError):  # where nothing can be removed, nothing was written either
        if edited > min(path.stat().st_mtime for path in cached):
            for path in [*cached, *package.rglob("*.nbc")]:
                path.unlink(missing_ok=True)


clear_stale(Path(__file__).parent)
