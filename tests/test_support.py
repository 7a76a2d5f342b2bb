"""Helpers of the tests: what they may import, and what they do with numba's cache."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import kernels
import pytest

import onlooker
from onlooker.compiled import clear_stale

TESTS = Path(__file__).parent
PACKAGE = Path(onlooker.__file__).parent


# -- who imports whom -----------------------------------------------------------------------------


def test_the_oracle_imports_nothing_of_the_library():
    code = "import sys, exact; print([m for m in sys.modules if m.startswith('onlooker')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=TESTS / "support", capture_output=True)
    assert done.stdout.decode().strip() == "[]", done.stderr


def imported(path):
    """Names of modules that a file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_tests_import_neither_benchmarks_nor_each_other():
    for path in TESTS.rglob("*.py"):
        names = list(imported(path))
        assert not [name for name in names if name.startswith(("benchmarks", "test_"))], path


# -- kernels --------------------------------------------------------------------------------------


def test_every_kernel_is_a_cached_function_of_its_module():
    """A kernel made within a function misses the cache on disk in every process."""
    n_kernels = 0
    for path in kernels.sources(PACKAGE):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_the_top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            for decorator in getattr(node, "decorator_list", ()):
                if ast.unparse(decorator).startswith("njit"):
                    options = {
                        option.arg: ast.unparse(option.value) for option in decorator.keywords
                    }
                    assert id(node) in at_the_top, (path, node.name)
                    assert options["cache"] == options["nogil"] == "True", (path, node.name)
                    assert "fastmath" not in options, (path, node.name)
                    n_kernels += 1
    assert n_kernels > 50


@pytest.fixture
def package(tmp_path):
    """Two rooms with kernels, both compiled, and one without."""
    for room in ("one", "two"):
        (tmp_path / room / "__pycache__").mkdir(parents=True)
        (tmp_path / room / "kernels.py").write_text("@njit\ndef f(): ...")
        for suffix in (".nbi", ".1.nbc"):
            (tmp_path / room / "__pycache__" / f"kernels.f-1.py312{suffix}").touch()
    (tmp_path / "plain.py").write_text("")
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (1, 1))
    return tmp_path


@pytest.mark.parametrize("edited", ["two/kernels.py", "plain.py"], ids=["kernels", "their types"])
def test_an_edit_in_one_room_clears_the_kernels_of_all(package, edited):
    os.utime(package / edited)
    clear_stale(package)
    assert list(package.rglob("*.nb?")) == []
    assert len(kernels.missing(package)) == 2


def test_kernels_are_kept_while_nothing_is_edited(package):
    clear_stale(package)
    assert len(list(package.rglob("*.nb?"))) == 4
    assert kernels.missing(package) == []
