"""Tables into trajectories: data frames, CSV, parquet."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trajectories import any_trajectories, quick

from onlooker import Demonstrations, checks

from_dataframe = Demonstrations.from_dataframe


def as_frame(trajectories):
    """One state a row, with a name for each trajectory and a time."""
    frames = []
    for index, states in enumerate(trajectories):
        columns = dict(zip("xyz", np.atleast_2d(np.asarray(states).T), strict=False))
        frames.append(pd.DataFrame({"id": f"t{index}", "t": range(len(states)), **columns}))
    return pd.concat(frames, ignore_index=True)


def state_columns(trajectories):
    states = np.asarray(trajectories[0])
    return ["x"] if states.ndim == 1 else list("xyz"[: states.shape[1]])


@quick
@given(any_trajectories, st.randoms(use_true_random=False))
def test_shuffled_rows_are_put_in_order_by_time(trajectories, random):
    frame = as_frame(trajectories)
    rows = list(range(len(frame)))
    random.shuffle(rows)
    frame = frame.iloc[rows]
    demos = from_dataframe(frame, state_columns(trajectories), "id", "t")
    appearance = [int(name[1:]) for name in frame["id"].unique()]
    assert demos == Demonstrations([trajectories[i] for i in appearance])


@quick
@given(any_trajectories)
def test_csv_and_parquet_bring_the_trajectories_back(tmp_path_factory, trajectories):
    folder = tmp_path_factory.mktemp("tables")
    frame, columns = as_frame(trajectories), state_columns(trajectories)
    frame["unused"] = "?"
    expected = Demonstrations(trajectories)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_parquet(folder / "t.parquet")
    read = Demonstrations.from_csv(folder / "t.csv.gz", columns, trajectory="id", time="t")
    np.testing.assert_array_equal(read.offsets, expected.offsets)
    np.testing.assert_allclose(read.states, expected.states, rtol=1e-15)  # pandas may lose a bit
    assert Demonstrations.from_parquet(folder / "t.parquet", columns, "id", "t") == expected


def test_without_time_rows_keep_their_order_even_interleaved():
    frame = pd.DataFrame({"x": [0, 10, 1, 11, 2], "id": ["a", "b", "a", "b", "a"]})
    assert [t.tolist() for t in from_dataframe(frame, "x", "id")] == [[0, 1, 2], [10, 11]]


def test_without_a_trajectory_column_the_table_is_one_trajectory():
    assert len(from_dataframe(pd.DataFrame({"x": [0, 1, 2]}), "x")) == 1


@pytest.mark.parametrize(
    "ids",
    [
        ["b", "b", "a", "a"],
        pd.Categorical(["b", "b", "a", "a"], categories=["a", "b", "unused"]),
        [2.5, 2.5, 1.5, 1.5],
        pd.to_datetime(["2020-01-02", "2020-01-02", "2020-01-01", "2020-01-01"]),
        pd.array([7, 7, 3, 3], dtype="Int64"),
    ],
)
def test_trajectories_of_any_name_keep_the_order_of_their_appearance(ids):
    frame = pd.DataFrame({"x": [0, 1, 2, 3], "id": ids})
    assert [t.tolist() for t in from_dataframe(frame, "x", "id")] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "times",
    [
        ["10", "9", "1"],  # as text, "10" would come before "9"
        [3, 2, 1],
        [2**60 + 2, 2**60 + 1, 2**60],  # more digits than a float holds
        ["2020-10-01", "2020-09-30", "2019-12-31"],
        ["2020-01-01T00:00:00-05:00", "2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00+05:00"],
        pd.to_datetime(["2020-10-01", "2020-09-30", "2019-12-31"]),
        pd.to_timedelta([3, 2, 1], unit="h"),
        pd.Categorical(["10", "9", "1"]),
        pd.Categorical(["late", "mid", "early"], ["early", "mid", "late"], ordered=True),
        np.array([3, 2.5, 1], dtype=object),
    ],
)
def test_times_sort_by_what_they_mean(times):
    frame = pd.DataFrame({"x": [0, 1, 2], "t": times})
    assert from_dataframe(frame, "x", time="t")[0].tolist() == [2, 1, 0]


def test_an_odd_index_of_the_frame_does_not_matter():
    frame = pd.DataFrame({"x": [5, 6, 7], "t": [2, 1, 0]}, index=[9, 9, 3])
    assert from_dataframe(frame, "x", time="t")[0].tolist() == [7, 6, 5]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "Int64", "int64[pyarrow]"])
def test_one_column_of_integers_gives_integer_states(dtype):
    demos = from_dataframe(pd.DataFrame({"s": pd.array([3, 1, 2], dtype=dtype)}), "s")
    assert demos.is_discrete
    assert demos[0].tolist() == [3, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "Float64", "double[pyarrow]"])
def test_floats_give_real_states(dtype):
    demos = from_dataframe(pd.DataFrame({"s": pd.array([3, 1, 2], dtype=dtype)}), ["s"])
    assert demos.states.tolist() == [[3.0], [1.0], [2.0]]


def test_integer_and_float_columns_mix_to_vectors():
    demos = from_dataframe(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), ["b", "a"])
    assert demos[0].tolist() == [[0.5, 1.0], [1.5, 2.0]]


def test_positive_and_negative_zero_of_a_table_are_one_state():
    demos = from_dataframe(pd.DataFrame({"x": [-0.0, 1.0, 0.0]}), "x")
    assert not np.signbit(demos.states).any()


FRAME = pd.DataFrame(
    {
        "s": [0, 1, 2, 3],
        "hole": [0.0, 1.0, np.nan, 3.0],
        "inf": [0.0, np.inf, 1.0, 2.0],
        "word": ["1", "2", "oops", "3"],
        "bool": [True, False, True, False],
        "kind": pd.Categorical(["a", "b", "a", "b"]),
        "Int": pd.array([0, None, 2, 3], dtype="Int64"),
        "minus": [0, 1, -2, 3],
        "id": ["a", "a", "a", "b"],
        "noid": ["a", None, "a", "b"],
        "twice": [0, 1, 1, 2],
        "slash": ["1/2/2020", "2/2/2020", "3/2/2020", "4/2/2020"],
        "mixed": [0, "b", 1, 2],
    }
)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"states": "nope"}, ValueError, "no column 'nope'; it has s, hole"),
        ({"states": []}, ValueError, "states names no column"),
        ({"states": ["s", "s"]}, ValueError, "states names column 's' twice"),
        ({"states": [["s"]]}, TypeError, r"named by one string, got \['s'\]"),
        ({"states": "s", "trajectory": ["id"]}, TypeError, r"named by one string, got \['id'\]"),
        ({"states": "hole"}, ValueError, "no value of 'hole' in row 2; .*fill it in or drop"),
        ({"states": ["s", "inf"]}, ValueError, "column 'inf' holds inf in row 1; .*drop the row"),
        ({"states": "Int"}, ValueError, "no value of 'Int' in row 1"),
        (
            {"states": "word"},
            ValueError,
            r"column 'word' .*, got text \('oops' in row 2\); convert",
        ),
        ({"states": "bool"}, ValueError, "column 'bool' must hold numbers, got bool"),
        ({"states": "kind"}, ValueError, "column 'kind' must hold numbers, .*integer codes"),
        ({"states": "minus"}, ValueError, "'minus' holds the negative state -2 in row 2;"),
        ({"states": "s", "trajectory": "noid"}, ValueError, "no value of 'noid' in row 1"),
        ({"states": "s", "time": "hole"}, ValueError, "no value of 'hole' in row 2"),
        ({"states": "s", "trajectory": "s"}, ValueError, "'s' tells trajectories apart: .*leave"),
        ({"states": "s", "time": "twice"}, ValueError, "row 1 and row 2 .*same 'twice', 1"),
        ({"states": "s", "time": "slash"}, ValueError, "'1/2/2020' in row 0.*a date such as"),
        ({"states": "s", "time": "mixed"}, ValueError, "column 'mixed' holds .* in row"),
    ],
)
def test_bad_columns_are_refused_by_name_row_and_remedy(arguments, error, message):
    with pytest.raises(error, match=message):
        from_dataframe(FRAME, **arguments)


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="frame must be a pandas DataFrame, got dict"):
        from_dataframe({"x": [1, 2]}, "x")
    with pytest.raises(ValueError, match="the table has no rows"):
        from_dataframe(pd.DataFrame({"x": []}), "x")
    with pytest.raises(ValueError, match="has 2 columns 'x'; rename"):
        from_dataframe(pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), "x")


def test_the_same_time_in_two_trajectories_is_no_repetition():
    frame = pd.DataFrame({"x": [0, 1, 2, 3], "id": [1, 1, 2, 2], "t": [0, 1, 0, 1]})
    assert len(from_dataframe(frame, "x", "id", "t")) == 2


def test_columns_may_be_named_by_number():
    frame = pd.DataFrame([[1, 0.5], [2, 1.5]])
    assert from_dataframe(frame, 0)[0].tolist() == [1, 2]


@pytest.fixture
def csv(tmp_path):
    def write(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write


def test_options_reach_the_reader(csv):
    path = csv("1;2\n3;4\n5;6\n")
    demos = Demonstrations.from_csv(path, states=[0, 1], header=None, sep=";", nrows=2)
    assert demos[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert Demonstrations.from_csv(path, states="1", sep=";", usecols=["1"])[0].tolist() == [3, 5]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("x,y\n", {}, "the table has no rows"),
        ("a,b\n1,2\n", {}, "table.csv has no column 'x'; it has a, b"),
        ("a,b\n1,2\n", {"nrows": 1}, "has no column 'x'; it has a, b"),
        ("1,2\n", {"header": None}, "has no column 'x'; it has 0, 1"),
        ("x;y\n1;2\n3;4\n", {}, "has no column 'x'; it has x;y"),
        ('x\n1\n"2\n', {}, "is not a CSV file"),
        ("x\n1\n2\n", {"chunksize": 1}, "chunksize reads .*leave it out"),
        ("x\n1\nabc\n", {}, r"column 'x' .*\('abc' in row 1 \(line 3 of"),
        ("x\n1\n\n2\nNA\n", {}, r"no value of 'x' in row 2 \(line 5 of the file\)"),
    ],
)
def test_bad_csv_files_are_refused_by_name_and_remedy(csv, text, options, message):
    with pytest.raises(ValueError, match=message):
        Demonstrations.from_csv(csv(text), states="x", **options)


def test_bad_parquet_files_are_refused_by_name(tmp_path):
    (tmp_path / "text.parquet").write_text("x,y")
    with pytest.raises(ValueError, match=r"cannot read .*text.parquet"):
        Demonstrations.from_parquet(tmp_path / "text.parquet", "x")
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t.parquet has no column 'z'; it has x$"):
        Demonstrations.from_parquet(tmp_path / "t.parquet", "z")


def test_missing_files_are_missing_files(tmp_path):
    for read in (Demonstrations.from_csv, Demonstrations.from_parquet):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nowhere", "x")


def test_a_small_parquet_file_with_too_many_rows_is_refused_before_it_is_read(
    tmp_path, monkeypatch
):
    file = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.zeros(10**6), "y": 0.0}).to_parquet(file)
    assert file.stat().st_size < 10**5
    monkeypatch.setattr(checks, "machine_memory", lambda: 10**7)
    with pytest.raises(ValueError, match=r"1,000,000 rows would take.*split the file"):
        Demonstrations.read(file, ["x", "y"])
