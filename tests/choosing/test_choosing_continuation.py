"""How regions go on is chosen by what is left out."""

from dataclasses import replace

import numpy as np
import pytest

from onlooker import Demonstrations, Problem
from onlooker.choosing import continuation as choosing
from onlooker.choosing.continuation import (
    PLAIN,
    SETTINGS,
    choose_continuation,
    score_settings,
)
from onlooker.hyper import CONCENTRATION
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.partitions import ChineseRestaurant, Continuation, Regions
from onlooker.problem import Landmarks
from onlooker.sampling import short_run
from onlooker.worlds import CircularMotion

WORLD = CircularMotion()
DEMOS = WORLD.rollout(6, 25, random_state=0)[0]
PRIOR = Regions.inferred(1.0)
LOCAL = replace(PRIOR, continuation=PLAIN)
SCHEDULE = Schedule(draws=5, tune=5, chains=2, seed=3)


def make(nodes="visited", demos=DEMOS):
    return Problem.from_demonstrations(demos, WORLD.dynamics, nodes=nodes)


def without(problem, kind):
    rng = np.random.default_rng(0)
    if kind == "cells":
        return next(choosing._without_cells(problem, PRIOR, rng))
    return next(choosing._without_tracks(problem, choosing._tracks(problem), rng))


@pytest.mark.parametrize("kind", ["tracks", "cells"])
@pytest.mark.parametrize(
    ("nodes", "n_neighbors"), [("visited", None), (Landmarks(60), None), (Landmarks(60), 12)]
)
def test_a_setting_scores_what_a_posterior_with_it_says(nodes, n_neighbors, kind):
    problem = make(nodes)
    left = without(problem, kind)
    part = choosing._part(problem, left)
    local = replace(LOCAL, n_neighbors=n_neighbors)
    found = score_settings(problem, left, Target(part, local, CONCENTRATION), SCHEDULE)
    states = problem.states[problem.node_of[left.asked]]
    next_states = problem.next_states[left.asked]
    for number in (0, 37, 101, 250, 479, 500, 719, SETTINGS.index(replace(PLAIN, shrinkage=3.0))):
        prior = replace(local, continuation=SETTINGS[number])
        posterior = short_run(Target(part, prior, CONCENTRATION), SCHEDULE)
        right = posterior.next_state_log_density(states, next_states)
        np.testing.assert_allclose(found[number], right, atol=1e-9)


def test_states_that_are_nodes_score_what_a_posterior_says_of_them():
    problem = make()
    left = without(problem, "tracks")
    left = left._replace(asked=left.transitions[:20])
    part = choosing._part(problem, left)
    found = score_settings(problem, left, Target(part, LOCAL, CONCENTRATION), SCHEDULE)
    for continuation in (PLAIN, replace(PLAIN, shrinkage=3.0)):
        prior = replace(PRIOR, continuation=continuation)
        posterior = short_run(Target(part, prior, CONCENTRATION), SCHEDULE)
        right = posterior.next_state_log_density(
            problem.states[problem.node_of[left.asked]], problem.next_states[left.asked]
        )
        np.testing.assert_allclose(found[SETTINGS.index(continuation)], right, atol=1e-9)


def test_folds_are_whole_tracks_and_pieces_of_a_name_stay_together():
    demos = Demonstrations(list(DEMOS), names=["a", "b", "c", "d", "e", "e"])
    problem = make(demos=demos)
    tracks = choosing._tracks(problem)
    of = np.repeat(tracks, demos.lengths - 1)
    seen = []
    for left in choosing._without_tracks(problem, tracks, np.random.default_rng(0)):
        out, inside = set(of[left.asked].tolist()), set(of[left.transitions].tolist())
        assert not out & inside
        assert out | inside == set(range(5))
        assert not np.isin(problem.node_of[left.asked], left.nodes).any()
        seen += out
    assert sorted(seen) == list(range(5))


def test_cells_are_left_out_whole_and_each_once():
    problem = make()
    asked = []
    for left in choosing._without_cells(problem, PRIOR, np.random.default_rng(0)):
        assert not np.isin(problem.node_of[left.asked], left.nodes).any()
        assert len(left.transitions) + len(left.asked) == problem.n_transitions
        asked += left.asked.tolist()
    assert sorted(asked) == list(range(problem.n_transitions))


def scores_of(mean, spread, n_tracks=10, size=4):
    """One setting's scores of transitions that differ between trajectories by so much."""
    of_track = mean + spread * np.where(np.arange(n_tracks) % 2, 1.0, -1.0)
    return np.repeat(of_track, size)


@pytest.mark.parametrize(("loss", "chosen"), [(0.05, 1), (0.2, 0)])
def test_cells_decide_only_among_settings_that_lose_nothing_on_trajectories(loss, chosen):
    """The standard error of the loss is 0.3 / √9 = 0.1."""
    by_tracks = np.array([scores_of(0.0, 0.0), scores_of(-loss, 0.3), scores_of(-9.0, 0.0)])
    by_cells = np.array([[0.0, 0.0], [1.0, 1.0], [50.0, 50.0]])
    track = np.repeat(np.arange(10), 4)
    assert choosing.best_setting(by_tracks, track, by_cells) == chosen


def test_the_sum_of_both_scores_decides_among_them():
    by_tracks = np.array([scores_of(0.0, 0.0), scores_of(-0.05, 0.3)])
    track = np.repeat(np.arange(10), 4)
    assert choosing.best_setting(by_tracks, track, np.array([[0.0], [0.04]])) == 0
    assert choosing.best_setting(by_tracks, track, np.array([[0.0], [0.06]])) == 1


@pytest.mark.parametrize(("prior", "demos"), [(PRIOR, DEMOS[:4]), (ChineseRestaurant(1.0), DEMOS)])
def test_nothing_is_chosen_from_few_tracks_or_for_other_priors(prior, demos):
    chosen = choose_continuation(make(demos=demos), prior, 1.0)
    assert chosen == (Continuation(), "")


def test_the_same_seed_chooses_the_same_and_says_what():
    problem = make(Landmarks(60))
    first, second = (
        choose_continuation(problem, PRIOR, CONCENTRATION, seed=1, n_jobs=n) for n in (1, 2)
    )
    assert first == second
    assert first.continuation in SETTINGS
    assert first.note.startswith("Prediction at unseen states")
