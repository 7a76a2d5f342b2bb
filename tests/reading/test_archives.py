"""NumPy archives as trajectories: an array each, or what `Demonstrations.save` wrote."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.reading.archives import from_arrays
from onlooker.warnings import TrackWarning


def test_every_array_is_a_trajectory():
    tracks = from_arrays("a.npz", [np.arange(3), np.arange(2)], ["up", "down"])
    assert tracks.states.tolist() == [0, 1, 2, 0, 1]
    assert tracks.offsets.tolist() == [0, 3, 5]
    assert tracks.names.tolist() == ["up", "down"]


def test_without_names_trajectories_are_numbered():
    assert from_arrays("a.npy", [np.arange(3), np.arange(2)], None).names.tolist() == ["0", "1"]


def test_arrays_of_fewer_than_two_states_are_left_out_with_a_warning():
    with pytest.warns(TrackWarning, match=r"left out 1 trajectory of .* \(b\)"):
        tracks = from_arrays("a.npz", [np.arange(2), np.arange(1)], ["a", "b"])
    assert tracks.names.tolist() == ["a"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "a.npz holds no trajectory$"),
        ([np.arange(1)], "a.npz holds no trajectory with two states"),
        ([np.array(3)], "a.npz: trajectory '0' must be"),
    ],
)
def test_what_holds_no_trajectory_is_refused_by_name(arrays, message):
    with pytest.raises((ValueError, TypeError), match=message):
        from_arrays("a.npz", arrays, None)


def test_what_is_saved_is_read_again(tmp_path):
    demos = Demonstrations([np.ones((3, 2)).cumsum(axis=0), np.ones((2, 2))], names=["a", "b"])
    demos.save(tmp_path / "t.npz")
    assert Demonstrations.load(tmp_path / "t.npz") == demos
