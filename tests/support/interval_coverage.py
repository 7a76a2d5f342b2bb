"""Whether intervals of the dynamics' parameters cover the truth, in one simulated data set.

Everything is drawn from the prior, as coverage needs: parameters, partition, controllers, actions,
states. The noise and the step length of displacements with a finite mixture of controllers; the
probability of success in a small grid with the distance-dependent prior.
"""

from __future__ import annotations

import warnings

import numpy as np
from bare import bare_problem
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from onlooker import Demonstrations, Problem, sample
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics
from onlooker.dynamics.rollout import draw_actions
from onlooker.hyper import Beta, Gamma, LogUniform
from onlooker.partitions import DistanceDependent, GaussianDecay, Mixing
from onlooker.worlds import GridWorld

LEVEL = 0.9
ALPHA = 0.5


def _covered(posterior, truth: dict[str, float]) -> list[bool]:
    tail = (1 - LEVEL) / 2
    covered = []
    for name, value in truth.items():
        low, high = np.quantile(posterior.hyper[name], [tail, 1 - tail])
        covered.append(bool(low <= value <= high))
    return covered


def _sample(problem: Problem, prior, draws: int, seed: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(
            problem,
            prior,
            concentration=ALPHA,
            draws=draws,
            tune=draws // 2,
            thin=2,
            chains=2,
            random_state=seed,
            progress=False,
        )


def noise_and_step(seed: int, n_transitions: int = 100, draws: int = 1000) -> list[bool]:
    """Whether the intervals of σ and μ of one simulated data set cover them."""
    rng = np.random.default_rng([seed, 1])
    dynamics = DisplacementDynamics.compass(8, step=LogUniform(0.5, 2.0), sigma=Gamma(2.0, 5.0))
    truth = {name: prior.sample(rng) for name, prior in dynamics.parameters.items()}
    world = dynamics.at(truth)
    weights = rng.dirichlet(np.full(4, 0.25))
    theta = np.cumsum(rng.dirichlet(np.full(8, ALPHA), size=4), axis=1)
    states = [np.zeros((1, 2))]
    for _ in range(n_transitions):  # no state is met twice, so each draws its own controller
        action = draw_actions(theta[[rng.choice(4, p=weights)]], rng)
        states.append(world.sample(states[-1], action, rng))
    problem = bare_problem(Demonstrations([np.concatenate(states)]), dynamics)
    return _covered(_sample(problem, Mixing(4, 1.0), draws, seed), truth)


def success(seed: int, n_trajectories: int = 20, draws: int = 1000) -> list[bool]:
    """The same for the probability of success in a grid."""
    rng = np.random.default_rng([seed, 2])
    grid = GridWorld(5, n_actions=4, sigma=0.4)
    dynamics = SlipperyDynamics(grid.dynamics, success=Beta(4.0, 2.0))
    truth = {name: prior.sample(rng) for name, prior in dynamics.parameters.items()}
    prior = DistanceDependent(0.3, GaussianDecay(1.5, 0.01), coordinates=grid.coordinates)
    labels = _draw_components(grid.coordinates, prior, rng)
    theta = np.cumsum(rng.dirichlet(np.full(4, ALPHA), size=25)[labels], axis=1)
    world = dynamics.at(truth)
    states = [rng.integers(25, size=n_trajectories)]
    for _ in range(6):
        states.append(world.sample(states[-1], draw_actions(theta[states[-1]], rng), rng))
    with warnings.catch_warnings():  # a corner where every action leads nowhere else
        warnings.simplefilter("ignore")
        demos = Demonstrations(list(np.array(states).T))
        problem = bare_problem(demos, dynamics, nodes="all")
    return _covered(_sample(problem, prior, draws, seed), truth)


def _draw_components(coordinates, prior: DistanceDependent, rng: np.random.Generator):
    """Clusters by the distance-dependent prior."""
    n = len(coordinates)
    weights = prior.decay(np.linalg.norm(coordinates[:, None] - coordinates[None], axis=-1))
    np.fill_diagonal(weights, prior.self_link)
    links = [rng.choice(n, p=row / row.sum()) for row in weights]
    graph = csr_array((np.ones(n), (np.arange(n), links)), shape=(n, n))
    return connected_components(graph, directed=False)[1]
