"""Scores say what is odd about a trajectory, and where."""

import json

import numpy as np
import pandas as pd
import pytest
from naive_anomaly import peaks, rank, statistics
from scipy.integrate import quad
from scipy.stats import false_discovery_control, norm
from scored_walks import COMPASS, Simulated, east, eastward, score_east, walk
from small_runs import PRIORS, made_up, plane_problem, ring_dynamics, ring_problem

from onlooker import Demonstrations
from onlooker.anomaly import _kernels, _replicates, score, score_policy
from onlooker.anomaly._changes import locate, onset_posterior
from onlooker.blocks import slices_of
from onlooker.dynamics import DisplacementDynamics, TabularDynamics

# -- kernels and their twins --------------------------------------------------------------------


def test_statistics_equal_those_of_the_twin():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 8, 30])
    action_surprise, noise_surprise = rng.normal(0, 2, (2, 5, 30))
    noise_surprise[2, 9] = np.inf
    sds = rng.uniform(0.5, 2, (2, 5, 30))
    repeats = rng.random((5, 30)) < 0.5
    out = np.empty((5, 3, 4))
    steps = (action_surprise, noise_surprise, *sds, repeats)
    _kernels.statistics(*steps, offsets, 2.5, 0.5, out)
    np.testing.assert_allclose(out, statistics(*steps, offsets, 2.5, 0.5), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_ranks_equal_those_of_the_twin(scale):
    rng = np.random.default_rng(3)
    tracks = scale * rng.normal(size=(40, 25, 5)).round(1)  # many ties
    tracks[..., 4] = rng.integers(3, size=(40, 25))
    tracks[3, 4, 0] = np.inf
    got = _replicates.rank(tracks[0], tracks[1:])
    want = [rank(tracks[0, k], tracks[1:, k]) for k in range(25)]
    np.testing.assert_allclose(got, want)
    assert len(np.unique(got[:, 5])) > 10


def test_a_track_that_equals_all_others_is_not_odd():
    same = np.full((8, 1, 5), 0.1)
    np.testing.assert_array_equal(_replicates.rank(same[0], same[1:]), np.ones((1, 6)))


def test_peaks_equal_those_of_the_twin():
    rng = np.random.default_rng(1)
    values = rng.normal(size=40)
    values[:5] = -1.0
    offsets = np.array([0, 5, 6, 25, 40])
    height, end = np.empty(4), np.empty(4, dtype=np.int64)
    _kernels.peaks(values, offsets, 0.5, height, end)
    wanted = peaks(values, offsets, 0.5)
    np.testing.assert_allclose(height, wanted[0])
    assert end.tolist() == wanted[1]
    assert end[0] == -1


# -- steps --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring():
    return made_up(ring_problem(), PRIORS["mixing"])


RING_WALKS = [[0, 1, 2, 3, 3], [5, 4, 5, 0, 0, 0, 1], [2, 2]]


def test_surprise_is_minus_the_log_predictive(ring):
    found = score(ring, RING_WALKS, random_state=0)
    np.testing.assert_allclose(
        found.steps.surprise, -ring.log_predictive(Demonstrations(RING_WALKS))
    )


@pytest.mark.parametrize("extrapolate", [None, "local", "map"])
def test_surprise_in_the_plane_is_extrapolated_as_asked(extrapolate):
    posterior = made_up(plane_problem(), PRIORS["ddcrp"], hyper={"nu": 0.5})
    tracks = Demonstrations([np.random.default_rng(2).normal(0, 1.5, (6, 2))])
    how = {"random_state": 0, "max_replicates": 20, "n_replicates": 20}
    found = score(posterior, tracks, extrapolate=extrapolate, **how)
    for strategy in ("average", "local", "map"):
        expected = posterior.log_predictive(tracks, extrapolate=strategy)
        same = np.allclose(found.steps.surprise, -expected)
        assert same == (strategy == (extrapolate or "average"))


def test_sums_over_next_states_equal_what_simulation_tends_to(ring):
    demos = Demonstrations(RING_WALKS)
    policy = ring.policy
    exact, simulated = (
        score_policy(
            policy,
            dynamics,
            demos,
            n_replicates=20_000,
            max_replicates=20_000,
            simulate=False,
            random_state=0,
        ).steps
        for dynamics in (ring_dynamics(), Simulated(ring_dynamics()))
    )
    np.testing.assert_allclose(exact.surprise, simulated.surprise)
    np.testing.assert_allclose(exact.expected, simulated.expected, atol=0.03)
    np.testing.assert_allclose(exact.sd, simulated.sd, atol=0.03)
    np.testing.assert_allclose(exact.action_surprise, simulated.action_surprise, atol=0.08)
    np.testing.assert_allclose(exact.noise_surprise, simulated.noise_surprise, atol=0.08)
    np.testing.assert_allclose(exact.p_value, simulated.p_value, atol=0.02)


def test_sums_over_next_states_equal_a_plain_loop(ring):
    demos = Demonstrations(RING_WALKS)
    found = score(ring, demos, random_state=0).steps
    table = ring_dynamics().toarray()
    for t, (s, target) in enumerate(zip(*demos.transitions(), strict=True)):
        q = ring.policy([s])[0] @ table[s]
        h = -np.log(q)
        assert found.expected[t] == pytest.approx(q @ h)
        assert found.sd[t] == pytest.approx(np.sqrt(q @ (h - q @ h) ** 2))
        assert found.p_value[t] == pytest.approx(q[h >= h[target] - 1e-9].sum())


def test_sums_do_not_depend_on_how_many_steps_memory_holds(ring, monkeypatch):
    whole = score(ring, RING_WALKS, random_state=0).steps
    monkeypatch.setattr(slices_of, "__defaults__", (12,))
    parts = score(ring, RING_WALKS, random_state=0).steps
    for name in ("expected", "sd", "p_value", "action_surprise", "noise_surprise"):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), err_msg=name)


