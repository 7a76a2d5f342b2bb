"""Run every ``bench_*.py`` here in turn: ``python -m benchmarks [--quick] [name ...]``.

Each runs in a process of its own, so that peaks of memory are its own too. A module without
``main(quick)`` runs at its full size.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import subprocess
import sys
import time
from pathlib import Path


def names() -> list[str]:
    """All benchmarks, without their prefix."""
    found = Path(__file__).parent.glob("bench_*.py")
    return sorted(path.stem.removeprefix("bench_") for path in found)


def run_one(name: str, quick: bool) -> None:
    """Run a benchmark in this process."""
    module = importlib.import_module(f"benchmarks.bench_{name}")
    sys.argv = [str(module.__file__)]  # a benchmark may read options of its own
    if "quick" in inspect.signature(module.main).parameters:
        module.main(quick=quick)
    else:
        module.main()


def main() -> int:
    """Run all, or those named; the number of those that failed is the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure.")
    parser.add_argument("names", nargs="*", metavar="name", help="only these; see --list")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    if options.list:
        print("\n".join(names()))
        return 0
    chosen = options.names or names()
    if options.here:
        for name in chosen:
            run_one(name, options.quick)
        return 0
    failed = []
    for name in chosen:
        print(f"\n== {name} ==", flush=True)
        began = time.monotonic()
        command = [sys.executable, "-m", "benchmarks", "--here", name]
        if subprocess.run(command + ["--quick"] * options.quick, check=False).returncode:
            failed.append(name)
        print(f"({time.monotonic() - began:.0f} s)", flush=True)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
