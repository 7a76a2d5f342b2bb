"""One of several outcomes by its weight: extreme weights, and those of zero."""

import numpy as np
import pytest

from onlooker.gibbs.actions import _draw
from onlooker.gibbs.arrays import smallest_int
from onlooker.gibbs.categorical import draw_log, invert


@pytest.mark.parametrize("shift", [0.0, 3000.0, -3000.0])
def test_only_differences_of_log_weights_count_however_large_they_are(shift):
    weights = np.array([1.0, 4.0, 3.0, 2.0])
    uniforms = (np.arange(100) + 0.5) / 100
    drawn = [draw_log(np.log(weights) + shift, 4, u) for u in uniforms]
    assert np.bincount(drawn).tolist() == [10, 40, 30, 20]
    assert drawn == sorted(drawn)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_what_has_no_weight_is_never_drawn_and_what_lies_beyond_n_neither(n, uniform):
    log_weights = np.array([-np.inf, 0.0, -np.inf, -np.inf, -np.inf, 9.0])
    assert draw_log(log_weights.copy(), n, uniform) == 1


def test_the_first_sum_beyond_the_share_of_the_total_is_taken():
    running = np.array([0.0, 1.0, 1.0, 3.0, 3.0])
    assert [invert(running, 5, u) for u in (0.0, 0.3, 0.34, 0.99)] == [1, 1, 3, 3]
    assert invert(running, 5, 1.0) == 3  # as rounding may have it; the last has no weight
    assert invert(running, 2, 1.0) == 1


@pytest.mark.parametrize(
    ("weights", "uniform", "drawn"),
    [
        ([0.0, 1.0, 0.0, 2.0, 0.0], 0.0, 1),
        ([0.0, 1.0, 0.0, 2.0, 0.0], 0.333, 1),
        ([0.0, 1.0, 0.0, 2.0, 0.0], 1 / 3, 3),
        ([0.0, 1.0, 0.0, 2.0, 0.0], 1.0, 3),  # as rounding may have it
        ([5.0], 0.5, 0),
        ([0.0, 0.0], 0.5, -1),
        ([1e-300, 1e-300], 0.6, 1),
    ],
)
def test_actions_of_no_weight_are_never_drawn_and_none_if_all_have_none(weights, uniform, drawn):
    cumulative = np.empty(len(weights))
    assert _draw(np.array(weights), cumulative, uniform) == drawn


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_the_smallest_integers_that_hold_so_many_values_are_taken(kind):
    n = int(np.iinfo(kind).max) + 1
    assert smallest_int(n) == kind
    assert smallest_int(n + 1).itemsize == 2 * np.dtype(kind).itemsize
