"""Convergence in words follows R-hat and effective sample sizes."""

import json

import numpy as np
import pandas as pd
import pytest
from small_runs import made_up, plane_problem

from onlooker.findings.opened import OpenedRun
from onlooker.findings.record import Record
from onlooker.findings.verdict import verdict
from onlooker.partitions import DistanceDependent


def judge(r_hat, ess, record=None, n_rows=2, **options):
    run = OpenedRun.of(made_up(plane_problem(), DistanceDependent(), **options), record)
    columns = {"r_hat": [r_hat, 1.0], "ess_bulk": [ess, 900.0], "ess_tail": [ess, 900.0]}
    run.table = pd.DataFrame(columns, index=["n_controllers", "nu"])[:n_rows]
    return verdict(run)


@pytest.mark.parametrize(
    ("r_hat", "ess", "level"),
    [
        (1.005, 900, "good"),
        (1.03, 900, "fair"),
        (1.005, 100, "fair"),
        (1.3, 900, "bad"),
        (1.005, 10, "bad"),
        (np.inf, 0, "bad"),
        (np.nan, np.nan, "good"),
    ],
)
def test_the_verdict_follows_the_thresholds(r_hat, ess, level):
    found = judge(r_hat, ess)
    assert found["level"] == level
    assert json.dumps(found, allow_nan=False)


def test_the_verdict_on_nothing_that_changes_is_unknown():
    assert judge(np.nan, np.nan, n_rows=1)["level"] == "unknown"


def test_a_single_chain_is_warned_of():
    assert "one chain only" in judge(1.0, 900, n_chains=1, n_draws=8)["sentences"][-1]


@pytest.mark.parametrize(("r_hat", "ess"), [(1.3, 900), (1.005, 10)])
def test_the_remedy_speaks_of_options_where_the_command_line_made_the_run(r_hat, ess):
    by_command = judge(r_hat, ess, Record(file="tracks.csv"))["sentences"][-1]
    in_python = judge(r_hat, ess)["sentences"][-1]
    assert "--draws" in by_command
    assert "draws" in in_python
    assert "--" not in in_python


def test_the_first_sentence_says_what_has_settled():
    found = judge(1.3, 900)
    assert found["sentences"][0] == "The hyper-parameters have settled, the partition has not."
    assert found["settled"] == {"partition": False, "hyper-parameters": True}


def test_one_chain_is_compared_with_itself():
    """Its R-hat used to be missing, and the verdict was that nothing had ever changed."""
    posterior = made_up(plane_problem(), DistanceDependent(), n_chains=1, n_draws=300)
    found = verdict(OpenedRun.of(posterior))
    assert found["level"] != "unknown"
    assert "of the only chain" in found["sentences"][1]
