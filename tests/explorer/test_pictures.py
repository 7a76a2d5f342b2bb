"""Goals and directions of controllers, as the page draws them."""

import json

import numpy as np
import pytest
from pictured_runs import store_run
from small_runs import ring_dynamics

from onlooker import Problem
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.explorer.overview import overview
from onlooker.explorer.pictures import picture
from onlooker.explorer.run import read
from onlooker.repertoire import Behaviour
from onlooker.repertoire.base import Merged
from onlooker.repertoire.making import make_policies


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    path = tmp_path_factory.mktemp("goals") / "run"
    store_run("goals", path)
    view = read(path)[1]
    for _ in view.refine():
        pass
    return view


def test_a_goal_lies_where_its_state_does(view):
    problem, space = view.posterior.problem, view.space
    at = problem.behaviours.index("heads for state 24")
    (goal,) = picture(view, at)["goals"]
    np.testing.assert_array_equal(goal, space.sites[np.flatnonzero(space.states == 24)[0]])


def test_actions_and_blurs_are_drawn_as_their_actions(view):
    names = view.posterior.problem.behaviours
    assert picture(view, names.index("E")) == {"actions": [0]}
    assert picture(view, names.index("E ± 1")) == {"actions": [0, 1, 7]}


def test_every_controller_of_the_page_says_what_it_does(view):
    page = json.loads(json.dumps(overview(view)))
    names = view.posterior.problem.behaviours
    for one in page["controllers"]:
        assert one["behaviours"]
        for done in one["behaviours"]:
            assert names[done["behaviour"]] == done["name"]
            assert 0 <= done["low"] <= done["high"] <= 1 + 1e-9
    assert "heading for a place" in page["kinds"]


def test_behaviours_in_space_and_those_of_ones_own():
    track = np.random.default_rng(0).normal(0.5, 0.4, (12, 2)).cumsum(axis=0)
    compass = DisplacementDynamics.compass(4, sigma=0.5)
    demos = Demonstrations([track])
    policies = Problem.from_demonstrations(demos, compass).policies
    at = next(k for k, name in enumerate(policies.names) if name.startswith("heads for"))
    np.testing.assert_allclose(policies.picture(at).goals, track[-1:])
    own = Behaviour("any", lambda states: np.full((len(states), 4), 0.25))
    assert make_policies([own], compass, demos).picture(0) is None


def test_goals_that_look_the_same_are_drawn_together():
    problem = Problem.from_demonstrations([[0, 1, 2, 1]], ring_dynamics(18))
    (part,) = [one for one in problem.policies.parts if isinstance(one.block, Merged)]
    together = int(np.bincount(part.block.group).argmax())
    found = part.block.picture(together).goals
    np.testing.assert_array_equal(found, np.flatnonzero(part.block.group == together))
