"""Gaps, repeated times and missing values: found, named, treated as chosen, and accounted for."""

import json
import warnings
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trajectories import quick

from onlooker import Demonstrations
from onlooker.reading import Cleaning, ReadingSummary
from onlooker.warnings import TrackWarning

NAN = np.nan


def frame(**columns):
    return pd.DataFrame({"id": "a", **columns})


def read(table, states="x", **options):
    time = "t" if "t" in table else None
    return Demonstrations.from_dataframe(table, states, "id", time, **options)


def lists(demos):
    return [trajectory.ravel().tolist() for trajectory in demos]


# -- against a slow twin -------------------------------------------------------------------------


def naive(rows, missing, duplicates, gap):
    """Trajectories as lists of (time, state), one row at a time."""
    tracks = {}
    for name, time, state in rows:
        tracks.setdefault(name, []).append((time, state))
    pieces = []
    for name, track in tracks.items():
        by_time = {}
        for time, state in track:
            by_time.setdefault(time, []).append(state)
        piece = []
        before = None
        for time in sorted(by_time):
            known = [state for state in by_time[time] if np.isfinite(state)]
            if not known:
                if missing == "infer":
                    piece.append((time, NAN))
                    before = time
                if missing == "split":
                    pieces.append((name, piece))
                    piece, before = [], None
                continue
            state = {"first": known[0], "last": known[-1], "mean": sum(known) / len(known)}
            if gap is not None and before is not None and time - before > gap:
                pieces.append((name, piece))
                piece = []
            piece.append((time, state[duplicates]))
            before = time
        pieces.append((name, piece))
    if missing == "infer":
        pieces = [(name, between_seen(piece)) for name, piece in pieces]
    return [(name, piece) for name, piece in pieces if len(piece) > 1]


def between_seen(piece):
    seen = [k for k, (_, state) in enumerate(piece) if np.isfinite(state)]
    return piece[seen[0] : seen[-1] + 1] if seen else []


rows = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 12), st.sampled_from([0.0, 1.0, 2.5, NAN, np.inf])
    ),
    min_size=1,
    max_size=25,
)


@quick
@given(
    rows,
    st.sampled_from(["drop", "split", "infer"]),
    st.sampled_from(["first", "last", "mean"]),
    st.sampled_from([None, 1, 3]),
)
def test_cleaning_matches_its_slow_twin_and_every_row_is_accounted_for(
    rows, missing, duplicates, gap
):
    table = pd.DataFrame(rows, columns=["id", "t", "x"])
    expected = naive(rows, missing, duplicates, gap)
    options = {"missing": missing, "duplicates": duplicates}
    options |= {} if gap is None else {"gaps": "split", "gap": gap}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrackWarning)
        if not expected:
            # a column without any number might as well hold integers, which have no mean
            with pytest.raises(ValueError, match=r"no trajectory with two|needs real states"):
                read(table, **options)
            return
        demos = read(table, **options)
    assert demos.names.tolist() == [name for name, _ in expected]
    np.testing.assert_allclose(
        demos.states.ravel(), [state for _, piece in expected for _, state in piece]
    )
    assert demos.times.tolist() == [time for _, piece in expected for time, _ in piece]
    summary = demos.reading
    assert summary.rows == len(rows) == summary.states + summary.dropped
    assert set(summary.lost) == set("".join(table["id"].unique())) - set(demos.names)


# -- missing values ------------------------------------------------------------------------------

HOLES = frame(t=range(7), x=[0.0, 1.0, NAN, NAN, 4.0, 5.0, np.inf])


def test_missing_values_are_refused_by_default_with_all_rows_and_the_choices():
    message = r"no value of 'x' in row 2 \(3 rows in all: 2, 3, 6\); .*missing='split', 'drop"
    with pytest.raises(ValueError, match=message):
        read(HOLES)
    with pytest.raises(ValueError, match="column 'y' holds -inf in row 1;"):
        read(frame(x=[0.0, 1.0], y=[0.0, -np.inf]), ["x", "y"])


def test_missing_values_are_dropped_split_at_or_filled_in():
    with pytest.warns(TrackWarning, match="1 gap longer than 1.5, the longest 3"):
        demos = read(HOLES, missing="drop")
    assert lists(demos) == [[0, 1, 4, 5]]
    assert lists(read(HOLES, missing="split")) == [[0, 1], [4, 5]]
    filled = read(HOLES, missing="interpolate")
    assert lists(filled) == [[0, 1, 2, 3, 4, 5]]
    assert (filled.reading.missing, filled.reading.missing_dropped) == (3, 1)
    assert "2 filled in, 1 dropped (missing='interpolate')" in str(filled.reading)


