"""Unknown parameters of the dynamics: drawn right, kept, and used in predictions."""

import pickle
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from scipy.special import logsumexp

import exact
from onlooker import Posterior, Problem
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics, TabularDynamics
from onlooker.hyper import Beta, Exponential, Gamma, LogUniform
from onlooker.inference import likelihoods
from onlooker.inference.chain import Chain
from onlooker.inference.cluster import Errand, advance
from onlooker.inference.draws import Draws
from onlooker.inference.likelihoods import AnyLikelihood, DisplacementLikelihood, MixtureLikelihood
from onlooker.inference.run import ChainFailedWarning
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing
from small_runs import assert_same_draws, quick, ring_dynamics

ALPHA = 0.7
STEPS = np.array([[1.0, 0.0], [-0.5, 0.9], [0.0, -1.0]])
STATES = np.array([[0.0, 0.0], [1.3, 0.2], [0.4, 1.1], [2.0, 1.5], [0.1, 0.6]])
NODE_OF = np.array([0, 1, 1, 2, 3])
MOVES = np.array([[0.8, 0.3], [-0.2, 1.2], [0.9, -0.4], [0.2, -0.7], [0.3, 0.4]])
NEXT = STATES[NODE_OF] + MOVES
SIGMA, STEP = LogUniform(0.2, 3.0), LogUniform(0.4, 2.5)


def problem_of(dynamics, next_states=NEXT, states=STATES):
    """Five transitions between given nodes: trajectories would add a node for each end."""
    loglik = dynamics.log_likelihood(states[NODE_OF], next_states)
    problem = Problem(NODE_OF, loglik, states)
    problem.set_world(dynamics, next_states)
    return problem


def run(problem, prior, *, collapsed=True, blocked=False, sweeps=4_000, alpha=ALPHA, chains=2):
    sampler = prior.sampler(problem)
    labels, actions, hyper = [], [], []
    for stream in np.random.SeedSequence(0).spawn(chains):
        rng = np.random.default_rng(stream)
        chain = Chain(problem, sampler, alpha=alpha, collapsed=collapsed, blocked=blocked, rng=rng)
        for _ in range(20):
            chain.sweep()
        for _ in range(sweeps):
            chain.sweep()
            labels.append(chain.labels)
            actions.append(chain.actions)
            hyper.append(dict(chain.state.hyper))
    return SimpleNamespace(
        labels=np.array(labels).reshape(chains, sweeps, -1),
        actions=np.array(actions).reshape(chains, sweeps, -1),
        hyper={n: np.array([h[n] for h in hyper]).reshape(chains, sweeps) for n in hyper[0]},
    )


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
    ("name", "step", "collapsed", "blocked"),
    [
        ("mixing", STEP, False, False),
        ("mixing", STEP, True, True),
        ("crp", 1.1, False, True),
        ("ddcrp", 1.1, True, False),
    ],
)
def test_noise_and_step_match_the_enumerated_posterior(name, step, collapsed, blocked):
    problem = problem_of(DisplacementDynamics(STEPS, SIGMA, step))
    draws = run(problem, MODELS[name][0], collapsed=collapsed, blocked=blocked)
    assert exact.compare(draws, enumerated(name, SIGMA, step), alpha=ALPHA) == []


INTENDED = ring_dynamics(5).toarray()[:, :, :]
SLIP = np.full_like(INTENDED, 0.2)
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
    from test_geweke import LIMIT, worst_z

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
    chain = Chain(problem, Mixing(2, 1.0).sampler(problem), alpha=ALPHA, collapsed=True, rng=rng)
    found = []
    for _ in range(10_000):
        chain.sweep()
        moves = draw_moves(chain.state.hyper, chain.state.actions)
        chain.parameters.model.moves[:] = moves
        chain.parameters.set(chain.state.hyper)
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


class Biased:
    """A user's own uncertain dynamics, with nothing but the protocol."""

    n_actions = 3
    parameters = {"drift": Exponential(0.5)}  # noqa: RUF012

    def __init__(self, drift=0.5):
        self.drift = drift

    def at(self, values):
        return Biased(values["drift"])

    def log_likelihood(self, states, next_states):
        moves = np.asarray(next_states) - np.asarray(states)
        away = (moves[:, None] - STEPS[None] - self.drift) / 0.6
        return -0.5 * (away**2).sum(axis=-1) - 2 * np.log(0.6 * np.sqrt(2 * np.pi))

    def sample(self, states, actions, rng):
        return states + STEPS[actions] + self.drift + rng.normal(0, 0.6, np.shape(states))


