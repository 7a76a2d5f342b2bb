"""Small stored runs of every kind of state space, to be looked at."""

import warnings

import numpy as np
from bare import bare_problem
from small_runs import ring_dynamics

from onlooker import Problem, sample
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics
from onlooker.dynamics.features import Speed, with_features
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Potts, Regions
from onlooker.repertoire import Actions, Blurs
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import GridWorld

KINDS = ("line", "plane", "space", "earth", "grid", "abstract")


def store_run(kind, path, seed=0, names=None, **options):
    """Sample a little into `path`; returns the posterior."""
    problem, prior = _MAKERS[kind](np.random.default_rng(seed))
    alpha = CONCENTRATION if isinstance(prior, Regions) else 1.0
    if names is not None:
        problem.paths = problem.paths._replace(names=np.array(names))
    options = {"draws": 30, "tune": 20, "chains": 2, "random_state": seed} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sample(problem, prior, alpha, store=path, progress=False, **options)


def _walk(rng, dynamics, choose, start, length):
    states = [np.asarray(start, dtype=float)]
    for _ in range(length):
        action = choose(states[-1])
        states.append(dynamics.sample([states[-1]], [action], rng)[0])
    return np.array(states)


def _line(rng):
    """On a line: towards the origin from both sides."""
    dynamics = DisplacementDynamics([[-0.5], [0.0], [0.5]], 0.15)
    walks = [
        _walk(rng, dynamics, lambda s: 2 if s[0] < 0 else 0, [start], 14)
        for start in (-4.0, 4.0, -2.5, 3.0)
    ]
    return bare_problem(walks, dynamics), _near(0.7)


def _plane(rng):
    """In the plane: up on the left, down on the right."""
    dynamics = DisplacementDynamics.compass(8, 0.5, 0.1)
    walks = [
        _walk(rng, dynamics, lambda s: 2 if s[0] < 0 else 6, [x, -2.0 if x < 0 else 2.0], 14)
        for x in (-2.0, -1.0, -0.6, 0.7, 1.1, 2.1)
    ]
    return bare_problem(walks, dynamics), _near(0.8)


def _space(rng):
    """In four dimensions: along the third one way or the other."""
    steps = np.vstack([np.eye(4), -np.eye(4)]) * 0.5
    dynamics = DisplacementDynamics(steps, 0.1)
    walks = [
        _walk(rng, dynamics, lambda s: 2 if s[0] < 0 else 6, rng.normal(0, 1.5, 4), 14)
        for _ in range(6)
    ]
    return bare_problem(walks, dynamics), _near(1.0)


def _earth(rng):
    """West and east across the date line near Fiji; a short track far away, as of bad fixes."""
    dynamics = GeographicDynamics.compass(8, 60.0, 12.0)
    walks = [
        _walk(rng, dynamics, lambda s: 0 if s[1] < -18 else 4, [lon, lat], 14)
        for lon, lat in [(176, -20), (177, -19.5), (178, -19), (-177, -17), (-178, -16.5)]
    ]
    walks.append(_walk(rng, dynamics, lambda s: 0, [3.0, 51.0], 1))
    demos, moving = with_features(walks, [Speed(1.0)], dynamics)
    return bare_problem(demos, moving), _near(120.0)


def _grid(rng):
    """A grid world whose states have coordinates."""
    world = GridWorld(9, 8, sigma=0.5, radius=2.5)
    demos, _ = world.rollout(8, 20, random_state=int(rng.integers(1 << 30)))
    prior = Potts(4, decay=GaussianDecay(1.0), coordinates=world.coordinates)
    return bare_problem(demos, world.dynamics), prior


def _abstract(rng):
    """A ring of states that are only numbers."""
    walks = []
    for start in range(0, 16, 4):
        walk = [start]
        for _ in range(20):
            up = walk[-1] < 8
            walk.append((walk[-1] + (1 if up else -1) * int(rng.random() < 0.9)) % 16)
        walks.append(walk)
    return bare_problem(walks, ring_dynamics(18)), ChineseRestaurant()


def _goals(rng):
    """A grid world whose expert wants to be at one state, with all behaviours that it offers."""
    reward = np.zeros(49)
    reward[24] = 1.0
    world = GridWorld.with_reward(size=7, reward=reward)
    demos, _ = world.rollout(25, 6, random_state=int(rng.integers(1 << 30)))
    prior = Regions.inferred(1.0, coordinates=world.coordinates)
    return Problem.from_demonstrations(demos, world.dynamics), prior


def _circling(rng):
    """A grid world whose expert takes a direction or one of its neighbours, and heads nowhere."""
    world = GridWorld(9, 8, sigma=0.5, radius=2.5)
    demos, _ = world.rollout(60, 10, random_state=int(rng.integers(1 << 30)))
    prior = Regions.inferred(1.0, coordinates=world.coordinates)
    repertoire = [Actions(), Blurs((3,))]
    return Problem.from_demonstrations(demos, world.dynamics, repertoire=repertoire), prior


def _near(scale):
    return DistanceDependent(decay=GaussianDecay(scale, offset=0.01))


_MAKERS = {
    "line": _line,
    "plane": _plane,
    "space": _space,
    "earth": _earth,
    "grid": _grid,
    "abstract": _abstract,
    "goals": _goals,
    "circling": _circling,
}
