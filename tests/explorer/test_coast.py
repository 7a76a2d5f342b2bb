"""Where states are drawn on Earth: land, extent, the date line."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from onlooker.explorer.coast import _clipped, _unwrapped, land
from onlooker.explorer.packing import unpack
from onlooker.explorer.space import Space


def on_land(box, places):
    """Whether each place is inside an odd number of rings."""
    packed = land(box)
    points, offsets = unpack(packed["points"]), unpack(packed["offsets"])
    assert (offsets[0], offsets[-1]) == (0, len(points))
    (west, east), (south, north) = box
    assert (points.min(axis=0) >= [west - 1e-4, south - 1e-4]).all()
    assert (points.max(axis=0) <= [east + 1e-4, north + 1e-4]).all()
    rings = [Outline(points[a:b]) for a, b in pairwise(offsets)]
    return [sum(ring.contains_point(place) for ring in rings) % 2 == 1 for place in places]


def test_land_is_where_it_is():
    box = ((-130.0, 30.0), (-10.0, 75.0))
    denver, mid_atlantic, sahara, hudson = (-105, 40), (-40, 30), (10, 22), (-85, 60)
    assert on_land(box, [denver, mid_atlantic, sahara, hudson]) == [True, False, True, False]


def test_land_goes_on_over_the_date_line_and_to_the_pole():
    box = ((150.0, 250.0), (-90.0, 80.0))
    chukotka, alaska, ocean, pole = (182, 67), (205, 66), (200, 0), (200, -88)
    assert on_land(box, [chukotka, alaska, ocean, pole]) == [True, True, False, True]


def test_a_small_box_gets_finer_outlines_of_its_own_part_only():
    fine, coarse = land(((9.0, 13.0), (54.5, 58.0))), land(((-180.0, 180.0), (-90.0, 90.0)))
    assert fine["points"]["shape"][0] > 60  # Denmark at 1:110 million has 30 corners
    assert fine["points"]["shape"][0] < coarse["points"]["shape"][0] / 10
    assert land(((-30.0, -29.0), (30.0, 31.0)))["points"]["shape"] == [0, 2]  # all at sea


def space(sites, geographic=True):
    sites = np.asarray(sites, dtype=float)
    return Space("real", sites, None, len(sites), ["x", "y"], ["", ""], [1, 1], geographic)


def test_one_bad_fix_does_not_squeeze_the_map():
    rng = np.random.default_rng(0)
    sites = np.vstack([rng.uniform([10, 60], [11, 61], (60, 2)), [[0.0, 0.0]]])
    (west, east), (south, north) = space(sites).extent
    assert 10 <= west < east <= 11
    assert 60 <= south < north <= 61
    assert space(sites[:-1]).extent == pytest.approx(
        np.column_stack([sites[:-1].min(axis=0), sites[:-1].max(axis=0)])
    )
    assert len(space(sites).land) == 2  # the whole, and the part in view
    assert len(space(sites[:-1]).land) == 1


def test_states_that_hardly_move_along_an_axis_keep_their_extent():
    sites = np.zeros((100, 2))
    sites[0] = 3.0
    assert space(sites, geographic=False).extent == [[0.0, 3.0], [0.0, 3.0]]


def test_longitudes_are_shown_next_to_each_other_across_the_date_line():
    lon = np.array([178.0, 179.0, -179.0, -178.0])
    across = space(np.column_stack([lon, np.zeros(4)]))
    assert abs(across.meridian) == 180
    (west, east), _ = across.extent
    assert east - west == pytest.approx(4.0)
    assert space(np.zeros((2, 2)), geographic=False).meridian is None


@pytest.mark.parametrize(
    ("axis", "bound", "side", "corners"),
    [
        (0, 1.0, 1, [[1, 0], [4, 0], [1, 3]]),
        (0, 1.0, -1, [[0, 0], [1, 0], [1, 3], [0, 4]]),
        (1, 3.0, 1, [[1, 3], [0, 4], [0, 3]]),
        (1, 3.0, -1, [[0, 0], [4, 0], [1, 3], [0, 3]]),
        (0, -1.0, 1, [[0, 0], [4, 0], [0, 4]]),
        (0, 5.0, 1, []),
        (0, 0.0, 1, [[0, 0], [4, 0], [0, 4]]),  # along the bound is inside
    ],
)
def test_a_triangle_is_cut_at_a_bound(axis, bound, side, corners):
    triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    cut = _clipped(triangle, axis, bound, side)
    np.testing.assert_allclose(cut, np.reshape(corners, (-1, 2)))
    assert len(_clipped(cut[:0], axis, bound, side)) == 0


def test_a_ring_over_the_date_line_has_no_jump_and_one_around_the_pole_is_closed_along_it():
    over = np.array([[179.0, 0.0], [-179.0, 0.0], [-179.0, 5.0], [179.0, 5.0]])
    np.testing.assert_array_equal(_unwrapped(over)[:, 0], [179, 181, 181, 179])
    np.testing.assert_array_equal(_unwrapped(over)[:, 1], over[:, 1])
    around = np.array([[-180.0, -70.0], [-60.0, -71.0], [60.0, -72.0]])
    closed = _unwrapped(around)
    np.testing.assert_array_equal(closed[:3], around)
    np.testing.assert_array_equal(closed[3:], [[180, -70], [180, -90], [-180, -90]])
