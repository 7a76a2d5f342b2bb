from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from onlooker.metrics import circular_emd, planar_emd

ot = pytest.importorskip("ot")


def circle_cost(n: int, circumference: float) -> np.ndarray:
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.minimum(steps, n - steps) * circumference / n


def random_distributions(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """Rows from nearly uniform to nearly deterministic, with exact zeros among them."""
    p = np.array([rng.dirichlet(np.full(n, rng.choice([0.05, 0.5, 5.0]))) for _ in range(rows)])
    p[p < 1e-4] = 0.0
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 24, 25])
def test_circular_emd_agrees_with_the_linear_programme(n):
    rng = np.random.default_rng(n)
    p, q = random_distributions(rng, 60, n), random_distributions(rng, 60, n)
    cost = circle_cost(n, 7.5)
    want = [ot.emd2(a, b, cost) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(circular_emd(p, q, circumference=7.5), want, atol=1e-9, rtol=0)


def test_circular_emd_between_neighbouring_deterministic_actions_is_one_bin():
    eye = np.eye(24)
    np.testing.assert_allclose(circular_emd(eye, np.roll(eye, 1, axis=1)), 2 * np.pi / 24)


def test_circular_emd_goes_the_shorter_way_round():
    eye = np.eye(12)
    assert circular_emd(eye[0], eye[11], circumference=12.0) == pytest.approx(1.0)
    assert circular_emd(eye[0], eye[6], circumference=12.0) == pytest.approx(6.0)


def test_circular_emd_of_the_uniform_policy_on_the_papers_first_example():
    expert = np.zeros(24)
    expert[[23, 0, 1]] = 1 / 3
    assert circular_emd(expert, np.full(24, 1 / 24)) == pytest.approx(1.396, abs=5e-4)


def test_circular_emd_broadcasts_over_leading_axes():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(6), size=(4, 1)), rng.dirichlet(np.ones(6), size=(3,))
    got = circular_emd(p, q)
    assert got.shape == (4, 3)
    assert got[2, 1] == pytest.approx(circular_emd(p[2, 0], q[1]))


def test_circular_emd_of_many_rows_equals_the_row_by_row_result():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(24), size=(2, 6000))
    got = circular_emd(p, q)
    each = [circular_emd(p[i], q[i]) for i in range(0, 6000, 500)]
    np.testing.assert_allclose(got[::500], each, rtol=1e-13)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 10), st.integers(0, 2**32 - 1))
def test_circular_emd_is_a_metric_that_no_rotation_changes(n, seed):
    rng = np.random.default_rng(seed)
    p, q, r = rng.dirichlet(np.full(n, 0.3), size=3)
    shift = int(rng.integers(n))
    assert circular_emd(p, p) == pytest.approx(0.0, abs=1e-12)
    assert circular_emd(p, q) == pytest.approx(circular_emd(q, p))
    assert circular_emd(p, r) <= circular_emd(p, q) + circular_emd(q, r) + 1e-12
    assert circular_emd(np.roll(p, shift), np.roll(q, shift)) == pytest.approx(circular_emd(p, q))


