"""Check the links of built pages, without a network.

    python docs/check_links.py docs/_build/html

Every link and picture within the pages must lead to a file that is there, and every anchor to an
element with that id. Of links to elsewhere only the form is checked, since there may be no network:
that they are still alive is not known. No page may load a script, a style, a font or a picture from
elsewhere.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that make a browser load something at once, rather than when clicked.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
HARMLESS = {"canonical", "next", "prev", "index", "search"}  # kinds of <link> that load nothing


@dataclass
class Page(HTMLParser):
    """The ids and links of one page."""

    ids: set[str] = field(default_factory=set)
    links: list[tuple[str, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        for name in ("href", "src"):
            if name in found:
                loads = (tag, name) in LOADED and found.get("rel") not in HARMLESS
                self.links.append((found[name], loads))


def read(path: Path) -> Page:
    """The ids and links of a file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def outside(link: str, loads: bool) -> str | None:
    """What is wrong with a link to elsewhere, if anything."""
    parts = urlsplit(link)
    if loads:
        return "is loaded from elsewhere; pages must work without a network"
    if parts.scheme == "mailto":
        return None if "@" in parts.path else "is no address"
    if parts.scheme not in ("http", "https"):
        return f"has the odd scheme {parts.scheme!r}"
    return None if re.fullmatch(r"[\w.-]+\.\w+(:\d+)?", parts.netloc) else "names no host"


def problems(root: Path) -> list[str]:
    """All that is wrong with the links of the pages below a directory, one line each."""
    root = root.resolve()
    pages = {path: read(path) for path in sorted(root.rglob("*.html"))}
    if not pages:
        return [f"there are no pages in {root}"]
    found: list[str] = []
    for path, page in pages.items():
        for link, loads in page.links:
            wrong = _wrong(link, loads, path, root, pages)
            if wrong is not None:
                found.append(f"{path.relative_to(root)}: {link} {wrong}")
    for style in sorted(root.rglob("*.css")):
        for link in re.findall(
            r"url\(['\"]?(https?:[^)'\"]+|//[^)'\"]+)", style.read_text("utf-8")
        ):
            found.append(f"{style.relative_to(root)}: {link} is loaded from elsewhere")
    return found


def _wrong(link: str, loads: bool, path: Path, root: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        return outside(link, loads)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.is_relative_to(root) or not target.is_file():
        return "leads to no file of the pages"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "leads to no such place on the page"
    return None


def main() -> int:
    """Tell what is wrong; 1 if anything is."""
    found = problems(Path(sys.argv[1]))
    for line in found:
        print(line, file=sys.stderr)
    print(f"links: {len(found)} wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
