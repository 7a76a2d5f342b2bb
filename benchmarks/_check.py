"""A few ratios that must not fall: ``python -m benchmarks --check`` (``make bench-check``).

Each is the time of a plain-Python twin over that of the kernel, in one process, in processor time,
the least of several repeats. So neither the machine's speed nor its other work matters much. The
check fails when a ratio is below half of the one in ``baseline.json``, again and again: kernel and
twin are measured in turns, and a ratio that seems low is measured up to three times more.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _results
from benchmarks._measure import processor_seconds

BASELINE = Path(__file__).with_name("baseline.json")
LEAST = 0.5  # of the baseline
ATTEMPTS = 4

Ratio = Callable[[], float]


def against_the_twin(name: str, n_nodes: int) -> Ratio:
    """A sweep's ratio; the chain is made once."""
    from benchmarks._models import make_chain, plane, twin_of

    chain = make_chain(name, plane(n_nodes), 5)

    def ratio() -> float:
        fast = slow = float("inf")
        for _ in range(3):
            twin = twin_of(name, chain)
            slow = min(slow, processor_seconds(twin.sweep, 1))
            fast = min(fast, processor_seconds(chain.sweep, 15))
        return slow / fast

    return ratio


def against_exp() -> Ratio:
    """``np.exp`` of the likelihoods against a sweep of the actions: 441 nodes, many transitions."""
    from benchmarks._models import make_chain, plane

    problem = plane(441, 200)
    chain = make_chain("static", problem, 3)
    loglik = np.maximum(problem.loglik, -700.0)

    def ratio() -> float:
        fast = slow = float("inf")
        for _ in range(5):
            slow = min(slow, processor_seconds(lambda: np.exp(loglik), 3))
            fast = min(fast, processor_seconds(chain.sweep, 3))
        return slow / fast

    return ratio


CASES: dict[str, Callable[[], Ratio]] = {
    "static": lambda: against_the_twin("static", 1_000),
    "uniform": lambda: against_the_twin("uniform", 500),
    "mixing, ordinary": lambda: against_the_twin("mixing, ordinary", 500),
    "mixing, collapsed": lambda: against_the_twin("mixing, collapsed", 500),
    "Potts": lambda: against_the_twin("Potts", 500),
    "CRP": lambda: against_the_twin("CRP", 500),
    "ddCRP": lambda: against_the_twin("ddCRP", 200),
    "ddCRP, decay inferred": lambda: against_the_twin("ddCRP, decay inferred", 200),
    "actions, in units of np.exp": against_exp,
}


def judge(
    cases: dict[str, Callable[[], Ratio]], baseline: dict[str, float]
) -> dict[str, tuple[float, bool]]:
    """Each ratio, the best of as many attempts as it takes to pass, and whether it passed."""
    verdict = {}
    for name, make in cases.items():
        measure = make()
        ratio = 0.0
        for _ in range(ATTEMPTS):
            ratio = max(ratio, measure())
            if ratio >= LEAST * baseline[name]:
                break
        verdict[name] = ratio, ratio >= LEAST * baseline[name]
    return verdict


def check() -> int:
    """Measure and compare; the number of ratios that fell."""
    baseline: dict[str, Any] = json.loads(BASELINE.read_text())
    began = time.perf_counter()
    verdict = judge(CASES, baseline["ratios"])
    for name, (ratio, passed) in verdict.items():
        share = ratio / baseline["ratios"][name]
        print(f"{name:30s} {ratio:9.3g}  {share:5.2f} of the baseline{'' if passed else '  FELL'}")
    fallen = [name for name, (_, passed) in verdict.items() if not passed]
    print(f"({time.perf_counter() - began:.0f} s)")
    if fallen:
        print(
            f"slower than half of benchmarks/baseline.json: {', '.join(fallen)}.\n"
            "If that is meant, measure it anew: python -m benchmarks --baseline",
            file=sys.stderr,
        )
    return len(fallen)


def set_baseline(repeats: int = 5) -> int:
    """Measure the baseline anew: the median of several runs."""
    ratios = {}
    for name, make in CASES.items():
        measure = make()
        ratios[name] = float(f"{np.median([measure() for _ in range(repeats)]):.3g}")
        print(f"{name:30s} {ratios[name]:9.3g}", flush=True)
    found = {
        "date": _results.now(),
        "load_a_core": _results.load_a_core(),
        "machine": _results.machine(),
        "ratios": ratios,
    }
    BASELINE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return 0
