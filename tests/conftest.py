"""Fixtures that all tests share."""

import os
from pathlib import Path

import onlooker


def pytest_configure(config):
    """Numba does not notice an edit in a function imported from another module: clear its cache."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    kernels = Path(onlooker.__file__).parent
    cached = list(kernels.rglob("*.nbi"))
    sources = [path for path in kernels.rglob("*.py") if "@njit" in path.read_text()]
    edited = max(path.stat().st_mtime for path in sources)
    if cached and edited > min(path.stat().st_mtime for path in cached):
        for path in [*cached, *kernels.rglob("*.nbc")]:
            path.unlink(missing_ok=True)
