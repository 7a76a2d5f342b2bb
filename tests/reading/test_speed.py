"""Fixes that nothing reaches in time: found, named, and treated as missing."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker import Demonstrations
from onlooker.checks import SettingError
from onlooker.geography import EARTH_RADIUS
from onlooker.reading.speed import too_fast

# what is dropped leaves a gap, which is said
pytestmark = pytest.mark.filterwarnings("ignore:Times step by 1 h:UserWarning")


def distance(start, end):
    return np.abs(end - start).sum(axis=1)


def most_kept(states, clock, limit):
    """The size of the largest chain without a step that is too fast, among all subsets."""
    n = len(states)
    for size in range(n, 0, -1):
        for kept in itertools.combinations(range(n), size):
            if all(
                abs(states[j] - states[i]) <= limit * (clock[j] - clock[i]) * (1 + 1e-9)
                for i, j in itertools.pairwise(kept)
            ):
                return size
    return 0


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=9),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_as_few_fixes_go_as_can_be_and_what_is_left_is_slow(fixes, limit, block):
    states = np.array([float(x) for x, _ in fixes])
    clock = np.cumsum([float(dt) for _, dt in fixes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onlooker.reading.speed._BLOCK", block)
        out = too_fast(states[:, None], clock, limit, distance)
    kept = np.flatnonzero(~out)
    assert (np.abs(np.diff(states[kept])) <= limit * np.diff(clock[kept]) * (1 + 1e-9)).all()
    assert len(kept) == most_kept(states, clock, limit)


def elks(**changes):
    """Two tracks an hour and 1 km a row; of the first the fix in row 2 is far off."""
    frame = pd.DataFrame(
        {
            "id": ["elk_07"] * 6 + ["elk_08"] * 4,
            "t": pd.date_range("2024-05-03 12:00", periods=10, freq="h"),
            "x": [0.0, 1, 400, 3, 4, 5, 0, 1, 2, 3],
            "y": 0.0,
        }
    )
    return frame.assign(**changes)


def read(frame, **options):
    return Demonstrations.from_dataframe(frame, ["x", "y"], "id", "t", **options)


def test_a_fix_that_is_reached_too_fast_is_named_and_never_dropped_silently():
    place = "elk_07, 2024-05-03 14:00, row 2 is reached at 399 units of the states per hour"
    with pytest.raises(SettingError, match=f"^{place}.*missing='split', 'drop', 'interpolate'"):
        read(elks(), max_speed=2)
    demos = read(elks(), max_speed=2, missing="drop")
    assert demos[0][:, 0].tolist() == [0, 1, 3, 4, 5]
    assert demos.reading.too_fast == demos.reading.missing_dropped == 1
    assert f"1 row reached too fast, taken as missing: {place}." in str(demos.reading)
    assert read(elks(), max_speed=2, missing="interpolate")[0][2, 0] == 2
    assert read(elks(), max_speed=2, missing="infer").hidden[2]
    assert not read(elks(), max_speed=500).reading.too_fast


def test_the_first_fix_may_be_the_bad_one_and_so_may_several_in_a_row():
    first = read(elks(x=[99.0, 1, 2, 3, 4, 5, 0, 1, 2, 3]), max_speed=2, missing="drop")
    assert first[0][:, 0].tolist() == [1, 2, 3, 4, 5]
    assert "row 0 is left at 98 units" in str(first.reading)
    run = read(elks(x=[0.0, 90, 91, 3, 4, 5, 0, 1, 2, 3]), max_speed=2, missing="split")
    assert [len(track) for track in run] == [3, 4]
    assert run.reading.too_fast == 2


def test_speeds_on_earth_are_in_km_per_hour_across_the_date_line():
    lon = [179.0, 179.9, -179.2, -178.3, 2.0, -176.5, 0, 0.9, 1.8, 2.7]
    demos = read(elks(x=lon), max_speed=110, missing="drop", geographic=True)
    assert demos.reading.too_fast == 1
    speed = np.radians(179.7) * EARTH_RADIUS
    assert f"row 4 is reached at {speed:,.0f} km per hour" in str(demos.reading)
    with pytest.raises(ValueError, match=r"9 steps|steps are faster than max_speed=1: it is in km"):
        read(elks(x=lon), max_speed=1, missing="drop", geographic=True)


def test_without_a_time_a_speed_is_per_row():
    demos = Demonstrations.from_dataframe(elks(), ["x", "y"], "id", max_speed=1.5, missing="drop")
    assert demos.reading.too_fast == 1
    assert "elk_07, row 2 is reached at 399 units of the states per row" in str(demos.reading)


def test_what_has_no_speed_refuses_a_limit():
    with pytest.raises(ValueError, match="max_speed needs real states"):
        Demonstrations.from_dataframe(pd.DataFrame({"s": [0, 1, 2]}), "s", max_speed=1)
    with pytest.raises(ValueError, match="max_speed must be finite and above 0"):
        read(elks(), max_speed=0)
    with pytest.raises(ValueError, match="geographic=True needs two columns"):
        Demonstrations.from_dataframe(elks(), ["x"], "id", geographic=True)
