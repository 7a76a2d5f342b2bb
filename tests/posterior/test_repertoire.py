"""Posteriors over behaviours: policies, actions, intervals, files."""

import re
import warnings

import numpy as np
import pytest

from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.dynamics.features import Heading, with_features
from onlooker.hyper import CONCENTRATION, Exponential
from onlooker.partitions import Regions
from onlooker.repertoire import Actions, Behaviour, Blurs, Goals
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import GridWorld

WORLD = GridWorld(7, 8)
DEMOS = WORLD.rollout(12, 8, random_state=0)[0]
PRIOR = Regions.inferred(1.0, coordinates=WORLD.coordinates)
REPERTOIRE = [Actions(), Blurs(), Goals()]


def run(problem, prior=PRIOR, **options):
    given = {"draws": 30, "tune": 20, "chains": 2, "random_state": 4, "progress": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sample(problem, prior, CONCENTRATION, **given)


def problem_of(repertoire=REPERTOIRE):
    return Problem.from_demonstrations(DEMOS, WORLD.dynamics, repertoire=repertoire)


@pytest.fixture(scope="module")
def posterior():
    return run(problem_of())


def test_a_problem_says_what_its_behaviours_are(posterior):
    problem = posterior.problem
    assert problem.kinds == ["actions", "blurs of 3", "blurs of 5", "any action", "goals"]
    assert (problem.n_actions, problem.n_behaviours) == (8, len(problem.behaviours))
    assert {"E", "E ± 1", "any action", "heads for state 24"} <= set(problem.behaviours)
    assert problem.base.sum() == pytest.approx(1.0)
    assert f"{problem.n_behaviours} behaviours" in repr(problem)
    states, next_states = DEMOS.transitions()
    likelihood = np.exp(WORLD.dynamics.log_likelihood(states, next_states))
    mixed = np.einsum("nba,na->nb", problem.policies(states), likelihood)
    np.testing.assert_allclose(np.exp(problem.loglik), mixed, atol=1e-12)


def test_behaviours_may_be_the_actions_alone():
    problem = problem_of([Actions()])
    assert problem.kinds == ["actions"]
    assert problem.behaviours[:2] == ["E", "NE"]
    assert problem.policies is None
    assert run(problem, draws=4).kinds is None


def test_the_policy_is_what_the_behaviours_do(posterior):
    states = np.arange(49)
    behaviours = posterior.behaviours(states)
    np.testing.assert_allclose(behaviours.sum(axis=1), 1.0)
    expected = np.einsum("nb,nba->na", behaviours, posterior.problem.policies(states))
    np.testing.assert_allclose(posterior.policy(states), expected)
    np.testing.assert_allclose(
        posterior.behaviours(), posterior.behaviours(posterior.problem.states)
    )
    each = list(posterior.predictor.each(states, np.arange(60)))
    np.testing.assert_allclose(np.mean(each, axis=0), posterior.policy(states))


def test_a_draws_behaviours_are_the_smoothed_counts_with_its_own_base(posterior):
    problem = posterior.problem
    chain = posterior.chain(0).thin(30)
    counts = np.zeros(problem.n_behaviours)
    labels, drawn = chain.labels[0, 0], chain.draws.behaviours[0, 0]
    for t, node in enumerate(problem.node_of):
        counts[drawn[t]] += labels[node] == labels[5]
    mass = chain.kinds[0, 0, problem.kind_of] / np.bincount(problem.kind_of)[problem.kind_of]
    weights = counts + problem.n_behaviours * chain.hyper["alpha"][0, 0] * mass
    np.testing.assert_allclose(chain.behaviours()[5], weights / weights.sum())


def test_an_interval_of_the_policy_lies_around_its_mean_and_is_of_actions(posterior):
    mean, low, high = posterior.policy(np.arange(49), interval=0.9)
    assert mean.shape == low.shape == high.shape == (49, 8)
    assert ((low <= high) & (low >= 0) & (high <= 1)).all()
    assert np.mean((low <= mean) & (mean <= high)) > 0.9


def test_actions_are_drawn_given_behaviours_and_do_not_depend_on_other_chains(posterior):
    problem = posterior.problem
    states = problem.states[problem.node_of]
    assert posterior.actions.shape == posterior.draws.behaviours.shape
    drawn, actions = posterior.draws.behaviours[1, 7], posterior.actions[1, 7]
    chosen = problem.policies(states)[np.arange(len(states)), drawn, actions]
    assert (chosen > 0).all()
    np.testing.assert_array_equal(posterior.chain(1).actions[0], posterior.actions[1])


def test_latent_actions_have_their_conditional_distribution():
    rng = np.random.default_rng(0)
    compass = DisplacementDynamics.compass(8, sigma=0.6)
    demos = Demonstrations([rng.normal(0, 0.7, size=(9, 2)).cumsum(axis=0)])
    problem = Problem.from_demonstrations(demos, compass, repertoire=[Blurs()])
    drawn = run(problem, Regions.inferred(1.0), draws=1500, tune=10, chains=1)
    loglik = compass.log_likelihood(*demos.transitions())
    policies = problem.policies(demos.transitions()[0])
    behaviours = drawn.draws.behaviours[0]
    expected = np.zeros((len(loglik), 8))
    for t in range(len(loglik)):
        weights = policies[t, behaviours[:, t]] * np.exp(loglik[t])
        expected[t] = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    share = np.stack([(drawn.actions[0] == a).mean(axis=0) for a in range(8)], axis=1)
    np.testing.assert_allclose(share, expected, atol=0.06)
    # actions drawn from the behaviours' policies alone would be caught
    wrong = np.stack([policies[t, behaviours[:, t]].mean(axis=0) for t in range(len(loglik))])
    assert np.abs(share - wrong).max() > 0.15


def test_predictions_rollouts_and_summaries_work_with_behaviours(posterior):
    assert np.isfinite(posterior.log_predictive(DEMOS)).all()
    assert len(posterior.rollout(np.array([0, 48]), 5, 0)) == 2
    table = posterior.summary()
    assert "kind[goals]" in table.index
    assert posterior.assign(np.arange(49)).shape == (49,)


@pytest.mark.parametrize("as_store", [False, True], ids=["file", "store"])
def test_a_loaded_run_predicts_the_same(posterior, tmp_path, as_store):
    if as_store:
        posterior = run(problem_of(), store=tmp_path / "run", draws=8)
        loaded = Posterior.load(tmp_path / "run")
    else:
        posterior.save(tmp_path / "run.npz")
        loaded = Posterior.load(tmp_path / "run.npz")
    assert loaded.problem.behaviours == posterior.problem.behaviours
    assert loaded.problem.kinds == posterior.problem.kinds
    np.testing.assert_array_equal(loaded.kinds, posterior.kinds)
    np.testing.assert_array_equal(loaded.actions, posterior.actions)
    np.testing.assert_array_equal(loaded.policy(np.arange(49)), posterior.policy(np.arange(49)))


def test_a_run_with_a_repertoire_goes_on_with_the_same_bits(tmp_path):
    whole = run(problem_of(), draws=12)
    run(problem_of(), draws=5, store=tmp_path / "run")
    resumed = run(problem_of(), draws=12, store=tmp_path / "run", resume=True)
    for name, values in whole.draws.arrays.items():
        np.testing.assert_array_equal(values, resumed.draws.arrays[name], err_msg=name)


def test_another_repertoire_is_another_run(tmp_path):
    run(problem_of(), draws=4, store=tmp_path / "run")
    with pytest.raises(ValueError, match="holds another run"):
        run(problem_of([Actions(), Blurs()]), draws=4, store=tmp_path / "run", resume=True)


def test_behaviours_of_ones_own_are_stored_where_they_were_seen(tmp_path):
    demos = Demonstrations([np.random.default_rng(1).normal(size=(12, 2)).cumsum(axis=0)])
    compass = DisplacementDynamics.compass(4, sigma=0.5)
    home = Behaviour("homes", lambda states: np.tile([0.1, 0.2, 0.3, 0.4], (len(states), 1)))
    problem = Problem.from_demonstrations(demos, compass, repertoire=[Actions(), home])
    drawn = run(problem, Regions.inferred(1.0), draws=6)
    drawn.save(tmp_path / "own.npz")
    loaded = Posterior.load(tmp_path / "own.npz")
    np.testing.assert_array_equal(loaded.policy(), drawn.policy())
    with pytest.raises(TypeError, match="'homes' is code of your own"):
        loaded.policy([[9.0, 9.0]])
    loaded.problem.policies = problem.policies
    np.testing.assert_array_equal(loaded.policy([[9.0, 9.0]]), drawn.policy([[9.0, 9.0]]))


def test_controllers_are_told_in_words(posterior):
    table = posterior.controllers()
    assert table["states"].sum() == posterior.problem.n_nodes
    assert table["share"].sum() == pytest.approx(1.0)
    first = table.iloc[0]
    assert re.match(rf"{re.escape(first['behaviour'])}, \d+ % \[\d+–\d+\]", first["does"])
    assert (table["low"] <= table["high"]).all()
    own = posterior.behaviours()[posterior.partition() == 0]
    visits = np.bincount(posterior.problem.node_of, minlength=posterior.problem.n_nodes)
    mean = visits[posterior.partition() == 0] @ own
    named = posterior.problem.behaviours.index(first["behaviour"])
    assert first["probability"] == pytest.approx(mean[named] / mean.sum())


def test_headings_make_turns_and_an_animal_that_circles_is_found_to_turn():
    angle = np.cumsum(np.full(80, 0.5) + np.random.default_rng(3).normal(0, 0.05, 80))
    track = np.cumsum(np.column_stack([np.cos(angle), np.sin(angle)]), axis=0)
    demos, dynamics = with_features(
        Demonstrations([track]), [Heading(1.0)], DisplacementDynamics.compass(12, sigma=0.2)
    )
    problem = Problem.from_demonstrations(demos, dynamics, repertoire="auto")
    drawn = run(problem, Regions.inferred(1.0), draws=60, tune=60)
    turns = problem.kinds.index("turns")
    assert drawn.kinds.mean(axis=(0, 1)).argmax() == turns
    mean = drawn.behaviours().mean(axis=0)
    assert problem.behaviours[int(mean.argmax())].startswith("turns left by 30°")


def test_an_expert_that_heads_for_a_place_is_found_to_be_goal_directed():
    reward = np.zeros(81)
    reward[[20, 60]] = 1.0
    world = GridWorld.with_reward(size=9, reward=reward)
    demos = world.rollout(60, 6, random_state=0)[0]
    problem = Problem.from_demonstrations(demos, world.dynamics)
    prior = Regions.inferred(1.0, coordinates=world.coordinates)
    assert leading_kind(run(problem, prior, draws=60, tune=60)) == "goals"


def test_an_expert_that_acts_at_random_is_found_to_do_anything():
    states, rng = [np.zeros(2)], np.random.default_rng(5)
    compass = DisplacementDynamics.compass(8, sigma=0.2)
    for action in rng.integers(8, size=150):
        states.append(compass.sample(states[-1:], [action], rng)[0])
    problem = Problem.from_demonstrations([np.array(states)], compass)
    found = leading_kind(run(problem, Regions.inferred(1.0), draws=60, tune=60))
    assert found == "any action"


def leading_kind(drawn):
    """The kind with most mass, which must also be that of most steps."""
    problem = drawn.problem
    steps = np.bincount(problem.kind_of[drawn.draws.behaviours].ravel())
    mass = drawn.kinds.mean(axis=(0, 1))
    assert steps.argmax() == mass.argmax()
    return problem.kinds[int(mass.argmax())]


@pytest.mark.parametrize(
    ("sigma", "options", "why"),
    [
        (Exponential(0.2), {}, "dynamics are unknown"),
        (0.2, {"observation_noise": 0.1}, "not seen exactly"),
    ],
)
def test_a_repertoire_needs_known_dynamics_and_seen_states(sigma, options, why):
    given = [[[0.0, 0.0], [1.0, 0.0]]], DisplacementDynamics.compass(4, sigma=sigma)
    with pytest.raises(ValueError, match=why):
        Problem.from_demonstrations(*given, repertoire=[Actions(), Blurs()], **options)
    for repertoire in ("auto", [Actions()]):  # by default there are the actions alone
        problem = Problem.from_demonstrations(*given, repertoire=repertoire, **options)
        assert problem.kinds == ["actions"]
    assert Problem.from_demonstrations(*given, **options).policies is None


def test_by_default_a_problem_has_all_that_the_dynamics_offers():
    grid = Problem.from_demonstrations(DEMOS, WORLD.dynamics)
    assert grid.kinds == ["actions", "blurs of 3", "blurs of 5", "any action", "goals"]
    compass = DisplacementDynamics.compass(8, sigma=0.5)
    track = np.random.default_rng(0).normal(0.5, 0.5, (9, 2)).cumsum(axis=0)
    plane = Problem.from_demonstrations([track], compass)
    assert plane.kinds == grid.kinds
    demos, heading = with_features([track], [Heading(1.0)], compass)
    assert {"turns", "goals", "overall"} <= set(Problem.from_demonstrations(demos, heading).kinds)


def test_one_action_is_nothing_to_be_told_apart():
    only = TabularDynamics(np.full((2, 1, 2), 0.5))
    problem = Problem.from_demonstrations([[0, 1, 1, 0]], only)  # warnings are errors here
    assert problem.n_actions == 1


def test_a_base_measure_must_be_a_distribution():
    node_of, loglik = np.array([0, 1]), np.zeros((2, 3)) + np.eye(2, 3)
    for base in ([0.5, 0.5], [0.5, 0.5, 0.0], [1.0, 1.0, 1.0]):
        with pytest.raises(ValueError, match="base must be"):
            Problem(node_of, loglik, base=base)


def test_a_report_of_a_run_with_a_repertoire_is_written(tmp_path):
    from click.testing import CliRunner

    from onlooker.cli import main

    run(problem_of(), draws=8, store=tmp_path / "run")
    out = tmp_path / "report.html"
    done = CliRunner().invoke(main, ["report", str(tmp_path / "run"), "--output", str(out)])
    assert done.exit_code == 0, done.output
    assert out.stat().st_size > 10_000
