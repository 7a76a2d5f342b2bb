"""Helpers of the tests: what they may import, and what they do with numba's cache."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kernels
import mutants
import pytest
from lines_run import LinesRun

import onlooker
from onlooker import compiled
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


# -- where files are written ----------------------------------------------------------------------


def test_libraries_keep_their_files_in_a_directory_that_is_removed_in_the_end():
    import dask
    import matplotlib

    scratch = Path(os.environ["ONLOOKER_TEST_SCRATCH"])
    for folder in (matplotlib.get_configdir(), matplotlib.get_cachedir(),
                   dask.config.get("temporary-directory")):  # fmt: skip
        assert Path(folder).is_relative_to(scratch)


# -- mutants --------------------------------------------------------------------------------------


def test_mutants_are_programs_with_one_change_each_spread_over_the_rooms():
    made = mutants.sample(60, seed=1)
    assert [str(mutant) for mutant in made] == [str(m) for m in mutants.sample(60, seed=1)]
    assert made != mutants.sample(60, seed=2)
    assert len({mutants.room_of(mutant.path) for mutant in made}) > 30
    for mutant in made:
        compile(mutant.text, str(mutant.path), "exec")
        before = ast.unparse(ast.parse((mutants.PACKAGE / mutant.path).read_text(encoding="utf-8")))
        lines = zip(before.splitlines(), mutant.text.splitlines(), strict=True)
        assert sum(one != other for one, other in lines) == 1, mutant


WRONG = """
def f(x):
    if x < 2 and x != 1:
        x += 1
    return x * 3
"""
CHECKED = """
from room import f
def test_f():
    assert [f(x) for x in (0, 1, 2)] == [3, 3, 6]
"""


def test_every_mistake_in_a_function_is_made_and_caught_by_tests_that_look(tmp_path):
    (tmp_path / "room.py").write_text(WRONG)
    (tmp_path / "test_room.py").write_text(CHECKED)
    test = tmp_path / "test_room.py"
    assert mutants.run_tests(tmp_path, [test], 60) == []
    made = [
        mutants.make(tmp_path / "room.py", *where, package=tmp_path)
        for where in mutants.mutants_of(tmp_path / "room.py")
    ]
    kinds = {"Lt -> LtE", "NotEq -> Eq", "And -> Or", "Add -> Sub", "Mult -> Div", "2 -> 3",
             "left out: x += 1"}  # fmt: skip
    assert kinds <= {mutant.what for mutant in made}
    for mutant in made:
        if mutant.what in ("And -> Or", "Mult -> Div"):
            (tmp_path / "room.py").write_text(mutant.text)
            assert mutants.run_tests(tmp_path, [test], 60), mutant


def test_a_mistake_that_makes_a_test_go_on_for_ever_is_caught(tmp_path, monkeypatch):
    (tmp_path / "room.py").write_text("def f(x):\n    while x:\n        pass\n")
    (tmp_path / "test_room.py").write_text("from room import f\ndef test_f():\n    f(1)\n")
    monkeypatch.setattr(mutants, "HANGS", 2)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    test = f"{tmp_path}/test_room.py::test_f"
    running = mutants.run_tests(tmp_path, [test], 60, processor=2)
    assert running == "test_room.py::test_f"
    assert mutants.hangs(tmp_path, running, 60)
    (tmp_path / "room.py").write_text("def f(x):\n    pass\n")
    assert not mutants.hangs(tmp_path, running, 60)


@pytest.mark.slow
def test_the_tests_that_run_a_line_are_known_and_stay_known_when_it_moves(tmp_path):
    package = tmp_path / "src" / "onlooker"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    files = [TESTS / "test_blocks.py"]
    run = LinesRun(package, files, kept=tmp_path / "kept", jobs=1)
    lines = (package / "blocks.py").read_text().splitlines()
    within = next(i for i, line in enumerate(lines, 1) if "yield" in line)
    found = run.of(Path("blocks.py"), within)
    others = set(run.tests()[str(files[0])]) - found
    assert len(found) == 4
    assert [test.endswith("[0-5-blocks4]") for test in others] == [True]  # it has no rows
    (package / "blocks.py").write_text("\n".join(["# moved", *lines]))
    again = LinesRun(package, files, kept=tmp_path / "kept", jobs=1)
    assert again.of(Path("blocks.py"), within + 1) == found
    assert again.of(Path("blocks.py"), 1) == set()


def test_every_kernel_is_reached_by_lines_or_tests_that_name_it():
    """Mistakes in others would survive: the lines of kernels are not traced."""
    words = set().union(*(mutants.words_of(path) for path in mutants.test_files()))
    for path in kernels.sources(PACKAGE):
        for name, first, _, kernel, _ in mutants.functions_of(path):
            if kernel:
                mutant = mutants.Mutant(path.relative_to(PACKAGE), first, name, "", "")
                callers = list(mutants.callers_of(mutant))
                assert any(lines or kernel in words for kernel, lines in callers), (path, name)


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
@pytest.mark.parametrize("age", [0, 10], ids=["the same tick of the clock", "later"])
def test_an_edit_in_one_room_clears_the_kernels_of_all(package, edited, age):
    for path in package.rglob("*.nb?"):
        os.utime(path, (50, 50))
    os.utime(package / edited, (50 + age, 50 + age))
    clear_stale(package)
    assert list(package.rglob("*.nb?")) == []
    assert len(kernels.missing(package)) == 2


def test_kernels_are_kept_while_nothing_is_edited(package):
    clear_stale(package)
    assert len(list(package.rglob("*.nb?"))) == 4
    assert kernels.missing(package) == []


KERNEL = """
from numba import njit
@njit(cache=True)
def f(x):
    return x + 1
