"""Long dotted names in tables may break after a dot, so that tables fit the page."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_DOTTED = re.compile(r"\w+(\.\w+){2,}")


class BreakNames(SphinxPostTransform):
    """Runs after names have become links."""

    default_priority = 800
    formats = ("html",)

    def run(self, **_: Any) -> None:
        for entry in self.document.findall(nodes.entry):
            for literal in entry.findall(nodes.literal):
                name = literal.astext()
                if _DOTTED.fullmatch(name):
                    literal.children = list(_with_breaks(name))


def _with_breaks(name: str) -> Any:
    *before, last = name.split(".")
    for part in before:
        yield nodes.Text(f"{part}.")
        yield nodes.raw("", "<wbr>", format="html")
    yield nodes.Text(last)


def setup(app: Any) -> dict[str, bool]:
    app.add_post_transform(BreakNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