def test_a_users_own_parameter_matches_the_enumerated_posterior():
    draws = run(problem_of(Biased()), Mixing(2, 0.8), sweeps=3_000)
    values, weights = exact.grid(scipy.stats.expon(scale=0.5))
    tables = [Biased(v).log_likelihood(STATES[NODE_OF], NEXT) for v in values]
    cases = [exact.mixing(NODE_OF, table, 5, ALPHA, 2, 0.8) for table in tables]
    assert exact.compare(draws, exact.mix("drift", values, weights, cases), alpha=ALPHA) == []


# -- coverage -------------------------------------------------------------------------------------


def test_intervals_cover_the_truth_as_often_as_they_say():
    from benchmarks.check_coverage import noise_and_step

    covered = np.array([noise_and_step(seed, n_transitions=10, draws=150) for seed in range(25)])
    assert covered.sum(axis=0).min() >= 17  # of 25 at 90 %: fewer once in 1,000 times


def test_intervals_of_a_wrong_number_of_degrees_do_not(monkeypatch):
    from benchmarks.check_coverage import noise_and_step

    monkeypatch.setattr(likelihoods, "DisplacementLikelihood", WrongDegrees)
    covered = np.array([noise_and_step(seed, n_transitions=10, draws=150) for seed in range(25)])
    assert covered.sum(axis=0).min() < 17


# -- draws are kept, and used ---------------------------------------------------------------------

COMPASS = DisplacementDynamics.compass(4, step=LogUniform(0.3, 3.0), sigma=Gamma(2.0, 4.0))
SLIPPERY = SlipperyDynamics(ring_dynamics(6), success=Beta(4.0, 1.0))


def compass_problem(n=6, seed=0):
    rng = np.random.default_rng(seed)
    steps = COMPASS.unit_steps[rng.integers(4, size=(n, 5))] + rng.normal(0, 0.2, (n, 5, 2))
    tracks = np.concatenate([rng.uniform(0, 3, (n, 1, 2)), steps], axis=1).cumsum(axis=1)
    return Problem.from_demonstrations(list(tracks), COMPASS)