f(1)
"""


@pytest.mark.parametrize("told", [True, False], ids=["where it is told to", "for each user"])
def test_kernels_that_numba_keeps_elsewhere_are_cleared_too(tmp_path, told):
    """Numba itself writes one, in a process of its own; then a file of the package is edited."""
    package, cache = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    (package / "kernels.py").write_text(KERNEL)
    (package / "types.py").write_text("")
    if not told:  # where no folder can be made, it uses the user's
        (package / "__pycache__").write_text("")
    env = os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    env["NUMBA_CACHE_DIR"] = str(cache) if told else ""
    env["PYTHONPATH"] = os.pathsep.join([str(package.parent), *filter(None, sys.path)])

    def python(code):
        subprocess.run([sys.executable, "-c", code], env=env, check=True)

    clear = "from pathlib import Path; from onlooker.compiled import clear_stale; "
    clear += f"clear_stale(Path({str(package)!r}))"
    python("import package.kernels")
    assert list(cache.rglob("*.nbi"))
    python(clear)
    assert list(cache.rglob("*.nbi"))
    os.utime(package / "types.py", (2**31, 2**31))
    python(clear)
    assert list(cache.rglob("*.nb?")) == []


# -- where there can be no cache ------------------------------------------------------------------

OURS = KERNEL.replace("from numba", "from onlooker.compiled").replace(
    "cache=True", "cache=True, nogil=True"
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import a module with a kernel, as often as one likes, each time as if in a new process."""
    (tmp_path / "made.py").write_text(OURS.replace("f(1)", ""))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(compiled.config, "CACHE_DIR", "")

    def load():
        monkeypatch.setattr(compiled, "_warned", [])
        spec = importlib.util.spec_from_file_location("made", tmp_path / "made.py")
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return load


def spoil(folder):
    """Put a file where the folder should be: not even root can write into it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("")


def test_where_no_directory_can_be_written_kernels_are_compiled_all_the_same(module, tmp_path):
    spoil(tmp_path / "__pycache__")
    spoil(tmp_path / "user")
    made = module()
    with pytest.warns(RuntimeWarning, match="cannot be stored.*NUMBA_CACHE_DIR") as caught:
        assert [made.f(1), made.f(1.5)] == [2, 2.5]  # two kernels
    assert len(caught) == 1


def test_where_storing_fails_kernels_are_used_all_the_same(module, tmp_path):
    made = module()
    spoil(tmp_path / "__pycache__")
    with pytest.warns(RuntimeWarning, match=rf"cannot be stored \({tmp_path}") as caught:
        assert [made.f(1), made.f(1.5)] == [2, 2.5]
    assert len(caught) == 1


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("rest", [0, 40])
def test_torn_kernels_are_compiled_and_stored_again(module, tmp_path, suffix, rest):
    assert module().f(1) == 2
    (torn,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    torn.write_bytes(torn.read_bytes()[:rest])
    for hits in (0, 1):
        again = module()
        assert again.f(1) == 2
        assert sum(again.f.stats.cache_hits.values()) == hits
