"""Small problems and posteriors, some of them made up rather than sampled."""

import warnings

import numpy as np
from bare import bare_problem
from chains import make_posterior

from onlooker import Problem, sample
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.gibbs.arrays import smallest_int
from onlooker.gibbs.update import Update
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.warnings import ConvergenceWarning

PRIORS = {
    "static": Static(),
    "uniform": Uniform(3),
    "mixing": Mixing(3),
    "mixing, q drawn": Mixing(3, collapsed=False),
    "potts": Potts(3, beta=0.7, n_neighbors=4),
    "crp": ChineseRestaurant(),
    "ddcrp": DistanceDependent(decay=GaussianDecay(1.0, 0.01)),
}


class Mortal(Mixing):
    """A prior whose sampler fails in some chains after a while."""

    doomed = (1,)

    def bind(self, problem):
        bound = super().bind(problem)
        updates, seen = bound.updates, {}
        bound.updates = lambda collapsed: [*updates(collapsed), Failure(seen, self.doomed)]
        return bound


class Failure(Update):
    """Fails sooner or later in some of the chains, counted as they come."""

    name = "failure"

    def __init__(self, seen, doomed):
        self.seen, self.doomed = seen, doomed

    def __call__(self, state):
        number = self.seen.setdefault(id(state), len(self.seen))
        if number in self.doomed and state.rng.random() < 0.3:
            raise ArithmeticError("out of luck")
        return {}


def plane_problem(n_nodes=15, n_transitions=40, n_actions=4, seed=0):
    """Nodes in the plane, some revisited, some without a transition, with arbitrary likelihoods."""
    rng = np.random.default_rng(seed)
    node_of = rng.integers(n_nodes - 2, size=n_transitions)
    loglik = rng.normal(0.0, 2.0, (n_transitions, n_actions))
    problem = Problem(node_of, loglik, rng.normal(0.0, 1.5, (n_nodes, 2)))
    problem.dynamics = DisplacementDynamics.compass(n_actions, sigma=0.3)
    return problem


def ring_dynamics(n_states=6):
    """Stay, go up or go down a ring, with a little noise."""
    table = np.full((n_states, 3, n_states), 0.02)
    for action, step in enumerate((0, 1, -1)):
        for state in range(n_states):
            table[state, action, (state + step) % n_states] += 1.0
    return TabularDynamics(table / table.sum(axis=2, keepdims=True))


def ring_problem(n_states=6, seed=0):
    """A walk round a ring, as tabular demonstrations."""
    rng = np.random.default_rng(seed)
    dynamics = ring_dynamics(n_states)
    walks = []
    for _ in range(4):
        walk = [int(rng.integers(n_states - 1))]
        for _ in range(12):
            walk.append((walk[-1] + int(rng.integers(-1, 2))) % n_states)
        walks.append(walk)
    return bare_problem(walks, dynamics)


def made_up(problem, prior, hyper=None, n_chains=2, n_draws=5, n_clusters=3, seed=1):
    """A posterior with random labels, actions and hyper-parameters: no sampler is involved."""
    rng = np.random.default_rng(seed)
    shape = (n_chains, n_draws)
    labels = rng.integers(n_clusters, size=(*shape, problem.n_nodes))
    if isinstance(prior, Static):
        labels[:] = np.arange(problem.n_nodes)
    for index in np.ndindex(shape):
        seen = {}
        labels[index] = [seen.setdefault(k, len(seen)) for k in labels[index]]
    arrays = {
        "labels": labels.astype(smallest_int(problem.n_nodes)),
        "actions": rng.integers(problem.n_actions, size=(*shape, problem.n_transitions)).astype(
            np.int8
        ),
        "log_joint": rng.normal(size=shape),
    }
    for name, value in ({"alpha": 0.7} | (hyper or {})).items():
        arrays[f"hyper.{name}"] = np.broadcast_to(value, shape).astype(float)
    return make_posterior(problem, prior, arrays, concentration=0.7, seed=seed)


def quick(problem, prior, **options):
    """Sample a little, without a word about how little."""
    options = {"draws": 8, "tune": 4, "chains": 2, "random_state": 3, "progress": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sample(problem, prior, **options)


def assert_same_draws(one, other):
    """The same bits, and the same types, of all that is kept."""
    assert one.draws.arrays.keys() == other.draws.arrays.keys()
    for name, values in one.draws.arrays.items():
        assert values.dtype == other.draws.arrays[name].dtype, name
        np.testing.assert_array_equal(values, other.draws.arrays[name], err_msg=name)


def walk(n_dims, n=40, seed=0):
    """Steps of length 1 or so, in all directions."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(n, n_dims))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    return np.cumsum(steps + rng.normal(0, 0.05, size=steps.shape), axis=0)
