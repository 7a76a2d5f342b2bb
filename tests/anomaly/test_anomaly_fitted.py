"""P-values by nominal tracks hold with fitted posteriors, whatever the model misses."""

import numpy as np
import pytest
from bare import bare_problem
from scored_walks import COMPASS, east, eastward
from small_runs import quick

from onlooker import Demonstrations, Problem
from onlooker.anomaly import leave_out, score, score_policy
from onlooker.datasets import load_storms
from onlooker.defaults import default_concentration, default_prior
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics
from onlooker.partitions import ChineseRestaurant
from onlooker.worlds import CircularMotion, GridWorld


def fitted(demos, dynamics, prior=None, **options):
    """The default model with short chains."""
    prior = default_prior(demos, dynamics) if prior is None else prior
    options = {"draws": 30, "tune": 50} | options
    problem = bare_problem(demos, dynamics)
    return quick(problem, prior, concentration=default_concentration(prior), **options)


def correlated_walks(n, rng, n_steps=20, kappa=8.0):
    turns = rng.vonmises(0.0, kappa, (n, n_steps))
    angle = rng.uniform(-np.pi, np.pi, (n, 1)) + np.cumsum(turns, axis=1)
    steps = rng.gamma(10, 0.1, (n, n_steps, 1)) * np.stack([np.cos(angle), np.sin(angle)], -1)
    return Demonstrations(list(np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0), (0, 0)))))


def plane(rng):
    world = CircularMotion()
    return world.dynamics, lambda n: world.rollout(n, 25, random_state=rng)[0]


def grid(rng):
    world = GridWorld()
    return world.dynamics, lambda n: world.rollout(n, 25, random_state=rng)[0]


def storms(rng):
    demos = load_storms().demos
    demos = demos[demos.lengths >= 10]
    order = iter(rng.permutation(len(demos)).tolist())
    return GeographicDynamics.from_demonstrations(demos, 8, 1), lambda n: demos[
        [next(order) for _ in range(n)]
    ]


def walks(rng):
    some = correlated_walks(40, rng)
    return DisplacementDynamics.from_demonstrations(some), lambda n: correlated_walks(n, rng)


WORLDS = {"Example 1": plane, "Example 2a": grid, "storms": storms, "walks": walks}


def not_more_than(p_values, level, n_reference):
    """Whether no more fall below the level than a right test allows, but for one in 1,000 times.

    The share below depends on the reference, as a beta variable.
    """
    spread = level * (1 - level) * (1 / len(p_values) + 1 / n_reference)
    return np.mean(p_values <= level) <= level + 3.3 * np.sqrt(spread)


@pytest.mark.parametrize("world", WORLDS)
def test_new_nominal_tracks_are_flagged_as_often_as_agreed(world):
    rng = np.random.default_rng(5)
    dynamics, tracks = WORLDS[world](rng)
    posterior = fitted(tracks(12), dynamics)
    found = score(posterior, tracks(150), reference=tracks(99), simulate=False, random_state=0)
    assert found.settings["n_reference"] == 99
    for name in ("p_value", "p_too_exact", "p_too_noisy", "p_change", "p_combined"):
        p_values = getattr(found.trajectories, name)
        for level in (0.05, 0.2, 0.5):
            assert not_more_than(p_values, level, 99), name
        assert 0.3 < p_values.mean() < 0.75, name


def test_tracks_that_the_fit_has_seen_are_no_reference():
    rng = np.random.default_rng(10)
    dynamics, tracks = walks(rng)
    seen = tracks(60)
    posterior = fitted(seen, dynamics)
    found = score(posterior, tracks(100), reference=seen, simulate=False, random_state=0)
    assert not not_more_than(found.trajectories.p_value, 0.05, 60)


def test_what_simulations_say_of_correlated_walks_is_not_to_be_trusted():
    rng = np.random.default_rng(6)
    dynamics, tracks = walks(rng)
    found = score(fitted(tracks(6), dynamics), tracks(40), n_replicates=40, random_state=0)
    assert not not_more_than(found.trajectories.p_combined, 0.05, 1000)


