"""What was seen: validated, indexed, read and written."""

import copy
import doctest
import importlib
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils import _safe_indexing
from trajectories import any_trajectories, quick

from onlooker import Demonstrations
from onlooker.baselines.base import as_demonstrations
from onlooker.demonstrations import as_states, distinct_states


def ragged():
    return Demonstrations([[0, 1, 1, 2], [2, 0], [5, 5, 5]])


@pytest.mark.parametrize(
    "module",
    [
        "demonstrations",
        "dynamics.displacement",
        "dynamics.tabular",
        "hyper",
        "problem.problem",
        "partitions.base",
    ],
)
def test_the_examples_in_the_docstrings_hold(module):
    found = doctest.testmod(importlib.import_module(f"onlooker.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trajectories", "error", "message"),
    [
        ([], ValueError, "trajectories is empty; give at least one"),
        ([[0, 1], []], (ValueError, TypeError), "trajectory 1"),
        ([[0, 1], [3]], ValueError, r"trajectory 1 has 1 state\(s\).*leave it out"),
        ([np.zeros((0, 2))], ValueError, r"trajectory 0 has 0 state\(s\)"),
        ([np.zeros((1, 2))], ValueError, r"trajectory 0 has 1 state\(s\)"),
        ([[0, 1], [0, -3]], ValueError, "trajectory 1 holds the negative state -3 at index 1"),
        ([[0.0, np.nan]], ValueError, r"trajectory 0 holds \[nan\] at index 1.*missing='infer'"),
        ([[[0.0, 1.0], [np.inf, 1.0]]], ValueError, r"trajectory 0 holds \[inf, 1.0\] at index 1"),
        (
            [np.zeros((2, 2, 2))],
            ValueError,
            r"trajectory 0 must be \(T,\) or \(T, d\).*\(2, 2, 2\)",
        ),
        ([np.zeros((2, 0))], ValueError, "trajectory 0 has states without any dimension"),
        ([[[0.0], [1.0, 2.0]]], ValueError, "trajectory 0 is ragged"),
        ([["a", "b"]], TypeError, "trajectory 0 must hold integers or floats, got dtype <U1"),
        ([[True, False]], TypeError, "trajectory 0 must hold integers or floats, got dtype bool"),
        ([[1j, 2j]], TypeError, "trajectory 0 must hold .* complex128"),
        ([[None, 1]], TypeError, "trajectory 0 must hold .* object"),
        ([[0, 1], [0.5, 1.5]], ValueError, "trajectory 1 has real states of dimension 1, but"),
        ([np.zeros((2, 1)), np.ones((2, 2))], ValueError, "trajectory 1 has .* dimension 2"),
        ([0, 1, 2], ValueError, r"trajectory 0 .*wrap a single trajectory in a list"),
        (np.array([0, 1, 2]), TypeError, r"trajectories must .*wrap a single trajectory in a list"),
        (7, TypeError, "trajectories must be a list of arrays, got int"),
        (None, TypeError, "trajectories must be a list of arrays, got NoneType"),
        ({"a": [0, 1]}, TypeError, "trajectories must be a list .*got dict"),
        (pd.DataFrame({"x": [0, 1]}), TypeError, "trajectories must .*from_dataframe"),
        ([np.array([2**63 + 5, 1], dtype=np.uint64)], ValueError, "trajectory 0 .*64-bit"),
        ([np.ma.array([0, 1, 2], mask=[0, 1, 0])], ValueError, r"trajectory 0 is masked at index"),
    ],
)
def test_bad_trajectories_are_refused_by_name_place_and_remedy(trajectories, error, message):
    with pytest.raises(error, match=message):
        Demonstrations(trajectories)


def test_unsigned_and_small_integers_are_integer_states():
    for dtype in (np.uint8, np.int16, np.uint64):
        demos = Demonstrations([np.array([3, 1], dtype=dtype)])
        assert demos.is_discrete
        assert demos.states.dtype == np.int64


