"""What the benchmarks share: times that a busy machine does not spoil, and tables."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"


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


def in_fresh_process(module: str, *arguments: str) -> Any:
    """Run a benchmark module in a process of its own; it prints one line of JSON at the end."""
    command = [sys.executable, "-m", module, *arguments]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout.splitlines()[-1])


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, so that it can go into the docs as it is."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()