def test_action_surprise_has_no_units_and_noise_surprise_no_direction():
    tracks = [walk([0] * 5, seed=3), -walk([0] * 5, seed=3)]
    far = score_east(tracks)
    scaled = DisplacementDynamics(1000 * COMPASS.steps, 150.0)
    wide = score_policy(
        east,
        scaled,
        [1000 * track for track in tracks],
        n_replicates=200,
        max_replicates=200,
        random_state=0,
    )
    np.testing.assert_allclose(far.steps.action_surprise, wide.steps.action_surprise, atol=1e-6)
    units = 2 * np.log(1000)
    np.testing.assert_allclose(wide.steps.surprise - far.steps.surprise, units, rtol=1e-9)
    np.testing.assert_allclose(
        far.steps.noise_surprise[:5], far.steps.noise_surprise[5:], rtol=0.3, atol=0.3
    )
    assert (far.steps.action_surprise[5:] > far.steps.action_surprise[:5] + 2).all()


def test_a_step_that_every_action_calls_impossible_is_an_alarm_not_a_crash():
    table = np.zeros((4, 2, 4))
    for s in range(4):
        table[s, 0, s] = table[s, 1, (s + 1) % 4] = 1.0
    demos = Demonstrations([[0, 1, 3, 3, 0], [0, 0, 1, 2]])
    found = score_policy(np.full((4, 2), 0.5), TabularDynamics(table), demos, random_state=0)
    assert found.steps.explained.tolist() == [True, False, True, True, True, True, True]
    assert np.isinf(found.steps.surprise[1])
    assert np.isinf(found.steps.misfit[1])
    assert found.steps.p_value[1] == 0
    assert found.trajectories.n_unexplained.tolist() == [1, 0]
    assert np.isfinite(found.trajectories.score).all()
    assert found.trajectories.p_too_noisy[0] == found.trajectories.p_too_noisy.min() < 0.01
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["steps"]["surprise"][1] is None


