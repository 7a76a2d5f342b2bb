"""Unknown parameters of the dynamics are drawn right."""

from functools import cache

import exact
import numpy as np
import pytest
import scipy.stats
from agreement import LIMIT, worst_z
from chains import draws_of, make_chain
from interval_coverage import noise_and_step
from unknown_dynamics import (
    INTENDED,
    MOVES,
    NEXT,
    NODE_OF,
    SIGMA,
    SLIP,
    STATES,
    STEP,
    STEPS,
    Biased,
    problem_of,
)

from onlooker import Problem
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics, TabularDynamics
from onlooker.dynamics import unknown as likelihoods
from onlooker.dynamics.unknown import AnyLikelihood, DisplacementLikelihood, MixtureLikelihood
from onlooker.hyper import Beta, LogUniform
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing

ALPHA = 0.7


def run(problem, prior, *, sweeps=4_000, alpha=ALPHA, **options):
    return draws_of(problem, prior, sweeps=sweeps, alpha=alpha, **options)


# -- the enumerated posterior -------------------------------------------------------------------


def log_grid(prior, n=14):
    """Gauss–Legendre points of a log-uniform prior, with weights that sum to 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    middle, half = np.log(prior.low * prior.high) / 2, np.log(prior.high / prior.low) / 2
    return np.exp(middle + half * x), w / 2


def density(sigma, step):
    """``ln N(move; step · steps[j], sigma² I)``, from its definition."""
    return scipy.stats.norm(step * STEPS[None], sigma).logpdf(MOVES[:, None]).sum(axis=-1)


@cache
def enumerated(name, sigma, step):
    """The posterior with one or two parameters integrated out on a grid."""
    _, model, options = MODELS[name]

    def case(sigma, step):
        return getattr(exact, model)(NODE_OF, density(sigma, step), 5, ALPHA, **options)

    def at_step(value):
        if not isinstance(sigma, LogUniform):
            return case(sigma, value)
        values, weights = log_grid(sigma)
        return exact.mix("sigma", values, weights, [case(s, value) for s in values])

    if not isinstance(step, LogUniform):
        return at_step(step)
    values, weights = log_grid(step)
    return exact.mix("step", values, weights, [at_step(value) for value in values])


WEIGHTS = exact.gaussian_decay(0.8, 0.1)(exact.pairwise_distances(STATES))
MODELS = {
    "mixing": (Mixing(2, 0.8), "mixing", {"n_clusters": 2, "gamma": 0.8}),
    "crp": (ChineseRestaurant(1.3), "crp", {"gamma": 1.3}),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1)),
        "ddcrp",
        {"nu": 0.4, "weights": WEIGHTS},
    ),
}


@pytest.mark.parametrize("unknown", ["sigma", "step"])
def test_one_parameter_matches_the_enumerated_posterior(unknown):
    sigma, step = (SIGMA, 1.1) if unknown == "sigma" else (0.6, STEP)
    draws = run(problem_of(DisplacementDynamics(STEPS, sigma, step)), MODELS["mixing"][0])
    oracle = enumerated("mixing", sigma, step)
    assert oracle.hyper.keys() == {unknown}
    assert exact.compare(draws, oracle, alpha=ALPHA) == []


@pytest.mark.parametrize(
    ("name", "step", "collapsed"),
    [
        ("mixing", STEP, False),
        ("mixing", STEP, True),
        ("crp", 1.1, False),
        ("ddcrp", 1.1, True),
    ],
)
def test_noise_and_step_match_the_enumerated_posterior(name, step, collapsed):
    problem = problem_of(DisplacementDynamics(STEPS, SIGMA, step))
    draws = run(problem, MODELS[name][0], collapsed=collapsed)
    assert exact.compare(draws, enumerated(name, SIGMA, step), alpha=ALPHA) == []


RING_NEXT = np.array([1, 2, 0, 3, 2])


def test_success_matches_the_enumerated_posterior():
    dynamics = SlipperyDynamics(INTENDED, SLIP, Beta(2.0, 1.5))
    problem = problem_of(dynamics, RING_NEXT, np.arange(5))
    draws = run(problem, Mixing(2, 0.8))
    values, weights = exact.grid(scipy.stats.beta(2.0, 1.5))
    cases = [
        exact.mixing(
            NODE_OF,
            np.log(p * INTENDED[NODE_OF, :, RING_NEXT] + (1 - p) * SLIP[NODE_OF, :, RING_NEXT]),
            5,
            ALPHA,
            2,
            0.8,
        )
        for p in values
    ]
    assert exact.compare(draws, exact.mix("success", values, weights, cases), alpha=ALPHA) == []


# -- broken on purpose ----------------------------------------------------------------------------


class WrongDegrees(DisplacementLikelihood):
    """Counts transitions instead of coordinates."""

    def given(self, actions):
        right = super().given(actions)
        missing = self.moves.size - len(self.moves)
        return lambda values: right(values) + missing * np.log(values["sigma"])


class StaleTable(DisplacementLikelihood):
    """Draws parameters, but actions go on by the old ones."""

    def fill(self, values, likelihood):
        super().fill({"sigma": SIGMA.mean, "step": STEP.mean}, likelihood)


class NoNoiseInStep(DisplacementLikelihood):
    """Forgets that the step's spread depends on the noise."""

    def given(self, actions):
        right = super().given(actions)
        return lambda values: right(values | {"sigma": 1.0}) - 10 * np.log(values["sigma"])


