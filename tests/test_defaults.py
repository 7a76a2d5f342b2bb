"""What the default model chooses from the tracks."""

import inspect

import numpy as np
import pytest

from onlooker import Demonstrations, PolicyRecognizer, Problem, defaults, sample
from onlooker.choosing import continuation
from onlooker.cli.fit import fit
from onlooker.defaults import (
    WITH_LANDMARKS,
    WITH_MANY_TRANSITIONS,
    Sizes,
    default_model,
    default_nodes,
    default_prior,
    default_sizes,
    settings_from,
)
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import (
    ChineseRestaurant,
    Continuation,
    DistanceDependent,
    Mixing,
    Regions,
)
from onlooker.problem import Landmarks
from onlooker.worlds import CircularMotion

COMPASS = DisplacementDynamics.compass(8)
MANY = Demonstrations(list(np.random.default_rng(0).normal(size=(4, 600, 2)).cumsum(axis=1)))
WORLD = CircularMotion()


def test_many_states_get_landmarks_and_more_and_shorter_chains():
    nodes = default_nodes(MANY, Regions(), seed=5)
    assert nodes == Landmarks(1200, per_chain=True, seed=5)
    problem = Problem.from_demonstrations(MANY[:1], COMPASS, nodes=Landmarks(100))
    assert default_sizes(problem) == WITH_LANDMARKS
    few = Problem.from_demonstrations(MANY[:1], COMPASS)
    assert default_sizes(few) == Sizes(4, 500, 1000)


def test_many_transitions_get_fewer_sweeps_and_less_is_left_out(monkeypatch):
    few = Problem.from_demonstrations(MANY[:1], COMPASS)
    many = Problem.from_demonstrations(MANY[:1], COMPASS, nodes=Landmarks(100))
    assert [continuation._few(problem, 5) for problem in (few, many)] == [5, 2]
    for module in (continuation, defaults):
        monkeypatch.setattr(module, "MANY_TRANSITIONS", many.n_transitions)
    assert default_sizes(many) == WITH_MANY_TRANSITIONS
    assert default_sizes(few) == Sizes()
    assert [continuation._few(problem, 5) for problem in (few, many)] == [5, 1]


def test_what_is_not_said_means_the_same_everywhere():
    asked = inspect.signature(sample).parameters
    sizes = Sizes(*(asked[name].default for name in Sizes._fields))
    assert sizes == default_sizes(Problem.from_demonstrations(MANY[:1], COMPASS))
    for option in fit.params:
        if option.name in Sizes._fields:
            assert f"[default: {asked[option.name].default}]" in option.help
    shared = inspect.signature(PolicyRecognizer).parameters
    given = {name for name in shared.keys() & asked.keys() if shared[name].default is not None}
    assert given == {"collapsed", "thin", "progress", "resume", "max_minutes"}
    for name in given - {"progress"}:
        assert shared[name].default == asked[name].default, name


@pytest.mark.parametrize(
    ("demos", "prior"),
    [
        (MANY[:3], Regions()),
        (MANY, DistanceDependent()),
        (MANY.hide(0.1, random_state=0), Regions()),
    ],
)
def test_all_states_are_nodes_where_they_are_few_or_landmarks_mean_nothing(demos, prior):
    assert default_nodes(demos, prior, seed=0) == "visited"


def test_how_regions_go_on_is_chosen_with_the_prior_and_never_for_one_that_is_given():
    demos = WORLD.rollout(6, 12, random_state=0)[0]
    chosen = default_model(demos, WORLD.dynamics, repertoire=None)
    assert isinstance(chosen.prior, Regions)
    assert chosen.concentration == CONCENTRATION
    assert any(note.startswith("Prediction at unseen states") for note in chosen.notes)
    few = default_model(demos[:4], WORLD.dynamics)
    assert few.prior.continuation == Continuation()
    given = default_model(demos, WORLD.dynamics, prior=Regions.inferred(1.0))
    assert given.prior.continuation == Continuation()
    assert (given.notes, given.chains, given.tune, given.draws) == ([], 4, 500, 1000)


def test_what_is_given_of_the_sizes_is_kept():
    given = {"chains": 2, "tune": 7, "draws": 9}
    demos = WORLD.rollout(2, 6, random_state=0)[0]
    made = default_model(demos, WORLD.dynamics, **given)
    assert {name: getattr(made, name) for name in given} == given


def test_links_go_to_the_nearest_states_only_where_there_are_many(monkeypatch):
    few = settings_from(DistanceDependent, MANY, COMPASS)
    assert "n_neighbors" not in few
    assert few["reassign"] == 1
    assert few["metric"] == "euclidean"
    steps = np.diff(MANY.states, axis=0)
    assert 0.5 < few["decay"].scale / np.median(np.hypot(*steps.T)) < 2
    monkeypatch.setattr(defaults, "_MANY", len(MANY.distinct()[0]) - 1)
    many = settings_from(DistanceDependent, MANY, COMPASS)
    assert (many["n_neighbors"], many["reassign"]) == (100, 0)
    matrix = np.ones((5, 5))
    assert "n_neighbors" not in settings_from(DistanceDependent, MANY, COMPASS, matrix)
    monkeypatch.setattr(defaults, "_MANY", len(MANY.distinct()[0]))
    assert "n_neighbors" not in settings_from(DistanceDependent, MANY, COMPASS)


def test_landmarks_are_told_of_and_noise_has_none():
    prior = Regions.inferred(1.0)
    made = default_model(MANY, COMPASS, prior=prior, seed=3)
    assert made.problem.landmarks == Landmarks(1200, per_chain=True, seed=3)
    assert made.notes == [
        "2,400 distinct states are many: each chain draws 1,200 of them at random, as landmarks "
        "that stand for the states around them."
    ]
    assert (made.chains, made.tune, made.draws) == tuple(WITH_LANDMARKS)
    noisy = default_model(MANY[:1], COMPASS, prior=prior, observation_noise=0.1)
    assert noisy.problem.landmarks is None
    assert default_model(MANY, COMPASS, prior=prior, nodes="visited").problem.landmarks is None


def test_all_states_of_a_finite_space_are_nodes_where_some_were_not_seen():
    seen = Demonstrations([[0, 1, 2, 3]])
    assert default_nodes(seen, Regions(), 0) == "visited"
    for prior in (Regions(), DistanceDependent()):
        assert default_nodes(seen.hide(0.5, random_state=1), prior, 0) == "all"


def test_where_states_have_no_place_the_prior_has_none(monkeypatch):
    monkeypatch.setattr(defaults, "distances", lambda demos, dynamics: None)
    prior = default_prior(MANY, COMPASS)
    assert isinstance(prior, ChineseRestaurant)
    assert prior.concentration == defaults.SHARING
    assert isinstance(default_prior(MANY, COMPASS, "euclidean"), Regions)
    assert "metric" not in settings_from(DistanceDependent, MANY, COMPASS)
    assert settings_from(Mixing, MANY, COMPASS) == {
        "n_clusters": defaults.CLUSTERS,
        "concentration": defaults.SHARING,
    }
