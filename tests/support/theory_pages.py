"""The pages of docs/theory as data: their equations, and the functions named beside them."""

import importlib
import re
from pathlib import Path

import numpy as np
from scipy.special import gamma

THEORY = Path(__file__).parents[2] / "docs" / "theory"
PAGES = sorted(path.name for path in THEORY.glob("*.md"))
ALPHA = 0.7
_NAME = re.compile(r"`(onlooker(?:\.\w+)*)(?:\(\))?`")


def text_of(page):
    return (THEORY / page).read_text(encoding="utf-8")


def names_in(text):
    """Full names in backticks, ``onlooker.…``."""
    return _NAME.findall(text)


def resolve(name):
    """The object that a full name stands for; AttributeError if there is none."""
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            if part in getattr(found, "__annotations__", {}):
                return found.__annotations__[part]
            try:
                found = importlib.import_module(".".join(parts[:depth]))
            except ModuleNotFoundError:
                raise AttributeError(f"{name}: there is no {part!r}") from None
    return found


def blocks(text):
    """Paragraphs, displayed equations and single rows of tables, each on one line."""
    made = []
    for part in re.split(r"\n\s*\n", text):
        lines = part.strip().splitlines()
        made += lines if lines and lines[0].startswith("|") else [" ".join(lines)]
    return [" ".join(block.split()) for block in made if block]


def named(page, formula, name, *, text=None):
    """The function that stands beside a formula: in the same block, or in the next.

    So a test that works the formula out fails when the page comes to say something else.
    """
    every = blocks(text_of(page) if text is None else text)
    wanted = " ".join(formula.split())
    at = [number for number, block in enumerate(every) if wanted in block]
    assert at, f"{page} no longer has the equation {formula}"
    beside = {found for number in at for block in every[number : number + 2]
              for found in names_in(block)}  # fmt: skip
    assert name in beside, f"{page}: {name} does not stand beside {formula}"
    return resolve(name)


def equation_rows(text):
    """Rows of the tables that put functions beside equations."""
    rows, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
        elif "function" in line and not inside:
            inside = True
        elif inside and not re.fullmatch(r"[|\-\s]+", line):
            rows.append(line)
    return rows


def links_in(text):
    """Targets of the page's links to other pages."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]


def dm(xi, alpha=ALPHA):
    """Γ(Aα)/Γ(Aα + Σ_j ξ_j) · Π_j Γ(α + ξ_j)/Γ(α)."""
    total = len(xi) * alpha
    rising = np.prod(gamma(alpha + xi) / gamma(alpha))
    return gamma(total) / gamma(total + np.sum(xi)) * rising
