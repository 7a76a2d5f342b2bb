"""How near controllers over all behaviours come to the expert.

    python -m benchmarks.check_repertoires [--runs 10] [--first 0] [--only 1 "2a, 100" "2c, 0.5"]

As `check_regions`, with the default repertoire: one configuration for all examples. In 2 (c) the
assumed world is wrong, with 24 actions and a perturbation of strength η, 1,000 trajectories: the
error is that under the assumed world. ``--first 1000`` takes data sets that nothing was ever tried
on.
"""

from __future__ import annotations

import numpy as np

from benchmarks import check_regions
from benchmarks.check_mixing import world_of
from benchmarks.check_regions import at_states, next_state_error_of, posterior_of
from onlooker import Problem
from onlooker.dynamics import PerturbedDynamics
from onlooker.experiments.robustness import Config
from onlooker.partitions import Regions
from onlooker.worlds.grid import GridWorld, grid_dynamics

CELLS = {
    "1": 0.05,
    "2a, 30": 0.63,
    "2a, 100": 0.42,
    "2a, 1000": 0.06,
    "2a, 3000": 0.04,
    "2b, 10": 0.36,
    "2b, 30": 0.22,
    "2b, 100": 0.14,
    "2b, 1000": 0.025,
    "2b, 10000": 0.005,
    "2c, 0": 0.316,
    "2c, 0.25": 0.320,
    "2c, 0.5": 0.335,
    "2c, 0.75": 0.362,
    "2c, 0.99": 0.486,
}
"""What is to be reached; of 2 (c) the errors of the paper's ddCRP."""


def error_of(name: str, run: int) -> tuple[float, float]:
    """The error of the posterior mean policy, and the mean number of controllers."""
    if not name.startswith("2c"):
        return check_regions.error_of(name, run, "auto")
    config, world, eta = Config(), world_of("2b", run), float(name.split(", ")[1])
    assert isinstance(world, GridWorld)
    demos, _ = world.rollout(config.trajectories, config.length, config.stream(run, 1))
    clean = grid_dynamics(config.size, config.assumed_actions)
    assumed = PerturbedDynamics(clean, eta, config.stream(run, 2, round(1000 * eta)))
    problem = Problem.from_demonstrations(demos, assumed, nodes="all")
    posterior = posterior_of(problem, Regions.inferred(1.0, coordinates=world.coordinates), run)
    error = next_state_error_of(world, assumed, at_states(posterior))
    return error, float(np.mean(posterior.n_controllers))


if __name__ == "__main__":
    check_regions.main("Errors of controllers over all behaviours", CELLS, error_of)