def test_what_the_policy_never_does_is_explained_all_the_same():
    found = score_policy(
        lambda states: np.tile([1.0, *[0.0] * 7], (len(states), 1)),
        COMPASS,
        [walk([0, 4, 0])],
        random_state=0,
    )
    assert found.steps.explained.all()
    assert found.steps.action_surprise[1] == 10.0  # max_step_score


def test_a_glitch_is_an_alarm_of_its_own_and_does_not_decide_the_score():
    track = eastward(60)[0]
    track[31:] += [30.0, 30.0]
    found = score_east([track, walk([4] * 60)])
    assert np.flatnonzero(~found.steps.explained).tolist() == [30]
    assert found.trajectories.n_unexplained.tolist() == [1, 0]
    assert found.trajectories.p_too_noisy[0] < 0.01
    assert found.trajectories.score[1] > 5 * abs(found.trajectories.score[0])


def test_dynamics_without_a_misfit_are_judged_by_how_likely_the_best_action_is():
    track = eastward(30)[0]
    track[11:] += [3.0, 3.0]
    found = score_policy(east, Simulated(COMPASS), [track], random_state=0)
    assert np.flatnonzero(~found.steps.explained).tolist() == [10]
    known = score_policy(east, COMPASS, [track], random_state=0)
    assert found.steps.misfit[10] == pytest.approx(known.steps.misfit[10], rel=0.1)


# -- trajectories -------------------------------------------------------------------------------


def test_going_the_wrong_way_is_ranked_first_however_short():
    found = score_east([*eastward(80, 5), walk([4] * 10), *eastward(20, 5, seed=1)])
    ranking = found.ranking()
    assert ranking.index[0] in (5, "5")
    assert ranking["p_value"].iloc[0] < 0.01
    assert ranking["score"].is_monotonic_decreasing


def test_ranking_leaves_out_short_tracks_and_adjusts_for_the_others_only():
    found = score_east([walk([4] * 3), walk([4] * 30), *eastward(30, 8)])
    ranking = found.ranking(min_steps=10)
    assert len(ranking) == 9
    np.testing.assert_allclose(
        ranking["q_value"], false_discovery_control(ranking["p_value"].to_numpy())
    )
    by_p = found.ranking(by="p_combined")
    assert by_p["p_combined"].is_monotonic_increasing
    with pytest.raises(ValueError, match="by must be one of 'n_steps', 'score'"):
        found.ranking(by="oddness")


def test_too_little_noise_is_calm_and_too_much_a_misfit():
    actions = np.random.default_rng(5).choice([7, 0, 1], size=40, p=[0.2, 0.6, 0.2])
    found = score_east([walk(actions, sigma=0.02), walk(actions, sigma=0.4)]).trajectories
    assert found.p_too_exact[0] < 0.01 < 0.5 < found.p_too_noisy[0]
    assert found.p_too_noisy[1] < 0.01 < 0.5 < found.p_too_exact[1]
    assert (found.p_combined < 0.05).all()


def test_a_frozen_sensor_is_found_where_standing_still_is_possible():
    rng = np.random.default_rng(0)
    table = np.full((5, 2, 5), 0.1)
    table[np.arange(5), 0, np.arange(5)] += 0.5
    table[np.arange(5), 1, (np.arange(5) + 1) % 5] += 0.5
    dynamics = TabularDynamics(table)
    walks = [[0]]
    for _ in range(60):
        walks[0].append(int(dynamics.sample([walks[0][-1]], [rng.integers(2)], rng)[0]))
    frozen = [*walks[0][:45], *[walks[0][45]] * 16]
    demos = Demonstrations([walks[0], frozen])
    found = score_policy(np.full((5, 2), 0.5), dynamics, demos, n_replicates=500, random_state=0)
    assert found.trajectories.p_stopped[0] > 0.05
    assert found.trajectories.p_stopped[1] < 0.005
    assert found.trajectories.longest_stop[1] >= 15
    assert found.trajectories.p_combined[1] < 0.02