def test_missing_values_are_kept_as_unseen_states():
    demos = read(HOLES, missing="infer")
    np.testing.assert_array_equal(demos[0].ravel(), [0, 1, NAN, NAN, 4, 5])
    assert demos.times.tolist() == [*range(6)]
    assert demos.has_unseen
    assert demos.hidden.tolist() == [False, False, True, True, False, False]
    assert "2 to be inferred, 1 dropped (missing='infer')" in str(demos.reading)
    half = frame(x=[0.0, NAN, 2.0], y=[0.0, 1.0, np.inf])
    np.testing.assert_array_equal(
        read(half, ["x", "y"], missing="infer")[0], [[0, 0], [NAN, 1], [2, NAN]]
    )
    integers = frame(x=pd.array([3, None, 5, -1, 6, -1], dtype="Int64"))
    assert lists(read(integers, missing="infer")) == [[3, -1, 5, -1, 6]]
    with pytest.raises(ValueError, match="negative state -2"):
        read(frame(x=[3, -2, 5]), missing="infer")
    with pytest.raises(ValueError, match=r"needs states that were seen: choose missing='inter"):
        read(HOLES, missing="infer", gaps="resample")


def test_filling_in_follows_time_and_keeps_what_is_known():
    table = frame(t=[0, 1, 4, 5], x=[0.0, NAN, 4.0, 5.0], y=[0.0, 7.0, 8.0, 9.0])
    with pytest.warns(TrackWarning, match="1 gap"):
        demos = read(table, ["x", "y"], missing="interpolate")
    assert demos[0].tolist() == [[0, 0], [1, 7], [4, 8], [5, 9]]


def test_filling_in_without_times_goes_by_rows_and_never_across_trajectories():
    table = pd.DataFrame({"id": [*"aaabbb"], "x": [0, 1, NAN, NAN, 8, 9]})
    demos = Demonstrations.from_dataframe(table, "x", "id", missing="interpolate")
    assert lists(demos) == [[0, 1], [8, 9]]
    table = frame(x=[0.0, NAN, NAN, 3.0])
    assert lists(read(table, missing="interpolate")) == [[0, 1, 2, 3]]


def test_a_hole_longer_than_allowed_splits_instead():
    assert lists(read(HOLES, missing="interpolate", max_gap=2)) == [[0, 1], [4, 5]]
    assert lists(read(HOLES, missing="interpolate", max_gap=3)) == [[0, 1, 2, 3, 4, 5]]


def test_missing_integers_leave_integers():
    table = frame(x=pd.array([3, None, 5, 6], dtype="Int64"))
    with pytest.raises(ValueError, match=r"no value of 'x' in row 1; .*'split', 'drop' or 'inf"):
        read(table)
    demos = read(table, missing="drop")
    assert demos.is_discrete
    assert lists(demos) == [[3, 5, 6]]
    with pytest.raises(ValueError, match="missing='interpolate' needs real states"):
        read(table, missing="interpolate")


def test_rows_without_trajectory_or_time_are_refused_or_dropped_and_counted():
    table = pd.DataFrame(
        {"id": ["a", None, "a", "a", "a"], "t": [0, 1, NAN, np.inf, 1], "x": range(5)}
    )
    with pytest.raises(ValueError, match=r"no value of 'id' in row 1;.*missing='drop'"):
        read(table)
    with pytest.raises(ValueError, match=r"no value of 't' in row 2 \(2 rows in all: 2, 3\)"):
        read(table.assign(id="a"))
    demos = read(table, missing="drop")
    assert lists(demos) == [[0, 4]]
    assert (demos.reading.without_trajectory, demos.reading.without_time) == (1, 2)


# -- repeated times ------------------------------------------------------------------------------

TWICE = frame(t=[0, 1, 1, 2], x=[0.0, 1.0, 3.0, 4.0])


def test_repeated_times_are_refused_by_default_with_both_rows_and_the_choices():
    message = r"row 1 and row 2 of trajectory 'a' share the same 't', 1 .*'first', 'last' or 'mean'"
    with pytest.raises(ValueError, match=message):
        read(TWICE)


