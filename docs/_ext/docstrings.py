"""Docstrings are written for the terminal first; what reStructuredText needs is added here."""

from __future__ import annotations

import re
from typing import Any

# scikit-learn makes these methods for its metadata routing, which trajectories do not use.
_ROUTING = re.compile(r"set_\w+_request$")


def formulas(lines: list[str]) -> list[str]:
    """Make an indented block after a colon a literal one: formulas, tables, shell commands.

    >>> formulas(["It is:", "", "    Q(s'|s) = 1"])
    ['It is::', '', "    Q(s'|s) = 1"]
    """
    made = list(lines)
    for at in range(len(lines) - 2):
        line, blank, block = lines[at : at + 3]
        if line.endswith(":") and not line.endswith("::") and not blank.strip():
            deeper = len(block) - len(block.lstrip()) > len(line) - len(line.lstrip())
            made[at] = line + ":" if deeper else line
    return made


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = formulas(lines)


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    return True if _ROUTING.match(name) else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