def test_steps_that_few_replicates_surpass_get_more_of_them():
    track = walk([0, 0, 0, 0])
    track[3:] -= track[3] - track[2]  # it stands still once
    for most in (200, 5000):
        found = score_east([track], max_replicates=most).steps
        assert found.p_value[2] == pytest.approx(1 / (most + 1))


def test_the_same_seed_gives_the_same_bits():
    one, two, other = (score_east(eastward(20, 4), random_state=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    pd.testing.assert_frame_equal(one.to_frame("steps"), two.to_frame("steps"))
    assert not np.array_equal(one.trajectories.score, other.trajectories.score)


def test_small_memory_changes_no_verdict(monkeypatch):
    tracks = [walk([4] * 20), *eastward(20, 3)]
    monkeypatch.setattr("onlooker.anomaly._replicates.ENTRIES", 1)  # one trajectory at a time
    monkeypatch.setattr(slices_of, "__defaults__", (1,))  # one replicate at a time
    found = score_east(tracks, n_replicates=50, max_replicates=50).trajectories
    assert found.p_value[0] == pytest.approx(1 / 51)
    assert (found.p_value[1:] > 0.05).all()


# -- changes ------------------------------------------------------------------------------------


def test_the_onset_of_another_behaviour_is_found():
    found = score_east([np.vstack([a := eastward(30)[0], a[-1] + walk([3] * 20, 7)[1:]])])
    verdict = found.trajectories
    assert verdict.p_change[0] < 0.01
    assert verdict.onset_low[0] <= 30 <= verdict.onset_high[0]
    assert abs(verdict.onset[0] - 30) <= 1
    assert verdict.end[0] == 49
    assert verdict.changed[0] == "action_surprise"
    assert found.changes(0.01)["onset"].tolist() == [verdict.onset[0]]


def test_a_stretch_that_ends_is_delimited():
    rng = np.random.default_rng(8)
    actions = rng.choice([7, 0, 1], size=60)
    actions[25:35] = 4
    verdict = score_east([walk(actions, 9)]).trajectories
    assert abs(verdict.onset[0] - 25) <= 1
    assert abs(verdict.end[0] - 34) <= 1


def test_more_noise_is_found_as_a_change_of_noise():
    calm, wild = walk([0] * 40, 1), walk([0] * 20, 2, sigma=0.6)
    found = score_east([np.vstack([calm, calm[-1] + wild[1:]])])
    assert found.trajectories.changed[0] == "noise_surprise"
    assert abs(found.trajectories.onset[0] - 40) <= 3


def test_changes_lists_no_more_than_the_false_alarms_asked_for():
    found = score_east(eastward(40, 10))
    assert len(found.changes(0.001)) == 0
    with pytest.raises(ValueError, match="false_alarm must be between 0 and 1"):
        found.changes(5)


def test_onset_posterior_integrates_over_the_size_of_the_shift():
    x = np.array([0.3, 0.1, 2.0, 2.5, 1.9])
    weights = [
        quad(
            lambda shift, x=x[first:]: norm.pdf(shift, scale=3.0)
            * np.prod(norm.pdf(x - shift) / norm.pdf(x)),
            -20, 20,
        )[0]
        for first in range(len(x))
    ]  # fmt: skip
    np.testing.assert_allclose(onset_posterior(x), np.array(weights) / sum(weights), rtol=1e-6)


def test_a_trajectory_that_never_exceeds_its_expectation_has_no_onset():
    changes = locate(np.full(5, -1.0), np.full(5, -1.0), np.array([0, 2, 5]), 0.9)
    assert changes.onset.tolist() == changes.end.tolist() == [-1, -1]
