"""Actions proposed from tracks, against tracks whose actions are known."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.dynamics.proposal import directions

propose = DisplacementDynamics.from_demonstrations


def tracks_of(steps):
    """One track that makes these steps."""
    steps = np.asarray(steps, dtype=float)
    return Demonstrations([np.vstack([np.zeros(steps.shape[1]), np.cumsum(steps, axis=0)])])


def noisy(n, n_dims, lengths, sigma, seed=0, still=0.0, n_directions=12):
    """Steps in random directions of a codebook, with speeds in equal shares and some stays."""
    rng = np.random.default_rng(seed)
    units = directions(n_directions, n_dims)
    length = rng.choice(lengths, n) * (rng.random(n) >= still)
    steps = length[:, None] * units[rng.integers(len(units), size=n)]
    return steps + rng.normal(0, 1, steps.shape) * np.where(length, length * sigma, 0.02)[:, None]


def propose_for(steps, *args, **options):
    """The proposal for one track that makes these steps, and what it explains."""
    demos = tracks_of(steps)
    dynamics = propose(demos, *args, **options)
    return dynamics, dynamics.coverage(demos)


def speeds(dynamics):
    return np.unique(np.linalg.norm(dynamics.steps, axis=1).round(9))


# -- what is found ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("noise", ["estimate", "resolution"])
def test_two_speeds_and_a_stay_are_found_in_any_dimension(n_dims, noise):
    steps = noisy(1500, n_dims, [1.0, 3.0], 0.08, still=0.2)
    found, coverage = propose_for(steps, n_directions=12, noise=noise)
    expected = {1: 5, 2: 25, 3: 25}[n_dims]
    assert found.n_actions == expected
    assert found.n_dims == n_dims
    np.testing.assert_allclose(speeds(found), [0, 1, 3], rtol=0.04, atol=0.02)
    assert not found.steps[-1].any()
    assert coverage.share > 0.99


def test_directions_are_evenly_spread():
    np.testing.assert_allclose(directions(4, 2), [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-12)
    assert directions(9, 1).tolist() == [[1.0], [-1.0]]
    sphere = directions(200, 3)
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 1.0)
    apart = np.linalg.norm(sphere[:, None] - sphere[None], axis=2) + 9 * np.eye(200)
    nearest = apart.min(axis=1)
    assert nearest.min() > 0.75 * nearest.max()
    assert np.abs(sphere.mean(axis=0)).max() < 0.01


@pytest.mark.parametrize("sigma", [0.12, 0.2])
def test_noise_is_estimated_from_the_tracks(sigma):
    rng = np.random.default_rng(1)
    angle = 2 * np.pi * rng.integers(16, size=3000) / 16
    steps = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, sigma, (3000, 2))
    found = propose(tracks_of(steps))
    assert found.n_actions == 16  # one speed, although two were allowed; nobody stands still
    assert speeds(found)[0] == pytest.approx(1.0, abs=0.03)
    assert np.max(found.sigma) == pytest.approx(sigma, rel=0.08)


def test_each_speed_has_its_own_noise():
    slow, fast = noisy(1500, 2, [1.0], 0.2, n_directions=8), noisy(1500, 2, [5.0], 0.06, seed=1)
    found = propose(tracks_of(np.vstack([slow, fast])), n_directions=8, stay=False)
    assert found.sigma[0] == pytest.approx(0.2, rel=0.15)
    assert found.sigma[8] == pytest.approx(5 * 0.2, rel=0.4)  # 12 directions seen through 8
    finer = propose(tracks_of(np.vstack([slow, fast])), n_directions=24, stay=False)
    assert finer.sigma[24] == pytest.approx(0.3, rel=0.15)


def test_resolution_takes_no_scatter_for_noise_that_the_actions_resolve():
    rng = np.random.default_rng(0)
    length, angle = np.exp(rng.normal(0, 0.6, 4000)), rng.uniform(0, 2 * np.pi, 4000)
    demos = tracks_of(length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
    sharp = propose(demos, 16, 4, noise="resolution")
    smooth = propose(demos, 16, 4, noise="estimate")
    relative = sharp.sigma[:64] / np.linalg.norm(sharp.steps[:64], axis=1)
    assert relative.max() < 0.2
    assert np.median(sharp.sigma) < 0.7 * np.median(smooth.sigma)
    assert smooth.coverage(demos).share > 0.99
    assert sharp.coverage(demos).share > 0.97


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
def test_neighbouring_directions_overlap_however_exact_the_tracks_are(noise):
    steps = np.tile([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], (20, 1))
    found, coverage = propose_for(steps, n_directions=8, noise=noise)
    assert speeds(found) == pytest.approx([1.0])
    between = [[np.cos(np.pi / 8), np.sin(np.pi / 8)]]
    loglik = found.log_likelihood([[0.0, 0.0]], between)
    assert found.misfit(loglik)[0] <= 3.0 + 1e-9
    assert coverage.share == 1.0


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
def test_a_few_wild_jumps_change_nothing_and_are_named(noise):
    steps = noisy(1000, 2, [1.0], 0.1, n_directions=16)
    calm = propose(tracks_of(steps), n_speeds=1, noise=noise)
    steps[[17, 400]] = [[500.0, 3.0], [-2e5, 9e5]]
    found, coverage = propose_for(steps, n_speeds=1, noise=noise)
    np.testing.assert_allclose(found.steps, calm.steps, atol=0.02)
    np.testing.assert_allclose(found.sigma, calm.sigma, rtol=0.05)
    assert set(coverage.unexplained) >= {17, 400}
    assert coverage.share > 0.98


def test_a_jump_beyond_all_numbers_does_no_harm():
    steps = noisy(200, 1, [1.0], 0.1)
    track = np.concatenate([[0.0], np.cumsum(steps)])
    demos = Demonstrations([track, [0.0, 1e307]])
    assert 200 in propose(demos).coverage(demos).unexplained


def test_tracks_that_stand_still_among_others_give_a_stay():
    moving = noisy(300, 2, [2.0], 0.1, n_directions=8)
    parked = np.full((40, 2), 5.0)
    demos = Demonstrations([tracks_of(moving)[0], parked])
    found = propose(demos, n_directions=8, n_speeds=1)
    assert not found.steps[-1].any()
    coverage = found.coverage(demos)
    assert coverage.share == 1.0
    assert coverage.usage[-1] == pytest.approx(39 / 339, abs=0.01)
    without = propose(demos, n_directions=8, n_speeds=1, stay=False)
    assert without.n_actions == 8


def test_a_stay_is_left_out_unless_tracks_stand_still_or_it_is_asked_for():
    demos = tracks_of(noisy(300, 2, [2.0], 0.05))
    assert propose(demos, 8, 1).n_actions == 8
    asked = propose(demos, 8, 1, stay=True)
    assert asked.n_actions == 9
    assert not asked.steps[-1].any()


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
def test_dimensions_of_different_units_are_scaled(noise):
    steps = noisy(1500, 2, [1.0], 0.1, n_directions=8)
    plain = propose(tracks_of(steps), 8, 1, noise=noise)
    unit = np.array([1.0, 1e-3])
    scaled = propose(tracks_of(steps * unit), 8, 1, noise=noise, scale=unit)
    np.testing.assert_allclose(scaled.steps, plain.steps * unit, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaled.sigma, np.outer(plain.sigma, unit), rtol=1e-6)
    guessed, coverage = propose_for(steps * unit, 8, 1, noise=noise, scale="spread")
    assert coverage.share > 0.99
    ratio = np.abs(guessed.steps).max(axis=0)
    assert ratio[0] / ratio[1] == pytest.approx(1000, rel=0.2)


def test_a_given_sigma_is_kept():
    demos = tracks_of(noisy(300, 2, [1.0], 0.1))
    assert propose(demos, 8, 1, sigma=0.33).sigma == 0.33


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
@pytest.mark.parametrize("unit", [1000.0, 1e-200, 1e140])
def test_what_is_proposed_does_not_depend_on_the_unit(unit, noise):
    steps = noisy(600, 2, [1.0, 2.5], 0.1)
    one = propose(tracks_of(steps), noise=noise)
    other = propose(tracks_of(unit * steps), noise=noise)
    np.testing.assert_allclose(other.steps / unit, one.steps, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.sigma / unit, one.sigma, rtol=1e-6)


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
def test_a_little_movement_among_much_parking_is_seen(noise):
    moves = np.random.default_rng(0).normal([2.0, 0.0], 0.1, (20, 2))
    demos = tracks_of(np.vstack([np.zeros((500, 2)), moves]))
    found = propose(demos, n_speeds=1, noise=noise)
    np.testing.assert_allclose(speeds(found), [0, 2], rtol=0.05)
    assert np.max(found.sigma) < 0.3


@pytest.mark.parametrize("noise", ["estimate", "resolution"])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_a_single_step_is_enough(n_dims, noise):
    _, coverage = propose_for(np.eye(n_dims)[:1], noise=noise)
    assert coverage.share == 1.0


def test_an_even_sample_of_many_steps_is_enough(monkeypatch):
    from onlooker.dynamics import proposal

    demos = tracks_of(noisy(4000, 2, [1.0, 3.0], 0.1))
    whole = propose(demos, 12)
    monkeypatch.setattr(proposal, "_MAX_STEPS", 800)
    np.testing.assert_allclose(speeds(propose(demos, 12)), speeds(whole), rtol=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: propose([[0, 1, 2]]), "not for integer states"),
        (lambda: propose([np.eye(4)]), "1 to 3 dimensions, not for states of dimension 4"),
        (lambda: propose([np.ones((5, 2))]), "every step of the demonstrations stands still"),
        (lambda: propose([np.eye(2)], 0), "n_directions must be at least 1"),
        (lambda: propose([np.eye(2)], 4, 0), "n_speeds must be at least 1"),
        (lambda: propose([np.eye(2)], stay="maybe"), "stay must be one of True, False, 'auto'"),
        (
            lambda: propose([np.eye(2)], noise="loud"),
            "noise must be one of 'estimate', 'resolution'",
        ),
        (lambda: propose([np.eye(2)], scale="auto"), "scale must be None, 'spread' or 2 numbers"),
        (lambda: propose([np.eye(2)], scale=[1.0, 0.0]), "scale must be 2 numbers above 0"),
        (lambda: propose([np.eye(2)], sigma=-1.0), "sigma must be finite and above 0"),
    ],
)
def test_what_cannot_be_proposed_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
