"""Docstrings are written for the terminal first; what reStructuredText needs is added here."""

from __future__ import annotations

import re
from typing import Any

from sphinx.domains.python import PyObject
from sphinx.util.inspect import TypeAliasForwardRef

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


def attributes(lines: list[str]) -> list[str]:
    """Read ``name : words`` with nothing below it as a description, not as a type.

    >>> attributes(["Attributes", "----------", "end : where it ends", "n : int", "    Size."])
    ['Attributes', '----------', 'end', '    where it ends', 'n : int', '    Size.']
    """
    made: list[str] = []
    inside = False
    for at, line in enumerate(lines):
        after = lines[at + 1] if at + 1 < len(lines) else ""
        if after and set(after) == {"-"}:
            inside = line == "Attributes"
        name, colon, words = line.partition(" : ")
        if inside and colon and line[0] != " " and not after.startswith(" "):
            made += [name, "    " + words]
        else:
            made.append(line)
    return made


def shape_first(lines: list[str]) -> list[str]:
    """Keep ``shape: words`` of a property together; napoleon would take it for a type.

    >>> shape_first(["``(n,)``: one a row."])
    ['``(n,)`` – one a row.']
    """
    return [re.sub(r"^(``[^`]*``): ", r"\1 – ", lines[0]), *lines[1:]] if lines else []


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = attributes(formulas(lines))
    if what in ("attribute", "property"):
        lines[:] = shape_first(lines)


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    return True if _ROUTING.match(name) else None


def setup(app: Any) -> dict[str, bool]:
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # else shown as it is, in unions
    app.connect("autodoc-process-docstring", _process, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
