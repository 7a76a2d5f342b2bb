"""How a CSV file is written is seen from its beginning, and said."""

import gzip

import pytest

from onlooker import Demonstrations
from onlooker.checks import SettingError

ROWS = [("Zoë", 0.5, 1.25), ("Zoë", 1.5, 2.0), ("Al", 7.0, 3.5), ("Al", 8.0, 4.5)]


def written(separator=",", point=".", head="name,x,y"):
    lines = [head.replace(",", separator)]
    lines += [separator.join([n, *(str(v).replace(".", point) for v in vs)]) for n, *vs in ROWS]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("content", "name", "notes"),
    [
        (written().encode(), "t.csv", []),
        (b"\xef\xbb\xbf" + written().encode(), "t.csv", []),
        (written().encode("latin-1"), "t.csv", ["The text is not UTF-8: read as Windows-1252."]),
        (written().encode("utf-16"), "t.csv", ["The text is not UTF-8: read as UTF-16."]),
        (written(";").encode(), "t.csv", ["Columns are separated by semicolons."]),
        (written("|").encode(), "t.txt", ["Columns are separated by bars."]),
        (written("\t").encode(), "t.tsv", []),
        (written("\t").encode(), "t.csv", ["Columns are separated by tabs."]),
        (
            gzip.compress(written(";", ",").encode("latin-1"), mtime=0),
            "t.csv.gz",
            [
                "The text is not UTF-8: read as Windows-1252.",
                "Columns are separated by semicolons.",
                "Numbers have a decimal comma.",
            ],
        ),
        (written("\t", ",").encode(), "t.tsv", ["Numbers have a decimal comma."]),
    ],
)
def test_a_table_is_read_as_it_looks_and_what_is_unusual_is_said(tmp_path, content, name, notes):
    path = tmp_path / name
    path.write_bytes(content)
    demos = Demonstrations.read(path, ["x", "y"], "name")
    assert demos.names.tolist() == ["Zoë", "Al"]
    assert demos[0].tolist() == [[0.5, 1.25], [1.5, 2.0]]
    assert list(demos.reading.notes) == notes
    assert all(note in str(demos.reading) for note in notes)


def test_what_is_given_is_not_looked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(written(";", ",").encode("latin-1"))
    given = {"encoding": "latin-1", "sep": ";", "decimal": ","}
    assert Demonstrations.read(path, ["x", "y"], "name", **given).reading.notes == ()
    with pytest.raises(SettingError, match=r"not a CSV file in utf-8: .*give encoding$"):
        Demonstrations.read(path, ["x", "y"], "name", encoding="utf-8")
    with pytest.raises(SettingError, match="unknown encoding: klingon; encoding is a name such as"):
        Demonstrations.read(path, ["x", "y"], "name", encoding="klingon")


def test_semicolons_within_text_are_no_separators(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,note\n1.5,a;b\n2.5,c\n")
    assert Demonstrations.read(path, "x").reading.notes == ()


def test_a_character_cut_by_the_end_of_what_is_looked_at_is_no_other_encoding(
    tmp_path, monkeypatch
):
    path = tmp_path / "t.csv"
    path.write_text("x,name\n" + "1.5,Zoë\n" * 40, encoding="utf-8")
    for size in range(100, 120):
        monkeypatch.setattr("onlooker.reading.sniff._HEAD", size)
        assert Demonstrations.read(path, "x").reading.notes == ()


def test_a_table_without_named_columns_lists_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(written(";", ",").encode("latin-1"))
    with pytest.raises(SettingError, match=r"by states; its columns: name, x, y$"):
        Demonstrations.read(path)