def ring_walks(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return Problem.from_demonstrations(
        [(rng.integers(6) + rng.integers(-1, 2, size=8).cumsum()) % 6 for _ in range(n)], SLIPPERY
    )


def test_a_stopped_run_goes_on_with_the_same_bits(tmp_path):
    problem = compass_problem()
    whole = quick(problem, DistanceDependent(), draws=12)
    quick(problem, DistanceDependent(), draws=5, store=tmp_path / "run")
    parts = quick(problem, DistanceDependent(), draws=12, store=tmp_path / "run", resume=True)
    assert_same_draws(whole, parts)
    assert {"sigma", "step"} <= whole.hyper.keys()
    assert len(np.unique(whole.hyper["sigma"])) > 10


def test_a_store_of_another_prior_of_the_noise_is_refused(tmp_path):
    problem = compass_problem()
    quick(problem, Mixing(2), store=tmp_path / "run")
    other = DisplacementDynamics.compass(4, step=LogUniform(0.3, 3.0), sigma=Gamma(2.0, 5.0))
    changed = Problem(problem.node_of, problem.loglik, problem.states)
    changed.set_world(other, problem.next_states)
    with pytest.raises(ValueError, match=r"dynamics: sigma: params: rate: 4\.0 there, 5\.0 here"):
        quick(changed, Mixing(2), store=tmp_path / "run", resume=True)


@pytest.mark.parametrize("make", [compass_problem, ring_walks])
def test_what_is_loaded_predicts_as_what_was_saved(make, tmp_path):
    posterior = quick(make(), Mixing(2))
    posterior.save(tmp_path / "file.npz")
    loaded = Posterior.load(tmp_path / "file.npz")
    assert repr(loaded.problem.dynamics) == repr(posterior.problem.dynamics)
    assert loaded.problem.parameters == posterior.problem.parameters
    states, ends = posterior.problem.states[posterior.problem.node_of], loaded.problem.next_states
    np.testing.assert_array_equal(
        loaded.next_state_log_density(states, ends),
        posterior.next_state_log_density(states, ends),
    )


def test_a_prior_of_the_users_own_is_asked_for_when_loading(tmp_path):
    class Mine(Gamma):
        pass

    dynamics = DisplacementDynamics(STEPS, Mine(2.0, 4.0))
    posterior = quick(problem_of(dynamics), Mixing(2))
    posterior.save(tmp_path / "file.npz")
    assert Posterior.load(tmp_path / "file.npz").problem.dynamics is None
    again = Posterior.load(tmp_path / "file.npz", dynamics=dynamics)
    assert np.isfinite(again.next_state_log_density(STATES[:2], STATES[1:3])).all()


def test_blocks_of_a_chain_that_travel_draw_the_same_bits():
    posterior = quick(compass_problem(), Mixing(2), chains=1, draws=6, tune=2)
    errand = pickle.loads(pickle.dumps(Errand(posterior.plan)))
    state, sweeps, found = None, 0, []
    while sweeps < 8:
        draws, state, sweeps, _ = advance(errand, 0, state, sweeps, 3)
        state = pickle.loads(pickle.dumps(state))
        found.append(draws.hyper["sigma"])
    np.testing.assert_array_equal(np.concatenate(found), posterior.hyper["sigma"][0])


@pytest.mark.parametrize("prior", [Mixing(2), DistanceDependent()], ids=["mixing", "ddcrp"])
def test_densities_are_averages_over_the_worlds_of_the_draws(prior):
    problem = compass_problem()
    posterior = quick(problem, prior)
    states = np.concatenate([problem.states[:3], problem.states[:2] + 0.3])
    ends = states + np.array([0.7, 0.2])
    terms = []
    for chain, draw in np.ndindex(2, 8):
        values = {name: float(posterior.hyper[name][chain, draw]) for name in ("sigma", "step")}
        one = Posterior(
            posterior.plan,
            Draws(
                labels=posterior.labels[chain : chain + 1, draw : draw + 1],
                actions=posterior.actions[chain : chain + 1, draw : draw + 1],
                log_joint=posterior.log_joint[:1, :1],
                hyper={
                    k: v[chain : chain + 1, draw : draw + 1] for k, v in posterior.hyper.items()
                },
            ),
            [0],
        )
        loglik = COMPASS.at(values).log_likelihood(states, ends)
        terms.append(logsumexp(loglik + np.log(one.policy(states)), axis=1))
    expected = logsumexp(terms, axis=0) - np.log(len(terms))
    np.testing.assert_allclose(posterior.next_state_log_density(states, ends), expected)


def test_next_states_are_averages_over_the_worlds_of_the_draws():
    posterior = quick(ring_walks(), Mixing(2))
    found = posterior.next_state(np.arange(6))
    assert found.sum(axis=1) == pytest.approx(np.ones(6))
    pairs = np.indices((6, 6)).reshape(2, -1)
    by_density = np.exp(posterior.next_state_log_density(*pairs)).reshape(6, 6)
    np.testing.assert_allclose(found, by_density, rtol=1e-10)
    drawn = posterior.next_state_samples([2], 4_000, random_state=0)[:, 0]
    share = np.bincount(drawn, minlength=6) / 4_000
    assert np.abs(share - found[2]).max() < 5 * np.sqrt(0.25 / 4_000)


def test_of_very_many_draws_some_are_asked_evenly(monkeypatch):
    from onlooker import _forecast

    posterior = quick(ring_walks(), Mixing(2), draws=200)
    whole = posterior.next_state([0, 3])
    monkeypatch.setattr(_forecast, "MOST_WORLDS", 100)
    assert np.abs(posterior.next_state([0, 3]) - whole).max() < 0.05


@pytest.mark.parametrize("make", [compass_problem, ring_walks])
def test_rollouts_are_reproducible_and_differ_between_worlds(make):
    problem = make()
    posterior = quick(problem, Mixing(2))
    start = problem.states[:4]
    one = posterior.rollout(start, 6, random_state=1)
    assert one == posterior.rollout(start, 6, random_state=1)
    assert one != posterior.rollout(start, 6, random_state=2)


def test_other_unknowns_than_were_inferred_are_refused():
    posterior = quick(compass_problem(), Mixing(2))
    with pytest.raises(ValueError, match="no draws of the dynamics' 'drift'"):
        posterior.next_state_samples(posterior.problem.states, dynamics=Biased())
    known = COMPASS.at({"sigma": 0.2, "step": 1.0})
    assert posterior.rollout(posterior.problem.states[:1], 3, 0, dynamics=known).n_transitions == 2


# -- by itself, an uncertain dynamics is the one at the means -------------------------------------


def test_uncertain_dynamics_by_themselves_are_those_at_the_means():
    known = DisplacementDynamics.compass(4, step=STEP.mean, sigma=0.5)
    unknown = DisplacementDynamics.compass(4, step=STEP, sigma=Gamma(2.0, 4.0))
    np.testing.assert_array_equal(
        known.log_likelihood(STATES, STATES + 1), unknown.log_likelihood(STATES, STATES + 1)
    )
    assert "sigma=Gamma(shape=2.0, rate=4.0), step=LogUniform" in repr(unknown)
    assert known.parameters == {}
    np.testing.assert_allclose(
        SlipperyDynamics(INTENDED, SLIP, Beta(3.0, 1.0)).toarray(), 0.75 * INTENDED + 0.25 * SLIP
    )


def test_slips_go_to_the_other_actions_unless_told_otherwise():
    dense = SlipperyDynamics(INTENDED, success=0.6).toarray()
    others = (INTENDED.sum(axis=1, keepdims=True) - INTENDED) / 2
    np.testing.assert_allclose(dense, 0.6 * INTENDED + 0.4 * others)
    sparse = SlipperyDynamics(TabularDynamics(INTENDED).matrices, success=0.6)
    assert sparse.is_sparse
    np.testing.assert_allclose(sparse.toarray(), dense)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlipperyDynamics(INTENDED, success=1.5), "success is a probability"),
        (lambda: SlipperyDynamics(INTENDED, success=Exponential(3.0)), "success is a probability"),
        (lambda: SlipperyDynamics(INTENDED, ring_dynamics(4)), "but slip has"),
        (lambda: SlipperyDynamics(INTENDED[:, :1]), "slip must be given"),
        (lambda: DisplacementDynamics(STEPS, sigma=-1.0), "sigma must be"),
        (lambda: DisplacementDynamics(STEPS, 1.0, step=0.0), "step must be"),
        (lambda: Beta(0.0, 1.0), "a must be"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_parameter_with_the_name_of_another_is_refused():
    class Clash(Biased):
        parameters = {"alpha": Exponential(0.5)}  # noqa: RUF012

    with pytest.raises(ValueError, match="'alpha', the name of another"):
        problem_of(Clash())


def test_noise_that_data_do_not_show_must_be_fixed():
    dynamics = DisplacementDynamics(STEPS, SIGMA)
    problem = problem_of(dynamics, STATES[NODE_OF] + STEPS[[0, 1, 2, 0, 1]])
    with pytest.raises(RuntimeError, match="fix it to a number"), pytest.warns(ChainFailedWarning):
        quick(problem, Mixing(2))


def test_a_beta_prior_has_the_density_and_the_draws_of_one():
    prior, reference = Beta(2.5, 1.2), scipy.stats.beta(2.5, 1.2)
    for x in (1e-9, 0.2, 0.999):
        assert prior.logpdf(x) == pytest.approx(reference.logpdf(x))
    assert prior.logpdf(0.0) == prior.logpdf(1.0) == prior.logpdf(-1.0) == -np.inf
    assert prior.mean == pytest.approx(reference.mean())
    rng = np.random.default_rng(0)
    drawn = [prior.sample(rng) for _ in range(2_000)]
    assert scipy.stats.kstest(drawn, reference.cdf).pvalue > 1e-3


def test_draws_of_the_parameters_depend_on_nothing_but_the_seed():
    problem = compass_problem()
    assert_same_draws(quick(problem, Mixing(2), n_jobs=1), quick(problem, Mixing(2), n_jobs=2))


def test_features_beside_positions_leave_the_noise_to_be_inferred():
    from onlooker import Demonstrations
    from onlooker.features import Speed, with_features

    rng = np.random.default_rng(0)
    tracks = Demonstrations([rng.normal(0, 1, (6, 2)).cumsum(axis=0) for _ in range(3)])
    demos, dynamics = with_features(tracks, [Speed(1.0)], COMPASS)
    posterior = quick(Problem.from_demonstrations(demos, dynamics), Mixing(2))
    assert len(np.unique(posterior.hyper["sigma"])) > 8
    starts, ends = demos.transitions()
    values = {"sigma": 0.4, "step": 1.1}
    one, other = np.empty((2, len(starts), 4))
    dynamics.transition_likelihood(starts, ends).fill(values, one)
    AnyLikelihood(dynamics, starts, ends).fill(values, other)
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_one_world_stands_for_all_at_the_means_of_the_draws():
    posterior = quick(compass_problem(), Mixing(2))
    assert posterior.mean_dynamics.sigma == pytest.approx(posterior.hyper["sigma"].mean())
    known = quick(problem_of(DisplacementDynamics(STEPS, 0.5)), Mixing(2))
    assert known.mean_dynamics is known.problem.dynamics
