"""What happens once, before any test."""

import os
import shutil
import tempfile
from pathlib import Path

# Threads of linear algebra that wait for each other make small problems many times slower on a
# busy machine. Before NumPy is imported; processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import kernels

import onlooker
from onlooker.compiled import clear_stale


def pytest_configure(config):
    """Compile before the workers start: else each would compile the same kernels.

    Libraries keep files of their own, under the home directory or beside other programs' temporary
    ones; here they keep them in a directory that is removed in the end.
    """
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    config.scratch = tempfile.mkdtemp(prefix="onlooker-tests-")
    os.environ["ONLOOKER_TEST_SCRATCH"] = config.scratch
    os.environ["MPLCONFIGDIR"] = f"{config.scratch}/matplotlib"
    os.environ["DASK_TEMPORARY_DIRECTORY"] = f"{config.scratch}/dask"
    package = Path(onlooker.__file__).parent
    clear_stale(package)
    if config.getoption("numprocesses", None) and kernels.missing(package):
        print("compiling kernels ...", flush=True)
        kernels.compile_all()


def pytest_unconfigure(config):
    """Remove what libraries left behind."""
    if hasattr(config, "scratch"):
        shutil.rmtree(config.scratch, ignore_errors=True)