def test_whole_floats_and_columns_of_integers_are_real_states():
    assert not Demonstrations([[0.0, 1.0]]).is_discrete
    assert Demonstrations([np.array([[0, 1], [2, 3]])]).states.dtype == np.float64


def test_query_states_are_refused_under_the_name_of_their_argument():
    with pytest.raises(TypeError, match="nodes must be"):
        as_states(["a"], "nodes")
    with pytest.raises(TypeError, match=r"states must be .*\(2, 0\)"):
        as_states(np.zeros((2, 0)))
    with pytest.raises(ValueError, match="states holds the negative state -1 at index 1"):
        as_states([0, -1])


# -- the sequence of trajectories ------------------------------------------------------------------


@quick
@given(any_trajectories)
def test_trajectories_come_back_as_they_went_in(trajectories):
    demos = Demonstrations(trajectories)
    assert len(demos) == len(trajectories)
    for given_, kept in zip(trajectories, demos, strict=True):
        np.testing.assert_array_equal(given_, kept)
    assert Demonstrations(demos) == demos
    assert Demonstrations(list(demos)) == demos


@quick
@given(any_trajectories)
def test_transitions_never_cross_trajectories(trajectories):
    demos = Demonstrations(trajectories)
    states, next_states = demos.transitions()
    np.testing.assert_array_equal(states, np.concatenate([t[:-1] for t in trajectories]))
    np.testing.assert_array_equal(next_states, np.concatenate([t[1:] for t in trajectories]))
    assert len(states) == demos.n_transitions == sum(len(t) - 1 for t in trajectories)
    owners = np.repeat(np.arange(len(trajectories)), [len(t) - 1 for t in trajectories])
    np.testing.assert_array_equal(demos.trajectory_of(), owners)


@quick
@given(any_trajectories, st.data())
def test_indexing_selects_trajectories(trajectories, data):
    demos = Demonstrations(trajectories)
    chosen = data.draw(
        st.lists(st.integers(-len(demos), len(demos) - 1), min_size=1, max_size=6), label="chosen"
    )
    assert demos[chosen] == Demonstrations([trajectories[i] for i in chosen])
    assert demos[np.array(chosen)] == demos[chosen]
    np.testing.assert_array_equal(demos[chosen[0]], trajectories[chosen[0]])
    np.testing.assert_array_equal(demos[np.array(chosen[0])], trajectories[chosen[0]])


def test_slices_and_masks_select_trajectories():
    demos = ragged()
    assert demos[1:] == Demonstrations([[2, 0], [5, 5, 5]])
    assert demos[::-1][0].tolist() == [5, 5, 5]
    assert demos[[True, False, True]] == demos[[0, 2]]
    assert demos[pd.Series([True, False, True])] == demos[[0, 2]]
    assert demos[-1].tolist() == [5, 5, 5]
    assert demos[[0, 2], ...] == demos[[0, 2]]  # as scikit-learn writes it
    assert demos[0, ...].tolist() == demos[0].tolist()


@pytest.mark.parametrize("index", [3, -4, [], [7], [True, False], [[0, 1]], None, "a", 1.0, (0, 1)])
def test_an_index_that_selects_nothing_whole_is_refused(index):
    with pytest.raises(IndexError):
        ragged()[index]


def test_a_subset_knows_its_own_transitions():
    states, next_states = ragged()[[2, 1]].transitions()
    assert states.tolist() == [5, 5, 2]
    assert next_states.tolist() == [5, 5, 0]


