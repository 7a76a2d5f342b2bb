"""Run every ``bench_*.py`` here in turn: ``python -m benchmarks [--quick] [name ...]``.

Each runs in a process of its own, so that peaks of memory are its own too, and its results are
saved when it ends: in ``benchmarks/results.json``, those of a quick look in
``.benchmarks/quick.json``. From the former the tables and figures of ``docs/benchmarks.md`` are
made, at the end of every full run and by ``--page`` alone. A benchmark that fails, or takes longer
than its limit, is reported at the end and keeps no other from running.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import _results
from benchmarks._measure import RECORD

LIMIT = 900.0  # seconds that one benchmark may take
# Threads of linear algebra that wait for each other on a busy machine would count as work.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ON_DEMAND = ("exchange", "explorer", "tracks")  # long, and more checks than speed


def names() -> list[str]:
    """All benchmarks, without their prefix."""
    found = Path(__file__).parent.glob("bench_*.py")
    return sorted(path.stem.removeprefix("bench_") for path in found)


def usual() -> list[str]:
    """Those that run unless others are named."""
    return [name for name in names() if name not in ON_DEMAND]


def run_one(name: str, quick: bool, record: Path) -> None:
    """Run a benchmark in this process."""
    module = importlib.import_module(f"benchmarks.bench_{name}")
    sys.argv = [str(module.__file__)]  # a benchmark may read options of its own
    if "quick" in inspect.signature(module.main).parameters:
        module.main(quick=quick)
    else:
        module.main()
    record.write_text(json.dumps(RECORD))


def measure(name: str, quick: bool, limit: float) -> str:
    """Run a benchmark in a process of its own and save what it found; what went wrong, or ''."""
    began, load = time.monotonic(), _results.load_a_core()
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = [sys.executable, "-m", "benchmarks", "--here", str(record), name]
        child = subprocess.Popen(
            command + ["--quick"] * quick, env=os.environ | ONE_THREAD, start_new_session=True
        )
        try:
            code = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:.0f} s"
        finally:
            if child.poll() is None:  # out of time, or Ctrl-C: its own children go as well
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code or not record.exists():
            return f"exit code {code}"
        found: dict[str, Any] = json.loads(record.read_text())
    entry = {
        "date": _results.now(),
        "seconds": round(time.monotonic() - began, 1),
        "load_a_core_before": load,
        "load_a_core_after": _results.load_a_core(),
        "machine": _results.machine(),
        **found,
    }
    _results.save(_results.place(quick), name, entry)
    return ""


def run_all(options: argparse.Namespace) -> int:
    """Run all, or those named; the number of those that failed."""
    known = _results.read(_results.place(options.quick))
    took: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in options.names or (names() if options.all else usual()):
        if options.resume and name in known and _results.age_in_hours(known[name]) < 24:
            print(f"\n== {name}: measured {known[name]['date']} ==", flush=True)
            continue
        print(f"\n== {name} ==", flush=True)
        began = time.monotonic()
        wrong = measure(name, options.quick, options.limit)
        took[name] = time.monotonic() - began
        if wrong:
            failed[name] = wrong
        print(f"({took[name]:.0f} s{', ' + wrong if wrong else ''})", flush=True)
    print("\n" + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()))
    print(f"{sum(took.values()) / 60:.1f} minutes in all")
    for name, wrong in failed.items():
        print(f"failed: {name}: {wrong}", file=sys.stderr)
    return len(failed)


def main() -> int:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure.")
    parser.add_argument("names", nargs="*", metavar="name", help="only these; see --list")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, results kept apart")
    parser.add_argument(
        "--resume", action="store_true", help="leave out what was measured within a day"
    )
    parser.add_argument(
        "--all", action="store_true", help=f"with {', '.join(ON_DEMAND)}, which take long"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds a benchmark may take")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument(
        "--page", action="store_true", help="only make the tables and figures of the docs anew"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only compare a few ratios with benchmarks/baseline.json",
    )
    parser.add_argument("--baseline", action="store_true", help="only measure that baseline anew")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    if options.list:
        print("\n".join(names()))
        return 0
    if options.here:
        run_one(options.names[0], options.quick, options.here)
        return 0
    if options.check or options.baseline:
        from benchmarks import _check

        return _check.set_baseline() if options.baseline else _check.check()
    failed = 0 if options.page else run_all(options)
    from benchmarks import _page

    _page.make(options.quick)
    return failed


if __name__ == "__main__":
    sys.exit(main())
