"""The documentation's build: `make docs` runs `sphinx-build -W` over this folder.

Nothing is taken from the web: MathJax comes with a package, furo brings its own styles and uses the
system's fonts, and no other project's inventory is read.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib import metadata
from pathlib import Path

from jupyter_cache.cache.db import create_db

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
# Cells call `onlooker`, the one beside this interpreter.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project = "onlooker"
author = "The onlooker developers"
copyright = author
release = version = metadata.version("onlooker")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "breakable_names",
    "click_commands",
    "docstrings",
    "offline_math",
    "short_names",
]
nitpicky = True
nitpick_ignore_regex = [
    # Types of the inside: signatures name them, but nobody needs to make one.
    ("py:class", r"onlooker\.(inference\.\w+|partitions\.geometry)\.\w+"),
]
exclude_patterns = ["_build", "_ext", "**/.ipynb_checkpoints"]

highlight_language = "text"

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
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes as a list, beside the properties that autodoc finds itself
maximum_signature_line_length = 88

html_theme = "furo"
html_title = "onlooker"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
