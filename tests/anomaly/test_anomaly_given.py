"""What may be scored: posteriors, estimators and policies; what comes out; what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scored_walks import COMPASS, Simulated, east, eastward, score_east, walk
from small_runs import PRIORS, made_up, plane_problem, quick, ring_dynamics, ring_problem

from onlooker import Demonstrations, PolicyRecognizer
from onlooker.anomaly import score, score_policy
from onlooker.anomaly._predictive import Predictive
from onlooker.anomaly._replicate_policy import DrawnPolicies
from onlooker.partitions import Uniform

# -- who acts in the replicates -----------------------------------------------------------------


HYPER = {"nu": 0.5, "gamma": 1.0, "beta": 0.7}
CASES = [(name, None) for name in PRIORS] + [("ddcrp", how) for how in ("map", "local", "average")]


@pytest.mark.parametrize(("prior", "strategy"), CASES)
def test_replicates_act_by_the_posterior_policy_on_average(prior, strategy):
    posterior = made_up(plane_problem(), PRIORS[prior], hyper=HYPER, n_draws=300)
    nodes = posterior.problem.states[:2]
    states = np.vstack([nodes, nodes + 0.3, [[9.0, 9.0]]])
    actor = DrawnPolicies(posterior, states, strategy, most=600)
    rng = np.random.default_rng(0)
    actions = np.concatenate(list(actor.act(np.arange(5), 6100, rng)))
    assert actions.shape == (6100, 5)
    shares = (actions[..., None] == np.arange(4)).mean(axis=0)
    wanted = posterior.policy(states, extrapolate=strategy)
    np.testing.assert_allclose(shares, wanted, atol=0.03)


def test_steps_of_one_replicate_share_their_controller():
    posterior = made_up(plane_problem(), Uniform(1), n_clusters=1, n_draws=300)
    actor = DrawnPolicies(posterior, posterior.problem.states[[0, 1]], None, most=600)
    actions = np.concatenate(list(actor.act(np.arange(2), 20_000, np.random.default_rng(0))))
    alike = (actions[:, 0] == actions[:, 1]).mean()
    policy = posterior.policy(posterior.problem.states[:2])
    assert alike > (policy[0] * policy[1]).sum() + 0.01


def test_a_recognizer_and_any_estimator_are_taken_too():
    demos = Demonstrations(eastward(20, 3))
    recognizer = PolicyRecognizer(COMPASS, Uniform(1), draws=5, tune=5, chains=1, random_state=0)
    recognizer.posterior_ = quick(recognizer_problem(demos), Uniform(1), draws=5, tune=5, chains=1)
    by_recognizer = score(recognizer, demos, random_state=0)
    by_posterior = score(recognizer.posterior_, demos, random_state=0)
    pd.testing.assert_frame_equal(by_recognizer.to_frame(), by_posterior.to_frame())

    class Estimator:
        dynamics = COMPASS

        def predict_proba(self, states):
            return east(len(states))

    by_estimator = score(Estimator(), demos, random_state=0, max_replicates=200)
    pd.testing.assert_frame_equal(by_estimator.to_frame(), score_east(demos).to_frame())
    assert by_posterior.settings["parameter_uncertainty"]
    assert not by_estimator.settings["parameter_uncertainty"]


def recognizer_problem(demos):
    from onlooker import Problem

    return Problem.from_demonstrations(demos, COMPASS)


# -- in and out ---------------------------------------------------------------------------------


def test_names_come_from_the_demonstrations():
    demos = Demonstrations(eastward(10, 2), names=["Amy", "Lenny"])
    found = score_east(demos)
    assert found.names == ["Amy", "Lenny"]
    assert found.to_frame().index.tolist() == ["Amy", "Lenny"]
    assert found.to_frame("steps")["trajectory"].tolist() == ["Amy"] * 10 + ["Lenny"] * 10


def test_everything_fits_into_json_and_tables():
    found = score_east(eastward(10, 2))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["trajectories"]["score"] == found.trajectories.score.tolist()
    assert plain["steps"]["step"] == [*range(10), *range(10)]
    assert plain["settings"]["n_replicates"] == 200
    assert len(found.to_frame("steps")) == 20
    assert "2 trajectories, 20 steps, 0 unexplained" in repr(found)
    with pytest.raises(ValueError, match="of must be"):
        found.to_frame("step")


def test_conformal_p_values_count_nominal_trajectories_that_are_as_odd():
    found, nominal = score_east([walk([4] * 10), *eastward(10, 2)]), score_east(eastward(10, 9, 3))
    for by, sign in (("score", 1), ("p_combined", -1)):
        odd = sign * getattr(found.trajectories, by)
        usual = sign * getattr(nominal.trajectories, by)
        wanted = [(1 + sum(usual >= one)) / 10 for one in odd]
        np.testing.assert_allclose(found.conformal_p_values(nominal, by), wanted)
    assert found.conformal_p_values(nominal)[0] == 0.1
    assert found.conformal_p_values(nominal, "combined")[0] == 0.1
    with pytest.raises(ValueError, match="by must be 'score', 'combined' or a p-value"):
        found.conformal_p_values(nominal, "n_steps")


def test_a_bar_is_drawn_when_asked_for(capsys):
    score_east(eastward(5, 2), progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert "simulating the nominal behaviour" in told.err
    assert "100%" in told.err
    score_east(eastward(5, 2))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_replicates": 5}, "n_replicates must be at least 10"),
        ({"interval": 1.5}, "interval must be between 0 and 1"),
        ({"max_misfit": -1.0}, "max_misfit must be finite and above 0"),
        ({"max_step_score": 0}, "max_step_score must be finite and above 0"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        score_east(eastward(5), **options)


def test_senseless_input_is_refused():
    demos = Demonstrations(eastward(5))
    with pytest.raises(ValueError, match=r"policy must be \(5, 8\)"):
        score_policy(east(4), COMPASS, demos)
    wrong = east(5)
    wrong[3, 0] = 0.9
    with pytest.raises(ValueError, match=r"policy\[3\] sums to"):
        score_policy(wrong, COMPASS, demos)
    with pytest.raises(TypeError, match="posterior must be a Posterior or a fitted estimator"):
        score("nominal", demos)
    posterior = made_up(ring_problem(), PRIORS["crp"])
    posterior.problem.dynamics = None
    with pytest.raises(ValueError, match="give dynamics="):
        score(posterior, [[0, 1]])


def test_dynamics_that_contradict_themselves_are_refused():
    class Liar(Simulated):
        def __init__(self):
            super().__init__(ring_dynamics())
            self.sample = lambda states, actions, rng: np.zeros_like(states)
            honest = self.log_likelihood
            self.log_likelihood = lambda s, t: np.where(
                np.asarray(t)[:, None] == 0, -np.inf, honest(s, t)
            )

    predictive = Predictive(Liar(), np.array([1, 2]), np.full((1, 3), 1 / 3), np.zeros(2, int))
    with pytest.raises(ValueError, match="must belong to one model"):
        predictive.simulate(np.array([0, 1]), np.array([0, 0]), np.random.default_rng(0))
