"""The documentation keeps what it says, as far as that can be told without building all of it."""

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import onlooker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SRC = ROOT / "src" / "onlooker"

# The inside: found through the public names, the command line or the web page, never imported.
INSIDE = {"cli", "commands", "demo", "explorer", "fitting", "inference", "model_file"}


# -- the reference --------------------------------------------------------------------------------


def own_names(module):
    """Public names that a module without ``__all__`` defines itself."""
    names = []
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("_")]


def public_names():
    """Full names of all that users may import."""
    names = [f"onlooker.{name}" for name in onlooker.__all__ if not name.startswith("_")]
    moved = {getattr(onlooker, name) for name in onlooker.__all__}
    for found in pkgutil.iter_modules(onlooker.__path__):
        if found.name.startswith("_") or found.name in INSIDE:
            continue
        module = importlib.import_module(f"onlooker.{found.name}")
        for name in getattr(module, "__all__", None) or own_names(module):
            thing = getattr(module, name)
            if not (isinstance(thing, type) and thing in moved):
                names.append(f"{module.__name__}.{name}")
    return names


def warning_classes():
    """Names of all warnings, wherever they are defined: a user filters by them."""
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Warning"):
                yield node.name


def test_the_names_to_look_for_are_those_of_the_package():
    names = public_names()
    expected = {
        "onlooker.Posterior",
        "onlooker.sample",
        "onlooker.partitions.DistanceDependent",
        "onlooker.hyper.Gamma",
        "onlooker.reading.tracks.Duration",
        "onlooker.incomplete.UNSEEN",
    }
    assert expected <= set(names)
    assert not any("onlooker.inference" in name for name in names)
    assert "ConvergenceWarning" in set(warning_classes())


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """Full names of what the reference documents, from a build of its pages alone."""
    folder = tmp_path_factory.mktemp("reference")
    code = f"""
import sys
sys.path.insert(0, {str(DOCS / "_ext")!r})
from sphinx.application import Sphinx
app = Sphinx(
    {str(DOCS / "reference")!r}, None, {str(folder / "out")!r}, {str(folder / "trees")!r}, "dummy",
    confoverrides=dict(
        extensions=["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "click_commands",
                    "docstrings", "short_names"],
    ),
    status=None, warning=None,
)
app.build(force_all=True)
print(*app.env.domains.python_domain.objects, sep="\\n")
print("commands", app.env.tocs["command_line"].astext().replace("\\n", " "))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(reference):
    assert [name for name in public_names() if name not in set(reference)] == []


@pytest.mark.slow
def test_every_warning_is_in_the_reference(reference):
    documented = {name.rpartition(".")[2] for name in reference}
    assert [name for name in warning_classes() if name not in documented] == []


@pytest.mark.slow
def test_every_command_is_in_the_reference(reference):
    from onlooker.cli import main

    (commands,) = (line for line in reference if line.startswith("commands "))
    assert [name for name in main.commands if f"onlooker {name}" not in commands] == []


# -- pages ----------------------------------------------------------------------------------------


def named_tests(text):
    """Pairs of a file and a test, or None for the whole file, that a page names."""
    found = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    return [(file, name or None) for file, name in found]


def test_named_tests_are_found_in_a_page():
    text = "see `tests/test_a.py::test_it`, and `tests/b/test_c.py`."
    assert named_tests(text) == [("tests/test_a.py", "test_it"), ("tests/b/test_c.py", None)]


def test_named_tests_exist():
    checked = 0
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        if "_build" in page.parts:
            continue
        for file, name in named_tests(page.read_text(encoding="utf-8")):
            path = ROOT / file
            assert path.is_file(), f"{page.name} names {file}"
            if name is not None:
                defined = re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.M)
                assert defined, f"{page.name} names {file}::{name}"
                checked += 1
    assert checked > 30


def test_every_promise_has_tests():
    text = (DOCS / "promises.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert list(sections) == [
        "Exact",
        "Reproducible",
        "Nothing lost",
        "Clear refusal",
        "Honest warnings",
    ]
    for promise, told in sections.items():
        assert len(named_tests(told)) >= 5, promise


COLUMNS = [("grid-circular", size) for size in (30, 100, 1000, 3000)]
COLUMNS += [("grid-mdp", size) for size in (10, 100, 1000, 10000)]


def errors_measured():
    """Every error that the README may quote, by experiment, size and method, rounded as there."""
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    measured = {}
    for name in ("grid-circular", "grid-mdp"):
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for method, size, error in re.findall(
            r"^\| (.+), (\d+) trajectories \| ([\d.]+)", section, re.M
        ):
            method = "ddCRP, the paper's settings" if method == "ddCRP" else method
            measured[name, int(size), method] = error
        for size, listed in re.findall(
            rf"^\| {name} \|.*\| (\d+) trajectories: (.+) \|$", text, re.M
        ):
            for method, error in re.findall(r"(EM β=[\d.]+) ([\d.]+)", listed):
                measured[name, int(size), method] = error
    found = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    letters = {"a": "grid-circular", "b": "grid-mdp"}
    for where, errors in found["inferred"]["data"]["means"].items():
        letter, size = where.split()
        for method, error in errors.items():
            measured[letters[letter], int(size), method] = f"{error:.3f}"
    return measured


def test_the_readmes_figures_are_those_of_the_experiments():
    measured = errors_measured()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| trajectories | circling: 30 |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+?) ((?:\| [^|]+ ){8})\|$", table, re.M)
    assert len(rows) == 8
    cells = {
        (*column, method): cell.strip()
        for method, line in rows
        for column, cell in zip(COLUMNS, line.split("|")[1:], strict=True)
    }
    for (name, size, method), cell in cells.items():
        best = min(float(measured.get((name, size, other), "inf")) for other, _ in rows)
        error = measured.get((name, size, method))
        wanted = "–" if error is None else f"**{error}**" if float(error) == best else error
        assert cell == wanted, (name, size, method)


def test_the_citation_file_holds_what_its_format_asks_for():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == onlooker.__version__
    for source in (cited, cited["preferred-citation"]):
        assert source["authors"]
        assert all("name" in a or "family-names" in a for a in source["authors"])
    assert cited["preferred-citation"]["doi"].startswith("10.")


# -- links ----------------------------------------------------------------------------------------


@pytest.fixture
def problems(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("check_links").problems


def page(folder, name, body):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"<html><body>{body}</body></html>", encoding="utf-8")


def test_links_that_hold_are_not_complained_of(tmp_path, problems):
    page(tmp_path, "index.html", "<a href='sub/b.html#place'></a><a href='#top' id='top'></a>")
    page(tmp_path, "sub/b.html", "<p id='place'></p><a href='../index.html'></a><a href='.'></a>")
    page(tmp_path, "sub/index.html", "<a href='https://example.org/a%20b#c'>elsewhere</a>")
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<a href='gone.html'></a>", "leads to no file"),
        ("<img src='gone.png'>", "leads to no file"),
        ("<a href='../../outside.html'></a>", "leads to no file"),
        ("<a href='#gone'></a>", "leads to no such place"),
        ("<a href='other.html#gone'></a>", "leads to no such place"),
        ("<a href='https://'></a>", "names no host"),
        ("<a href='htp://example.org'></a>", "odd scheme"),
        ("<script src='https://example.org/a.js'></script>", "loaded from elsewhere"),
        ("<link rel='stylesheet' href='https://example.org/a.css'>", "loaded from elsewhere"),
        ("<img src='//example.org/a.png'>", "loaded from elsewhere"),
    ],
)
def test_a_wrong_link_is_told_of(tmp_path, problems, body, words):
    page(tmp_path, "index.html", body)
    page(tmp_path, "other.html", "<p id='place'></p>")
    (found,) = problems(tmp_path)
    assert found.startswith("index.html: ")
    assert words in found


def test_fonts_from_elsewhere_are_told_of(tmp_path, problems):
    page(tmp_path, "index.html", "")
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/a.woff2) }")
    assert "a.css" in problems(tmp_path)[0]


def test_no_pages_at_all_are_a_problem(tmp_path, problems):
    assert len(problems(tmp_path)) == 1


# -- notebooks ------------------------------------------------------------------------------------


def notebooks():
    return [
        path
        for path in sorted(DOCS.rglob("*.md"))
        if "_build" not in path.parts and "{code-cell}" in path.read_text(encoding="utf-8")
    ]


def test_every_page_with_cells_runs_them():
    assert DOCS / "tutorial.md" in notebooks()
    for path in notebooks():
        text = path.read_text(encoding="utf-8")
        assert text.startswith("---\n"), f"{path}: without front matter no cell is run"
        assert "kernelspec" in text.split("---\n")[1], path
        assert "raises-exception" not in text, path
        assert not re.search(r"^!", text, re.M), f"{path}: a failing ! passes; use %%bash"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "fails"),
    [("print(6 * 7)", False), ("1 / 0", True), ("%%bash\nonlooker no-such-command", True)],
)
def test_a_cell_that_raises_fails_the_build(tmp_path, cell, fails):
    front = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"
    text = f"{front}# A page\n\n```{{code-cell}} ipython3\n{cell}\n```\n"
    (tmp_path / "index.md").write_text(text, encoding="utf-8")
    options = ["-W", "--keep-going", "-b", "dummy", "-c", str(DOCS)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(tmp_path), str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert ("[mystnb.exec]" in done.stderr) == fails
    assert re.search(r"sphinx -W --keep-going .* docs ", (ROOT / "Makefile").read_text("utf-8"))
