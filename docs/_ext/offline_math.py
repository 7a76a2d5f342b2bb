"""MathJax served from the pages' own folder, so that formulas need no network.

The files come with the package ``sphinx-mathjax-offline``. It is used as a store only: its own
extension would copy all 24 MB, and keeps Sphinx from reading pages in parallel.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

ENTRY = "tex-chtml.js"
# What ENTRY may ask for while it typesets: fonts, and TeX packages beyond the basic ones.
NEEDED = ("output/chtml/fonts", "input/tex/extensions")


def _store() -> Path:
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("formulas need sphinx-mathjax-offline: pip install '.[docs]'")
    return Path(spec.submodule_search_locations[0]) / "static" / "mathjax"


def _copy(app: Any, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "mathjax"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(_store() / ENTRY, target / ENTRY)
    for part in NEEDED:
        shutil.copytree(_store() / part, target / part)


def setup(app: Any) -> dict[str, bool]:
    _store()
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = f"mathjax/{ENTRY}"
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
