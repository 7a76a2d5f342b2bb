"""The documentation keeps what it says, as far as that can be told without building all of it."""

import re
from pathlib import Path

import yaml

import onlooker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


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


def test_the_citation_file_holds_what_its_format_asks_for():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == onlooker.__version__
    for source in (cited, cited["preferred-citation"]):
        assert source["authors"]
        assert all("name" in a or "family-names" in a for a in source["authors"])
    assert cited["preferred-citation"]["doi"].startswith("10.")


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
