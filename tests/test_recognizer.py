"""The estimator: scikit-learn's tools work on it."""

import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import onlooker
from onlooker import Demonstrations, PolicyRecognizer, sample
from onlooker.defaults import default_model
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import DistanceDependent, GaussianDecay, Mixing, Potts
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")

WORLD = CircularMotion(n_actions=8)
DEMOS, _ = WORLD.rollout(6, 15, random_state=2)
STATES = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])


def make(partition=None, **options):
    """A recognizer with little to do."""
    given = {"draws": 30, "tune": 20, "chains": 2, "random_state": 0}
    return PolicyRecognizer(WORLD.dynamics, partition, **(given | options))


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(DistanceDependent(decay=GaussianDecay(1.0, 0.01)), draws=100).fit(DEMOS)


def test_it_is_a_public_name():
    assert onlooker.PolicyRecognizer is PolicyRecognizer


def test_predictions_are_those_of_the_posterior(fitted):
    proba = fitted.predict_proba(STATES)
    np.testing.assert_array_equal(proba, fitted.posterior_.policy(STATES))
    np.testing.assert_array_equal(fitted.predict(STATES), proba.argmax(axis=1))
    assert fitted.n_actions_ == 8


def test_the_score_is_the_mean_log_predictive(fitted):
    held_out, _ = WORLD.rollout(2, 10, random_state=9)
    expected = fitted.posterior_.log_predictive(held_out).mean()
    assert fitted.score(held_out) == pytest.approx(expected)
    assert fitted.score(list(held_out)) == fitted.score(held_out)


def test_it_learns(fitted):
    """The expert's own policy may win, but no policy at all must lose."""
    held_out, _ = WORLD.rollout(20, 15, random_state=10)
    states, following = held_out.transitions()
    uniform = np.log(np.exp(WORLD.dynamics.log_likelihood(states, following)).mean(axis=1)).mean()
    assert fitted.score(held_out) > uniform + 0.2


def test_the_strategy_is_a_parameter(fitted):
    mixed = clone(fitted).set_params(extrapolate="average").fit(DEMOS)
    np.testing.assert_array_equal(
        mixed.predict_proba(STATES), fitted.posterior_.policy(STATES, extrapolate="average")
    )


def test_what_is_left_out_is_the_default_model():
    model = default_model(DEMOS, WORLD.dynamics)
    fitted = make(draws=3, tune=3, chains=None).fit(list(DEMOS))
    assert repr(fitted.posterior_.prior) == repr(model.prior)
    assert fitted.posterior_.target.concentration == model.concentration == CONCENTRATION
    assert fitted.posterior_.n_chains == model.chains == 4
    assert fitted.posterior_.problem.behaviours == model.problem.behaviours
    assert fitted.notes_ == model.notes
    assert fitted.get_params()["partition"] is None


def test_what_is_no_part_of_the_model_has_the_defaults_of_sample():
    estimator, function = (signature(of).parameters for of in (PolicyRecognizer, sample))
    shared = estimator.keys() & function.keys()
    assert {"thin", "collapsed", "resume", "max_minutes"} <= shared
    for name in shared - {"progress"}:  # an estimator is quiet
        if estimator[name].default is not None:  # None: as the data ask for
            assert estimator[name].default == function[name].default, name


def test_what_is_given_is_kept():
    given = {"concentration": 0.3, "chains": 3}
    model = default_model(DEMOS, WORLD.dynamics, prior=Mixing(2), nodes=STATES, **given)
    assert isinstance(model.prior, Mixing)
    assert (model.concentration, model.chains) == (0.3, 3)
    assert model.problem.n_nodes == len(DEMOS.states) + len(STATES)
    assert default_model(DEMOS, WORLD.dynamics, prior=Mixing(2)).concentration == 1.0


def test_the_papers_settings_have_a_name():
    paper = PolicyRecognizer.paper(WORLD.dynamics, draws=2, tune=2, random_state=0)
    posterior = clone(paper).fit(DEMOS).posterior_
    assert repr(posterior.prior) == repr(DistanceDependent())
    assert posterior.target.concentration == 1.0
    assert posterior.problem.policies is None
    assert DistanceDependent.paper(2.0).decay == GaussianDecay(2.0, 0.01)
    other = PolicyRecognizer.paper(WORLD.dynamics, Potts(3), concentration=2.0)
    assert repr(other.partition) == repr(Potts(3))
    assert other.concentration == 2.0


