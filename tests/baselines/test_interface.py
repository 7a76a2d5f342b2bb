"""What every baseline promises, whatever it does inside."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning as SklearnWarning
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from onlooker import Demonstrations
from onlooker.baselines import (
    BayesianNonparametricIRL,
    BehavioralCloning,
    ExpectationMaximization,
    GlobalMarginal,
    MaximumEntropyIRL,
    MaximumMarginIRL,
    UniformPolicy,
)
from onlooker.dynamics import TabularDynamics
from onlooker.metrics import circular_emd
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion, GridWorld

WORLD = GridWorld.with_reward(4, size=5, n_actions=4, sigma=0.5, chance=0.1)
DEMOS = WORLD.rollout(60, 10, random_state=0)[0]
HELD_OUT = WORLD.rollout(200, 10, random_state=1)[0]
XY = WORLD.coordinates
UNIFORM = np.full(24, 1 / 24)

MAKERS = {
    "uniform": lambda d: UniformPolicy(d),
    "marginal": lambda d: GlobalMarginal(d),
    "max-ent": lambda d: MaximumEntropyIRL(d),
    "max-ent-path": lambda d: MaximumEntropyIRL(d, entropy="path", horizon="length"),
    "max-margin": lambda d: MaximumMarginIRL(d, tolerance=0.05),
    "em": lambda d: ExpectationMaximization(d, 4, coordinates=XY, random_state=0),
    "bnirl": lambda d: BayesianNonparametricIRL(d, draws=20, tune=20, random_state=0),
    "cloning": lambda d: BehavioralCloning(d, coordinates=XY, random_state=0),
}
each = pytest.mark.parametrize("name", MAKERS)
# Short fits on purpose: whether they converged, or each transition tells, is not asked here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::onlooker.warnings.UnidentifiableActionsWarning"),
]


def make(name, dynamics=WORLD.dynamics):
    return MAKERS[name](dynamics)


@each
def test_predictions_are_distributions_over_the_actions(name):
    estimator = make(name)
    assert estimator.fit(DEMOS) is estimator
    policy = estimator.predict_proba(np.arange(25))
    assert policy.shape == (25, 4)
    assert (policy >= 0).all()
    np.testing.assert_allclose(policy.sum(axis=1), 1.0)
    np.testing.assert_array_equal(estimator.predict([3, 3, 7]), policy[[3, 3, 7]].argmax(axis=1))


@each
def test_the_score_is_the_mean_log_predictive_probability_of_a_transition(name):
    estimator = make(name).fit(DEMOS)
    states, following = HELD_OUT.transitions()
    table = WORLD.dynamics.toarray()
    likelihood = table[states, :, following]
    want = np.log((likelihood * estimator.predict_proba(states)).sum(axis=1)).mean()
    assert estimator.score(HELD_OUT) == pytest.approx(want)


@each
def test_the_constructor_stores_and_nothing_else(name):
    estimator = make(name)
    again = clone(estimator)
    assert type(again) is type(estimator)
    assert again.get_params().keys() == estimator.get_params().keys()
    assert not [key for key in vars(estimator) if key.endswith("_")]


@each
def test_predicting_before_fitting_is_refused(name):
    with pytest.raises(NotFittedError):
        make(name).predict_proba([0])


@each
def test_the_same_seed_learns_the_same_policy(name):
    one, two = (make(name).fit(DEMOS).predict_proba(np.arange(25)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@each
def test_a_report_says_how_the_fit_ended(name):
    report = make(name).fit(DEMOS).convergence_
    assert isinstance(report.converged, bool)
    assert report.n_iter >= 0
    assert report.residual >= 0
    assert report.message


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "uniform"])
def test_an_unexplained_transition_is_refused(name):
    table = np.zeros((25, 4, 25))
    table[np.arange(25), :, np.arange(25)] = 1.0
    with pytest.raises(ValueError, match=r"transition 1 \(1 in all\) cannot be explained"):
        make(name, TabularDynamics(table)).fit([[3, 3, 4]])


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("uniform", "marginal")])
def test_every_method_beats_trivial_policies_on_an_optimal_expert(name):
    trivial = max(
        model(WORLD.dynamics).fit(DEMOS).score(HELD_OUT)
        for model in (UniformPolicy, GlobalMarginal)
    )
    # EM's policies are deterministic: a wrong action costs dearly, so enough data it is.
    demos = WORLD.rollout(400, 10, random_state=2)[0]
    assert make(name).fit(demos).score(HELD_OUT) > trivial + 0.05


@pytest.mark.parametrize("name", ["max-ent", "em", "cloning"])
def test_scikit_learn_cross_validates_over_trajectories(name):
    scores = cross_val_score(make(name), DEMOS, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


def test_planners_refuse_dynamics_without_a_table():
    world = CircularMotion()
    demos = world.rollout(2, 10, random_state=0)[0]
    for estimator in (MaximumEntropyIRL, MaximumMarginIRL, BayesianNonparametricIRL):
        with pytest.raises(TypeError, match="needs TabularDynamics"):
            estimator(world.dynamics).fit(demos)


def test_methods_that_do_not_plan_work_in_the_plane():
    world = CircularMotion()
    demos = world.rollout(5, 60, random_state=0)[0]
    held_out = world.rollout(5, 60, random_state=1)[0]
    expert = world.policy(held_out.states)
    for estimator in (
        ExpectationMaximization(world.dynamics, 8, random_state=0, n_starts=3),
        BehavioralCloning(world.dynamics, random_state=0),
    ):
        learned = estimator.fit(demos).predict_proba(held_out.states)
        assert circular_emd(expert, learned).mean() < 0.9 < circular_emd(expert, UNIFORM).mean()


def test_lists_of_trajectories_are_demonstrations_too():
    as_list = [np.array(trajectory) for trajectory in DEMOS]
    one = MaximumEntropyIRL(WORLD.dynamics).fit(as_list)
    two = MaximumEntropyIRL(WORLD.dynamics).fit(Demonstrations(as_list))
    np.testing.assert_array_equal(one.policy_, two.policy_)
    assert one.score(as_list) == two.score(DEMOS)


def test_states_out_of_range_are_named():
    estimator = MaximumEntropyIRL(WORLD.dynamics).fit(DEMOS)
    with pytest.raises(ValueError, match="holds 25 at index 1; there are 25 states"):
        estimator.predict_proba([0, 25])
    with pytest.raises(TypeError, match="integers"):
        estimator.predict_proba([[0.0, 1.0]])


def test_progress_is_shown_only_when_asked(capsys):
    MaximumMarginIRL(WORLD.dynamics, tolerance=0.05).fit(DEMOS)
    assert capsys.readouterr() == ("", "")
    MaximumMarginIRL(WORLD.dynamics, tolerance=0.05, progress=True).fit(DEMOS)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("maximum margin: ")
    assert "margin 0." in err


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_stopping_short_warns_with_a_remedy():
    with pytest.warns(ConvergenceWarning, match="not converged: .* raise max_iter") as told:
        MaximumEntropyIRL(WORLD.dynamics, max_iter=1).fit(DEMOS)
    assert told[0].filename == __file__
    assert issubclass(told[0].category, SklearnWarning)  # as other estimators have it
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ExpectationMaximization(WORLD.dynamics, 4, coordinates=XY, max_iter=1).fit(DEMOS)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tolerance"):
        MaximumMarginIRL(WORLD.dynamics, max_iter=2).fit(DEMOS)