def test_tracks_of_other_lengths_are_comparable():
    def scored(n_steps, n, seed):
        """By a policy that is vaguer than the true one, so that nominal steps surprise little."""
        return score_policy(
            lambda states: 0.5 * east(states) + 0.5 / 8, COMPASS, eastward(n_steps, n, seed),
            simulate=False, max_replicates=100, random_state=0,
        )  # fmt: skip

    known = scored(25, 99, 0)
    for n_steps in (10, 60):
        new = scored(n_steps, 300, n_steps)
        assert not_more_than(new.conformal_p_values(known), 0.05, 99)
        if n_steps == 10:  # plain scores of short ones lie higher
            odd = [np.mean(known.trajectories.score >= z) for z in new.trajectories.score]
            assert not not_more_than(np.array(odd), 0.05, 99)


def test_other_actions_are_found_where_the_model_itself_sees_nothing():
    rng = np.random.default_rng(8)
    world = CircularMotion()
    posterior = fitted(world.rollout(20, 40, random_state=rng)[0], world.dynamics)
    known = world.rollout(60, 40, random_state=rng)[0]
    tracks = [track.copy() for track in world.rollout(30, 40, random_state=rng)[0]]
    for track in tracks:
        steps = np.diff(track, axis=0)
        turned = rng.random(39) < 0.25
        angle = rng.uniform(0.5, 2 * np.pi - 0.5, 39)
        cos, sin = np.cos(angle), np.sin(angle)
        x, y = steps.T.copy()
        steps[turned] = np.column_stack([cos * x - sin * y, sin * x + cos * y])[turned]
        track[1:] = track[0] + np.cumsum(steps, axis=0)
    found = score(posterior, tracks, reference=known, simulate=False, random_state=0)
    assert np.mean(found.trajectories.p_value <= 0.05) > 0.8


# -- tracks of the fit, left out in turn ----------------------------------------------------------


def test_each_track_is_scored_by_chains_that_have_not_seen_it():
    tracks = [[[0.0, 9.0 * i], [1.0, 9.0 * i], [2.0, 9.0 * i]] for i in range(4)]
    demos = Demonstrations(tracks, names=["a", "b", "c", "d"])
    posterior = fitted(demos, DisplacementDynamics.compass(4), ChineseRestaurant())
    found = leave_out(posterior, random_state=0)
    assert sorted(found.names) == ["a", "b", "c", "d"]
    assert found.steps.trajectory.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    seen = score(posterior, demos, simulate=False, random_state=0)
    assert found.steps.surprise.mean() > seen.steps.surprise.mean()


def test_pieces_of_a_track_are_left_out_together(monkeypatch):
    from onlooker.anomaly import _leave_out

    rng = np.random.default_rng(9)
    demos = Demonstrations(correlated_walks(6, rng), names=["a", "a", "b", "b", "c", "d"])
    fits, sample_from = [], _leave_out._sample_from
    monkeypatch.setattr(
        _leave_out,
        "_sample_from",
        lambda p, d, r: fits.append(set(d.names)) or sample_from(p, d, r),
    )
    posterior = fitted(demos, DisplacementDynamics.compass(4), ChineseRestaurant())
    assert len(leave_out(posterior, random_state=0)) == 6
    assert sorted(map(len, fits)) == [3, 3, 3, 3]


def test_a_run_without_tracks_to_leave_out_is_refused():
    dynamics = DisplacementDynamics.compass(4)
    one = fitted(correlated_walks(1, np.random.default_rng(0)), dynamics, ChineseRestaurant())
    with pytest.raises(ValueError, match="a single trajectory cannot be left out"):
        leave_out(one)
    bare = quick(Problem([0, 1], np.log([[0.9, 0.1]] * 2)), ChineseRestaurant())
    with pytest.raises(ValueError, match="it holds single steps, or no dynamics"):
        leave_out(bare)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["Example 1", "storms", "walks"])
def test_tracks_left_out_in_turn_are_as_odd_as_new_ones(world):
    p_values, n_seeds = [], 3
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, 3])
        dynamics, tracks = WORLDS[world](rng)
        posterior = fitted(tracks(12), dynamics, draws=100, tune=100)
        new = score(posterior, tracks(40), simulate=False, random_state=seed)
        p_values.append(new.conformal_p_values(leave_out(posterior, random_state=seed), "combined"))
    for level in (0.1, 0.3, 0.5):
        assert not_more_than(np.concatenate(p_values), level, n_seeds * 12)
