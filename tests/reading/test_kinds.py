"""Files by their suffix, NumPy archives, and episodes of other libraries."""

import os
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from onlooker import Demonstrations
from onlooker.warnings import TrackWarning

TABLE = pd.DataFrame({"id": [*"aabb"], "t": [0, 1, 0, 1], "x": [0.5, 1.5, 2.5, 3.5]})
EXPECTED = Demonstrations([[0.5, 1.5], [2.5, 3.5]])


# -- by suffix -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", lambda path: TABLE.to_csv(path)),
        ("t.CSV", lambda path: TABLE.to_csv(path)),
        ("two.dots.csv.gz", lambda path: TABLE.to_csv(path)),
        ("t.tsv", lambda path: TABLE.to_csv(path, sep="\t")),
        ("t.tsv.xz", lambda path: TABLE.to_csv(path, sep="\t")),
        ("t.parquet", lambda path: TABLE.to_parquet(path)),
        ("t.pq", lambda path: TABLE.to_parquet(path)),
        ("t.npz", lambda path: np.savez(path, **TABLE.assign(id=[1, 1, 2, 2]))),
    ],
)
def test_tables_are_read_by_their_suffix(tmp_path, name, write):
    write(tmp_path / name)
    demos = Demonstrations.read(tmp_path / name, "x", "id", "t", gaps="split")
    assert demos == EXPECTED
    assert demos.reading.untouched
    assert demos.times.tolist() == [0, 1, 0, 1]


def test_files_without_columns_are_read_by_their_suffix(tmp_path):
    EXPECTED.save(tmp_path / "saved.npz")
    assert Demonstrations.read(tmp_path / "saved.npz") == EXPECTED
    np.save(tmp_path / "many.npy", np.array([[[0.5], [1.5]], [[2.5], [3.5]]]))
    assert Demonstrations.read(tmp_path / "many.npy") == EXPECTED
    np.save(tmp_path / "one.npy", np.array([3, 1, 2]))
    assert Demonstrations.read(tmp_path / "one.npy") == Demonstrations([[3, 1, 2]])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("t.xlsx", {}, r"t\.xlsx ends in '\.xlsx'; onlooker reads csv, tsv .*gpx: convert"),
        ("t", {}, "t has no suffix; onlooker reads"),
        ("t.parquet.gz", {}, r"ends in '\.parquet\.gz'"),
        ("t.gz", {}, r"ends in '\.gz'"),
        ("t.csv", {}, "is a table: name the columns of the state by states$"),
        ("t.gpx", {"states": "x"}, "a gpx file has no columns to name; leave out states"),
        ("t.npy", {"time": "t"}, "leave out time"),
        ("t.npy", {"gaps": "split"}, "nothing to clean; leave out gaps"),
    ],
)
def test_other_files_are_refused_by_name_and_remedy(tmp_path, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        Demonstrations.read(tmp_path / name, **arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty$"), (b"\x00\x01", "byte 0 is zero"), (b"<html>", "starts with '<'")],
)
def test_what_is_no_table_is_not_asked_for_its_columns(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Demonstrations.read(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.gpx", "t.npz", "t.npy", "t.parquet"])
def test_a_fifo_is_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    said = []

    def read():
        for ask in (Demonstrations.read, partial(Demonstrations.from_csv, states="x")):
            with pytest.raises(ValueError, match="is not a regular file") as told:
                ask(tmp_path / name)
            said.append(told.value)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(30)
    assert len(said) == 2, "it waits for someone to write"


# -- NumPy archives ------------------------------------------------------------------------------


def test_a_plain_archive_holds_one_trajectory_an_array(tmp_path):
    np.savez(tmp_path / "plain.npz", first=np.zeros((2, 2)), second=np.ones((3, 2)))
    for demos in (
        Demonstrations.load(tmp_path / "plain.npz"),
        Demonstrations.from_npz(tmp_path / "plain.npz"),
    ):
        assert demos.names.tolist() == ["first", "second"]
        assert demos.lengths.tolist() == [2, 3]
        assert demos.reading.rows == 5


def test_an_archive_may_hold_the_columns_of_a_table(tmp_path):
    path = tmp_path / "table.npz"
    states = np.array([[0.0, 0.0], [1.0, np.nan], [2.0, 2.0], [5.0, 5.0], [6.0, 6.0]])
    np.savez(path, states=states, who=np.array([7, 7, 7, 9, 9]), when=np.array([2, 1, 0, 0, 1]))
    demos = Demonstrations.from_npz(path, "states", "who", "when", missing="interpolate")
    assert [t.tolist() for t in demos] == [[[2, 2], [1, 1], [0, 0]], [[5, 5], [6, 6]]]
    assert demos.names.tolist() == ["7", "9"]
    with pytest.raises(ValueError, match=r"no value of 'states\[1\]' in row 1"):
        Demonstrations.from_npz(path, "states", "who", "when")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"states": "no"}, "has no array 'no'; it has x, id, odd"),
        ({"states": "x", "time": "odd"}, r"'odd' must be 4 values as 'x' is, got shape \(3,\)"),
        ({"trajectory": "id"}, "without states every array is a trajectory"),
        ({"gaps": "split"}, "without states every array is a trajectory"),
        ({"missing": "drop"}, "missing must be one of 'error', 'infer'; got 'drop'"),
        ({}, "trajectory 'id' must hold integers or floats"),
    ],
)
def test_archives_that_do_not_fit_the_question_are_refused(tmp_path, arguments, message):
    np.savez(tmp_path / "a.npz", x=np.arange(4.0), id=np.array([*"aabb"]), odd=np.arange(3))
    with pytest.raises((ValueError, TypeError), match=message):
        Demonstrations.from_npz(tmp_path / "a.npz", **arguments)


