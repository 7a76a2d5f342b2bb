"""The concentration of the controllers, drawn in one kernel or by the prior's own words."""

import numpy as np
import pytest
from chains import make_chain
from naive_regions import twin_alpha

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform, TotalMass
from onlooker.inference.updates import Concentration
from onlooker.partitions import Regions

PRIORS = [TotalMass(Exponential(1.0)), Gamma(2.0, 5.0), LogUniform(0.01, 3.0)]


class Narrow(Gamma):
    """A prior that only looks like one of the library's."""

    def logpdf(self, value):
        return super().logpdf(value) if value < 0.4 else -np.inf


class Own:
    """A prior that the library does not know."""

    def __init__(self, prior):
        self.mean, self.logpdf, self.sample = prior.mean, prior.logpdf, prior.sample


def made(prior, kinds):
    rng = np.random.default_rng(1)
    problem = Problem(
        np.sort(rng.integers(5, size=60)), rng.normal(0, 1.5, (60, 9)), rng.normal(size=(5, 2))
    )
    if kinds:
        problem.set_kinds(["one", "other"], np.repeat([0, 1], [3, 6]))
    chain = make_chain(problem, Regions.inferred(1.0), alpha=prior, rng=np.random.default_rng(5))
    for _ in range(3):
        chain.sweep()
    return chain


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_kernel_equals_its_twin(prior, kinds):
    chain = made(prior, kinds)
    state, prior = chain.state, chain.target.alpha
    for _ in range(20):
        rng = state.copy().rng
        twin = twin_alpha(
            state.hyper["alpha"], state.tables.share, state.counts.cluster, prior, rng
        )
        chain.update("alpha")(state)
        assert state.hyper["alpha"] == pytest.approx(twin, rel=1e-9)
        assert state.rng.bit_generator.state == rng.bit_generator.state
        chain.update("actions")(state)


def test_a_prior_of_ones_own_is_drawn_from_in_the_same_way():
    chain = made(Gamma(2.0, 5.0), kinds=True)
    state, own = chain.state.copy(), Concentration(Own(Gamma(2.0, 5.0)))
    state.data, state.tables = chain.state.data, chain.state.tables
    chain.update("alpha")(chain.state)
    own(state)
    assert state.hyper["alpha"] == pytest.approx(chain.state.hyper["alpha"], rel=1e-9)
    assert state.rng.random() == chain.state.rng.random()


def test_a_subclass_keeps_its_own_density():
    chain = made(Narrow(2.0, 5.0), kinds=True)
    drawn = [chain.sweep() and chain.state.hyper["alpha"] for _ in range(30)]
    assert max(drawn) < 0.4


def test_a_chain_with_a_prior_of_ones_own_draws_alpha_once_after_all_passes():
    chain = made(Own(Gamma(2.0, 5.0)), kinds=True)
    before = chain.state.hyper["alpha"]
    chain.update("actions")(chain.state)
    assert chain.state.hyper["alpha"] == chain.state.tables.alpha == before
    chain.update("alpha")(chain.state)
    assert chain.state.hyper["alpha"] == chain.state.tables.alpha != before
