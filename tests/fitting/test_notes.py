"""What `onlooker fit` notices in the tracks, and says with a remedy; what it sets aside."""

from types import SimpleNamespace

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.checks import SettingError
from onlooker.fitting import run
from onlooker.fitting.model_file import Model

AT_SEA = Demonstrations([[[-60.0, 20.0], [-61.0, 21.0]], [[179.0, 10.0], [181.0, 11.0]]])
TURNED = Demonstrations([track[:, ::-1] for track in AT_SEA])


def told(note, *arguments):
    sentences = []
    note(*arguments, sentences.append)
    return sentences


@pytest.mark.parametrize(
    ("columns", "geographic", "demos", "remedy"),
    [
        (["lon", "lat"], False, AT_SEA, "if they are degrees: --geographic"),
        (["lat", "lon"], False, TURNED, "if they are degrees: --states lon,lat --geographic"),
        (["lat of fix", "lon"], False, TURNED, "--states lon,'lat of fix' --geographic"),
        (["lat", "lon"], True, TURNED, "if it is the other way round: --states lon,lat"),
        (["lon", "lat"], True, AT_SEA, None),
        (["x", "y"], False, AT_SEA, None),
        (["lon", "lat"], False, Demonstrations([1000 * AT_SEA[0]]), None),
    ],
)
def test_columns_that_look_like_places_are_told_of_unless_taken_as_such(
    columns, geographic, demos, remedy
):
    found = told(run._note_places, columns, geographic, demos)
    assert len(found) == (remedy is not None)
    if remedy is not None:
        assert found[0].endswith(remedy)
        assert found[0].startswith("Note: ")


@pytest.mark.parametrize(("misfits", "n_notes"), [([], 0), ([50.0], 0), ([50.1, 3.0], 1)])
def test_fixes_that_no_noise_explains_are_told_of(misfits, n_notes):
    unexplained = [{"misfit": misfit} for misfit in misfits]
    assert len(told(run._note_bad_fixes, unexplained)) == n_notes


# -- what is set aside -----------------------------------------------------------------------------


def tracks(n):
    """Every other one is in two pieces of one name."""
    names = [f"track {i}" for i in range(n) for _ in range(1 + i % 2)]
    return Demonstrations([[k, k + 1] for k in range(len(names))], names=names)


def model(share=None, **sampling):
    return Model(data={} if share is None else {"hold_out": share}, sampling=sampling)


@pytest.mark.parametrize(
    ("n", "share", "n_aside"),
    [(10, None, 2), (9, None, 0), (30, None, 6), (10, 0.35, 4), (10, 0.0, 0), (2, 0.5, 1)],
)
def test_a_fifth_is_set_aside_where_there_are_ten_or_the_share_that_is_given(n, share, n_aside):
    demos = tracks(n)
    kept, aside = run.set_aside(demos, model(share), None)
    others = set() if aside is None else set(aside.names)
    assert len(others) == n_aside
    assert set(kept.names) | others == set(demos.names)
    assert set(kept.names).isdisjoint(others)  # pieces of one name stay together
    again = run.set_aside(demos, model(share, seed=0), None)[0]
    assert again == kept
    if n_aside > 1:
        assert run.set_aside(demos, model(share, seed=1), None)[0] != kept


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_that_leaves_none_on_one_side_is_refused(share):
    with pytest.raises(SettingError, match=f"cannot set aside {100 * share:.0f} % of 10 traj"):
        run.set_aside(tracks(10), model(share), None)


def test_a_run_that_is_resumed_sets_aside_what_it_did_before():
    demos, before = tracks(10), ["track 3", "track 4"]
    for share in (None, 0.2):
        kept, aside = run.set_aside(demos, model(share), before)
        assert np.unique(aside.names).tolist() == before
        assert len(set(kept.names)) == 8
    with pytest.raises(
        SettingError, match="has set aside 2 of 10 trajectories: leave out hold_out"
    ):
        run.set_aside(demos, model(0.5), before)


# -- what is there already -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "writer", "how", "told"),
    [
        (True, 7, {"replace_run": True}, "is being written by another process; stop it first"),
        (True, 7, {}, "already holds a run; continue it with --resume, replace it with --force"),
        (True, None, {}, "already holds a run"),
        (False, None, {"resume": True}, "holds no run to resume; leave --resume out"),
        (True, None, {"replace_run": True}, "sound enough to be read"),
        (True, 7, {"resume": True}, "sound enough to be read"),  # its store will tell of the writer
        (False, 7, {}, "sound enough to be read"),
    ],
)
def test_a_run_is_neither_replaced_nor_resumed_by_mistake(
    there, writer, how, told, tmp_path, monkeypatch
):
    def read(*_):
        raise ValueError("sound enough to be read")

    locked = SimpleNamespace(writer=lambda: writer)
    monkeypatch.setattr(run, "read_header", lambda output: {"seed": 0} if there else None)
    monkeypatch.setattr(run, "Lock", lambda output: locked)
    monkeypatch.setattr(run, "reading_of", read)
    (tmp_path / "tracks.csv").write_text("x,y\n")
    options = {"resume": False, "notify": print} | how
    with pytest.raises(ValueError, match=told):
        run.fit(tmp_path / "tracks.csv", Model(), tmp_path / "run", **options)
