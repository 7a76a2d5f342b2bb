"""The results of benchmarks: one JSON file, one entry a benchmark, saved as each of them ends."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
QUICK = ROOT / ".benchmarks" / "quick.json"
"""Quick looks are kept apart, and out of the repository."""

VERSIONS = ("numpy", "scipy", "numba", "scikit-learn", "onlooker")


def place(quick: bool) -> Path:
    """Where results are kept."""
    return QUICK if quick else RESULTS


def machine() -> dict[str, Any]:
    """What was measured on; nothing that tells whose it is."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in VERSIONS},
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
    except (AttributeError, OSError, ValueError):
        return 0


def load_a_core() -> float:
    """Processes that want to run, a core, over the last minute; 1 is a machine just full."""
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    except OSError:
        return float("nan")


def now() -> str:
    """Date and time to the minute, UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")


def age_in_hours(entry: dict[str, Any]) -> float:
    """How long ago an entry was measured."""
    then = datetime.datetime.strptime(entry["date"], "%Y-%m-%d %H:%M")
    spent = datetime.datetime.now(datetime.UTC) - then.replace(tzinfo=datetime.UTC)
    return spent.total_seconds() / 3600


def read(path: Path) -> dict[str, Any]:
    """All entries, by the name of their benchmark."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, name: str, entry: dict[str, Any]) -> None:
    """Put one entry in; a run that is stopped meanwhile leaves the old file whole."""
    entries = {**read(path), name: entry}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(dict(sorted(entries.items())), indent=1, ensure_ascii=False) + "\n")
    os.replace(part, path)
