"""What the benchmarks share: times that a busy machine does not spoil, and what they found."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RECORD: dict[str, Any] = {"tables": [], "notes": [], "data": {}}
"""What this process has measured; `benchmarks.__main__` saves it."""


def processor_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of this thread over some repeats: waiting does not count."""
    least = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        least = min(least, time.thread_time() - start)
    return least


def peak_memory() -> float:
    """The most memory that this process has held, in GB.

    Where the kernel tells, from its own account: `ru_maxrss` also counts the parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_fresh_process(module: str, *arguments: str, limit: float | None = None) -> Any:
    """Run a benchmark module in a process of its own; it prints one line of JSON at the end."""
    command = [sys.executable, "-m", module, *arguments]
    finished = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, text=True, timeout=limit
    )
    finished.check_returncode()
    return json.loads(finished.stdout.splitlines()[-1])


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table, and record it for the results and the docs."""
    table = {
        "title": title,
        "header": list(header),
        "rows": [[str(cell) for cell in row] for row in rows],
    }
    RECORD["tables"].append(table)
    print(f"\n### {title}\n")
    print("\n".join(markdown(table)))
    sys.stdout.flush()


def markdown(table: dict[str, Any]) -> list[str]:
    """The lines of a table."""
    lines = ["| " + " | ".join(table["header"]) + " |", "|" + "---|" * len(table["header"])]
    return lines + ["| " + " | ".join(row) + " |" for row in table["rows"]]


def print_note(text: str) -> None:
    """Print a sentence that belongs to the results, and record it."""
    RECORD["notes"].append(text)
    print(f"\n{text}", flush=True)


def keep(name: str, data: Any) -> None:
    """Record numbers that a figure is drawn from."""
    RECORD["data"][name] = data
