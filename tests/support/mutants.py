"""A sample of mutants: small mistakes, one at a time, that the tests should catch.

    python tests/support/mutants.py --seed 0

Each mutant is a copy of the package with one change in one file: a comparison flipped, + for -, a
constant off by one, `and` for `or`, a condition negated, a statement left out. The tests that run
its line, the nearest first, go on until one fails or, run by itself, does not end. A mutant that no
test has caught when time is up counts as a survivor. Tests that killed are run once more on the
package as it is: where they fail there too, they have shown nothing.

Which tests run which lines is found by running all of them first (`lines_run`), once: that takes as
long as `make test`, and what has changed since is added each time.
"""

import argparse
import ast
import contextlib
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import kernels
from lines_run import LinesRun

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "onlooker"
TESTS = ROOT / "tests"
SECONDS = 45  # of processor time, for some tests of one mutant
HANGS = 45  # for one test by itself, with kernels to compile: more is taken for a loop without end
WAITS = 240  # by the clock, for any test: what waits for nothing takes no processor's time
FIRST_FILES = 5  # most mutants that are caught are by the nearest; to read more files takes long
QUICK = 6  # seconds of each of these files to begin with
OF_ALL = "test_public_defaults.py"  # quick, and of all rooms
NEAR_FILES = 3  # all of whose tests may run: what runs in other processes leaves no trace of lines
LEFT_OUT = re.compile(r"test_(browser\w*|fuzz|package|ci|layers|pages)\.py|calibration|golden/")
# fmt: off
HOMES = {"__init__": "test_import", "sampling": "inference/", "compiled": "test_support",
         "gibbs": "partitions/", "defaults": "test_recognizer", "stopping": "cli/test_check"}
"""Where rooms are tested that have no tests of their own name."""
# fmt: on

SURVIVED, TIME_IS_UP, NOT_RUN = "SURVIVED", "SURVIVED until time was up", "not run"
ALIVE = (SURVIVED, TIME_IS_UP)

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
            ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
            ast.NotIn: ast.In}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
            ast.FloorDiv: ast.Mult}  # fmt: skip
JOINED = {ast.And: ast.Or, ast.Or: ast.And}


class Mutant(NamedTuple):
    """A mistake: the file, where in it, what it is, and the whole text with it."""

    path: Path
    line: int
    function: str
    what: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line} in {self.function or 'the module'}: {self.what}"


# -- mistakes -------------------------------------------------------------------------------------


def changes_of(node):
    """Ways to get a node wrong: pairs of a description and a function that does it in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        other = COMPARED[type(node.ops[0])]
        yield (f"{type(node.ops[0]).__name__} -> {other.__name__}",
               lambda n: n.ops.__setitem__(0, other()))  # fmt: skip
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED:
        sign = COMPUTED[type(node.op)]
        text = any(isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", 0), str)
                   for part in ast.walk(node))  # fmt: skip
        if not text:
            yield f"{type(node.op).__name__} -> {sign.__name__}", lambda n: setattr(n, "op", sign())
    if isinstance(node, ast.BoolOp):
        joined = JOINED[type(node.op)]
        yield (f"{type(node.op).__name__} -> {joined.__name__}",
               lambda n: setattr(n, "op", joined()))  # fmt: skip
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} -> {node.value + 1}", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield ("condition negated",
               lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test)))  # fmt: skip
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr | ast.AugAssign) and not docstring:
        yield f"left out: {ast.unparse(node)[:60]}", None


def sites(tree):
    """Nodes that do something, each with the function that it is in: no types, no messages."""

    def walk(node, function, inside):
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "keywords", "bases"):
                continue
            if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _tells(node)):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                    continue
                if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                    continue
                here = child.name if isinstance(child, ast.FunctionDef) else function
                yield from ((child, here),) if inside or here else ()
                yield from walk(child, here, inside or bool(here))

    return list(walk(tree, "", False))


def _tells(call):
    return ast.unparse(call.func).split(".")[-1] in ("warn", "notify", "echo", "remark")


@cache
def mutants_of(path):
    """All mutants of a file, as (number of site, number of change)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (number, choice)
        for number, (node, _) in enumerate(sites(tree))
        for choice, _ in enumerate(changes_of(node))
    ]