def grid_points(side: int) -> np.ndarray:
    axis = np.arange(side, dtype=float)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def test_planar_emd_agrees_with_the_full_linear_programme():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(30, 2))
    p, q = random_distributions(rng, 40, 30), random_distributions(rng, 40, 30)
    want = [ot.emd2(a, b, ot.dist(points, points, "euclidean")) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(planar_emd(p, q, points), want, atol=1e-9, rtol=0)


def test_planar_emd_of_a_shifted_distribution_is_the_shift():
    p, q = np.zeros((2, 9, 9))
    p[2:4, 2:5] = q[5:7, 6:9] = 1 / 6
    got = planar_emd(p.ravel(), q.ravel(), grid_points(9))
    assert isinstance(got, float)
    assert got == pytest.approx(5.0, abs=1e-9)


def test_planar_emd_takes_sparse_rows_and_compares_one_row_with_many():
    rng = np.random.default_rng(3)
    points = grid_points(5)
    p, q = random_distributions(rng, 6, 25), random_distributions(rng, 1, 25)
    want = planar_emd(p, np.repeat(q, 6, axis=0), points)
    np.testing.assert_allclose(planar_emd(p, q[0], points), want)
    np.testing.assert_allclose(planar_emd(sparse.csr_array(p), sparse.coo_array(q), points), want)
    np.testing.assert_allclose(planar_emd(q, p, points), want)


def test_planar_emd_of_equal_distributions_is_zero():
    p = np.full((3, 16), 1 / 16)
    np.testing.assert_array_equal(planar_emd(p, p, grid_points(4)), 0.0)


def test_planar_emd_trims_within_the_promised_error():
    rng = np.random.default_rng(4)
    points = grid_points(8)
    p, q = rng.dirichlet(np.full(64, 0.2), size=(2, 10))
    error = np.abs(planar_emd(p, q, points, 1e-3) - planar_emd(p, q, points, 0.0))
    assert 0 < error.max() <= 64 * 1e-3 * np.hypot(7, 7)


def test_planar_emd_on_a_line_is_the_area_between_the_distribution_functions():
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(12), size=2)
    x = np.sort(rng.normal(size=12))
    want = np.sum(np.abs(np.cumsum(p - q))[:-1] * np.diff(x))
    assert planar_emd(p, q, x) == pytest.approx(want, abs=1e-9)


def test_planar_emd_names_the_extra_when_pot_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ImportError, match=r"onlooker\[eval\]"):
        planar_emd([1.0], [1.0], [[0.0]])


def test_circular_emd_names_the_row_that_is_no_distribution():
    good = np.full((3, 4), 0.25)
    for value in (0.5, np.nan):
        bad = good.copy()
        bad[1, 2] = value
        with pytest.raises(ValueError, match=r"q\[1\] is not a distribution"):
            circular_emd(good, bad)
    with pytest.raises(ValueError, match=r"smallest entry -0\.5"):
        circular_emd([1.5, -0.5], [0.5, 0.5])
    with pytest.raises(ValueError, match="p has 4 bins but q has 2"):
        circular_emd(good, [0.5, 0.5])


def test_planar_emd_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="there are 3 points"):
        planar_emd([0.5, 0.5], [0.5, 0.5], np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"p\[1\] is not a distribution"):
        planar_emd([[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="p has 2 rows but q has 3"):
        planar_emd(np.full((2, 2), 0.5), np.full((3, 2), 0.5), [0.0, 1.0])
    with pytest.raises(ValueError, match="points must be a finite"):
        planar_emd([0.5, 0.5], [0.5, 0.5], [0.0, np.nan])


def test_circular_emd_refuses_a_circle_without_length():
    with pytest.raises(ValueError, match="circumference"):
        circular_emd([1.0], [1.0], circumference=0.0)
    with pytest.raises(ValueError, match="circumference"):
        circular_emd([1.0], [1.0], circumference=np.inf)
    assert circular_emd([1.0, 0.0], [0.0, 1.0], circumference=0.5) == pytest.approx(0.25)


def test_what_is_no_stack_of_distributions_is_refused():
    for p in (1.0, np.zeros((2, 0))):
        with pytest.raises(ValueError, match="p must hold distributions along its last axis"):
            circular_emd(p, [1.0])
    with pytest.raises(ValueError, match="points must be a finite"):
        planar_emd([0.5, 0.5], [0.5, 0.5], np.zeros((2, 1, 1)))
    with pytest.raises(ValueError, match=r"q must be \(S,\) or \(n, S\), got 3 axes"):
        planar_emd([0.5, 0.5], np.full((1, 1, 2), 0.5), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"p has shape \(0, 2\) but there are 2 points"):
        planar_emd(np.zeros((0, 2)), [0.5, 0.5], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"tolerance must not be negative, got -1e-09"):
        planar_emd([0.5, 0.5], [0.5, 0.5], [0.0, 1.0], -1e-9)
