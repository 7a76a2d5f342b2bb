"""What axes, actions, hyper-parameters and priors are called."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.dynamics.actions import action_names, bearing_name
from onlooker.dynamics.features import (
    Cycle,
    Elapsed,
    Heading,
    PreviousStep,
    day_of_year,
    with_features,
)
from onlooker.findings.names import (
    axis_names,
    coordinate,
    decimals,
    feature_text,
    hyper_prior_words,
    place_text,
    scalar_name,
    short_repr,
)
from onlooker.hyper import Exponential, Scaled
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Potts, Regions


def test_actions_are_named_by_direction_and_speed():
    two = DisplacementDynamics([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], 0.1)
    assert action_names(two, 3) == ["0° 1", "90° 2", "stay"]
    one = DisplacementDynamics.compass(8, stay=True)
    assert action_names(one, 9)[:3] == ["0°", "45°", "90°"]
    assert action_names(one, 9)[-1] == "stay"
    assert action_names(DisplacementDynamics([[0.5], [-2.0]], 0.1), 2) == ["+0.5", "-2"]
    assert action_names(DisplacementDynamics([[1, 0, -1]], 0.1), 1) == ["(+1, +0, -1)"]
    assert action_names(None, 2) == ["action 0", "action 1"]


@pytest.mark.parametrize(
    ("bearing", "told"), [(0, "N"), (45, "NE"), (360, "N"), (-90, "W"), (10, "10°")]
)
def test_bearings_are_points_of_the_compass(bearing, told):
    assert bearing_name(bearing) == told


def test_actions_without_steps_are_named_by_where_they_lead():
    moves = np.array([[0.9, 0.0], [0.0, 0.9], [0.0, 0.0]])
    assert action_names(None, 3, moves) == ["action 0 (E)", "action 1 (N)", "action 2 (stay)"]
    assert action_names(None, 2, np.zeros((2, 3))) == ["action 0", "action 1"]


def test_axes_are_columns_then_features_and_letters_or_numbers_without_columns():
    assert axis_names(["east", "north"], 2, ["speed"]) == ["east", "north", "speed"]
    assert axis_names(None, 2) == ["x", "y"]
    assert axis_names(None, 4) == ["x1", "x2", "x3", "x4"]
    assert axis_names(["only"], 2) == ["x", "y"]


def test_coordinates_have_the_digits_that_tell_states_apart():
    storms, elk = np.array([-70.3, -69.2, -68.4]), np.array([10.12341, 10.12382, 10.12333])
    digits = [decimals(x, np.diff(x)) for x in (storms, elk)]
    assert digits == [2, 5]
    assert [coordinate(-70.3, 2), coordinate(10.12341, 5), coordinate(-0.001, 2)] == [
        "-70.3",
        "10.12341",
        "0",
    ]
    assert decimals(np.array([0.0, 50.0]), np.zeros(3)) == 2  # nothing moves: by the extent


@pytest.mark.parametrize(
    ("name", "values", "on_earth", "words"),
    [
        ("heading", [0.0, 1.0], False, "heading 90°"),
        ("heading", [1.0, 0.0], True, "heading E"),
        ("heading", [0.0, 0.0], True, "no heading yet"),
        ("speed", [42.1234], True, "speed 42.1 km"),
        ("speed", [42.1234], False, "speed 42.1"),
        ("previous step", [1.0, -2.0], False, "previous step 1, -2"),
    ],
)
def test_features_of_a_state_are_said_in_their_own_units(name, values, on_earth, words):
    assert feature_text(name, np.array(values), on_earth) == words


def test_features_have_names():
    dynamics = DisplacementDynamics.compass(4)
    demos = Demonstrations([[[0.0, 0.0], [1.0, 0.0]]], times=[[0.0, 1.0]])
    features = [Heading(1.0), PreviousStep(1.0), Elapsed(1.0), day_of_year(1.0), Cycle(1.0, 7.0)]
    moving = with_features(demos, features, dynamics)[1]
    assert moving.feature_names == [
        *("heading 1", "heading 2", "previous step 1", "previous step 2", "elapsed"),
        *("day of year 1", "day of year 2", "cycle 1", "cycle 2"),
    ]


def test_scalars_of_the_summary_have_words():
    def words(name):
        return scalar_name(
            DistanceDependent(), name, lambda node: f"({node}, 0)", ["left", "right"]
        )

    assert words("nu") == "self-link weight ν"
    assert words("scale") == "length scale of the decay"
    assert words("sigma") == "noise of a step σ"
    assert hyper_prior_words(Scaled(Exponential(2.0), 0.25)) == "exponential, mean 0.5"
    assert words("drift") == "drift"  # a parameter of the user's own dynamics
    assert words("policy[node 3, action 1]") == "probability of right at (3, 0)"


def test_a_place_has_the_digits_that_it_needs_and_on_earth_its_sides():
    assert place_text([4.951, -0.1], [1, 3], geographic=False) == "(5, −0.1)"
    assert place_text([-61.87, 21.86], [1, 1], geographic=True) == "(61.9°W, 21.9°N)"
    assert place_text([360.5, 21.86], [1, 1], geographic=True) == "(0.5°E, 21.9°N)"
    assert place_text([298.13, -21.86, 7.0], [1, 1, 0], geographic=True) == "(61.9°W, 21.9°S, 7)"


def test_a_short_repr_has_what_is_not_default_and_no_array():
    assert short_repr(ChineseRestaurant()) == "ChineseRestaurant()"
    decay = "decay=GaussianDecay(scale=1.0, offset=0.01)"  # in the units of the data: always told
    assert short_repr(DistanceDependent()) == f"DistanceDependent({decay})"
    text = short_repr(Potts(4, decay=GaussianDecay(0.5), coordinates=np.zeros((9, 2))))
    decay = "decay=GaussianDecay(scale=0.5, offset=0.0)"
    assert text == f"Potts(n_clusters=4, {decay}, coordinates=<9×2 array>)"
    text = short_repr(Regions.inferred(1.0175755940279936))
    assert "scale=LogUniform(low=0.508788, high=5.08788), offset=0.0" in text