def make(path, number, choice, package=PACKAGE):
    """The mutant of a file with one change."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node, function = sites(tree)[number]
    line = node.lineno
    what, change = list(changes_of(node))[choice]
    if change is None:
        _replace(tree, node, ast.copy_location(ast.Pass(), node))
    else:
        change(node)
    text = ast.unparse(ast.fix_missing_locations(tree))
    return Mutant(path.relative_to(package), line, function, what, text)


def _replace(tree, old, new):
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and any(item is old for item in value):
                value[[item is old for item in value].index(True)] = new


def room_of(path):
    """The room of a file, relative to the package."""
    return path.parts[0].removesuffix(".py")


def sample(n, seed, package=PACKAGE):
    """`n` mutants, as evenly over the rooms as can be."""
    rng = random.Random(seed)
    by_room = {}
    for path in sorted(package.rglob("*.py")):
        found = [(path, *where) for where in mutants_of(path)]
        by_room.setdefault(room_of(path.relative_to(package)), []).extend(found)
    rooms = [room for room in sorted(by_room) if by_room[room]]
    rng.shuffle(rooms)
    for places in by_room.values():
        rng.shuffle(places)
    chosen = []
    while len(chosen) < n:
        some = [by_room[room].pop() for room in rooms if by_room[room]]
        chosen += some[: n - len(chosen)]
    return [make(*place, package) for place in chosen]


# -- tests ----------------------------------------------------------------------------------------


@cache
def words_of(path):
    """Names and other words of a file of tests."""
    return words_in(path.read_text(encoding="utf-8"))


def words_in(text):
    """Names and other words of a program."""
    return {word for word in re.findall(r"[A-Za-z_]+", text) if len(word) > 3}


def function_around(path, line):
    """The text of the function that a line of a file is in."""
    text = path.read_text(encoding="utf-8")
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    around = [node for node in functions if node.lineno <= line <= node.end_lineno]
    lines = text.splitlines()
    if not around:
        return lines[line - 1]
    inner = max(around, key=lambda node: node.lineno)
    return "\n".join(lines[inner.lineno - 1 : inner.end_lineno])


def test_files():
    """Files of tests that may judge a mutant."""
    return [path for path in sorted(TESTS.rglob("test_*.py"))
            if not LEFT_OUT.search(str(path.relative_to(TESTS)))]  # fmt: skip


def nearness(mutant):
    """How near each file of tests is to a mutant.

    Near is what stands in the same room, has the same name, and shares words with the function
    that few other tests have.
    """
    room = room_of(mutant.path)
    texts = {path: (str(path.relative_to(TESTS)), words_of(path)) for path in test_files()}
    wanted = words_in(function_around(PACKAGE / mutant.path, mutant.line))
    known = {word: sum(word in words for _, words in texts.values()) for word in wanted}
    weight = {word: math.log(len(texts) / n) for word, n in known.items() if n}
    near = {}
    for path, (name, words) in texts.items():
        own = name.startswith(HOMES.get(room, (f"{room}/", f"test_{room}")))
        same = mutant.path.stem.strip("_") in path.stem
        shared = sum(value for word, value in weight.items() if word in words)
        near[str(path)] = own + same + 2 * shared / max(sum(weight.values()), 1)
    return near


def tests_for(mutant, run):
    """Tests for a mutant, in two parts, as many as there is time for.

    Those that run its line, or that run or name what calls the kernel it is in; then what else
    stands in files that are near. The first part is of the nearest files, and what is quick there.
    """
    near = nearness(mutant)
    wanted = set(run.of(mutant.path, mutant.line))
    for name, callers in callers_of(mutant):
        wanted.update(*(run.of(*caller) for caller in callers))
        wanted.update(
            *(tests for file, tests in run.tests().items() if name in words_of(Path(file)))
        )
    files = sorted(run.tests(), key=lambda file: -near[file])
    nearest = files[:NEAR_FILES]
    nearest += [str(TESTS / OF_ALL)] * (str(TESTS / OF_ALL) not in nearest)
    reached = [f for f in files if f in nearest or not wanted.isdisjoint(run.tests()[f])]
    part, left = {}, SECONDS
    for file in reached:
        quick = QUICK if file in (*reached[:FIRST_FILES], str(TESTS / OF_ALL)) else 0
        tests = run.tests()[file]
        for test in sorted(tests, key=lambda test: (test not in wanted, tests[test])):
            spent = tests[test]
            if (test in wanted or file in nearest) and spent < left:
                part[test] = 0 if spent < quick else 1
                left -= spent
                quick -= spent
    return tuple([test for test in part if part[test] == number] for number in (0, 1))


@cache
def functions_of(path):
    """Functions of a file: name, first line, whether it is a kernel, lines by the names in them."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            named = {}
            for part in (part for line in node.body for part in ast.walk(line)):
                name = getattr(part, "id", getattr(part, "attr", None))
                named.setdefault(name, getattr(part, "lineno", node.lineno))
            kernel = any("njit" in ast.unparse(one) for one in node.decorator_list)
            found.append((node.name, node.lineno, node.end_lineno, kernel, named))
    return found


