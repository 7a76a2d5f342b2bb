"""Code that the pages name exists."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
NAME = re.compile(r"`(onlooker(?:\.\w+)+)`")


def resolve(name):
    """The object of a dotted name."""
    module, parts = importlib.import_module("onlooker"), name.split(".")[1:]
    thing = module
    for number, part in enumerate(parts):
        if not hasattr(thing, part):
            importlib.import_module(".".join(["onlooker", *parts[: number + 1]]))
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_names_on_a_page_are_those_of_the_code(page):
    for name in sorted(set(NAME.findall(page.read_text(encoding="utf-8")))):
        assert resolve(name) is not None, name


def test_a_name_that_is_gone_is_noticed():
    with pytest.raises(ModuleNotFoundError):
        resolve("onlooker.inference.split_merge.split_merge")
