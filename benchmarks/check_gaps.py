"""Do intervals cover the truth where positions were not seen, or only through noise?

    python -m benchmarks.check_gaps [--runs 100] [--directions 8]

Worlds drawn from the prior: two controllers, ten trajectories of 12 steps or a few more, steps of
length 1 with noise σ. Between seen states `gap` are unseen, or all are seen with noise ς.
Shares of action probabilities (at all nodes) and of unknown coordinates within their intervals.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from gap_coverage import LEVEL, covered

from benchmarks._measure import print_table

SIGMAS = (0.05, 0.1, 0.2, 0.5)
CELLS = [(gap, sigma, 0.0) for gap in (1, 2, 3, 5, 10) for sigma in SIGMAS]
CELLS += [(0, sigma, ratio * sigma) for ratio in (1, 3) for sigma in SIGMAS]


def main(quick: bool = False, runs: int = 100, directions: int = 8) -> None:
    """Print how often the intervals cover the truth, with standard errors over data sets."""
    cells, runs = (CELLS[::9], 4) if quick else (CELLS, runs)
    rows, began = [], time.perf_counter()
    for gap, sigma, noise in cells:
        found = 100 * np.array(
            [covered(seed, gap, sigma, noise, n_directions=directions) for seed in range(runs)]
        )
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(runs)
        shares = [f"{m:.1f} ± {e:.1f}" for m, e in zip(mean, error, strict=True)]
        rows.append([f"{gap}", f"{sigma:g}", f"{noise / sigma:g}", *shares])
        print(*rows[-1], flush=True)
    print_table(
        f"Intervals of {LEVEL:.0%}, covered [%], {directions} directions, {runs} data sets each, "
        f"{time.perf_counter() - began:.0f} s",
        ["gap", "σ / step", "ς / σ", "policies", "positions"],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--directions", type=int, default=8)
    given = parser.parse_args()
    main(runs=given.runs, directions=given.directions)
