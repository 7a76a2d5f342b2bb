"""How a file of tracks is read, as it is stored with a run."""

import pytest

from onlooker.checks import SettingError
from onlooker.reading.settings import Reading


def test_settings_come_back_from_json_also_under_the_names_of_earlier_versions():
    reading = Reading(states=["x"], time="t", cleaning={"gaps": "resample", "interval": 2})
    assert Reading.from_dict(reading.to_dict()) == reading
    former = reading.to_dict() | {"cleaning": {"gaps": "resample", "every": 2, "longest": 5}}
    assert Reading.from_dict(former).cleaning == {"gaps": "resample", "interval": 2, "max_gap": 5}


def test_errors_name_the_file_once_and_keep_their_settings(tmp_path):
    path = tmp_path / "tracks.csv"
    path.write_text('x\n0.5\n""\n1.5\n')
    with pytest.raises(SettingError, match=r"tracks\.csv: no value of 'x'") as caught:
        Reading(states=["x"]).read(path)
    assert "missing=infer" in caught.value.worded(lambda s: f"{s.argument}={s.values[-1]}")
    with pytest.raises(ValueError, match=r"^\S*tracks\.csv has no column 'y'"):
        Reading(states=["y"]).read(path)


def test_whole_numbers_are_positions_where_the_model_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("x\n3\n4\n6\n")
    assert Reading(states=["x"], line=True).read(tmp_path / "t.csv").states.tolist() == [
        [3.0],
        [4.0],
        [6.0],
    ]
    assert Reading(states=["x"]).read(tmp_path / "t.csv").states.tolist() == [3, 4, 6]
