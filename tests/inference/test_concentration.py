"""The concentration of the controllers, drawn in one kernel or by the prior's own words."""

import numpy as np
import pytest
from chains import make_chain
from naive_regions import log_dm, slice_sample_log

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform, TotalMass
from onlooker.partitions import Regions

PRIORS = [TotalMass(Exponential(1.0)), Gamma(2.0, 5.0), LogUniform(0.01, 3.0)]


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
        share = state.tables.share
        twin = slice_sample_log(
            lambda alpha, share=share: (
                sum(log_dm(xi, alpha * share) for xi in state.counts.cluster) + prior.logpdf(alpha)
            ),
            state.hyper["alpha"],
            rng := state.copy().rng,
        )
        chain.update("alpha")(state)
        assert state.hyper["alpha"] == pytest.approx(twin, rel=1e-9)
        assert state.rng.bit_generator.state == rng.bit_generator.state
        chain.update("actions")(state)


def test_a_prior_of_ones_own_gives_the_same_draws():
    prior = Gamma(2.0, 5.0)
    drawn = []
    for each in (prior, Own(prior)):
        chain = made(each, kinds=True)
        drawn.append([chain.sweep() and chain.state.hyper["alpha"] for _ in range(10)])
    np.testing.assert_allclose(*drawn, rtol=1e-9)