@pytest.mark.parametrize(("how", "kept"), [("first", 1), ("last", 3), ("mean", 2)])
def test_of_repeated_times_one_is_kept_as_chosen(how, kept):
    demos = read(TWICE, duplicates=how)
    assert lists(demos) == [[0, kept, 4]]
    assert demos.reading.duplicates == 1


def test_a_row_without_state_gives_way_to_one_of_the_same_time():
    table = frame(t=[0, 1, 1, 2], x=[0.0, NAN, 3.0, 4.0])
    demos = read(table, duplicates="first", missing="split")
    assert lists(demos) == [[0, 3, 4]]
    assert (demos.reading.duplicates, demos.reading.missing) == (1, 0)


def test_the_mean_of_angles_goes_the_short_way_round():
    table = frame(t=[0, 1, 1, 2], lon=[-179.0, 179.0, -179.5, 178.0])
    demos = read(table, "lon", duplicates="mean", periodic={"lon": 360})
    assert lists(demos) == [[-179, 179.75, 178]]


# -- gaps ----------------------------------------------------------------------------------------

GAP = frame(t=[0, 1, 2, 3, 7, 8, 9], x=[0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 9.0])


def test_gaps_are_kept_by_default_with_a_warning_that_names_the_longest():
    message = (
        r"step by 1 \(median\) with 1 gap longer than 1.5, the longest 4 in trajectory 'a' "
        r"from 3 to 7;.*gaps='split' or 'resample'"
    )
    with pytest.warns(TrackWarning, match=message):
        demos = read(GAP)
    assert len(demos.states) == 7
    assert demos.reading.untouched
    assert "the longest 4 in trajectory 'a'" in str(demos.reading)