def callers_of(mutant):
    """For a mistake in a kernel: each kernel that it is in, with the lines of Python that name it.

    What is compiled leaves no trace of the lines that ran.
    """
    around = [one for one in functions_of(PACKAGE / mutant.path)
              if one[1] <= mutant.line <= one[2] and one[3]]  # fmt: skip
    names = [one[0] for one in around]
    for name in names:
        lines = set()
        for path in PACKAGE.rglob("*.py"):
            for caller, _, _, kernel, named in functions_of(path):
                if name in named and kernel and caller not in names:
                    names.append(caller)
                elif name in named and not kernel:
                    lines.add((path.relative_to(PACKAGE), named[name]))
        yield name, lines


def importers(module, package=PACKAGE):
    """Files whose kernels may have a module's compiled into them, itself included."""
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    names = {
        path: ".".join(["onlooker", *path.relative_to(package).with_suffix("").parts])
        for path in texts
    }
    found = {package / module}
    while True:
        known = {names[path] for path in found}
        more = {
            path
            for path, text in texts.items()
            if path not in found and any(f"from {name} import" in text for name in known)
        }
        if not more:
            return found
        found |= more


@contextlib.contextmanager
def planted(mutant):
    """The package with the mistake in it, in a folder of its own; kernels without it are kept."""
    with tempfile.TemporaryDirectory(prefix="onlooker-mutant-") as folder:
        package = Path(folder) / "src" / "onlooker"
        shutil.copytree(PACKAGE, package)
        if mutant is not None:
            path = package / mutant.path
            stamp = path.stat().st_mtime
            if "@njit" in path.read_text(encoding="utf-8"):
                for file in importers(mutant.path):
                    cache = package / file.relative_to(PACKAGE).parent / "__pycache__"
                    for kernel in cache.glob(f"{file.stem}.*.nb?"):
                        kernel.unlink()
            path.write_text(mutant.text, encoding="utf-8")
            os.utime(path, (stamp + 0.5, stamp + 0.5))  # older than the kernels that are kept
        yield package.parent


