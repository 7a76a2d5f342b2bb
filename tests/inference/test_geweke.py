"""Getting it right (Geweke 2004) on problems too large to enumerate.

Two ways to draw from the joint distribution of parameters and data must agree: straight from the
prior, and by alternating a sweep of the sampler with a fresh draw of the data given the state.
"""

import numpy as np
import pytest
from agreement import LIMIT, canonical, worst_z
from chains import make_chain

from onlooker import Problem
from onlooker.hyper import Exponential
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing

ALPHA = 0.4
GAMMA = 1.5
N_NODES, N_ACTIONS = 24, 4
NODE_OF = np.repeat(np.arange(N_NODES - 4), 2)  # four nodes without a transition
CONFUSION = np.full((N_ACTIONS, N_ACTIONS), 0.2) + 0.2 * np.eye(N_ACTIONS)
"""The data: each action shows as one of four symbols, twice as often as its own."""
STATES = np.random.default_rng(0).uniform(0, 5, size=(N_NODES, 2))
DECAY = GaussianDecay(1.0, 0.05)
NU_MEAN = 0.5


def draw_crp(rng):
    labels = []
    for i in range(N_NODES):
        sizes = np.bincount(labels, minlength=0) if labels else np.zeros(0)
        weights = np.append(sizes, GAMMA)
        labels.append(int(rng.choice(len(weights), p=weights / (i + GAMMA))))
    return np.array(labels), None


def draw_mixing(rng):
    q = rng.dirichlet(np.full(5, GAMMA / 5))
    return rng.choice(5, size=N_NODES, p=q), None


def draw_ddcrp(rng):
    nu = rng.exponential(NU_MEAN)
    distance = np.linalg.norm(STATES[:, None] - STATES[None], axis=-1)
    weights = DECAY(distance)
    np.fill_diagonal(weights, nu)
    links = [rng.choice(N_NODES, p=row / row.sum()) for row in weights]
    labels = np.arange(N_NODES)
    for _ in range(N_NODES):
        for i, j in enumerate(links):
            labels[[i, j]] = min(labels[i], labels[j])
    return labels, nu


MODELS = {
    "mixing": (Mixing(5, GAMMA), draw_mixing),
    "crp": (ChineseRestaurant(GAMMA), draw_crp),
    "ddcrp": (DistanceDependent(Exponential(NU_MEAN), DECAY), draw_ddcrp),
}


def statistics(labels, actions, nu):
    """Label-free numbers that touch every unknown."""
    sizes = np.bincount(canonical(labels))
    same = actions[::2] == actions[1::2]  # both transitions of a node
    z = np.asarray(labels)[NODE_OF]
    together = z[:, None] == z[None]
    agree = (actions[:, None] == actions[None]) & together
    values = [len(sizes), sizes.max(), same.mean(), agree.sum() / together.sum()]
    values.append(np.bincount(actions, minlength=N_ACTIONS).max())
    return [*values, np.log(nu)] if nu is not None else values


def from_the_prior(draw, n, rng):
    found = []
    for _ in range(n):
        labels, nu = draw(rng)
        theta = rng.dirichlet(np.full(N_ACTIONS, ALPHA), size=N_NODES)
        uniform = rng.random(len(NODE_OF))
        cumulative = np.cumsum(theta[np.array(canonical(labels))[NODE_OF]], axis=1)
        actions = (cumulative < uniform[:, None]).sum(axis=1)
        found.append(statistics(labels, actions, nu))
    return np.array(found)


def by_the_sampler(prior, n, rng, *, collapsed, alpha=ALPHA):
    problem = Problem(
        NODE_OF, np.log(CONFUSION[rng.integers(N_ACTIONS, size=len(NODE_OF))]), STATES
    )
    chain = make_chain(problem, prior, alpha=alpha, collapsed=collapsed, rng=rng)
    found = []
    for _ in range(n):
        chain.sweep()
        symbols = (
            np.cumsum(CONFUSION[chain.state.actions], axis=1) < rng.random((len(NODE_OF), 1))
        ).sum(axis=1)
        likelihood = np.ascontiguousarray(CONFUSION[:, np.minimum(symbols, N_ACTIONS - 1)].T)
        chain.state.data = chain.state.data._replace(likelihood=likelihood)
        found.append(statistics(chain.labels, chain.actions, chain.state.hyper.get("nu")))
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "collapsed"),
    [
        ("crp", True),
        ("ddcrp", True),
        pytest.param("mixing", True, marks=pytest.mark.slow),
        pytest.param("mixing", False, marks=pytest.mark.slow),
        pytest.param("crp", False, marks=pytest.mark.slow),
    ],
)
def test_prior_and_sampler_agree_on_the_joint(model, collapsed):
    prior, draw = MODELS[model]
    rng = np.random.default_rng(1)
    expected = from_the_prior(draw, 3_000, rng)
    found = by_the_sampler(prior, 8_000, rng, collapsed=collapsed)
    assert worst_z(expected, found) < LIMIT


@pytest.mark.parametrize(
    "model",
    ["ddcrp", *(pytest.param(model, marks=pytest.mark.slow) for model in ("mixing", "crp"))],
)
def test_a_wrong_concentration_does_not_agree(model):
    prior, draw = MODELS[model]
    rng = np.random.default_rng(1)
    expected = from_the_prior(draw, 3_000, rng)
    found = by_the_sampler(prior, 8_000, rng, collapsed=True, alpha=1.3 * ALPHA)
    assert worst_z(expected, found) > LIMIT