@pytest.mark.parametrize("broken", [WrongDegrees, StaleTable, NoNoiseInStep])
def test_broken_parameter_steps_are_caught(broken, monkeypatch):
    monkeypatch.setattr(likelihoods, "DisplacementLikelihood", broken)
    problem = problem_of(DisplacementDynamics(STEPS, SIGMA, STEP))
    draws = run(problem, MODELS["mixing"][0], sweeps=3_000)
    assert exact.compare(draws, enumerated("mixing", SIGMA, STEP), alpha=ALPHA) != []


class WrongMixture(MixtureLikelihood):
    """Takes the success of one action for that of another."""

    def given(self, actions):
        return super().given((actions + 1) % 3)


def test_a_broken_success_step_is_caught(monkeypatch):
    monkeypatch.setattr(likelihoods, "MixtureLikelihood", WrongMixture)
    with pytest.raises(AssertionError):
        test_success_matches_the_enumerated_posterior()


# -- getting it right: prior and sampler agree on the joint ---------------------------------------


def geweke_numbers(values, actions, moves):
    own = np.bincount(actions, minlength=3)
    return [
        np.log(values["sigma"]),
        np.log(values["step"]),
        np.log(values["sigma"]) * np.log(values["step"]),
        (own**2).sum(),
        np.log((moves**2).sum()),
    ]


def test_prior_and_sampler_agree_on_the_joint_of_noise_step_and_data():
    node_of = np.repeat(np.arange(6), 2)
    states = np.random.default_rng(0).uniform(0, 3, (6, 2))
    rng = np.random.default_rng(2)

    def draw_moves(values, actions):
        noise = rng.normal(0, values["sigma"], (12, 2))
        return values["step"] * STEPS[actions] + noise

    expected = []
    for _ in range(3_000):
        values = {"sigma": SIGMA.sample(rng), "step": STEP.sample(rng)}
        labels = rng.choice(2, size=6, p=rng.dirichlet([0.5, 0.5]))
        theta = rng.dirichlet(np.full(3, ALPHA), size=2)
        actions = (np.cumsum(theta[labels[node_of]], axis=1) < rng.random((12, 1))).sum(axis=1)
        expected.append(geweke_numbers(values, actions, draw_moves(values, actions)))

    dynamics = DisplacementDynamics(STEPS, SIGMA, STEP)
    ends = states[node_of] + rng.normal(size=(12, 2))
    problem = Problem(node_of, dynamics.log_likelihood(states[node_of], ends), states)
    problem.set_world(dynamics, ends)
    chain = make_chain(problem, Mixing(2, 1.0), alpha=ALPHA, rng=rng)
    dynamics = chain.update("dynamics")
    found = []
    for _ in range(10_000):
        chain.sweep()
        moves = draw_moves(chain.state.hyper, chain.state.actions)
        dynamics.model.moves[:] = moves
        dynamics.prepare(chain.state)
        found.append(geweke_numbers(chain.state.hyper, chain.state.actions, moves))
    assert worst_z(np.array(expected), np.array(found)) < LIMIT