def test_states_cannot_be_written_to_nor_changed_from_outside():
    trajectory = np.array([0.0, 1.0])
    demos = Demonstrations([trajectory])
    trajectory[0] = 9.0
    assert demos.states[0, 0] == 0.0
    for array in (demos.states, demos.offsets, demos[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_equality_tells_boundaries_and_kinds_apart():
    assert Demonstrations([[0, 1, 2, 3]]) != Demonstrations([[0, 1], [2, 3]])
    assert Demonstrations([[0, 1]]) != Demonstrations([[0.0, 1.0]])
    assert ragged() != [[0, 1]]


def test_copies_and_pickles_are_equal():
    assert copy.deepcopy(ragged()) == ragged()
    assert pickle.loads(pickle.dumps(ragged())) == ragged()


def test_the_repr_says_what_is_held():
    assert repr(ragged()) == "Demonstrations(3 trajectories, 9 integer states)"
    assert "2 dimensions" in repr(Demonstrations([np.zeros((2, 2))]))


# -- names and times -------------------------------------------------------------------------------


def named():
    times = [np.arange(4.0), np.array([5.0, 7.0]), np.arange(3.0)]
    return Demonstrations(list(ragged()), names=["Amy", "Bob", "Amy"], times=times)


def test_names_and_times_go_with_their_trajectories():
    demos = named()
    assert demos[[2, 1]].names.tolist() == ["Amy", "Bob"]
    assert demos[[2, 1]].times.tolist() == [0, 1, 2, 5, 7]
    assert demos[demos.names == "Amy"] == ragged()[[0, 2]]
    assert demos[1:][::-1].names.tolist() == ["Amy", "Bob"]
    assert Demonstrations(demos).names.tolist() == ["Amy", "Bob", "Amy"]
    assert Demonstrations(demos, names="xyz").times.tolist() == demos.times.tolist()


def test_without_names_the_number_of_a_trajectory_is_its_name():
    assert ragged().names.tolist() == ["0", "1", "2"]
    assert ragged()[[2, 0]].names.tolist() == ["2", "0"]
    assert ragged().times is None
    assert ragged().reading is None


def test_names_and_times_do_not_make_trajectories_differ_and_cannot_be_written_to():
    assert named() == ragged()
    for array in (named().names, named().times, ragged().names):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


@pytest.mark.parametrize(
    "times",
    [
        np.arange(9),
        np.arange(9) / 3,
        np.datetime64("2020-01-01", "ns") + np.arange(9).astype("timedelta64[h]"),
    ],
)
def test_names_and_times_are_saved_and_pickled(tmp_path, times):
    demos = Demonstrations(
        list(ragged()), names=["Zoë", "b", "c"], times=np.split(times, ragged().offsets[1:-1])
    )
    demos.save(tmp_path / "demos.npz")
    for back in (Demonstrations.load(tmp_path / "demos.npz"), pickle.loads(pickle.dumps(demos))):
        assert back == demos
        assert back.names.tolist() == ["Zoë", "b", "c"]
        np.testing.assert_array_equal(back.times, times)
        assert back.times.dtype == times.dtype


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, r"names must be one a trajectory, 3; got shape \(1,\)"),
        ({"times": [[0.0, 1.0]]}, "1 arrays of times for 3 trajectories"),
        ({"times": [[0, 1, 2, 3], [0], [0, 1, 2]]}, r"times\[1\] must be 2 numbers or NumPy dates"),
        ({"times": [[*"abcd"], [0, 1], [0, 1, 2]]}, r"times\[0\] must be 4 numbers"),
    ],
)
def test_names_and_times_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Demonstrations(list(ragged()), **options)


# -- distinct states -------------------------------------------------------------------------------


@quick
@given(any_trajectories)
def test_distinct_states_match_a_dictionary(trajectories):
    demos = Demonstrations(trajectories)
    nodes, index = demos.distinct()
    seen: dict[object, int] = {}
    expected = []
    for state in demos.states:
        key = tuple(np.atleast_1d(state) + 0)
        expected.append(seen.setdefault(key, len(seen)))
    assert index.tolist() == expected
    assert [tuple(np.atleast_1d(node)) for node in nodes] == list(seen)


