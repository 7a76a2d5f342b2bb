"""GPX files: segments, names, times, metres; malformed ones refused by their line."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.warnings import TrackWarning

HEAD = '<?xml version="1.0"?>\n<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">\n'


def point(lon, lat, time=None):
    inside = "" if time is None else f"<ele>3</ele><time>{time}</time>"
    return f'<trkpt lat="{lat}" lon="{lon}">{inside}</trkpt>\n'


def segment(*points):
    return "<trkseg>\n" + "".join(points) + "</trkseg>\n"


WALK = (
    HEAD
    + "<metadata><name>not this</name><time>1999-01-01T00:00:00Z</time></metadata>\n"
    + "<trk><name>Walk &amp; swim</name>\n"
    + segment(
        point(8.0, 47.0, "2020-05-01T10:00:00Z"),
        point(8.001, 47.0, "2020-05-01T10:00:10.5Z"),
        point(8.001, 47.001, "2020-05-01T12:00:21+02:00"),
    )
    + segment(point(9.0, 48.0, "2020-05-01T11:00:00"), point(9.1, 48.1, "2020-05-01T11:00:10"))
    + "</trk>\n<trk>"
    + segment(point(1.0, 2.0, "2020-06-01T00:00:00Z"), point(3.0, 4.0, "2020-06-01T00:00:10Z"))
    + "</trk></gpx>\n"
)


@pytest.fixture
def gpx(tmp_path):
    def write(text):
        path = tmp_path / "walk.gpx"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_segments_are_trajectories_with_the_name_of_their_track(gpx):
    demos = Demonstrations.from_gpx(gpx(WALK))
    assert demos.names.tolist() == ["Walk & swim", "Walk & swim", "track 2"]
    assert demos[0].tolist() == [[8.0, 47.0], [8.001, 47.0], [8.001, 47.001]]
    assert demos.lengths.tolist() == [3, 2, 2]
    since = (demos.times - np.datetime64("2020-05-01T10:00:00")) / np.timedelta64(1, "s")
    assert since[:5].tolist() == [0, 10.5, 21, 3600, 3610]  # all in UTC, said or not
    assert demos.reading.untouched
    assert Demonstrations.read(gpx(WALK)) == demos


def test_files_without_a_name_space_and_in_other_encodings_are_read(gpx):
    text = '<?xml version="1.0" encoding="latin-1"?><gpx><trk><name>Zoë</name>' + segment(
        point(1, 2), point(3, 4)
    )
    demos = Demonstrations.from_gpx(gpx((text + "</trk></gpx>").encode("latin-1")))
    assert demos.names.tolist() == ["Zoë"]
    assert demos.times is None


def test_metres_are_counted_east_and_north_of_the_origin(gpx):
    demos = Demonstrations.from_gpx(gpx(WALK), metres=True, origin=(8.0, 47.0))
    degree = np.radians(1) * 6_371_008.8
    np.testing.assert_allclose(demos[0][0], [0, 0], atol=1e-6)
    np.testing.assert_allclose(
        demos[0][2], [0.001 * degree * np.cos(np.radians(47)), 0.001 * degree], rtol=1e-4
    )
    assert "Metres east and north of longitude 8.000000, latitude 47" in str(demos.reading)


def test_the_middle_of_tracks_across_the_date_line_is_at_the_date_line(gpx):
    text = HEAD + "<trk>" + segment(point(179.99, 0), point(-179.99, 0)) + "</trk></gpx>"
    demos = Demonstrations.from_gpx(gpx(text), metres=True)
    np.testing.assert_allclose(np.abs(demos.states[:, 0]), 1112, rtol=1e-3)


def test_resampling_crosses_the_date_line_without_being_told(gpx):
    points = [point(lon, 0, f"2020-01-01T00:00:{s}") for lon, s in ((179, "00"), (-179, "20"))]
    path = gpx(HEAD + "<trk>" + segment(*points) + "</trk></gpx>")
    demos = Demonstrations.from_gpx(path, gaps="resample", interval="10s")
    assert np.abs(demos.states[:, 0]).tolist() == [179, 180, 179]


def test_cleaning_applies_and_names_the_line(gpx):
    points = [point(8, 47 + k / 1000, f"2020-05-01T10:00:{k:02d}Z") for k in range(6)]
    points[3] = point("NaN", 47, "2020-05-01T10:00:03Z")
    path = gpx(HEAD + "<trk>" + segment(*points) + "</trk></gpx>")
    with pytest.raises(ValueError, match="no value of 'lon' in the track point at line 7;"):
        Demonstrations.from_gpx(path)
    assert Demonstrations.from_gpx(path, missing="split").lengths.tolist() == [3, 2]
    points[3] = point(8, 47)
    path = gpx(HEAD + "<trk>" + segment(*points) + "</trk></gpx>")
    with pytest.raises(ValueError, match="no value of 'time' in the track point at line 7;"):
        Demonstrations.from_gpx(path)


def test_a_segment_of_a_single_point_is_left_out_with_a_warning(gpx):
    path = gpx(
        HEAD + "<trk>" + segment(point(1, 2)) + segment(point(1, 2), point(3, 4)) + "</trk></gpx>"
    )
    with pytest.warns(TrackWarning, match="left out 1 trajectory of a single row"):
        assert len(Demonstrations.from_gpx(path)) == 1


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>\n<gpx><trk><name>&i;</name></trk></gpx>"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"walk\.gpx, line 2: a document type \(DOCTYPE\) is declared"),
        ("", r"walk\.gpx, line 1: not well-formed XML \(no element found\)"),
        ("x,y\n1,2\n", r"line 1: not well-formed XML \(syntax error\)"),
        ("<html>\n<body></body></html>", "line 1: not a GPX file: it starts with <html>"),
        (WALK[:-20], r"line \d+: not well-formed XML"),
        (WALK.replace("</trkseg>", "</trkpt>", 1), "line 9: not well-formed XML .mismatched tag"),
        (WALK.replace('lat="47.0" ', "", 1), "line 6: a <trkpt> without lat"),
        (WALK.replace('lon="8.0"', 'lon="east"'), "line 6: lon='east' is not a number"),
        (WALK.replace('lat="47.0"', 'lat="147"', 1), "line 6: lat='147' is beyond 90 degrees"),
        (WALK.replace("2020-05-01T10:00:00Z", "noon"), "line 6: 'noon' is not an ISO date"),
        (HEAD + "<trk>" + point(1, 2) + "</trk></gpx>", "line 3: a <trkpt> outside of a <trkseg>"),
        (HEAD + "</gpx>", r"walk\.gpx holds no track point$"),
        (HEAD + "<rte></rte></gpx>", "no track point .it has routes, which are plans"),
    ],
)
def test_malformed_files_are_refused_by_their_line(gpx, text, message):
    with pytest.raises(ValueError, match=message):
        Demonstrations.from_gpx(gpx(text))


def test_an_origin_without_metres_is_refused(gpx):
    with pytest.raises(ValueError, match="origin is where metres are counted from"):
        Demonstrations.from_gpx(gpx(WALK), origin=(0, 0))