def test_short_arrays_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "short.npz"
    np.savez(path, a=np.arange(3), b=np.arange(1), c=np.arange(0), d=np.arange(2))
    with pytest.warns(TrackWarning, match=r"left out 2 trajectories of fewer .*\(b, c\)"):
        demos = Demonstrations.load(path)
    assert demos.names.tolist() == ["a", "d"]
    assert demos.reading.rows == demos.reading.states + demos.reading.dropped == 6
    np.savez(path, b=np.arange(1))
    with pytest.raises(ValueError, match="holds no trajectory with two states"):
        Demonstrations.load(path)


def test_unseen_states_in_arrays_are_kept_if_asked_for(tmp_path):
    path = tmp_path / "unseen.npz"
    np.savez(path, a=[0, -1, 2, -1], b=[-1, 3, -1], c=[4, 5])
    with pytest.raises(ValueError, match=r"trajectory 'a' holds -1 at index 1.*missing='infer'"):
        Demonstrations.read(path)
    demos = Demonstrations.read(path, missing="infer")
    assert [one.tolist() for one in demos] == [[0, -1, 2], [4, 5]]
    assert demos.names.tolist() == ["a", "c"]
    summary = demos.reading
    assert summary.rows == summary.states + summary.dropped == 9
    assert (summary.missing, summary.missing_dropped, summary.short) == (4, 3, 1)
    assert summary.lost == ("b",)
    demos.save(tmp_path / "saved.npz")
    assert Demonstrations.load(tmp_path / "saved.npz") == demos
    np.save(tmp_path / "one.npy", [[0.0, 1.0], [np.nan, 2.0], [1.0, 1.0]])
    assert Demonstrations.read(tmp_path / "one.npy", missing="infer").hidden.tolist() == [0, 1, 0]


