"""Data that ship with the package."""

import doctest
import importlib
from importlib.resources import files

import numpy as np
import pytest

from onlooker import geography
from onlooker.datasets import load_storms


@pytest.fixture(scope="module")
def storms():
    return load_storms()


def test_storms_are_those_of_their_description(storms):
    frame, demos = storms.frame, storms.demos
    assert len(frame) == 19_054
    assert frame.columns[:3].tolist() == ["storm", "name", "label"]
    assert frame["storm"].nunique() == frame["label"].nunique() == 654
    assert len(demos.states) == 18_986
    assert (demos.lengths >= 2).all()
    assert set(demos.names) == set(frame["label"]) - {"Hope 1978"}


def test_every_step_takes_six_hours(storms):
    starts = storms.demos.transition_starts()
    steps = storms.demos.times[starts + 1] - storms.demos.times[starts]
    assert (steps == np.timedelta64(6, "h")).all()


def test_lenny_went_the_wrong_way(storms):
    lenny = storms.demos[storms.demos.names == "Lenny 1999"]
    assert len(lenny) == 1
    east = geography.displacements(*lenny.transitions())[:, 0]
    everyone = geography.displacements(*storms.demos.transitions())[:, 0]
    assert (east > 0).mean() > 0.8  # through the Caribbean, from the west
    tropics = storms.demos.transitions()[0][:, 1] < 20
    assert (everyone[tropics] < 0).mean() > 0.8


def test_gaps_may_be_kept():
    with pytest.warns(UserWarning, match="gap"):
        kept = load_storms(gaps="keep").demos
    assert len(kept) == 654
    assert len(kept.states) == 19_054


def test_the_credit_is_shipped_beside_the_data():
    credit = (files("onlooker.datasets") / "README.md").read_text()
    assert "HURDAT2" in credit
    assert "dplyr (MIT)" in credit


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(importlib.import_module("onlooker.datasets")).failed == 0
