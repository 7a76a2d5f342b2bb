"""Reading large CSV files: memory against the size of the file, and time.

python -m benchmarks.bench_reading [--quick]

Each file is read in a process of its own. Its peak of memory counts the interpreter and pandas,
which a process that reads nothing shows as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._measure import in_fresh_process, peak_memory, print_table

ROWS, QUICK_ROWS = 5_000_000, 500_000
_LENGTH = 500  # states of a track


def numbers(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Short numbers throughout: the least text for the most numbers."""
    return pd.DataFrame(
        {
            "id": np.arange(n) // _LENGTH,
            "t": np.arange(n) % _LENGTH,
            "x": rng.normal(size=n).round(4),
            "y": rng.normal(size=n).round(4),
        }
    )


def dates(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Names and dates as text, and a column that nobody asked for."""
    frame = numbers(n, rng)
    frame["id"] = "animal " + frame["id"].astype(str)
    frame["t"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["t"], unit="h")).astype(str)
    return frame.assign(comment="not needed")


def shuffled(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """All rows in no order at all."""
    return numbers(n, rng).sample(frac=1, random_state=0)


def narrow(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Eight bytes a row: no text to speak of, so that the process itself weighs most."""
    return pd.DataFrame({"id": np.arange(n) // _LENGTH, "s": rng.integers(0, 100, n)})


FILES = {"numbers": numbers, "dates": dates, "shuffled": shuffled, "narrow": narrow}


def write(path: Path, kind: str, n: int) -> None:
    """A file of `n` rows, written by the million so that writing is no test of memory."""
    rng = np.random.default_rng(0)
    if kind == "shuffled":
        shuffled(n, rng).to_csv(path, index=False)
        return
    for start in range(0, n, 1_000_000):
        part = FILES[kind](min(1_000_000, n - start), rng)
        shift = start // _LENGTH
        part["id"] = f"{shift} " + part["id"].astype(str) if kind == "dates" else part["id"] + shift
        part.to_csv(path, index=False, header=start == 0, mode="a" if start else "w")


def measure(path: str) -> dict[str, float]:
    """Read in this process; without a path, only load what reading needs."""
    began, states = time.thread_time(), 0
    if path:
        from onlooker import Demonstrations

        narrow = Path(path).stem == "narrow"
        columns = ("s", "id", None) if narrow else (["x", "y"], "id", "t")
        states = len(Demonstrations.from_csv(path, *columns).states)
    return {"gb": peak_memory(), "seconds": time.thread_time() - began, "states": states}


def main(quick: bool = False) -> None:
    """Write, read and compare."""
    n = QUICK_ROWS if quick else ROWS
    module = "benchmarks.bench_reading"
    idle = in_fresh_process(module, "--measure", "")["gb"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in FILES:
            path = Path(folder) / f"{kind}.csv"
            write(path, kind, n)
            size = path.stat().st_size / 1e9
            found = in_fresh_process(module, "--measure", str(path))
            assert found["states"] == n
            rows.append(
                (
                    kind,
                    f"{size:.3f}",
                    f"{found['gb']:.3f}",
                    f"{found['gb'] / size:.2f}",
                    f"{(found['gb'] - idle) / size:.2f}",
                    f"{found['seconds']:.1f}",
                )
            )
            path.unlink()
    header = ("file", "GB", "peak GB", "peak / file", "without the idle process", "CPU s")
    print_table(f"Reading {n:,} rows of CSV (an idle process: {idle:.3f} GB)", header, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--measure", default=None)
    options = parser.parse_args()
    if options.measure is None:
        main(options.quick)
    else:
        print(json.dumps(measure(options.measure)))
        sys.exit()
