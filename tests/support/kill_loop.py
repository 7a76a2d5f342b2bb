"""Start processes that sample into a store, and kill them: `python kill_loop.py STORE SEED KILLS`.

Children are forked from a process that has compiled everything, so that a life can be short. Every
sweep or two is a part of its own, so that most kills hit a write. Prints how many kills there
were and how many left a half-written file behind.
"""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

from small_runs import plane_problem

from onlooker import sample
from onlooker.inference import threads
from onlooker.partitions import DistanceDependent
from onlooker.runs import store

OPTIONS = {"draws": 150, "tune": 20, "chains": 2, "random_state": 8, "thin": 2}


def live(path, **options):
    """One run from wherever the last one was killed."""
    store._MAX_WAIT = 0.0  # a part is always due
    threads._SLICE = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample(
            plane_problem(),
            DistanceDependent(),
            progress=False,
            store=path,
            resume=True,
            n_jobs=2,
            **(OPTIONS | options),
        )


def _wait_for_parts(path, n_more):
    """Let the child get as far as writing: opening and reading take most of a short life."""
    enough = len(list(path.rglob("part-*.npz"))) + n_more
    patience = time.monotonic() + 5.0
    while len(list(path.rglob("part-*.npz"))) < enough and time.monotonic() < patience:
        time.sleep(0.001)


def main():
    """Kill `KILLS` lives, then let one end well."""
    path, seed, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    live(path.with_name("warm-up"), draws=2, tune=1)
    killed = torn = 0
    while True:
        child = os.fork()
        if child == 0:
            live(path)
            os._exit(0)
        if killed < kills:
            if killed % 4:
                _wait_for_parts(path, rng.randrange(1, 6))
            time.sleep(rng.uniform(0.0, 0.01 if killed % 4 else 0.1))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        killed += 1
        torn += any(path.rglob(".*.tmp")) if path.exists() else 0
    print(killed, torn, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
