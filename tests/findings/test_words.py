"""The first thing that a reader is told."""

from dataclasses import replace

import numpy as np
import pytest
from small_runs import made_up, plane_problem, ring_problem

from onlooker.findings.opened import OpenedRun
from onlooker.findings.verdict import verdict
from onlooker.findings.words import findings, format_regions, in_short
from onlooker.partitions import ChineseRestaurant, DistanceDependent


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
    assert text.startswith(f"There are {low} to {high} controllers (90 % of draws), most likely ")
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


def test_few_regions_beside_many_controllers_are_explained():
    run = opened()  # labels drawn at random: draws that agree on nothing
    n_found = int(run.posterior.partition().max()) + 1
    assert n_found < np.quantile(run.posterior.n_controllers, 0.05)
    assert "fewer: the draws differ in which states belong" in in_short(run, verdict(run))


def test_more_regions_than_controllers_are_explained():
    run = opened()
    result = run.load_consensus()
    alone = np.arange(len(result.labels))
    assert len(alone) > run.posterior.n_controllers.max()
    run.posterior.use_consensus(replace(result, labels=alone, n_clusters=len(alone)))
    text = in_short(run, verdict(run))
    n_acting = np.count_nonzero(run.visits)  # ends of tracks are no regions
    assert n_acting < len(alone)
    assert f"{n_acting} regions, more: states whose controller is uncertain stand apart" in text


def test_a_finite_world_says_which_states():
    run = opened(problem=ring_problem(), prior=ChineseRestaurant())
    found = findings(run)
    states = sorted(state for region in found["regions"] for state in region["numbers"])
    assert states == sorted(run.posterior.problem.states.tolist())
    numbers = found["regions"][0]["numbers"]
    assert f"({numbers[0]}" in format_regions(run, found["regions"])[1]
