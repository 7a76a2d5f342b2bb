"""Do intervals of the dynamics' parameters cover the truth as often as they say?

python -m benchmarks.check_coverage [--runs 100]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from interval_coverage import LEVEL, noise_and_step, success

from benchmarks._measure import print_table


def main(quick: bool = False, runs: int = 100) -> None:
    """Print how often the intervals cover the truth."""
    runs = 20 if quick else runs
    rows = []
    for names, one in ((("noise σ", "step μ"), noise_and_step), (("success p",), success)):
        began = time.perf_counter()
        covered = np.array([one(seed) for seed in range(runs)]).mean(axis=0)
        error = np.sqrt(LEVEL * (1 - LEVEL) / runs)
        for name, share in zip(names, covered, strict=True):
            expected = f"{LEVEL:.0%} ± {error:.0%}"
            rows.append([name, f"{share:.0%}", expected, f"{time.perf_counter() - began:.0f}"])
    print_table(
        f"Intervals of {LEVEL:.0%}, {runs} data sets each",
        ["parameter", "covered", "expected", "s"],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    main(runs=parser.parse_args().runs)
