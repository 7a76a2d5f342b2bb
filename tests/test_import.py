"""`import onlooker` is quick, light and quiet; names are found when they are asked for."""

import os
import resource
import subprocess
import sys

import pytest

import onlooker

HEAVY = ["numba", "llvmlite", "scipy", "sklearn", "pandas", "matplotlib", "ot", "arviz", "xarray"]


def run(code, *options):
    """What the code prints, in a process whose coverage is not measured: that takes time too."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, onlooker; print([m for m in {HEAVY} if m in sys.modules])"
    assert run(code) == "[]"


def test_importing_the_package_is_quick():
    """The entire process, the interpreter's start included, warm; the least of several.

    Processor time: what a busy machine does meanwhile does not count.
    """
    times = []
    for _ in range(10):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("import onlooker")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.3


def test_importing_the_package_is_quiet_even_with_warnings_as_errors():
    assert run("import onlooker", "-W", "error") == ""


def test_the_input_side_compiles_nothing():
    code = (
        "import sys, onlooker, onlooker.dynamics, onlooker.partitions, onlooker.hyper\n"
        "onlooker.Demonstrations, onlooker.Problem, onlooker.partitions.DistanceDependent()\n"
        "print([m for m in ('numba', 'sklearn', 'pandas', 'matplotlib', 'ot') if m in sys.modules])"
    )
    assert run(code) == "[]"


@pytest.mark.parametrize("name", onlooker.__all__)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(onlooker, name) is not None
    assert name in dir(onlooker)


def test_star_import_gives_the_public_names():
    names: dict[str, object] = {}
    exec("from onlooker import *", names)
    assert set(onlooker.__all__) <= set(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'onlooker' has no attribute 'Nonsense'"):
        onlooker.Nonsense  # noqa: B018


def test_the_version_is_a_version():
    assert onlooker.__version__.split(".")[0].isdigit()


@pytest.mark.parametrize("module", ["dynamics", "partitions"])
def test_rooms_export_what_they_say(module):
    imported = __import__(f"onlooker.{module}", fromlist=["__all__"])
    for name in imported.__all__:
        assert getattr(imported, name).__doc__
