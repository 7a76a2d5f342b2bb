"""From nothing: import, ``--help``, and the first sweep with and without compiled kernels.

python -m benchmarks start

Each in a process of its own; wall and processor seconds, the least of several. Cold means an empty
cache of numba, so that kernels are compiled; warm, that they are found there.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks._measure import print_table

FIRST_SWEEP = (
    "import numpy as np; from onlooker import Problem; from onlooker.partitions import {prior}; "
    "from chains import make_chain; rng = np.random.default_rng(0); "
    "p = Problem(np.arange(50), rng.normal(size=(50, 4)), rng.uniform(0, 5, (50, 2))); "
    "make_chain(p, {prior}({of})).sweep()"
)
MIXING = FIRST_SWEEP.format(prior="Mixing", of="3")
DDCRP = FIRST_SWEEP.format(prior="DistanceDependent", of="")


def run(arguments: list[str], cache: str | None = None) -> tuple[float, float]:
    """Wall and processor seconds of one process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    environment["PYTHONPATH"] = os.pathsep.join(sys.path[1:])  # with the helpers of the tests
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(runs: list[tuple[float, float]]) -> tuple[float, float]:
    """The least wall and the least processor time."""
    return min(wall for wall, _ in runs), min(processor for _, processor in runs)


def main(quick: bool = False) -> None:
    """Print the table."""
    repeats = 3 if quick else 7
    found = {
        "an empty process": least([run(["-c", ""]) for _ in range(repeats)]),
        "import numpy": least([run(["-c", "import numpy"]) for _ in range(repeats)]),
        "import onlooker": least([run(["-c", "import onlooker"]) for _ in range(repeats)]),
        "onlooker --help": least([run(["-m", "onlooker.cli", "--help"]) for _ in range(repeats)]),
    }
    for name, code in {"mixing": MIXING, "ddCRP": DDCRP}.items():
        cold, warm = [], []
        for _ in range(1 if quick else 2):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(run(["-c", code], cache))
                warm += [run(["-c", code], cache) for _ in range(repeats // 2)]
        found[f"to the first sweep of {name}, cold"] = least(cold)
        found[f"to the first sweep of {name}, warm"] = least(warm)
    unit = found["import numpy"][1]
    print_table(
        "From nothing",
        ["until", "wall, s", "processor, s", "in units of `import numpy`"],
        [
            [name, f"{wall:.2f}", f"{processor:.2f}", f"{processor / unit:.1f}"]
            for name, (wall, processor) in found.items()
        ],
    )


if __name__ == "__main__":
    main("--quick" in sys.argv)
