"""A sample of mutants: small mistakes, one at a time, that the tests should catch.

    python tests/support/mutants.py --seed 0

Each mutant is a copy of the package with one change in one file: a comparison flipped, + for -, a
constant off by one, `and` for `or`, a condition negated, a statement left out. The tests of its
room run until the first fails. A mutant that no test has caught when time is up counts as a
survivor. Tests that killed are run once more on the package as it is: where they fail there too,
they have shown nothing.
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

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "onlooker"
TESTS = ROOT / "tests"
SECONDS = 60  # of processor time, for the tests of one mutant
MAX_FILES = 12  # test files for one mutant; most of those that are caught are by the first
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


def tests_for(mutant):
    """Test files that are nearest to a mutant, the nearest first.

    Near is what stands in the same room, has the same name, and shares words with the function
    that few other tests have.
    """
    room = room_of(mutant.path)
    texts = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        name = str(path.relative_to(TESTS))
        if not LEFT_OUT.search(name):
            texts[path] = name, words_of(path)
    wanted = words_in(function_around(PACKAGE / mutant.path, mutant.line))
    known = {word: sum(word in words for _, words in texts.values()) for word in wanted}
    weight = {word: math.log(len(texts) / n) for word, n in known.items() if n}
    scores = {}
    for path, (name, words) in texts.items():
        own = name.startswith(HOMES.get(room, (f"{room}/", f"test_{room}")))
        same = mutant.path.stem.strip("_") in path.stem
        shared = sum(value for word, value in weight.items() if word in words)
        scores[path] = own + same + 2 * shared / max(sum(weight.values()), 1.0)
    return sorted(scores, key=lambda path: -scores[path])[:MAX_FILES]


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
    """Tests that fail, or the first of them; None if time is up, by either clock."""
    with tempfile.TemporaryDirectory() as home:
        limited = ["sh", "-c", f'ulimit -t {processor}; exec "$@"', "sh"]
        command = [*limited, sys.executable, "-m", "pytest", "-q", "-p", "no:xdist",
                   "-p", "no:cacheprovider", "-m", "not slow", "--no-header", "--tb=no",
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
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.M)
    if failed or process.returncode in (0, 5):
        return failed
    return None if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else ["pytest itself"]


def judge(mutant, deadline):
    """The test that kills a mutant; or that it survived, that time was up, or never begun."""
    seconds = deadline - time.monotonic()
    if seconds < 5:
        return NOT_RUN
    with planted(mutant) as source:
        failed = run_tests(source, tests_for(mutant), seconds)
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
    deadline = time.monotonic() + 60 * options.minutes
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(judge, mutant, deadline) for mutant in mutants]
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
