"""Unknown parameters of the dynamics: draws are kept, and used in predictions."""

import pickle

import numpy as np
import pytest
import scipy.stats
from bare import bare_problem
from scipy.special import logsumexp
from small_runs import assert_same_draws, quick, ring_dynamics
from unknown_dynamics import INTENDED, NODE_OF, SIGMA, SLIP, STATES, STEP, STEPS, Biased, problem_of

from onlooker import Posterior, Problem
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics, TabularDynamics
from onlooker.dynamics.unknown import AnyLikelihood
from onlooker.hyper import Beta, Exponential, Gamma, LogUniform
from onlooker.inference.cluster import Task, advance
from onlooker.partitions import DistanceDependent, Mixing
from onlooker.warnings import ChainFailedWarning

# -- draws are kept, and used ---------------------------------------------------------------------

COMPASS = DisplacementDynamics.compass(4, step=LogUniform(0.3, 3.0), sigma=Gamma(2.0, 4.0))
SLIPPERY = SlipperyDynamics(ring_dynamics(6), success=Beta(4.0, 1.0))


def compass_problem(n=6, seed=0):
    rng = np.random.default_rng(seed)
    steps = COMPASS.unit_steps[rng.integers(4, size=(n, 5))] + rng.normal(0, 0.2, (n, 5, 2))
    tracks = np.concatenate([rng.uniform(0, 3, (n, 1, 2)), steps], axis=1).cumsum(axis=1)
    return bare_problem(list(tracks), COMPASS)


def ring_walks(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return bare_problem(
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
    with pytest.raises(ValueError, match=r"dynamics: sigma: rate \(stored: 4, asked: 5\)"):
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
    task = pickle.loads(pickle.dumps(Task(posterior.target)))
    state, sweeps, found = None, 0, []
    while sweeps < 8:
        draws, state, sweeps, _ = advance(task, posterior.schedule, 0, state, sweeps, 3)
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
            posterior.target, posterior.schedule, posterior.draws.take([chain], [draw]), [chain]
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
    from onlooker.prediction import forecast as _forecast

    posterior = quick(ring_walks(), Mixing(2), draws=200)
    whole = posterior.next_state([0, 3])
    monkeypatch.setattr(_forecast, "MAX_DYNAMICS", 100)
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

    with pytest.raises(ValueError, match="are called 'alpha'"):
        quick(problem_of(Clash()), Mixing(2))


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
    from onlooker.dynamics.features import Speed, with_features

    rng = np.random.default_rng(0)
    tracks = Demonstrations([rng.normal(0, 1, (6, 2)).cumsum(axis=0) for _ in range(3)])
    demos, dynamics = with_features(tracks, [Speed(1.0)], COMPASS)
    posterior = quick(bare_problem(demos, dynamics), Mixing(2))
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
