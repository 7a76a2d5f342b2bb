"""Intervals cover what they say where positions are unknown: a small `benchmarks.check_gaps`."""

import numpy as np
import pytest
from gap_coverage import covered


def shares(cell, runs):
    return np.mean([covered(seed, *cell) for seed in range(runs)], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [(1, 0.05), (3, 0.1), (10, 0.2), (0, 0.1, 0.3)])
def test_intervals_cover_policies_and_positions(cell):
    """Standard errors are .02 and .007."""
    policies, positions = shares(cell, 16)
    assert 0.83 < policies < 0.97
    assert 0.87 < positions < 0.93


@pytest.mark.slow
def test_actions_drawn_given_positions_alone_do_not(monkeypatch):
    monkeypatch.setattr("onlooker.inference.unseen.draw_actions", lambda *_: None)
    assert shares((1, 0.05), 10)[1] < 0.7
