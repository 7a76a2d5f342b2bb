"""One configuration for every expert: all hyper-parameters inferred, nothing said about the expert.

Example 2 of the paper, (a) circling and (b) optimal expert, beside behavioural cloning on the same
data, which are those of the first runs of ``onlooker reproduce``; and Example 1.
``python -m benchmarks inferred --limit 7200``
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np

from benchmarks._measure import keep, print_note, print_table
from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.baselines import BehavioralCloning
from onlooker.checks import Array
from onlooker.experiments import grid_circular, grid_mdp
from onlooker.experiments.grid import next_state_error
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion, GridWorld

CONFIGS: Any = {"a": grid_circular.Config(), "b": grid_mdp.Config()}
SIZES = {"a": (30, 100, 1000, 3000), "b": (10, 100, 1000, 10000)}
WANTED = {("a", 100): 0.52, ("a", 1000): 0.25, ("b", 100): 0.34, ("b", 1000): 0.13}
EXPERTS = {"a": "circling, rad", "b": "optimal, cells"}
RUNS = 10
MANY, RUNS_OF_MANY = 3000, 3  # trajectories from which on fewer data sets must do
Hyper = dict[str, float]


def demos_of_grid(expert: str, size: int, run: int) -> tuple[GridWorld, Demonstrations]:
    """The world and the data of one run of Example 2."""
    config = CONFIGS[expert]
    world = GridWorld(21, 8, radius=5.0) if expert == "a" else config.rewarded(run)
    return world, world.rollout(size, config.length, config.stream(run, size, 0))[0]


def problem_of_grid(expert: str, size: int, run: int) -> tuple[GridWorld, Problem]:
    """The same as a problem whose nodes are all states."""
    world, demos = demos_of_grid(expert, size, run)
    return world, Problem.from_demonstrations(demos, world.dynamics, nodes="all")


def problem_of_plane(run: int) -> tuple[CircularMotion, Problem]:
    """The world and the data of one run of Example 1."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=run)
    return world, Problem.from_demonstrations(demos, world.dynamics)


def error_on_grid(expert: str, world: GridWorld, policy: Array) -> float:
    """The mean over all states of the error that the experiments report."""
    if expert == "a":
        return float(circular_emd(world.policy(), policy).mean())
    states = np.arange(world.n_states)
    true = world.dynamics.next_state_probabilities(states, world.policy())
    tolerance = CONFIGS["b"].tolerance
    return float(next_state_error(true, world.dynamics, policy, world.coordinates, tolerance))


def grid(expert: str, size: int, run: int) -> tuple[float, float, Hyper]:
    """Our error, that of cloning, and our median hyper-parameters, in one run of Example 2."""
    world, problem = problem_of_grid(expert, size, run)
    prior = DistanceDependent.inferred(coordinates=world.coordinates)
    posterior = sample(problem, prior, CONCENTRATION, random_state=run, progress=False)
    policy = np.empty((problem.n_nodes, problem.n_actions))
    policy[problem.states] = posterior.policy()
    cloning = BehavioralCloning(
        world.dynamics, coordinates=world.coordinates, rounds=5, random_state=run
    ).fit(demos_of_grid(expert, size, run)[1])
    cloned = cloning.predict_proba(np.arange(world.n_states))
    return (
        error_on_grid(expert, world, policy),
        error_on_grid(expert, world, cloned),
        medians(posterior),
    )


def plane(run: int) -> tuple[float, Counter[int], Hyper]:
    """Error, numbers of controllers and median hyper-parameters of one run of Example 1."""
    world, problem = problem_of_plane(run)
    prior = DistanceDependent.inferred()
    posterior = sample(problem, prior, CONCENTRATION, random_state=run, progress=False)
    error = float(circular_emd(world.policy(problem.states), posterior.policy()).mean())
    return error, Counter(posterior.n_controllers.ravel().tolist()), medians(posterior)


def medians(posterior: Posterior) -> Hyper:
    """Of the hyper-parameters."""
    return {name: float(np.median(draws)) for name, draws in posterior.hyper.items()}


def spread(errors: Any) -> str:
    """Mean and its standard error."""
    errors = np.asarray(errors)
    return f"{errors.mean():.3f} ± {errors.std(ddof=1) / np.sqrt(len(errors)):.3f}"


def typical(found: list[Hyper]) -> str:
    """The median of each hyper-parameter over runs."""
    return ", ".join(f"{k} {np.median([hyper[k] for hyper in found]):.3g}" for k in found[0])


def main(quick: bool = False) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_runs, rows, means = 2 if quick else RUNS, [], {}
    for expert, sizes in SIZES.items():
        for size in sizes[:2] if quick else sizes:
            runs = range(n_runs if size < MANY else RUNS_OF_MANY)
            ours, cloned, hyper = zip(*(grid(expert, size, run) for run in runs), strict=True)
            wanted = WANTED.get((expert, size), "")
            row = [EXPERTS[expert], f"{size:,}", len(runs), spread(ours), wanted, spread(cloned)]
            rows.append([*row, typical(list(hyper))])
            print(*rows[-1], sep=" | ", flush=True)
            means[f"{expert} {size}"] = {
                "ddCRP, all inferred": float(np.mean(ours)),
                "cloning": float(np.mean(cloned)),
            }
    keep("means", means)
    print_table(
        "Errors on the grid, mean and standard error",
        (
            "expert",
            "trajectories",
            "data sets",
            "ddCRP, all inferred",
            "wanted",
            "cloning",
            "medians, ours",
        ),
        rows,
    )
    errors, counts, hyper = zip(*(plane(run) for run in range(n_runs)), strict=True)
    drawn = sum(counts, Counter[int]())
    shares = [f"{k}: {n / drawn.total():.0%}" for k, n in sorted(drawn.items())]
    print_note(
        f"Example 1, {n_runs} data sets: error {spread(errors)} rad; controllers "
        f"{', '.join(shares)}; medians {typical(list(hyper))}."
    )


if __name__ == "__main__":
    main()
