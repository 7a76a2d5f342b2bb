"""What happens once, before any test."""

import os
from pathlib import Path

# Threads of linear algebra that wait for each other make small problems many times slower on a
# busy machine. Before NumPy is imported; processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import kernels

import onlooker
from onlooker.compiled import clear_stale


def pytest_configure(config):
    """Compile before the workers start: else each would compile the same kernels."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    package = Path(onlooker.__file__).parent
    clear_stale(package)
    if config.getoption("numprocesses", None) and kernels.missing(package):
        print("compiling kernels ...", flush=True)
        kernels.compile_all()