# -- kernels and their twin -----------------------------------------------------------------------


def grid_of_values(names):
    rng = np.random.default_rng(1)
    return [{name: float(rng.uniform(0.2, 0.9)) for name in names} for _ in range(5)]


@pytest.mark.parametrize(
    ("dynamics", "names"),
    [
        (DisplacementDynamics(STEPS, SIGMA, STEP), ["sigma", "step"]),
        (DisplacementDynamics(STEPS, SIGMA, 0.7), ["sigma"]),
        (DisplacementDynamics(STEPS, 0.3, STEP), ["step"]),
        (DisplacementDynamics(STEPS, [[0.3, 0.5], [0.2, 0.4], [0.6, 0.1]], STEP), ["step"]),
        (SlipperyDynamics(INTENDED, SLIP, Beta(1, 1)), ["success"]),
        (
            SlipperyDynamics(TabularDynamics(INTENDED).matrices, TabularDynamics(SLIP), Beta(1, 1)),
            ["success"],
        ),
    ],
    ids=["both", "sigma", "step", "step, noise by action", "success", "success, sparse"],
)
def test_quick_likelihoods_are_what_whole_tables_say(dynamics, names):
    assert list(dynamics.parameters) == names
    ends = RING_NEXT if names == ["success"] else NEXT
    starts = NODE_OF if names == ["success"] else STATES[NODE_OF]
    quick_one = dynamics.transition_likelihood(starts, ends)
    slow = AnyLikelihood(dynamics, starts, ends)
    rng = np.random.default_rng(0)
    for values in grid_of_values(names):
        one, other = np.empty((2, 5, 3))
        quick_one.fill(values, one)
        slow.fill(values, other)
        np.testing.assert_allclose(one, other, rtol=1e-12)
        actions = rng.integers(3, size=5)
        assert quick_one.given(actions)(values) == pytest.approx(slow.given(actions)(values))


def test_long_products_of_probabilities_do_not_underflow():
    rng = np.random.default_rng(0)
    one, other = rng.uniform(1e-3, 1, (2, 5_000))
    found = likelihoods.log_mixture(0.3, one, other)
    assert found == pytest.approx(np.log(0.3 * one + 0.7 * other).sum())
    other[7] = one[7] = 0.0
    assert likelihoods.log_mixture(0.3, one, other) == -np.inf


def test_tiny_noise_about_long_steps_is_not_lost_to_rounding():
    rng = np.random.default_rng(0)
    actions = rng.integers(3, size=400)
    moves = 1e3 * STEPS[actions] + rng.normal(0, 1e-4, (400, 2))
    model = DisplacementLikelihood(moves, STEPS, np.ones_like(STEPS))
    at = model.given(actions)
    sigmas = np.linspace(0.9e-4, 1.1e-4, 41)
    best = sigmas[np.argmax([at({"sigma": s, "step": 1e3}) for s in sigmas])]
    assert best == pytest.approx((moves - 1e3 * STEPS[actions]).std(), rel=0.02)


def test_a_users_own_parameter_matches_the_enumerated_posterior():
    draws = run(problem_of(Biased()), Mixing(2, 0.8), sweeps=3_000)
    values, weights = exact.grid(scipy.stats.expon(scale=0.5))
    tables = [Biased(v).log_likelihood(STATES[NODE_OF], NEXT) for v in values]
    cases = [exact.mixing(NODE_OF, table, 5, ALPHA, 2, 0.8) for table in tables]
    assert exact.compare(draws, exact.mix("drift", values, weights, cases), alpha=ALPHA) == []


# -- coverage -------------------------------------------------------------------------------------


def test_intervals_cover_the_truth_as_often_as_they_say():
    covered = np.array([noise_and_step(seed, n_transitions=10, draws=150) for seed in range(25)])
    assert covered.sum(axis=0).min() >= 17  # of 25 at 90 %: fewer once in 1,000 times


def test_intervals_of_a_wrong_number_of_degrees_do_not(monkeypatch):
    monkeypatch.setattr(likelihoods, "DisplacementLikelihood", WrongDegrees)
    covered = np.array([noise_and_step(seed, n_transitions=10, draws=150) for seed in range(25)])
    assert covered.sum(axis=0).min() < 17
