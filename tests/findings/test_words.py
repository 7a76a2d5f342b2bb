"""The first thing that a reader is told."""

from dataclasses import replace

import numpy as np
import pytest
from small_runs import made_up, plane_problem, quick, ring_problem

from onlooker.findings.opened import OpenedRun
from onlooker.findings.verdict import verdict
from onlooker.findings.words import findings, format_regions, in_a_line, in_short, percent
from onlooker.partitions import ChineseRestaurant, DistanceDependent, Regions


def opened(problem=None, prior=None, **options):
    options = {"n_chains": 2, "n_draws": 40} | options
    return OpenedRun.of(
        made_up(problem or plane_problem(), prior or DistanceDependent(), **options)
    )


def converged(**settled):
    return {"level": "bad", "settled": settled, "advice": "Raise draws"}


def test_the_number_of_controllers_comes_with_how_sure_it_is():
    run = opened(n_clusters=30)  # of which each draw uses another number
    numbers = run.posterior.n_controllers
    text = in_short(run, converged(policy=True, partition=True))
    low, high = np.quantile(numbers, [0.05, 0.95], method="inverted_cdf")
    values, counts = np.unique(numbers, return_counts=True)
    likely = values[np.argsort(-counts, kind="stable")[0]]
    assert text.startswith(
        f"There are {low} to {high} controllers (ways of acting; 90 % of draws), most likely "
    )
    assert f"most likely {likely} ({100 * counts.max() / numbers.size:.0f} %)" in text
    assert text.endswith("Policy and partition have settled.")


@pytest.mark.parametrize(
    ("settled", "words"),
    [
        ({"policy": True, "partition": False}, "trust what is done at each place more"),
        ({"policy": False, "partition": False}, "read this as a first guess. Raise draws."),
    ],
)
def test_it_says_how_far_to_trust_it(settled, words):
    assert words in in_short(opened(), converged(**settled))


def test_regions_that_share_controllers_are_counted_too():
    run = OpenedRun.of(quick(plane_problem(), Regions()))
    numbers = run.posterior.n_regions
    assert numbers.min() < numbers.max()
    low, high = np.quantile(numbers, [0.05, 0.95], method="inverted_cdf")
    assert f", in {low} to {high} regions. The consensus" in in_short(run, verdict(run))


def test_a_mean_step_of_nearly_nothing_is_left_out():
    run = opened()
    found = findings(run)["regions"][:1]
    found[0]["mean_step"] = [0.5, 0.0]
    assert "; on average 0.5 towards" in format_regions(run, found)[1]
    found[0]["mean_step"] = [0.01, 0.0]
    assert "on average" not in format_regions(run, found)[1]


def test_few_regions_beside_many_controllers_are_explained():
    run = opened()  # labels drawn at random: draws that agree on nothing
    n_found = int(run.posterior.partition().max()) + 1
    assert n_found < np.quantile(run.posterior.n_controllers, 0.05)
    assert f"has {n_found}, fewer because the draws disagree" in in_short(run, verdict(run))


def test_more_regions_than_controllers_are_explained():
    run = opened()
    result = run.load_consensus()
    alone = np.arange(len(result.labels))
    assert len(alone) > run.posterior.n_controllers.max()
    run.posterior.use_consensus(replace(result, labels=alone, n_clusters=len(alone)))
    text = in_short(run, verdict(run))
    n_acting = np.count_nonzero(run.visits)  # ends of tracks are no regions
    assert n_acting < len(alone)
    assert f"has {n_acting}, more because states whose controller is uncertain stand apart" in text


def test_a_finite_world_says_which_states():
    run = opened(problem=ring_problem(), prior=ChineseRestaurant())
    found = findings(run)
    states = sorted(state for region in found["regions"] for state in region["numbers"])
    assert states == sorted(run.posterior.problem.states.tolist())
    numbers = found["regions"][0]["numbers"]
    assert f"({numbers[0]}" in format_regions(run, found["regions"])[1]


def test_a_controller_of_two_places_is_said_to_be_at_one_of_them():
    run = opened()
    states = run.posterior.problem.states
    labels = np.zeros(len(states), dtype=np.int64)
    labels[np.argsort(states[:, 0])[1:-12]] = 1  # what lies between is another's
    result = run.load_consensus()
    run.posterior.use_consensus(replace(result, labels=labels, n_clusters=2))
    apart = findings(run)["regions"][0]["center"]
    assert apart in states[labels == 0].tolist()
    assert apart in states[np.argsort(states[:, 0])[-12:]].tolist()  # where most are


@pytest.mark.parametrize(
    ("share", "words"), [(0.6, "mostly north (60 %)"), (0.2, "most often north (20 %)")]
)
def test_what_is_done_in_a_fifth_of_the_cases_is_not_mostly_done(share, words):
    actions = [{"action": 0, "name": "north", "probability": share}]
    region = {
        "actions": actions,
        "behaviours": None,
        "states": 1,
        "numbers": [4, 5, 9],
        "center": None,
    }
    line = in_a_line(opened(), region)
    assert line.startswith(f"{words}; ")
    assert line.endswith(" of the states: 4 to 5, 9")


@pytest.mark.parametrize(
    ("low", "words"),
    [(0.03, "perhaps mostly stays (85 % [3–96])"), (0.8, "mostly stays (85 % [80–96])")],
)
def test_what_may_as_well_be_seldom_done_is_called_a_perhaps(low, words):
    done = {"behaviour": 0, "name": "stays", "mean": 0.85, "low": low, "high": 0.96}
    actions = [{"action": 0, "name": "north", "probability": 0.6}]
    region = {"actions": actions, "behaviours": [done], "states": 1, "numbers": None}
    assert in_a_line(opened(), region | {"center": None}).startswith(f"{words}; ")


def test_shares_are_rounded_as_on_paper():
    assert [percent(share) for share in (0.205, 0.215, 0.001, 0.0, 1.0)] == [
        "21 %", "22 %", "< 1 %", "0 %", "100 %",
    ]  # fmt: skip
