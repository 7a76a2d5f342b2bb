"""Columns that may tell trajectories apart."""

import numpy as np
import pandas as pd
import pytest

from onlooker.reading.guess import geographic_columns, trajectory_columns

NAMES = np.repeat(["a", "b", "c"], 10)


@pytest.mark.parametrize(
    ("column", "noted"),
    [
        (NAMES, True),
        (np.repeat([7, 3], 15), True),
        (np.repeat(["a", None, "c"], 10), True),
        (np.tile(["a", "b", "c"], 10), False),  # not together
        (np.repeat(["a"], 30), False),
        (np.arange(30), False),
        (np.repeat(np.arange(15), 2), False),  # too many
        (np.repeat([0.5, 1.5], 15), False),
        (np.repeat([True, False], 15), False),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet"])
def test_names_are_text_or_whole_numbers_that_stand_together(column, noted, kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    frame = pd.DataFrame({"x": NAMES, "t": NAMES, "the id": column})
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    expected = [("the id", pd.Series(column).nunique(), None)]
    assert trajectory_columns(path, ["x", "t"]) == expected * noted


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_only_the_first_rows_are_looked_at_and_that_is_told(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("onlooker.reading.guess._ROWS", 25)
    frame = pd.DataFrame({"x": 0.0, "id": NAMES})
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        frame.to_csv(path)
    else:
        frame.to_parquet(path)
    assert trajectory_columns(path, ["x"]) == [("id", 3, 25)]


def test_files_without_columns_have_none_to_note(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    assert trajectory_columns(tmp_path / "a.npy", []) == []


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (["lon", "lat"], ["lon", "lat"]),
        (["Latitude", "Longitude"], ["Longitude", "Latitude"]),
        (["location-long", "location-lat"], ["location-long", "location-lat"]),
        (["x", "y"], None),
        (["belong", "flat"], None),
    ],
)
def test_columns_of_places_on_earth_are_known_by_their_names_and_values(columns, found):
    states = np.array([[10.0, 60.0], [11.0, 61.0]])
    assert geographic_columns(columns, states) == found
    assert geographic_columns(columns, 1e5 * states) is None  # metres, whatever they are called
    assert geographic_columns(columns[:1], states[:, :1]) is None
