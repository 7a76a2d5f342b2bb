"""Memory of sampling: the most that a process holds, against the size of its input.

python -m benchmarks memory

The input is what a `Problem` holds: the node of each transition, its log-likelihoods (8 actions,
eight bytes each) and the states. Each size is sampled in a process of its own; a process that has
sampled hardly anything tells what the interpreter, the libraries and the kernels take.
"""

from __future__ import annotations

import json
import sys
import warnings

from benchmarks._measure import in_fresh_process, keep, peak_memory, print_table

CASES = ("mixing, collapsed", "Potts", "ddCRP")
SIZES = (100, 10_000, 100_000, 1_000_000)
DRAWS = 5


def _measure(name: str, size: int) -> None:
    from benchmarks._models import MODELS, plane
    from onlooker import sample

    warnings.simplefilter("ignore")  # five draws have not converged
    problem = plane(size)
    prior = MODELS[name].prior(size)
    sample(problem, prior, draws=DRAWS, tune=2, chains=1, random_state=0, progress=False)
    given = problem.node_of.nbytes + problem.loglik.nbytes + problem.states.nbytes
    print(json.dumps({"size": size, "given": given / 1e9, "peak": peak_memory()}))


def main(quick: bool = False) -> None:
    """Print the table."""
    data, rows = {}, []
    for name in CASES:
        sizes = SIZES[:2] if quick else SIZES
        idle, *found = [
            in_fresh_process("benchmarks.bench_memory", "--measure", name, str(size))
            for size in sizes
        ]
        data[name] = [idle, *found]
        rows += [
            [
                name,
                f"{one['size']:,}",
                f"{one['given'] * 1e3:.1f}",
                f"{one['peak'] * 1e3:.0f}",
                f"{(one['peak'] - idle['peak']) / one['given']:.1f}",
                f"{(one['peak'] - idle['peak']) * 1e9 / one['size']:,.0f}",
            ]
            for one in found
        ]
    print_table(
        f"Peak memory of `sample`, N = M, A = 8, {DRAWS} draws",
        [
            "model",
            "nodes",
            "input, MB",
            "peak, MB",
            "peak without the idle process / input",
            "bytes a node",
        ],
        rows,
    )
    keep("memory", data)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--measure":
        _measure(sys.argv[2], int(sys.argv[3]))
    else:
        main("--quick" in sys.argv)
