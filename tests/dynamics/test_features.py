"""Features beside the position: what is derived from tracks, and what simulations make of it."""

import doctest
import math

import numpy as np
import pytest
from bare import bare_problem

import onlooker.dynamics.features
from onlooker import Demonstrations, sample
from onlooker.dynamics import DisplacementDynamics, Dynamics, GeographicDynamics
from onlooker.dynamics.features import (
    Cycle,
    Elapsed,
    Heading,
    PreviousStep,
    Speed,
    day_of_year,
    time_of_day,
    with_features,
)
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.warnings import ConvergenceWarning

TRACKS = [
    np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 2.0]]),
    np.array([[10.0, 0.0], [9.0, 0.0]]),
]
COMPASS = DisplacementDynamics.compass(4, step=1.0, sigma=0.5)
HOURS = [np.array([0.0, 6.0, 12.0, 18.0]), np.array([30.0, 36.0])]
ALL = [Heading(2.0), Speed(0.5, 0.1), PreviousStep(3.0), Elapsed(0.1), Cycle(5.0, period=24.0)]


def timed():
    return Demonstrations(TRACKS, times=HOURS, names=["a", "b"])


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(onlooker.dynamics.features).failed == 0


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Heading(2.0), [[0, 0], [1.2, 1.6], [0, 0], [0, -2], [0, 0], [-2, 0]]),
        (Speed(0.5), [[0], [2.5], [0], [1], [0], [0.5]]),
        (Speed(0.5, 2.0), 0.5 * np.log([[1], [3.5], [1], [2], [1], [1.5]])),
        (PreviousStep(3.0), [[0, 0], [9, 12], [0, 0], [0, -6], [0, 0], [-3, 0]]),
        (Elapsed(0.1), [[0], [0.6], [1.2], [1.8], [0], [0.6]]),
        (
            Cycle(5.0, period=24.0),
            [[5, 0], [0, 5], [-5, 0], [0, -5], [0, 5], [-5, 0]],
        ),
    ],
)
def test_a_feature_is_what_its_name_says(feature, expected):
    demos, _ = with_features(timed(), [feature], COMPASS)
    np.testing.assert_array_equal(demos.states[:, :2], np.concatenate(TRACKS))
    np.testing.assert_allclose(demos.states[:, 2:], expected, atol=1e-12)


@pytest.mark.parametrize("unit", [None, 0.1, 2.0])
def test_a_speed_is_said_as_the_length_of_the_step_also_where_its_logarithm_counts(unit):
    feature = Speed(0.5, unit)
    demos, _ = with_features(timed(), [feature], COMPASS)
    name, lengths = feature.in_words(demos.states[:, 2:])
    assert name == "speed"
    np.testing.assert_allclose(lengths.ravel(), [0, 5, 0, 2, 0, 1], atol=1e-12)
    assert Heading(2.0).in_words(np.array([0.0, 2.0]))[1].tolist() == [0.0, 1.0]


def test_names_times_and_lengths_stay():
    demos, dynamics = with_features(timed(), ALL, COMPASS)
    assert demos.names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(demos.times, np.concatenate(HOURS))
    np.testing.assert_array_equal(demos.lengths, [4, 2])
    assert demos.n_dims == dynamics.n_dims == 2 + 2 + 1 + 2 + 1 + 2


def test_elapsed_counts_steps_where_no_times_are_known():
    demos, dynamics = with_features(TRACKS, [Elapsed(1.0)], COMPASS)
    assert demos.states[:, 2].tolist() == [0, 1, 2, 3, 0, 1]
    assert dynamics.interval == 1.0


def test_dates_tell_the_hour_and_the_season():
    dates = np.array(["1999-01-01T06:00", "1999-07-02T18:00"], dtype="datetime64[s]")
    demos = Demonstrations([[[0.0, 0.0], [1.0, 0.0]]], times=[dates])
    states = with_features(demos, [time_of_day(1.0), day_of_year(1.0)], COMPASS)[0].states
    np.testing.assert_allclose(states[:, 2:4], [[0, 1], [0, -1]], atol=1e-9)
    angle = np.degrees(np.arctan2(states[:, 5], states[:, 4]))
    assert angle[0] == pytest.approx(0, abs=1.5)  # the first of January, to a day or so
    assert abs(angle[1]) == pytest.approx(180, abs=1.5)