def test_files_that_are_no_arrays_are_refused(tmp_path):
    (tmp_path / "t.npy").write_text("x,y\n")
    with pytest.raises(ValueError, match=r"t\.npy is not a NumPy array"):
        Demonstrations.read(tmp_path / "t.npy")
    np.save(tmp_path / "t.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"t\.npy is not a NumPy array"):  # never unpickled
        Demonstrations.read(tmp_path / "t.npy")
    np.savez(tmp_path / "t.npz", a=np.arange(3))
    (tmp_path / "t.npz").rename(tmp_path / "t.npy")
    with pytest.raises(ValueError, match=r"call it \.npz"):
        Demonstrations.read(tmp_path / "t.npy")


# -- imitation -----------------------------------------------------------------------------------


def episode(observations, **more):
    return SimpleNamespace(obs=observations, acts=np.zeros(1), **more)


def test_imitation_trajectories_are_read_by_their_observations():
    trajs = [episode(np.array([[0.0, 1.0], [2.0, 3.0]])), episode(np.ones((3, 2)))]
    demos = Demonstrations.from_imitation(trajs)
    assert demos.lengths.tolist() == [2, 3]
    assert demos[0].tolist() == [[0, 1], [2, 3]]
    assert Demonstrations.from_imitation([episode(np.array([4, 2]))]).is_discrete


class DictObs:
    """As imitation's: it maps names to arrays without being a Mapping."""

    def __init__(self, **arrays):
        self._arrays = arrays

    def keys(self):
        return self._arrays.keys()

    def get(self, key):
        return self._arrays[key]


DICTIONARY = {"place": np.array([[0.0], [1.0]]), "goal": np.array([[9.0], [9.0]])}


@pytest.mark.parametrize("observations", [DICTIONARY, DictObs(**DICTIONARY)])
def test_of_dictionaries_a_key_or_a_function_chooses_the_state(observations):
    read = Demonstrations.from_imitation
    with pytest.raises(TypeError, match=r"dictionaries .*by observation=, one of 'place', 'goal'"):
        read([episode(observations)])
    assert read([episode(observations)], observation="goal")[0].tolist() == [[9], [9]]
    both = read([episode(DICTIONARY)], lambda obs: np.hstack([obs["place"], obs["goal"]]))
    assert both[0].tolist() == [[0, 9], [1, 9]]
    with pytest.raises(ValueError, match="trajectory 0 has no observation 'speed'"):
        read([episode(observations)], observation="speed")


def test_of_tuples_a_number_chooses_the_state():
    pair = (np.array([1, 2]), np.array([[0.5], [0.6]]))
    with pytest.raises(TypeError, match=r"tuples as observations.*one of 0, 1"):
        Demonstrations.from_imitation([episode(pair)])
    assert Demonstrations.from_imitation([episode(pair)], 0)[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("trajs", "error", "message"),
    [
        ([], ValueError, "trajs holds no trajectory"),
        (episode(np.arange(3)), TypeError, "wrap a single one in a list"),
        ([SimpleNamespace(states=1)], TypeError, "a SimpleNamespace has no obs"),
        ([episode(np.zeros((5, 8, 8, 3)))], ValueError, r"shape \(8, 8, 3\); .*observation="),
        ([episode(np.array([[0.0], [np.nan]]))], ValueError, "trajectory '0' holds .*nan"),
    ],
)
def test_other_trajectories_are_refused(trajs, error, message):
    with pytest.raises(error, match=message):
        Demonstrations.from_imitation(trajs)


def test_a_key_for_plain_observations_is_refused():
    with pytest.raises(TypeError, match="plain observations; leave out observation='x'"):
        Demonstrations.from_imitation([episode(np.zeros((2, 2)))], observation="x")


# -- Minari --------------------------------------------------------------------------------------


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return pytest.importorskip("minari")


def write_dataset(minari, name, space, episodes):
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    def buffer(number, observations, steps):
        last = np.arange(steps) == steps - 1
        return EpisodeBuffer(
            id=number,
            observations=observations,
            actions=np.zeros(steps, dtype=np.int64),
            rewards=np.zeros(steps),
            terminations=last,
            truncations=np.zeros(steps, dtype=bool),
        )

    minari.create_dataset_from_buffers(
        name,
        [buffer(k, observations, steps) for k, (observations, steps) in enumerate(episodes)],
        observation_space=space,
        action_space=spaces.Discrete(2),
        description="written by a test",
        algorithm_name="none",
        author="none",
        author_email="none@example.org",
        code_permalink="none",
    )
    return minari.load_dataset(name)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_a_minari_data_set_on_disk_is_read_by_its_observations(minari):
    from gymnasium import spaces

    rng = np.random.default_rng(0)
    paths = [rng.normal(size=(steps + 1, 3)).astype(np.float32) for steps in (4, 2)]
    space = spaces.Box(-np.inf, np.inf, (3,))
    dataset = write_dataset(minari, "toy/box-v0", space, [(p, len(p) - 1) for p in paths])
    demos = Demonstrations.from_minari(dataset)
    assert demos == Demonstrations(paths)
    assert demos.names.tolist() == ["0", "1"]
    discrete = write_dataset(
        minari, "toy/discrete-v0", spaces.Discrete(9), [(np.array([3, 1, 8]), 2)]
    )
    assert Demonstrations.from_minari(discrete) == Demonstrations([[3, 1, 8]])


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_a_minari_data_set_of_dictionaries_asks_for_a_choice(minari):
    from gymnasium import spaces

    space = spaces.Dict({"at": spaces.Box(-1, 9, (1,)), "goal": spaces.Box(-1, 9, (1,))})
    observations = {"at": np.array([[0.0], [1.0]], "f"), "goal": np.array([[5.0], [5.0]], "f")}
    dataset = write_dataset(minari, "toy/dict-v0", space, [(observations, 1)])
    with pytest.raises(TypeError, match=r"episode 0 has dictionaries .*'at', 'goal'"):
        Demonstrations.from_minari(dataset)
    assert Demonstrations.from_minari(dataset, observation="at")[0].tolist() == [[0], [1]]
    both = Demonstrations.from_minari(dataset, lambda o: np.hstack([o["at"], o["goal"]]))
    assert both[0].tolist() == [[0, 5], [1, 5]]


def test_what_is_no_data_set_is_refused():
    with pytest.raises(TypeError, match=r"dataset must have iterate_episodes.*load_dataset"):
        Demonstrations.from_minari([1, 2])


def test_episodes_of_a_single_observation_are_left_out_with_a_warning():
    episodes = [SimpleNamespace(id=k, observations=np.arange(n)) for k, n in ((5, 1), (8, 3))]
    dataset = SimpleNamespace(iterate_episodes=lambda: iter(episodes))
    with pytest.warns(TrackWarning, match=r"left out 1 trajectory of fewer than two states \(5\)"):
        demos = Demonstrations.from_minari(dataset)
    assert demos.names.tolist() == ["8"]
