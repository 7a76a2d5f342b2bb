"""Numba's `njit`, once stale kernels are out of the way.

Numba's cache does not notice an edit in a function or a type that was imported from another file:
old code runs on, or, where a type has another name now, loading it fails. So kernels that were
compiled before the newest file of the package was written are removed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import _CacheLocator
from numba.misc.appdirs import AppDirs

__all__ = ["clear_stale", "njit"]


def _folders(package: Path) -> list[Path]:
    """Where numba keeps kernels: beside their sources; where it is told to; for each user."""
    inside = {path.parent for path in package.rglob("*.py")}
    user: Any = AppDirs(appname="numba", appauthor=False)  # type: ignore[no-untyped-call]
    bases = [config.CACHE_DIR, user.user_cache_dir]  # type: ignore[attr-defined]
    name_of: Any = _CacheLocator.get_suitable_cache_subpath
    named = [name_of(str(folder / "_")) for folder in inside]
    elsewhere = [Path(base) / name for base in bases if base for name in named]
    return [folder / "__pycache__" for folder in inside] + elsewhere


def clear_stale(package: Path) -> None:
    """Remove compiled kernels that are older than some file of the package."""
    folders = [folder for folder in _folders(package) if folder.is_dir()]
    cached = [path for folder in folders for path in folder.glob("*.nbi")]
    if not cached:
        return
    edited = max(path.stat().st_mtime for path in package.rglob("*.py"))
    with contextlib.suppress(OSError):  # where nothing can be removed, nothing was written either
        if edited > min(path.stat().st_mtime for path in cached):
            for path in [*cached, *(path for folder in folders for path in folder.glob("*.nbc"))]:
                path.unlink(missing_ok=True)


clear_stale(Path(__file__).parent)
