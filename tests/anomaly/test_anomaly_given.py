"""What may be scored: posteriors, estimators and policies; what comes out; what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from bare import bare_problem
from naive_anomaly import rank_among
from scored_walks import COMPASS, Simulated, east, eastward, score_east, walk
from small_runs import PRIORS, made_up, plane_problem, quick, ring_dynamics, ring_problem

from onlooker import Demonstrations, PolicyRecognizer
from onlooker.anomaly import score, score_policy
from onlooker.anomaly._predictive import Predictive
from onlooker.anomaly._replicates import DrawnPolicies
from onlooker.partitions import Uniform

# -- who acts in the replicates -----------------------------------------------------------------


HYPER = {"nu": 0.5, "gamma": 1.0, "beta": 0.7}
CASES = [(name, None) for name in PRIORS] + [("ddcrp", how) for how in ("map", "local", "average")]


def act(actor, states, n_replicates, times):
    """``(times · n_replicates, n)``: actions of replicates at `states`."""
    rng = np.random.default_rng(0)
    found, n = [], len(states)
    for _ in range(times):
        actor.start(n_replicates, n, rng)
        replicate, track = (
            np.repeat(np.arange(n_replicates), n),
            np.tile(np.arange(n), n_replicates),
        )
        actions = actor.act(np.concatenate([states] * n_replicates), replicate, track, rng)
        found.append(actions.reshape(n_replicates, n))
    return np.concatenate(found)


@pytest.mark.parametrize(("prior", "strategy"), CASES)
def test_each_state_takes_a_cluster_of_its_own_draw(prior, strategy):
    posterior = made_up(plane_problem(), PRIORS[prior], hyper=HYPER, n_draws=20)
    predictor, rng = posterior.predictor, np.random.default_rng(1)
    states, node = predictor.place(rng.normal(0.0, 2.0, (40, 2)))
    (clusters,) = predictor.blocks()
    rule = predictor.rule(strategy)

    class Given:
        def random(self, shape):
            return np.tile(uniforms, (shape[0], 1))

    uniforms = rng.random(40)
    every = predictor.draw_rows(clusters, states, node, rule, Given())
    draw = rng.integers(len(clusters.index), size=40)
    own = predictor.draw_own_rows(clusters, draw, states, node, rule, uniforms)
    np.testing.assert_array_equal(own, every[draw, np.arange(40)])


def test_a_replicate_keeps_its_controller_where_nobody_was():
    posterior = made_up(plane_problem(), PRIORS["crp"], hyper=HYPER, n_draws=50)
    predictor, far = posterior.predictor, np.array([[90.0, 90.0], [91.0, 90.0]])
    (clusters,) = predictor.blocks()
    draw, rule = np.repeat(np.arange(100), 2), predictor.rule("average")
    kept = np.repeat(np.random.default_rng(0).random(100), 2)
    states, none = np.tile(far, (100, 1)), np.full(200, -1)
    rows = predictor.draw_own_rows(clusters, draw, states, none, rule, kept)
    assert (rows[::2] == rows[1::2]).all()
    assert len(set(rows - clusters.first[draw])) > 2
    fresh = np.random.default_rng(0).random(200)
    rows = predictor.draw_own_rows(clusters, draw, states, none, rule, fresh)
    assert (rows[::2] != rows[1::2]).any()


@pytest.mark.parametrize(("prior", "strategy"), CASES)
def test_replicates_act_by_the_posterior_policy_on_average(prior, strategy):
    posterior = made_up(plane_problem(), PRIORS[prior], hyper=HYPER, n_draws=300)
    nodes = posterior.problem.states[:2]
    states = np.vstack([nodes, nodes + 0.3, [[9.0, 9.0]]])
    actor = DrawnPolicies(posterior, strategy, 600)
    np.testing.assert_allclose(actor.mean(states), posterior.policy(states, extrapolate=strategy))
    actions = act(actor, states, 600, 10)
    shares = (actions[..., None] == np.arange(4)).mean(axis=0)
    wanted = posterior.policy(states, extrapolate=strategy)
    np.testing.assert_allclose(shares, wanted, atol=0.03)


def test_steps_of_one_replicate_share_their_controller():
    posterior = made_up(plane_problem(), Uniform(1), n_clusters=1, n_draws=300)
    actor = DrawnPolicies(posterior, None, 600)
    actions = act(actor, posterior.problem.states[:2], 600, 33)
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
            return east(states)

    by_estimator = score(Estimator(), demos, random_state=0, n_replicates=200, max_replicates=200)
    pd.testing.assert_frame_equal(by_estimator.to_frame(), score_east(demos).to_frame())
    assert by_posterior.settings["parameter_uncertainty"]
    assert not by_estimator.settings["parameter_uncertainty"]


def recognizer_problem(demos):

    return bare_problem(demos, COMPASS)


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
    for by, name in (("score", "score"), ("p_too_noisy", "noise"), ("p_change", "change")):
        odd, usual = getattr(found.trajectories, name), getattr(nominal.trajectories, name)
        wanted = [(1 + sum(usual >= one)) / 10 for one in odd]
        np.testing.assert_allclose(found.conformal_p_values(nominal, by), wanted)
    frame = found.calibrated(nominal).to_frame()
    np.testing.assert_allclose(frame["p_value"], found.conformal_p_values(nominal))
    np.testing.assert_allclose(frame["p_combined"], found.conformal_p_values(nominal, "combined"))
    np.testing.assert_allclose(frame["p_model"], found.trajectories.p_combined)
    assert found.conformal_p_values(nominal)[0] == 0.1
    assert found.conformal_p_values(nominal, "combined")[0] == 0.1
    with pytest.raises(ValueError, match="by must be 'score', 'combined' or a p-value"):
        found.conformal_p_values(nominal, "n_steps")


def test_nominal_tracks_of_other_lengths_are_compared_by_what_is_odd_per_step():
    drifting = [track + 0.1 * np.arange(len(track))[:, None] for track in eastward(40, 3, seed=5)]
    found = score_east([walk([4] * 3), *eastward(25, 3), *drifting])
    nominal = score_east([t for n in (4, 12, 30, 60) for t in eastward(n, 6, seed=n)])
    mine, pool = (
        np.column_stack([t.score, t.noise, t.change, t.longest_stop])
        for t in (found.trajectories, nominal.trajectories)
    )
    n, others = found.trajectories.n_steps, nominal.trajectories.n_steps
    wanted = [rank_among(one, length, pool, others) for one, length in zip(mine, n, strict=True)]
    names = ("score", "p_too_exact", "p_too_noisy", "p_change", "p_stopped", "combined")
    got = np.column_stack([found.conformal_p_values(nominal, by) for by in names])
    np.testing.assert_allclose(got, wanted)
    assert len(np.unique(got)) > 5


def test_a_bar_is_drawn_when_asked_for(capsys):
    score_east(eastward(5, 2), progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert "simulating nominal trajectories" in told.err
    assert "(100 %)" in told.err
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
    with pytest.raises(ValueError, match=r"policy\(states\) must be \(5, 8\)"):
        score_policy(lambda states: east(states[1:]), COMPASS, demos)
    with pytest.raises(ValueError, match=r"policy\(states\)\[0\] sums to"):
        score_policy(lambda states: 0.9 * east(states), COMPASS, demos)
    with pytest.raises(TypeError, match="policy must be a function of states"):
        score_policy(east(demos.states), COMPASS, demos)
    with pytest.raises(ValueError, match=r"policy must be \(6, 3\)"):
        score_policy(np.full((2, 3), 1 / 3), ring_dynamics(), [[0, 1]])
    with pytest.raises(ValueError, match="2 reference trajectories or more, got 1"):
        score_east(demos, reference=eastward(5))
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