def test_the_likelihood_is_that_of_the_positions():
    demos, dynamics = with_features(timed(), ALL, COMPASS)
    plain = COMPASS.log_likelihood(*Demonstrations(TRACKS).transitions())
    np.testing.assert_array_equal(dynamics.log_likelihood(*demos.transitions()), plain)
    np.testing.assert_array_equal(dynamics.misfit(plain), COMPASS.misfit(plain))
    assert isinstance(dynamics, Dynamics)
    assert not hasattr(dynamics, "n_states")
    np.testing.assert_array_equal(dynamics.positions(demos.states), np.concatenate(TRACKS))


def test_what_is_simulated_has_the_features_that_would_be_derived_from_it():
    _, dynamics = with_features(timed(), ALL, COMPASS)
    rng = np.random.default_rng(0)
    states = [dynamics.join([[5.0, 5.0]], times=[30.0])]
    for _ in range(6):
        states.append(dynamics.sample(states[-1], rng.integers(4, size=1), rng))
    track = np.concatenate(states)
    times = 30.0 + dynamics.interval * np.arange(7)
    derived, _ = with_features(Demonstrations([track[:, :2]], times=[times]), ALL, COMPASS)
    np.testing.assert_allclose(track, derived.states, atol=1e-9)


def test_steps_over_the_earth_are_measured_in_km():
    track = [[179.5, 60.0], [-179.5, 60.0]]
    dynamics = GeographicDynamics.compass(4, step=50.0, sigma=10.0)
    states = with_features([track], [Speed(1.0), Heading(1.0)], dynamics)[0].states
    assert states[1, 2] == pytest.approx(55.6, abs=0.1)
    assert states[1, 3] == pytest.approx(math.cos(math.radians(0.433)), abs=1e-4)


def test_heading_tells_two_ways_through_one_place_apart():
    """Half of the tracks cross a place to the east, half to the west; each goes on as it came."""
    rng = np.random.default_rng(0)
    tracks = []
    for sign in (1, -1) * 10:
        x = sign * np.arange(-4, 5) + rng.normal(0, 0.05, 9)
        tracks.append(np.column_stack([x, rng.normal(0, 0.05, 9)]))
    compass = DisplacementDynamics.compass(4, step=1.0, sigma=0.2)
    demos, dynamics = with_features(tracks, [Heading(10.0)], compass)
    options = {"draws": 20, "tune": 30, "chains": 1, "progress": False, "random_state": 0}
    prior = DistanceDependent(decay=GaussianDecay(3.0, 0.001))
    with pytest.warns(ConvergenceWarning):
        blind = sample(bare_problem(Demonstrations(tracks), compass), prior, **options)
    with pytest.warns(ConvergenceWarning):
        seeing = sample(bare_problem(demos, dynamics), prior, **options)
    east = dynamics.join([[0.1, 0.0]], moves=[[1.0, 0.0]])
    west = dynamics.join([[0.1, 0.0]], moves=[[-1.0, 0.0]])
    assert seeing.policy(east)[0, 0] > 0.9
    assert seeing.policy(west)[0, 2] > 0.9
    assert blind.policy([[0.1, 0.0]])[0].max() < 0.7
    gone = seeing.rollout(np.vstack([east, west]), 5, random_state=0)
    assert gone[0][-1, 0] > 2
    assert gone[1][-1, 0] < -2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: with_features(TRACKS, ["heading"], COMPASS), TypeError, r"features\[0\] must be"),
        (lambda: with_features([[0, 1, 2]], [Heading(1.0)], COMPASS), ValueError, "integers"),
        (lambda: with_features(TRACKS, [day_of_year(1.0)], COMPASS), ValueError, "needs the times"),
        (lambda: Heading(0.0), ValueError, "weight must be finite and above 0"),
        (lambda: Cycle(1.0, period=-3.0), ValueError, "period must be"),
        (
            lambda: with_features(TRACKS, [Speed(1.0)], COMPASS)[1].log_likelihood(
                np.zeros((1, 2)), np.zeros((1, 2))
            ),
            ValueError,
            r"states must be \(n, 3\), 2 of position and 1 of features",
        ),
        (
            lambda: with_features(TRACKS, [Speed(1.0)], COMPASS)[1].join(
                [[0.0, 0.0]], times=[1, 2]
            ),
            ValueError,
            r"times must have shape \(1,\)",
        ),
    ],
)
def test_what_makes_no_feature_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
