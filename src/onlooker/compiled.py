"""Numba's `njit`, with a cache that is never stale and that nothing depends on.

Numba's cache does not notice an edit in a function or a type that was imported from another file:
old code runs on, or, where a type has another name now, loading it fails. So kernels that were
compiled before the newest file of the package was written are removed. And where numba can read or
write no cache, for want of permission or of space, it fails; here, kernels are then compiled in
each process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numba
from numba import config
from numba.core.caching import FunctionCache, NullCache, _CacheLocator
from numba.misc.appdirs import AppDirs

from onlooker.warnings import warn

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
    """Remove compiled kernels, unless all are newer than every file of the package."""
    folders = [folder for folder in _folders(package) if folder.is_dir()]
    cached = [path for folder in folders for path in folder.glob("*.nbi")]
    if not cached:
        return
    edited = max(path.stat().st_mtime for path in package.rglob("*.py"))
    with contextlib.suppress(OSError):  # where nothing can be removed, nothing was written either
        if edited >= min(path.stat().st_mtime for path in cached):
            for path in [*cached, *(path for folder in folders for path in folder.glob("*.nbc"))]:
                path.unlink(missing_ok=True)


_warned: list[str] = []


def _warn_of_no_cache(why: str) -> None:
    """Warn, once per process."""
    if not _warned:
        _warned.append(why)
        warn(
            f"compiled kernels cannot be stored ({why}), so every process compiles its own; let "
            "the environment variable NUMBA_CACHE_DIR name a directory that can be written to",
            RuntimeWarning,
        )


class _NoCache(NullCache):  # type: ignore[misc]
    """Where numba finds no directory to write to."""

    def save_overload(self, signature: Any, data: Any) -> None:
        """Say so, of the first kernel that is compiled."""
        _warn_of_no_cache("no directory for them can be written to")


class _Cache(FunctionCache):  # type: ignore[misc]
    """Kernels on disk; they are compiled again where they cannot be read."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The kernel, or None: what a torn file does to unpickling may be any error."""
        try:
            return super().load_overload(signature, context)  # type: ignore[no-untyped-call]
        except Exception:
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Store the kernel, if that can be done."""
        try:
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]
        except Exception as error:
            _warn_of_no_cache(f"{self.cache_path}: {error}")


def njit(*, cache: bool, **options: Any) -> Any:
    """Numba's `njit`, with such a cache if `cache` is set; nothing calls kernels from C."""
    options["no_cfunc_wrapper"] = True

    def compiled(function: Any) -> Any:
        kernel: Any = numba.njit(**options)(function)
        if cache:
            try:
                kernel._cache = _Cache(function)  # type: ignore[no-untyped-call]
            except RuntimeError:
                kernel._cache = _NoCache()
        return kernel

    return compiled


clear_stale(Path(__file__).parent)