def test_positive_and_negative_zero_are_one_state():
    nodes, index = Demonstrations([[0.0, -0.0, 1.0]]).distinct()
    assert len(nodes) == 2
    assert index.tolist() == [0, 0, 1]
    nodes, _ = Demonstrations([[[-0.0, 2.0], [0.0, 2.0]]]).distinct()
    assert len(nodes) == 1
    assert not np.signbit(nodes).any()


def test_states_that_differ_in_the_last_bit_stay_apart():
    nodes, _ = distinct_states(np.array([[1.0], [np.nextafter(1.0, 2.0)]]))
    assert len(nodes) == 2


# -- scikit-learn ----------------------------------------------------------------------------------


class LongestSeen(BaseEstimator):
    """Scores held-out demonstrations by their transitions, to see that they arrive whole."""

    def fit(self, X, y=None):
        assert isinstance(X, Demonstrations)
        self.n_transitions_ = X.n_transitions
        return self

    def score(self, X, y=None):
        assert isinstance(X, Demonstrations)
        return 1000 * self.n_transitions_ + X.n_transitions


def test_cross_validation_splits_by_trajectory():
    demos = Demonstrations([np.arange(n) for n in (2, 3, 4, 5, 6)])
    for train, test in KFold(n_splits=5).split(demos):
        assert len(demos[train]) == 4
        assert len(demos[test]) == 1
    scores = cross_val_score(LongestSeen(), demos, cv=KFold(n_splits=5))
    assert scores.tolist() == [1000 * (15 - n) + n for n in (1, 2, 3, 4, 5)]


def test_safe_indexing_of_scikit_learn_works():
    picked = _safe_indexing(ragged(), np.array([2, 0]))
    assert picked == ragged()[[2, 0]]
    assert _safe_indexing(ragged(), [True, False, False]) == ragged()[[0]]


# -- save and load ---------------------------------------------------------------------------------


@quick
@given(any_trajectories)
def test_what_is_saved_is_loaded(tmp_path_factory, trajectories):
    path = tmp_path_factory.mktemp("saved") / "demos"
    demos = Demonstrations(trajectories)
    demos.save(path)
    assert path.exists()  # under exactly this name
    loaded = Demonstrations.load(path)
    assert loaded == demos
    assert loaded.states.dtype == demos.states.dtype


def archive(path, **changes):
    arrays = {"format": np.int64(1), "states": np.arange(4), "offsets": np.array([0, 4])}
    np.savez(path, **(arrays | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": np.int64(99)}, "has format 99, expected 1"),
        ({"offsets": np.array([0, 5])}, "damaged: offsets"),
        ({"offsets": np.array([1, 4])}, "damaged: offsets"),
        ({"offsets": np.array([0.0, 4.0])}, "damaged: offsets"),
        ({"offsets": np.array([0, 3, 4])}, "damaged: offsets"),
        ({"offsets": np.array([0, 3, 1, 4])}, "damaged: offsets"),
        ({"states": np.array([[0.0], [np.nan], [1.0], [2.0]])}, "trajectory 0 holds"),
        ({"states": np.array(1.0)}, "damaged"),
        ({"states": np.array([None] * 4)}, "not written by"),
        ({"format": np.array([1.5])}, "not written by"),
        ({"names": np.array(["a", "b"])}, "damaged: its names"),
        ({"times": np.arange(3)}, "damaged: its times"),
    ],
)
def test_archives_that_do_not_hold_together_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        Demonstrations.load(archive(tmp_path / "bad.npz", **changes))


