"""The documentation's build: `make docs` runs `sphinx-build -W` over this folder.

Nothing is taken from the web: MathJax comes with a package, furo brings its own styles and uses the
system's fonts, and no other project's inventory is read.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from jupyter_cache.cache.db import create_db
from sphinx.util import logging
from sphinx.util.inspect import TypeAliasForwardRef

import onlooker

HERE = Path(__file__).resolve().parent
# Cells call `onlooker`, the one beside this interpreter.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project = "onlooker"
author = "The onlooker developers"
copyright = author
release = version = metadata.version("onlooker")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",  # for its role `autolink`
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

# Single backticks in docstrings: a link where the name can be imported, else slanted.
default_role = "autolink"
# A name in full, `onlooker.room.Name`, must lead somewhere.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!onlooker\.).*"),
    # Types of the inside: signatures name them, but nobody needs to make one.
    (
        "py:class",
        r"onlooker\.(checks|gibbs|inference|prediction|problem|progress|runs|(partitions|reading|repertoire)\.\w+)\..+",
    ),
]
suppress_warnings = ["ref.python"]  # `n_actions` is the name of many things
linkcheck_ignore = ["https?:", "mailto:"]  # there may be no network

highlight_language = "text"
smartquotes = False  # two dashes of an option are no en dash

# Pages. Headings down to the fourth level can be linked to as [...](page.md#the-heading).
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4


def cache_of_outputs() -> Path:
    """A cache for the outputs of notebooks: one for each state of the package's code.

    It is made here, since pages are read in parallel, and two processes that find no cache would
    both make one.
    """
    code = hashlib.sha256()
    for file in sorted((HERE.parent / "src").rglob("*.py")):
        code.update(file.read_bytes())
    path = HERE / "_build" / "jupyter_cache" / code.hexdigest()[:16]
    path.mkdir(parents=True, exist_ok=True)
    create_db(path)
    return path


# Notebooks run when the pages are built, unless neither their code nor the package's has changed. A
# cell that raises is a warning, so that the other pages are seen to as well; warnings are errors.
nb_execution_mode = "cache"
nb_execution_cache_path = str(cache_of_outputs())
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # so that links in what a cell prints lead to pages

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name for name in ("Array", "ArrayLike", "Floats", "NDArray", "Duration")
}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # else unions show the class
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes as a list, beside the properties that autodoc finds itself
maximum_signature_line_length = 88

# The extension of sphinx-mathjax-offline keeps Sphinx from reading pages in parallel.
(mathjax,) = importlib.import_module("sphinx-mathjax-offline").__path__
mathjax_path = "mathjax/tex-chtml.js"

html_theme = "furo"
html_title = "onlooker"
html_static_path = ["_static", f"{mathjax}/static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False


# -- what must be there ------------------------------------------------------------------


def public_names() -> Iterator[tuple[str, Any]]:
    """All that users may import, by full names."""
    for name in onlooker.__all__:
        yield f"onlooker.{name}", getattr(onlooker, name)
    for room in sorted(onlooker._ROOMS):
        module = importlib.import_module(f"onlooker.{room}")
        own = [
            name
            for name, thing in vars(module).items()
            if getattr(thing, "__module__", "") == module.__name__ and not name.startswith("_")
        ]
        for name in getattr(module, "__all__", own):
            yield f"{module.__name__}.{name}", getattr(module, name)


def check_reference(app: Any, env: Any) -> None:
    """Warn of public names that no page documents."""
    documented = env.domains.python_domain.objects
    for name, thing in public_names():
        home = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
        if not name.endswith("__version__") and not {name, home} & documented.keys():
            logging.getLogger(__name__).warning("%s is not in the reference", name)


def check_names(app: Any, env: Any) -> None:
    """Warn of names in pages, `onlooker.room.thing`, that lead nowhere."""
    for page in sorted(env.found_docs):
        text = Path(env.doc2path(page)).read_text(encoding="utf-8")
        for name in sorted(set(re.findall(r"`(onlooker(?:\.\w+)+)`", text))):
            try:
                pkgutil.resolve_name(name)
            except (AttributeError, ImportError):
                logging.getLogger(__name__).warning("%s does not exist", name, location=page)


def skip_member(app: Any, what: str, name: str, *_: Any) -> bool | None:
    """Leave out what scikit-learn makes for its metadata routing, which trajectories do not use."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Any) -> None:
    """Hook the checks in."""
    app.connect("env-check-consistency", check_reference)
    app.connect("env-check-consistency", check_names)
    app.connect("autodoc-skip-member", skip_member)
