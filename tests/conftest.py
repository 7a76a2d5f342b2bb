"""What happens once, before any test."""

import os
from pathlib import Path

import kernels

import onlooker


def pytest_configure(config):
    """Compile before the workers start: else each would compile the same kernels."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    package = Path(onlooker.__file__).parent
    kernels.clear_stale(package)
    if config.getoption("numprocesses", None) and kernels.missing(package):
        print("compiling kernels ...", flush=True)
        kernels.compile_all()
