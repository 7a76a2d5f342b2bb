"""Numba's cache of the package's kernels: cleared when stale, filled once for all workers."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1]


def sources(package):
    """Files with kernels, in all rooms."""
    return [path for path in package.rglob("*.py") if "@njit" in path.read_text(encoding="utf-8")]


def missing(package):
    """Files none of whose kernels has been compiled."""
    return [
        path
        for path in sources(package)
        if not any((path.parent / "__pycache__").glob(f"{path.stem}.*.nbi"))
    ]


def compile_all():
    """Compile in two processes; what goes wrong there goes wrong in a test, too."""
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, part],
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for part in ("links", "labels")
    ]
    for process in processes:
        process.wait()


def main(part):
    """Sample the golden runs of one kind of prior, and ask what posteriors are asked most.

    Those with links go with runs of the default model.
    """
    warnings.simplefilter("ignore")
    from golden.runs import COMPASS, cases, ring, ring_walks, walks
    from onlooker import Problem, sample
    from onlooker.anomaly import score
    from onlooker.partitions import Regions

    for name, make in cases():
        if ("ddcrp" in name) == (part == "links"):
            posterior = make()
    posterior.policy(posterior.problem.states[:2], interval=0.9)
    if part == "labels":
        posterior.partition()
        return
    for trajectories, dynamics in ((walks(4, 15, 3), COMPASS), (ring_walks(), ring())):
        problem = Problem.from_demonstrations(trajectories, dynamics)
        posterior = sample(problem, Regions(), draws=4, tune=4, chains=1, progress=False)
        score(posterior, trajectories, n_replicates=10)


if __name__ == "__main__":
    main(sys.argv[1])
