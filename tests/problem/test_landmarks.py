"""Landmarks: some states are a chain's nodes, and all others belong to the nearest of them."""

import numpy as np
import pytest
from bare import bare_problem

from onlooker import Posterior, sample
from onlooker.inference.target import Binder, Target
from onlooker.partitions import ChineseRestaurant, DistanceDependent, Regions
from onlooker.problem import Landmarks
from onlooker.worlds import CircularMotion

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")
WORLD = CircularMotion()
DEMOS = WORLD.rollout(6, 20, random_state=0)[0]
NEW = WORLD.rollout(2, 10, random_state=1)[0]


def problem(nodes=Landmarks(40)):  # noqa: B008
    return bare_problem(DEMOS, WORLD.dynamics, nodes=nodes)


def run(nodes=Landmarks(40), prior=None, **options):  # noqa: B008
    prior = Regions.inferred(1.0) if prior is None else prior
    options = {"draws": 6, "tune": 2, "chains": 2, "random_state": 0, "progress": False} | options
    return sample(problem(nodes), prior, **options)


def seen_by(posterior, chain):
    return posterior.problem.for_chain(chain, posterior.prior.geometry)


def test_labels_are_those_of_the_nearest_landmark_and_every_state_has_one():
    posterior = run()
    assert posterior.labels.shape == (2, 6, 120)
    for chain in (0, 1):
        owners = seen_by(posterior, chain).owners
        states = posterior.problem.states
        apart = np.linalg.norm(states[:, None] - states[owners.nodes], axis=2)
        np.testing.assert_array_equal(owners.owner, apart.argmin(axis=1))
        stands_for = owners.nodes[owners.owner]
        for values in (posterior.labels[chain], posterior.regions[chain]):
            np.testing.assert_array_equal(values, values[:, stands_for])


def test_chains_have_landmarks_of_their_own_unless_told_otherwise():
    own, shared = problem(), problem(Landmarks(40, per_chain=False))
    prior = Regions()
    nodes = [own.for_chain(chain, prior.geometry).owners.nodes for chain in (0, 1)]
    assert (nodes[0] != nodes[1]).any()
    nodes = [shared.for_chain(chain, prior.geometry).owners.nodes for chain in (0, 1)]
    np.testing.assert_array_equal(*nodes)
    other = problem(Landmarks(40, seed=1)).for_chain(0, prior.geometry).owners.nodes
    assert (other != nodes[0]).any()


def test_landmarks_of_a_seed_stay_the_same_since_stored_runs_do_not_hold_them():
    chosen = [Landmarks(4, seed=5).choose(20, chain).tolist() for chain in (0, 1)]
    assert chosen == [[4, 6, 10, 11], [0, 6, 15, 16]]
    shared = [Landmarks(4, False, 5).choose(20, chain).tolist() for chain in (0, 1)]
    assert shared == [chosen[0]] * 2


def test_as_many_landmarks_as_states_change_nothing():
    every, visited = run(Landmarks(120)), run("visited")
    np.testing.assert_array_equal(every.labels, visited.labels)
    assert every.problem.landmarks is None


def test_links_of_states_lead_to_states_of_their_cluster():
    posterior = run(prior=DistanceDependent())
    at = np.take_along_axis(posterior.labels, posterior.links.astype(np.int64), axis=2)
    np.testing.assert_array_equal(at, posterior.labels)


def test_transitions_start_where_they_were_seen():
    coarse = problem().for_chain(0, Regions().geometry)
    np.testing.assert_array_equal(coarse.start_states, DEMOS.transitions()[0])


def test_a_stopped_run_goes_on_with_its_landmarks(tmp_path):
    whole = run()
    run(draws=2, store=tmp_path)
    again = run(store=tmp_path, resume=True)
    loaded = Posterior.load(tmp_path)
    for other in (again, loaded):
        np.testing.assert_array_equal(whole.labels, other.labels)
        np.testing.assert_array_equal(whole.policy(NEW.states), other.policy(NEW.states))
    said = r"holds another run \(landmarks: n \(stored: 40, asked: 50\)"
    with pytest.raises(ValueError, match=said):
        run(Landmarks(50), store=tmp_path, resume=True)


def test_each_draw_predicts_by_the_landmarks_of_its_chain():
    posterior = run()
    alone = [posterior.chain(chain).policy(NEW.states) for chain in (0, 1)]
    np.testing.assert_allclose(posterior.policy(NEW.states), np.mean(alone, axis=0))
    low, high = posterior.policy(NEW.states, interval=0.9)[1:]
    assert (low < high).all()


def test_landmarks_need_places():
    with pytest.raises(ValueError, match="Regions"):
        Binder(Target(problem(), ChineseRestaurant()))(0)


def test_landmarks_need_states_that_were_seen():
    with pytest.raises(ValueError, match="not seen exactly"):
        bare_problem(DEMOS, WORLD.dynamics, nodes=Landmarks(9), observation_noise=0.1)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_bad_numbers_are_refused(n):
    with pytest.raises((ValueError, TypeError), match="n must be"):
        Landmarks(n)
