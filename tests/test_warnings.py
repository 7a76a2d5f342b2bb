"""Warnings where data and model are likely not what was meant, and silence where they are."""

import warnings

import numpy as np
import pytest
from bare import bare_problem

from onlooker import Demonstrations, Problem
from onlooker.dynamics import DisplacementDynamics
from onlooker.partitions import DistanceDependent, GaussianDecay, Potts
from onlooker.warnings import DynamicsMisfitWarning, GeometryWarning
from onlooker.worlds import CircularMotion, GridWorld

WORLD = CircularMotion()
DEMOS, _ = WORLD.rollout(5, 40, random_state=0)
METRES = Demonstrations([250.0 * track for track in DEMOS])


def test_steps_that_no_action_explains_are_told_of_at_the_line_of_the_user():
    with pytest.warns(DynamicsMisfitWarning, match="sigma from what any action does") as told:
        bare_problem(METRES, WORLD.dynamics)
    assert told[0].filename == __file__


@pytest.mark.parametrize("prior", [DistanceDependent(), Potts(3)], ids=["ddcrp", "potts"])
def test_a_decay_in_other_units_is_told_of_with_one_that_fits(prior):
    dynamics = DisplacementDynamics.compass(24, step=250.0, sigma=50.0)
    problem = bare_problem(METRES, dynamics)
    with pytest.warns(GeometryWarning, match=r"decay=GaussianDecay\(1\.9e\+02"):
        prior.bind(problem)


@pytest.mark.parametrize("prior", [DistanceDependent(), Potts(3)], ids=["ddcrp", "potts"])
def test_integer_states_without_coordinates_are_told_of(prior):
    world = GridWorld(5)
    demos, _ = world.rollout(20, 5, random_state=0)
    with pytest.warns(GeometryWarning, match="integer states without coordinates"):
        prior.bind(bare_problem(demos, world.dynamics))


def test_the_papers_examples_give_no_cause_for_doubt():
    grid = GridWorld(5)
    demos, _ = grid.rollout(20, 5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DistanceDependent().bind(bare_problem(DEMOS, WORLD.dynamics))
        problem = bare_problem(demos, grid.dynamics, nodes="all")
        DistanceDependent(coordinates=grid.coordinates).bind(problem)
        Potts(3, metric=np.ones((25, 25)) - np.eye(25)).bind(problem)
        DistanceDependent(decay=GaussianDecay(2.0), coordinates=np.arange(25)).bind(problem)


def test_the_directions_of_a_compass_are_known():
    assert DisplacementDynamics.compass(4).angles == pytest.approx(np.pi / 2 * np.arange(4))
    with pytest.raises(ValueError, match="angles are for the plane"):
        _ = DisplacementDynamics([[1.0], [-1.0]], 0.1).angles


def test_the_obvious_wrong_call_names_the_right_one():
    with pytest.raises(TypeError, match="from_demonstrations"):
        Problem(DEMOS, WORLD.dynamics)