def test_files_of_another_kind_are_refused_by_name(tmp_path):
    ragged().save(tmp_path / "good")
    whole = (tmp_path / "good").read_bytes()
    middle = len(whole) // 3
    flipped = bytes(byte ^ 0xFF for byte in whole[middle : middle + 40])
    np.save(tmp_path / "array.npy", np.arange(3))
    files = {
        "empty": b"",
        "text": b"x,y\n1,2\n",
        "truncated": whole[: len(whole) // 2],
        "flipped": whole[:middle] + flipped + whole[middle + 40 :],
        "array": (tmp_path / "array.npy").read_bytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} was not written by Demonstrations.save"):
            Demonstrations.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Demonstrations.load(tmp_path / "nowhere")


def test_archives_of_the_first_format_without_names_still_load(tmp_path):
    demos = Demonstrations.load(archive(tmp_path / "old.npz"))
    assert demos == Demonstrations([[0, 1, 2, 3]])
    assert demos.names.tolist() == ["0"]
    assert demos.times is None


def test_a_save_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "demos.npz"
    ragged().save(path)

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="no space left"):
        Demonstrations([[7, 7]]).save(path)
    assert Demonstrations.load(path) == ragged()


# -- states that were not seen -------------------------------------------------------------------


def test_whoever_needs_complete_states_is_refused_unseen_ones():
    demos = Demonstrations([[0.0, np.nan, 2.0, 3.0]], missing="infer")
    for ask in (demos.transitions, demos.distinct, lambda: as_demonstrations(demos)):
        with pytest.raises(ValueError, match=r"1 of 4 states were not seen.*split\(\)"):
            ask()
    assert Demonstrations(demos).has_unseen
    assert demos[[0]] == demos
    assert demos.split().transitions()[0].tolist() == [[2.0]]


def test_names_and_times_stay_with_their_trajectories_when_states_are_unseen():
    demos = Demonstrations(
        [[-1, 0, 1, -1, 2, 3], [-1, 5], [6, -1, 7]],
        names=["a", "b", "c"],
        times=[range(6), range(2), range(3)],
        missing="infer",
    )
    assert [one.tolist() for one in demos] == [[0, 1, -1, 2, 3], [6, -1, 7]]
    assert demos.names.tolist() == ["a", "c"]
    assert demos.times.tolist() == [1, 2, 3, 4, 5, 0, 1, 2]
    pairs = demos.split()
    assert [one.tolist() for one in pairs] == [[0, 1], [2, 3]]
    assert pairs.names.tolist() == ["a", "a"]
    assert pairs.times.tolist() == [1, 2, 4, 5]
    assert demos.as_positions()[1].ravel().tolist()[::2] == [6.0, 7.0]
    assert demos.as_positions().hidden.tolist() == demos.hidden.tolist()


def test_hiding_is_random_by_its_seed_and_leaves_the_rest():
    demos = Demonstrations([np.arange(200)], names=["long"])
    hidden = demos.hide(0.3, random_state=1)
    assert hidden == demos.hide(0.3, random_state=1)
    assert hidden != demos.hide(0.3, random_state=2)
    assert 0.2 < hidden.hidden.mean() < 0.4
    seen = hidden.states[~hidden.hidden]
    assert seen.tolist() == sorted(seen.tolist())
    assert hidden.names.tolist() == ["long"]
    assert demos.hide(0.0) == demos


def test_a_state_is_placed_by_its_trajectory_step_time_and_row():
    demos = Demonstrations([[0, 1, 1, 2], [2, 0]])
    places = [demos.place(index) for index in range(6)]
    assert places[0] == "trajectory 0, step 0"
    assert places[3:5] == ["trajectory 0, step 3", "trajectory 1, step 0"]
    minutes = np.datetime64("2024-05-03T14:00") + np.arange(5).astype("timedelta64[m]")
    table = pd.DataFrame({"id": ["elk"] * 2 + ["7"] * 3, "x": np.arange(5.0), "t": minutes})
    demos = Demonstrations.from_dataframe(table, ["x"], "id", "t")
    assert demos.place(1) == "elk, step 1, 2024-05-03 14:01, row 1"
    assert demos.place(4) == "trajectory 7, step 2, 2024-05-03 14:04, row 4"
    assert demos[[1]].place(0) == "trajectory 7, step 0, 2024-05-03 14:02, row 2"
