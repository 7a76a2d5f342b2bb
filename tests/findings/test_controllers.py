"""Regions and controllers in numbers: where they are, and what is done there."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_runs import made_up, plane_problem

from onlooker.findings import controllers
from onlooker.findings.opened import OpenedRun
from onlooker.partitions import Mixing


def stub(states, *, n_position=2, geographic=False, discrete=False):
    problem = SimpleNamespace(states=np.asarray(states, dtype=float))
    return SimpleNamespace(
        is_discrete=discrete,
        geographic=geographic,
        n_position=n_position,
        posterior=SimpleNamespace(problem=problem),
    )


def test_the_center_is_a_state_in_the_midst_whatever_the_units_of_an_axis():
    # by the second axis, of thousandths, the last but one is in the midst; by the first none is
    states = [[0, 0.000], [3, 0.001], [6, 0.009], [7, 0.002], [10, 0.002]]
    assert controllers._center(stub(states), np.arange(5)) == [7, 0.002]
    assert controllers._center(stub(states), np.array([0, 1])) == [0, 0]  # of equals the first
    flat = [[1, 5], [2, 5], [9, 5]]  # no spread along an axis
    assert controllers._center(stub(flat), np.arange(3)) == [2, 5]


def test_the_center_counts_positions_only_and_knows_no_date_line():
    with_heading = [[0, 0, 9], [1, 0, -9], [2, 0, 9]]
    assert controllers._center(stub(with_heading), np.arange(3)) == [1, 0]
    over = [[178, 10], [-179, 10], [-176, 10]]
    assert controllers._center(stub(over, geographic=True), np.arange(3)) == [-179, 10]
    assert controllers._center(stub(over, discrete=True), np.arange(3)) is None


def test_numbers_of_controllers_are_counted_the_likeliest_first():
    drawn = np.array([[3, 4, 4], [5, 4, 3]])
    run = SimpleNamespace(posterior=SimpleNamespace(n_controllers=drawn))
    found = controllers.n_controllers(run)
    assert [one["number"] for one in found] == [4, 3, 5]
    assert [one["probability"] for one in found] == pytest.approx([3 / 6, 2 / 6, 1 / 6])


@pytest.fixture(scope="module")
def run():
    return OpenedRun.of(made_up(plane_problem(), Mixing(3)))


def test_regions_are_the_clusters_with_a_step_and_their_mean_policy_over_visits(run):
    posterior = run.posterior
    labels, policy, visits = posterior.partition(), posterior.policy(), run.visits
    np.testing.assert_array_equal(visits, np.bincount(posterior.problem.node_of, minlength=15))
    found = controllers.regions(run)
    assert [one["controller"] - 1 for one in found] == sorted(set(labels[visits > 0].tolist()))
    assert sum(one["transitions"] for one in found) == posterior.problem.n_transitions
    for one in found:
        mine = labels == one["controller"] - 1
        assert one["states"] == mine.sum()
        assert one["transitions"] == visits[mine].sum()
        mean = (visits[mine] @ policy[mine]) / visits[mine].sum()
        likely = [action["action"] for action in one["actions"]]
        assert likely == np.argsort(-mean, kind="stable")[:3].tolist()
        for action in one["actions"]:
            assert action["probability"] == pytest.approx(mean[action["action"]])
            assert action["name"] == run.action_names[action["action"]]


def test_controllers_are_described_the_largest_first_with_intervals_around_their_means(run):
    posterior = run.posterior
    labels, visits, policy = posterior.partition(), run.visits, posterior.policy()
    membership = np.linspace(0.1, 1.0, len(labels))
    found = controllers.controllers(run, labels, membership)
    sizes = np.bincount(labels)
    assert [one.n_nodes for one in found] == sorted(sizes.tolist(), reverse=True)
    for one in found:
        mine = labels == one.number
        assert one.n_nodes == mine.sum()
        assert one.n_transitions == visits[mine].sum()
        assert one.certainty == pytest.approx(membership[mine].mean())
        assert one.mean.sum() == pytest.approx(1)
        assert (one.low <= one.high).all()
        if visits[mine].sum() > 0:
            mean = visits[mine] @ policy[mine] / visits[mine].sum()
            np.testing.assert_allclose(one.mean, mean)
            assert (one.low <= mean).mean() > 0.5
            assert (one.high >= mean).mean() > 0.5
