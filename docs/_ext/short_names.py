"""Links from names in the text to the reference.

Docstrings and pages name things in backticks, by their short names. Those that the reference
documents become links; all others stay as they are. A full name, ``onlooker.…``, in a role must
exist: that the build checks (nitpicky).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode


class CodeRole(SphinxRole):
    """What single backticks mean in docstrings: code, to be linked if its name is known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        scope = {key: self.env.ref_context.get(key) for key in ("py:module", "py:class")}
        return [nodes.literal(self.rawtext, self.text, classes=["code-name"], **scope)], []


def scopes(node: nodes.Element) -> Iterator[str]:
    """Where a name may live, the nearest first."""
    module, owner = node.get("py:module"), node.get("py:class")
    if module and owner:
        yield f"{module}.{owner}."
    if module:
        yield f"{module}."
    yield "onlooker."


def find(name: str, node: nodes.Element, objects: Any) -> str | None:
    """The full name of a documented object, or None where there is none, or more than one."""
    name = name.removesuffix("()")
    if not name.replace(".", "").replace("_", "").isalnum():
        return None
    for full in (name, *(scope + name for scope in scopes(node))):
        if full in objects:
            return full
    if not (name[0].isupper() or name.startswith("onlooker.")):
        return None  # a word such as `states` may be anything
    short = name.removeprefix("onlooker.")
    known = [full for full, entry in objects.items() if not entry.aliased]
    found = [full for full in known if full.endswith("." + short)]
    return found[0] if len(found) == 1 else None


class LinkNames(SphinxPostTransform):
    """Runs before Sphinx resolves references, and leaves only those that must resolve."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        domain = self.env.domains.python_domain
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "py":
                full = find(node["reftarget"], node, domain.objects)
                if full is not None:
                    node["reftarget"] = full
                    node["refspecific"] = False
                elif not node["reftarget"].startswith("onlooker."):
                    node.replace_self(node.children)
        for node in list(self.document.findall(nodes.literal)):
            full = find(node.astext(), node, domain.objects)
            if full is not None and not _is_linked(node):
                entry = domain.objects[full]
                link = make_refnode(
                    self.app.builder,
                    self.env.current_document.docname,
                    entry.docname,
                    entry.node_id,
                    node.deepcopy(),
                    full,
                )
                node.replace_self(link)


def _is_linked(node: nodes.Node) -> bool:
    inside = (nodes.reference, addnodes.pending_xref, nodes.title, addnodes.desc_signature)
    parent = node.parent
    while parent is not None:
        if isinstance(parent, inside):
            return True
        parent = parent.parent
    return False


def setup(app: Any) -> dict[str, bool]:
    app.add_role("code-name", CodeRole())
    app.add_post_transform(LinkNames)
    app.config.default_role = "code-name"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
