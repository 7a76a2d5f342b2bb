"""Cost of a sweep of every model, as N and M grow, against its plain-Python twin.

python -m benchmarks sweeps

Kernel and twin start from the same state; a twin of indicators must also end where the kernel ends,
or the benchmark fails. Twins are measured only at sizes that they can bear. The exponent is the
slope of a line through the logarithms, of all sizes and of the last two.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks._measure import keep, print_note, print_table, processor_seconds

NODES = "N"  # nodes grow, with one transition each
TRANSITIONS = "M"  # transitions grow, at 1,000 nodes
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TWIN_SIZES = (300, 1_000, 10_000, 100_000)
PATIENCE = 5.0  # seconds that a twin's sweep may be expected to take
LIMIT = 300  # processor seconds for all sizes of one model; what takes longer is left out, and told


def _names() -> list[str]:
    from benchmarks._models import MODELS

    return list(MODELS)


# -- in a process of its own ----------------------------------------------------------------------


def _problem(axis: str, size: int) -> Any:
    from benchmarks._models import plane

    return plane(size) if axis == NODES else plane(1_000, max(1, size // 1_000))


def _kernel(name: str, axis: str, size: int) -> dict[str, Any]:
    """Seconds a sweep, the least of several, after a few that settle the chain."""
    from benchmarks._models import make_chain

    chain = make_chain(name, _problem(axis, size), 3 if size >= 1_000_000 else 10)
    began = time.thread_time()
    chain.sweep()
    one = max(time.thread_time() - began, 1e-5)
    repeats = int(np.clip(1.0 / one, 3, 300))
    return {"size": size, "seconds": processor_seconds(chain.sweep, repeats)}


def _twin(name: str, axis: str, size: int) -> dict[str, Any]:
    """The same for the twin; and whether both made the same draws."""
    from benchmarks._models import make_chain, same_state, twin_of

    chain = make_chain(name, _problem(axis, size), 10)
    twin = twin_of(name, chain)
    seconds = processor_seconds(twin.sweep, 1)
    same = None
    if not name.startswith("ddCRP"):
        chain.sweep()
        same = same_state(chain, twin.plain)
    if seconds < 1:
        more = twin_of(name, chain)
        seconds = min(seconds, processor_seconds(more.sweep, 2))
    return {"size": size, "seconds": seconds, "same": same}


def _measure(kind: str, name: str, axis: str, sizes: list[int]) -> None:
    """One size after the other, each told at once; a twin ends where its patience ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    found: list[list[float]] = []
    for size in sizes:
        if kind == "--twin" and found and _expected(found, size) > PATIENCE:
            break
        one = (_twin if kind == "--twin" else _kernel)(name, axis, size)
        found.append([size, one["seconds"]])
        print(json.dumps(one), flush=True)


# -- all sizes -------------------------------------------------------------------------------------


def growth(kind: str, name: str, axis: str, sizes: tuple[int, ...]) -> tuple[list[Any], str]:
    """(size, seconds), and why it ends early if it does."""
    if not sizes:
        return [], ""
    command = [sys.executable, "-m", "benchmarks.bench_sweeps", kind, name, axis]
    done = subprocess.run([*command, *map(str, sizes)], check=False, stdout=subprocess.PIPE)
    why = ""
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        limits = f"{LIMIT} s of processor time, or the machine's memory"
        why = f"{name}: larger {axis} are left out, since they took more than {limits}."
    elif done.returncode:
        raise RuntimeError(f"{kind} {name} {axis} failed with exit code {done.returncode}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for one in found:
        if one.get("same") is False:
            raise AssertionError(f"{name}, {axis} = {one['size']:,}: the twin drew differently")
    return [[one["size"], one["seconds"]] for one in found], why


def _expected(found: list[list[float]], size: int) -> float:
    """What the next size will take, going on as before; a first guess is linear."""
    slope = max(1.0, exponent(found)) if len(found) > 1 else 1.0
    return float(found[-1][1] * (size / found[-1][0]) ** slope)


def exponent(found: list[list[float]]) -> float:
    """The slope of ln seconds against ln size."""
    sizes, seconds = np.log(np.array(found)).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def row_of(name: str, kernel: list[list[float]], twin: list[list[float]]) -> list[object]:
    """One row of the table; the ratio is at 1,000 and at the largest size that both have."""
    fast, slow = ({int(size): seconds for size, seconds in found} for found in (kernel, twin))
    both = [size for size in fast if size in slow]
    ratios = [f"{slow[size] / fast[size]:,.0f}× ({size:,})" for size in both[:1] + both[-1:]]
    return [
        name,
        *(_time(fast.get(size)) for size in SIZES),
        *(
            f"{exponent(found):.2f}" if len(found) > 1 else "–"
            for found in (kernel, kernel[-2:], twin)
        ),
        " … ".join(dict.fromkeys(ratios)) or "–",
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


HEADER = [
    "model",
    *(f"{size:,}" for size in SIZES),
    "exponent",
    "last tenfold",
    "twin's exponent",
    "faster than it (at)",
]


def main(quick: bool = False) -> None:
    """Print the tables."""
    sizes = SIZES[:2] if quick else SIZES
    twin_sizes = {NODES: TWIN_SIZES, TRANSITIONS: TWIN_SIZES[1:]}
    if quick:
        twin_sizes = {NODES: TWIN_SIZES[:1], TRANSITIONS: ()}
    titles = {
        NODES: "Milliseconds a sweep as nodes grow, one transition each (A = 8, K = 8)",
        TRANSITIONS: "Milliseconds a sweep as transitions grow, 1,000 nodes (A = 8, K = 8)",
    }
    data: dict[str, Any] = {}
    for axis, title in titles.items():
        rows, left_out = [], []
        for name in _names():
            kernel, why = growth("--kernel", name, axis, sizes)
            twin, _ = growth("--twin", name, axis, twin_sizes[axis])
            data.setdefault(axis, {})[name] = {"kernel": kernel, "twin": twin}
            rows.append(row_of(name, kernel, twin))
            left_out += [why] * bool(why)
            print(f"  {axis}: {name} done", flush=True)
        print_table(title, HEADER, rows)
        for why in left_out:
            print_note(why)
    keep("growth", data)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in ("--kernel", "--twin"):
        _measure(sys.argv[1], sys.argv[2], sys.argv[3], [int(size) for size in sys.argv[4:]])
    else:
        main("--quick" in sys.argv)
