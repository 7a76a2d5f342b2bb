"""Hard CSV input: large, cut into pieces, broken, or no CSV at all."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trajectories import quick

from onlooker import Demonstrations, checks, files
from onlooker.reading import csv as _csv_reader

from_csv = Demonstrations.from_csv


@pytest.fixture
def csv(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x\n1\n2\n")
    return file.getvalue()


@pytest.fixture
def pieces(monkeypatch):
    """Read this many rows at a time."""
    return lambda rows: monkeypatch.setattr(_csv_reader, "_CHUNK", rows)


# -- piece by piece ------------------------------------------------------------------------------

numbers = st.sampled_from(["0", "7", "3.0", "2.5", "-0.0", "", "NaN", "inf", "1e3"])
lines = st.lists(
    st.tuples(st.sampled_from(["7", "07", "7.0", "a b", "x"]), numbers, numbers),
    min_size=1,
    max_size=12,
)


def outcome(path, states):
    """What reading gives, or says."""
    try:
        demos = from_csv(path, states, "id", missing="drop")
    except ValueError as error:
        return str(error)
    kept = [trajectory.tolist() for trajectory in demos]
    return demos.names.tolist(), kept, demos.states.dtype, demos.reading


@quick
@given(lines, st.sampled_from([1, 2, 5]))
@pytest.mark.filterwarnings("ignore::onlooker.warnings.TrackWarning")
def test_where_a_file_is_cut_into_pieces_does_not_matter(tmp_path_factory, lines, rows):
    path = tmp_path_factory.mktemp("pieces") / "table.csv"
    path.write_text("id,x,y\n" + "".join(",".join(line) + "\n" for line in lines))
    for states in ("x", ["x", "y"]):
        whole = outcome(path, states)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv_reader, "_CHUNK", rows)
            assert outcome(path, states) == whole


def test_trajectories_are_told_apart_by_their_text(csv, pieces):
    pieces(2)
    demos = from_csv(csv("id,x\n07,1\n07,2\n7,3\n7,4\n7.0,5\n7.0,6\n"), "x", "id")
    assert demos.names.tolist() == ["07", "7", "7.0"]


def test_whole_numbers_with_holes_stay_whole_numbers(csv, pieces):
    path = csv("x\n1\n\n2\nNA\n3\n")
    for rows in (1, 2, 100):
        pieces(rows)
        demos = from_csv(path, "x", missing="drop")
        assert demos.is_discrete
        assert demos[0].tolist() == [1, 2, 3]


def test_holes_among_whole_numbers_are_holes_where_later_numbers_are_not_whole(csv, pieces):
    for rows in (2, 3, 100):
        pieces(rows)
        demos = from_csv(csv("x,note\n1,a\n,b\n2.5,c\n"), "x", missing="interpolate")
        assert demos.states.ravel().tolist() == [1.0, 1.75, 2.5]


def test_text_late_in_a_file_is_found_by_its_line(csv, pieces):
    path = csv("x,y\n" + "1,2\n" * 50 + "1,two\n" + "3,4\n" * 50)
    for rows in (7, 1000):
        pieces(rows)
        with pytest.raises(ValueError, match=r"\('two' in row 50 \(line 52 of the file\)\)"):
            from_csv(path, ["x", "y"])


def test_dates_among_numbers_are_refused_wherever_the_file_is_cut(csv, pieces):
    path = csv("t,x\n1,0\n2,0\n3,0\n2020-01-04,0\n")
    for rows in (1, 3, 4):
        pieces(rows)
        with pytest.raises(ValueError, match=r"column 't' .*row 3 \(line 5 of the file\)"):
            from_csv(path, "x", time="t")


def test_times_may_be_missing_in_a_whole_piece(csv, pieces):
    pieces(2)
    text = "t,x\n,1\n,2\n2020-01-01,3\n2020-01-02T00:00Z,4\n2020-01-03,5\n"
    demos = from_csv(csv(text), "x", time="t", missing="drop")
    assert demos[0].tolist() == [3, 4, 5]
    assert (
        demos.times.tolist() == pd.date_range("2020-01-01", periods=3).as_unit("ns").asi8.tolist()
    )


# -- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,note\n1,a\n,b\n", 3),
        ("x,note\n1,a\n\n\n,b\n", 5),  # blank lines are no rows
        ('x,note\n1,"two\nlines"\n,b\n', 4),  # a quoted line break is no row either
        ("x,note\r\n1,a\r\n,b\r\n", 3),
    ],
)
def test_messages_give_the_line_of_the_file(csv, text, line):
    message = rf"no value of 'x' in row 1 \(line {line} of the file\)"
    with pytest.raises(ValueError, match=message):
        from_csv(csv(text), "x")
    with pytest.raises(ValueError, match=message):
        from_csv(csv(gzip.compress(text.encode()), "table.csv.gz"), "x")


def test_where_lines_are_unclear_rows_are_counted_from_the_header(csv):
    with pytest.raises(ValueError, match=r"in row 0 \(counted from 0 below the header\)"):
        from_csv(csv("# made by hand\nx\n\nNA\n1\n"), "x", comment="#")


def test_several_rows_are_listed(csv):
    with pytest.raises(
        ValueError, match=r"\(line 2 of the file\) \(7 rows in all: 0, 1, 2, 3, 4, \.\.\.\)"
    ):
        from_csv(csv("x,y\n" + ",1\n" * 7), "x")


# -- rows that do not fit ------------------------------------------------------------------------


def test_rows_with_more_fields_than_the_header_are_refused_not_shifted(csv):
    for text in ("x,y\n1,2,3\n4,5,6\n", "x,y\n1,2,\n4,5,\n"):
        with pytest.raises(ValueError, match=r"more fields than its header; .*index_col=False"):
            from_csv(csv(text), ["x", "y"])
    demos = from_csv(csv("x,y\n1,2,\n4,5,\n"), ["x", "y"], index_col=False)
    assert demos[0].tolist() == [[1, 2], [4, 5]]


def test_a_single_row_with_too_many_fields_is_refused_by_its_line(csv):
    with pytest.raises(
        ValueError, match="is not a CSV file: line 4 has 3 fields, those before it have 2"
    ):
        from_csv(csv("x,y\n1,2\n3,4\n5,6,7\n"), ["x", "y"])


def test_a_row_with_too_few_fields_is_missing_a_value(csv):
    with pytest.raises(ValueError, match=r"no value of 'y' in row 1 \(line 3 of the file\)"):
        from_csv(csv("x,y\n1,2\n3\n5,6\n"), ["x", "y"])


def test_two_columns_of_one_name_are_refused(csv):
    with pytest.raises(ValueError, match="several columns 'x'; rename"):
        from_csv(csv("x,y,x\n1,2,3\n4,5,6\n"), "x")
    demos = from_csv(csv("x,y,x.1\n1,2,3\n4,5,6\n"), "x")  # that is a name as any other
    assert demos[0].tolist() == [1, 4]


def test_a_column_may_be_state_and_time_but_not_state_and_trajectory(csv):
    path = csv("t,x\n2,5\n1,6\n")
    assert from_csv(path, ["t", "x"], time="t")[0].tolist() == [[1, 6], [2, 5]]
    with pytest.raises(ValueError, match="'x' tells trajectories apart"):
        from_csv(path, ["t", "x"], trajectory="x")


# -- no CSV at all -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "t.csv", "is empty"),
        (b"\n\n", "t.csv", "is empty"),
        (b"\n <!DOCTYPE html><html><body>Not found</body></html>", "t.csv", "HTML and XML"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "t.csv", "byte 8 is zero, as in binary files"),
        (bytes(range(256)), "t.csv", "byte 0 is zero"),
        ("x,y\n1,2\n3,4\n".encode("utf-16"), "t.csv", "give encoding='utf-16'"),
        ("x,name\n1,Zoë\n2,b\n".encode("latin-1"), "t.csv", "not a CSV file in UTF-8.*encoding$"),
        (gzip.compress(b"x\n1\n2\n" * 99, mtime=0)[:-12], "t.csv.gz", "cannot be unpacked"),
        (b"x\n1\n2\n", "t.csv.gz", "cannot be unpacked: Not a gzipped file"),
        (b"x\n1\n2\n", "t.csv.zip", "cannot be unpacked: File is not a zip file"),
        (zipped("a.csv", "b.csv"), "t.csv.zip", "cannot be unpacked: it holds 2 files, not one"),
        (b"just some words\nand more of them\n", "t.csv", "has no column 'x'; it has just some"),
    ],
)
def test_what_is_no_csv_is_refused_by_what_it_is(csv, content, name, message):
    with pytest.raises(ValueError, match=message):
        from_csv(csv(content, name), "x")


def test_other_encodings_are_read_when_named(csv):
    path = csv("x;name\n1;Zoë\n2;Zoë\n".encode("latin-1"))
    assert from_csv(path, "x", "name", sep=";", encoding="latin-1").names.tolist() == ["Zoë"]
    path = csv("x\n1\n2\n".encode("utf-16"))
    assert from_csv(path, "x", encoding="utf-16")[0].tolist() == [1, 2]


def test_other_engines_and_separators_are_pandas_business(csv):
    path = csv("x | y\n1 | 2\n3 | 4\n")
    demos = from_csv(path, ["x", "y"], sep=r"\s*\|\s*", engine="python")
    assert demos[0].tolist() == [[1, 2], [3, 4]]


# -- memory --------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from onlooker import Demonstrations
demos = Demonstrations.from_csv(sys.argv[1], ["x", "y"], "id", "t")
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
print(len(demos.states), 1024 * peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_reading_takes_at_most_four_times_the_memory_of_the_file(tmp_path):
    """What reading adds to a process that read a file of two rows; see benchmarks for 5 million."""
    n, rng = 400_000, np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(n) // 500, "t": np.arange(n) % 500})
    table[["x", "y"]] = rng.normal(size=(n, 2)).round(4)
    table = table.sample(frac=1, random_state=0)  # the worst case: all has to be sorted
    peaks = []
    for name, rows in (("small.csv", table[table["id"] == 0]), ("large.csv", table)):
        rows.to_csv(tmp_path / name, index=False)
        command = [sys.executable, "-c", MEASURE, str(tmp_path / name)]
        read, peak = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(read) == len(rows)
        peaks.append(int(peak))
    assert peaks[1] - peaks[0] < 4 * (tmp_path / "large.csv").stat().st_size


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
@pytest.mark.parametrize("line", ["0,0\n", "0"], ids=["many rows", "one endless field"])
def test_a_packed_file_that_unpacks_to_more_than_it_may_is_refused(
    suffix, line, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "_MAX_UNPACKED", 10**6)
    file = tmp_path / f"t.csv{suffix}"
    text = "x,y\n" + line * (10**7 // len(line))
    if suffix == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("t.csv", text)
    else:
        opener = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[suffix]
        with opener(file, "wt") as packed:
            packed.write(text)
    with pytest.raises(ValueError, match=r"t\.csv.*it would unpack to 0\.0 GiB"):
        Demonstrations.from_csv(file, states=["x", "y"])
    monkeypatch.setattr(files, "_MAX_UNPACKED", 10**9)
    if line.endswith("\n"):
        assert len(Demonstrations.from_csv(file, states=["x", "y"]).states) == 10**7 // 4


def test_more_rows_than_memory_has_room_for_are_refused_as_they_come(csv, monkeypatch):
    """However many a packed file holds: it does not say."""
    path = csv("x,y\n" + "0,0\n" * 200_000)
    monkeypatch.setattr(checks, "machine_memory", lambda: 10**7)
    with pytest.raises(ValueError, match=r"table\.csv: its 131,072 rows would take about 0\.0 GB"):
        Demonstrations.read(path, states=["x", "y"])
    monkeypatch.setattr(checks, "machine_memory", lambda: 10**9)
    assert len(Demonstrations.read(path, states=["x", "y"]).states) == 200_000