@pytest.mark.filterwarnings("default::onlooker.warnings.ConvergenceWarning")
def test_its_warnings_point_at_who_called_it():
    with pytest.warns(ConvergenceWarning) as told:
        make(draws=2).fit(DEMOS)
    assert {warning.filename for warning in told} == {__file__}


def test_a_list_of_arrays_will_do():
    one, other = make(Mixing(2)).fit(DEMOS), make(Mixing(2)).fit(list(DEMOS))
    np.testing.assert_array_equal(one.posterior_.labels, other.posterior_.labels)


def test_a_clone_has_the_same_parameters_and_shares_no_prior(fitted):
    copy = clone(fitted)
    assert copy is not fitted
    assert not hasattr(copy, "posterior_")
    assert copy.partition is not fitted.partition
    assert repr(copy.partition) == repr(fitted.partition)
    refitted = copy.fit(DEMOS)
    np.testing.assert_array_equal(refitted.posterior_.labels, fitted.posterior_.labels)


def test_parameters_reach_into_the_prior():
    recognizer = make(Potts(3))
    params = recognizer.get_params()
    assert params["partition__beta"] == 1.6
    assert params["partition__decay__scale"] == 1.0
    recognizer.set_params(partition__beta=0.5, partition__decay__scale=2.0, draws=7)
    assert recognizer.partition.beta == 0.5
    assert recognizer.partition.decay.scale == 2.0
    assert recognizer.draws == 7
    with pytest.raises(ValueError, match="beta"):
        recognizer.set_params(partition__beta=-1.0)


def test_a_grid_search_over_beta_picks_the_best_held_out_score():
    search = GridSearchCV(
        make(Potts(3), draws=10), {"partition__beta": [0.0, 1.0]}, cv=KFold(3), refit=True
    )
    search.fit(DEMOS)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]
    best = search.best_params_["partition__beta"]
    assert best == [0.0, 1.0][int(np.argmax(scores))]
    assert search.best_estimator_.partition.beta == best


def test_cross_validation_scores_whole_trajectories_that_were_held_out():
    recognizer = make(Mixing(2), draws=10)
    scores = cross_val_score(recognizer, DEMOS, cv=KFold(3))
    by_hand = [
        clone(recognizer).fit(DEMOS[train]).score(DEMOS[test])
        for train, test in KFold(3).split(DEMOS)
    ]
    np.testing.assert_array_equal(scores, by_hand)


def test_a_rollout_imitates(fitted):
    walks = fitted.rollout(STATES, 7, random_state=3)
    assert isinstance(walks, Demonstrations)
    assert walks.lengths.tolist() == [7, 7, 7]
    np.testing.assert_array_equal(walks.states[::7], STATES)
    assert walks == fitted.rollout(STATES, 7, random_state=3)
    assert isinstance(make(Mixing(2)).fit(walks), PolicyRecognizer)


def test_states_can_join_the_inference_as_nodes():
    with_them = make(Potts(3), nodes=STATES).fit(DEMOS)
    posterior = with_them.posterior_
    assert posterior.problem.n_nodes == len(DEMOS.states) + 3
    assert posterior.labels.shape[2] == len(DEMOS.states) + 3
    np.testing.assert_array_equal(with_them.predict_proba(STATES), posterior.policy()[-3:])
    assert not np.allclose(
        with_them.predict_proba(STATES), make(Potts(3)).fit(DEMOS).predict_proba(STATES)
    )


def test_a_store_goes_along(tmp_path):
    fitted = make(Mixing(2), store=tmp_path).fit(DEMOS)
    again = make(Mixing(2), store=tmp_path, resume=True).fit(DEMOS)
    np.testing.assert_array_equal(again.posterior_.labels, fitted.posterior_.labels)


def test_it_may_sample_until_converged(monkeypatch):
    from onlooker import sampling
    from onlooker.diagnostics import Settled

    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": False}))
    model = PolicyRecognizer(
        WORLD.dynamics, Mixing(3), draws="auto", max_minutes=1e-9, tune=0, chains=2, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="time budget"):
        model.fit(DEMOS)
    assert model.posterior_.ended == "time"
    assert clone(model).max_minutes == 1e-9


def test_asking_before_fitting_is_refused():
    for question in (
        lambda r: r.predict(STATES),
        lambda r: r.score(DEMOS),
        lambda r: r.rollout(STATES, 3),
    ):
        with pytest.raises(NotFittedError):
            question(make())
