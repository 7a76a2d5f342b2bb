"""The page: one HTML text that holds its style, its scripts and, in a report, its data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any

_SCRIPTS = (
    "base.js",
    "palette.js",
    "source.js",
    "surface.js",
    "map.js",
    "layers.js",
    "behaviours.js",
    "charts.js",
    "panels.js",
    "detail.js",
    "compare.js",
    "export.js",
    "link.js",
    "app.js",
)


def _asset(name: str) -> str:
    return (resources.files("onlooker.explorer") / "web" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def script() -> str:
    """All scripts in the order in which they need each other."""
    return "\n".join(_asset(name) for name in _SCRIPTS)


def policy(live: bool) -> str:
    """What the page may load: nothing but itself, and in the explorer its own server's answers."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_digest(_scripted())}",
            f"style-src {_digest(_styled())}",
            "img-src data: blob:",
            "connect-src 'self'" if live else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _scripted() -> str:
    return f"\n{script()}\n"


def _styled() -> str:
    return f"\n{_asset('style.css')}\n"


def page(title: str, data: dict[str, Any] | None = None) -> str:
    """The whole page; with `data` a report that asks no one, without it the explorer."""
    # "<" may not stand in a script element: a state's name could close it
    embedded = "null" if data is None else json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": html.escape(title),
        "policy": html.escape(policy(live=data is None)),
        "style": _styled(),
        "data": embedded,
        "script": _scripted(),
    }
    # in one pass: what is filled in may itself look like a gap
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _asset("page.html"))