def test_gaps_are_split_at_refused_or_bridged_as_chosen():
    assert lists(read(GAP, gaps="split")) == [[0, 1, 2, 3], [7, 8, 9]]
    assert lists(read(GAP, gaps="resample", max_gap=4)) == [[*range(10)]]
    assert lists(read(GAP, gaps="resample")) == [[0, 1, 2, 3], [7, 8, 9]]  # 4 is above 3 steps
    with pytest.raises(ValueError, match=r"1 gap longer than 1.5.*choose gaps='keep'"):
        read(GAP, gaps="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(GAP, gaps="error", gap=4)) == 1


def test_even_times_are_neither_warned_of_nor_changed_by_resampling():
    rng = np.random.default_rng(0)
    times = np.tile(np.arange(50) * 0.1, 2)
    table = pd.DataFrame({"id": np.repeat([1, 2], 50), "t": times, "x": rng.normal(size=100)})
    plain = read(table)
    assert str(plain.reading) == (
        "Read 100 rows of 2 trajectories; kept 100 states in 2 trajectories."
    )
    even = read(table, gaps="resample")
    np.testing.assert_allclose(even.states, plain.states, atol=1e-12)
    np.testing.assert_allclose(even.times, plain.times, atol=1e-12)


def test_irregular_times_are_named_even_without_gaps():
    times = np.r_[np.arange(10), np.arange(10) + 9.5]
    with pytest.warns(TrackWarning, match="1 other step more than a tenth off"):
        read(frame(t=times, x=times))


def test_resampling_interpolates_on_a_grid_of_the_step_asked_for():
    times = np.array([0.0, 1.0, 2.5, 3.0, 4.2])
    demos = read(frame(t=times, x=10 * times, y=-times), ["x", "y"], gaps="resample", interval=0.5)
    np.testing.assert_allclose(demos.times, np.arange(9) * 0.5)
    np.testing.assert_allclose(demos.states, np.outer(demos.times, [10, -1]), atol=1e-12)
    assert (demos.reading.resampled, demos.reading.states) == (5, 9)
    assert "Resampled 5 states to 9, one every 0.5." in str(demos.reading)


def test_resampling_crosses_the_date_line_the_short_way():
    table = frame(t=[0, 2, 4, 6], lon=[176.0, 178.0, -178.0, -174.0])
    demos = read(table, "lon", gaps="resample", interval=1, periodic={"lon": 360})
    assert lists(demos) == [[176, 177, 178, 180, -178, -176, -174]]
    wrong = read(table, "lon", gaps="resample", interval=1)
    assert 0.0 in wrong.states


@pytest.mark.parametrize(
    "limit", ["9h", "540 min", timedelta(hours=9), np.timedelta64(9, "h"), 32400]
)
def test_durations_between_dates_can_be_said_in_many_ways(limit):
    times = pd.to_datetime("2020-01-01") + pd.to_timedelta([0, 6, 12, 18, 28, 34], unit="h")
    demos = read(frame(t=times, x=range(6)), gaps="split", gap=limit)
    assert demos.lengths.tolist() == [4, 2]
    assert demos.reading.gap_longest == 10 * 3600
    assert "longer than 9 h, the longest 10 h" in str(demos.reading)
    assert "from 2020-01-01 18:00 to 2020-01-02 04:00" in str(demos.reading)
    resampled = read(frame(t=times, x=np.arange(6.0)), gaps="resample", interval="3h", max_gap="1d")
    assert (np.diff(resampled.times) == np.timedelta64(3, "h")).all()


def test_ordered_categories_have_an_order_but_no_gaps():
    times = pd.Categorical([*"abdz"], categories=[*"abcdz"], ordered=True)
    assert len(read(frame(t=times, x=range(4)))) == 1
    with pytest.raises(ValueError, match="gaps='split' needs a column of times"):
        read(frame(t=times, x=range(4)), gaps="split")


# -- trajectories of a single row, order, names --------------------------------------------------


def test_a_trajectory_of_a_single_row_is_left_out_with_a_warning():
    table = pd.DataFrame({"id": [*"aabcc"], "x": range(5)})
    with pytest.warns(TrackWarning, match=r"left out 1 trajectory of a single row \(b\)"):
        demos = read(table)
    assert demos.names.tolist() == ["a", "c"]
    assert (demos.reading.short, demos.reading.lost) == (1, ("b",))
    with pytest.raises(ValueError, match="no trajectory with two states is left"):
        read(table.iloc[[2]])


def test_sorting_by_time_is_accounted_for():
    table = pd.DataFrame({"id": [*"aabb"], "t": [1, 0, 0, 1], "x": range(4)})
    demos = read(table)
    assert lists(demos) == [[1, 0], [2, 3]]
    assert "Sorted 1 trajectory by time." in str(demos.reading)
    assert demos.reading.untouched


def test_the_table_given_stays_as_it_is():
    table = frame(t=[0, 1, 1, 3, 4], x=[-0.0, 1.0, 2.0, NAN, 4.0], y=1.0)
    before = table.copy()
    demos = read(table, ["x", "y"], duplicates="mean", missing="interpolate", gaps="resample")
    table.loc[:, "t"] = 9
    pd.testing.assert_frame_equal(table.assign(t=before["t"]), before)
    assert demos.times[0] == 0


def test_the_account_can_be_written_as_json():
    demos = read(HOLES, missing="split")
    content = json.loads(json.dumps(demos.reading.to_dict()))
    assert content["missing"] == content["missing_dropped"] == 3
    assert content["missing_rows"] == [2, 3, 6]
    assert content["rows"] == content["states"] + content["dropped"]
    assert content["untouched"] is False
    assert set(ReadingSummary().to_dict()) == set(content)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "ignore"}, "missing must be one of 'error', 'drop', 'split', 'interpolate'"),
        ({"duplicates": "any"}, "duplicates must be one of"),
        ({"gaps": "fill"}, "gaps must be one of"),
        ({"interval": 2}, "interval .*needs gaps='resample'"),
        ({"max_gap": 2}, "max_gap .*needs gaps='resample' or missing='interpolate'"),
        ({"gap": "6h"}, "gap='6h' needs a time column of dates"),
        ({"gap": -1}, "gap must be finite and above 0"),
        ({"periodic": {"z": 1}}, "periodic names 'z', which is no real state: x"),
        ({"periodic": {"x": 0}}, r"periodic\['x'\] must be finite and above 0"),
    ],
)
def test_bad_choices_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read(GAP, **options)


def test_choices_that_need_times_say_so():
    for options in ({"gaps": "split"}, {"gap": 1}, {"missing": "interpolate", "max_gap": 1}):
        with pytest.raises(ValueError, match=r"needs a column of times \(time\)"):
            read(frame(x=[0.0, 1.0]), **options)
    dates = frame(t=pd.date_range("2020", periods=5), x=np.arange(5.0))
    with pytest.raises(ValueError, match="gap='soon' is no duration; write it like '6h'"):
        read(dates, gap="soon")
    with pytest.raises(ValueError, match=r"too few steps in time .*give interval"):
        read(GAP.iloc[:2], gaps="resample")


def test_options_are_told_from_those_of_the_reader():
    cleaning, rest = Cleaning.among({"missing": "drop", "sep": ";"})
    assert cleaning == Cleaning(missing="drop")
    assert rest == {"sep": ";"}