def run_tests(source, tests, seconds, processor=SECONDS, first=True):
    """Tests that fail, or the first of them; None if time is up.

    Where it is the processor's that is up: the name of the test that was running.
    """
    with tempfile.TemporaryDirectory() as home:
        limited = ["sh", "-c", f'ulimit -t {processor}; exec "$@"', "sh"]
        command = [*limited, sys.executable, "-m", "pytest", "-v", "-p", "no:xdist",
                   "-p", "no:cacheprovider", "-m", "not slow", "--no-header", "--tb=no",
                   "-o", f"timeout={WAITS}",
                   f"--basetemp={home}/tests", *["-x"] * first, *map(str, tests)]  # fmt: skip
        env = os.environ | {"PYTHONPATH": str(source), "HOME": home, "TMPDIR": home}
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            output = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # a group of its own: what tests started, too
            process.communicate()
            return None
    if "ERROR: not found:" in output:  # cases may be named by what the mistake has changed
        files = dict.fromkeys(str(test).partition("::")[0] for test in tests)
        return run_tests(source, files, seconds, processor, first)
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.M)
    if failed or process.returncode in (0, 5):
        return failed
    if process.returncode not in (-signal.SIGXCPU, -signal.SIGKILL):
        return ["pytest itself"]
    running = re.search(r"^(\S+\.py::.*\S) *\Z", output, re.M)  # no verdict follows
    return running and running[1]


def hangs(source, test, seconds):
    """Whether a test goes on and on, by itself; all that may judge a mutant take a few seconds."""
    return seconds > 0 and run_tests(source, [f"{ROOT}/{test}"], seconds, HANGS) == test


def judge(mutant, run, deadline):
    """The test that kills a mutant; or that it survived, that time was up, or never begun."""
    if deadline - time.monotonic() < 5:
        return NOT_RUN
    failed = []
    with planted(mutant) as source:
        for tests in tests_for(mutant, run):
            if tests and failed == []:
                failed = run_tests(source, tests, deadline - time.monotonic())
        if isinstance(failed, str):
            failed = [failed] if hangs(source, failed, deadline - time.monotonic()) else None
    return TIME_IS_UP if failed is None else failed[0] if failed else SURVIVED


def main():
    """Sample, run, report."""
    parser = argparse.ArgumentParser(description="Run a sample of mutants.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--part", default=":", help="only some of the sample, such as 15:30")
    options = parser.parse_args()
    part = slice(*(int(end) if end else None for end in options.part.split(":")))
    mutants = sample(options.number, options.seed)[part]
    if kernels.missing(PACKAGE):
        kernels.compile_all()  # once, not for every mutant
    run = LinesRun(PACKAGE, test_files(), jobs=options.jobs)
    deadline = time.monotonic() + 60 * options.minutes
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(judge, mutant, run, deadline) for mutant in mutants]
        verdicts = []
        for mutant, job in zip(mutants, jobs, strict=True):
            verdicts.append(job.result())
            print(f"{len(verdicts):3} {mutant}\n    {verdicts[-1]}", flush=True)
    killers = sorted({verdict for verdict in verdicts if "::" in verdict})
    with planted(None) as source:
        idle = run_tests(source, killers, 1800, 1800, first=False) if killers else []
    if idle is None:
        sys.exit("tests that killed take too long on the package as it is")
    report(mutants, [SURVIVED if verdict in idle else verdict for verdict in verdicts], idle)


def report(mutants, verdicts, idle):
    """Print the share that was killed, and what survived."""
    alive = [pair for pair in zip(mutants, verdicts, strict=True) if pair[1] in ALIVE]
    n_ran = len(mutants) - verdicts.count(NOT_RUN)
    killed = n_ran - len(alive)
    print(f"\n{killed} of {n_ran} mutants killed ({killed / max(n_ran, 1):.0%}); "
          f"{len(mutants) - n_ran} not run for want of time")  # fmt: skip
    for test in idle:
        print(f"fails without a mutant, too: {test}")
    for mutant, verdict in alive:
        print(f"{verdict}: {mutant}")


if __name__ == "__main__":
    main()
