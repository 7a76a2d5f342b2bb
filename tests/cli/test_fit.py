"""`onlooker fit`: from a file of tracks to a stored posterior, stopped and resumed."""

import errno
import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from small_runs import assert_same_draws, walk

from onlooker import Demonstrations, Posterior, files, sampling
from onlooker.cli import main
from onlooker.diagnostics import AtBound, Settled
from onlooker.dynamics import GeographicDynamics, TabularDynamics
from onlooker.dynamics.features import FeatureDynamics
from onlooker.explorer.overview import overview
from onlooker.explorer.run import read as read_view
from onlooker.findings.record import Record, remove_if_empty
from onlooker.fitting.building import make_prior
from onlooker.fitting.model_file import Model
from onlooker.fitting.run import fit as fit_tracks
from onlooker.runs import store
from onlooker.worlds import CircularMotion

SMALL = ["--draws", "8", "--tune", "3", "--chains", "2", "--jobs", "1"]


def frame_of(tracks, columns):
    rows = [
        [f"fox {k}", t, *np.atleast_1d(state)]
        for k, track in enumerate(tracks)
        for t, state in enumerate(track)
    ]
    return pd.DataFrame(rows, columns=["id", "t", *columns])


@pytest.fixture(scope="module")
def tracks(tmp_path_factory):
    demos, _ = CircularMotion().rollout(3, 30, random_state=0)
    path = tmp_path_factory.mktemp("tracks") / "tracks.csv"
    frame_of(demos, ["x", "y"]).to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def call(tracks, output, *more, draws=8, states=("x", "y")):
    words = [
        "fit",
        tracks,
        "--states",
        ",".join(states),
        "--trajectory",
        "id",
        "--time",
        "t",
        *SMALL,
    ]
    return run(*words, "--draws", draws, "--output", output, *more)


# -- spaces of all kinds --------------------------------------------------------------------------


def test_columns_are_enough_and_findings_are_told(tracks, tmp_path):
    result = call(tracks, tmp_path / "run")
    assert result.exit_code == 0, result.output
    for told in (
        "Read 90 rows of 3 trajectories; kept 90 states in 3 trajectories.",
        "Actions: 16 directions × steps of",
        "16 actions explain ",
        "Prior: regions (self-link weight ν, sharing γ, length scale of the decay inferred).",
        " controllers",
        "The consensus partition has ",
        "Consensus partition: ",
        "The chains ",
        f"Stored in {tmp_path / 'run'}. Next: onlooker report {tmp_path / 'run'}",
    ):
        assert told in result.stdout
    assert "Warning" not in result.output
    found = Posterior.load(tmp_path / "run")
    assert found.labels.shape == (2, 8, 90)
    assert 0.9 < np.linalg.norm(found.problem.dynamics.steps[0]) < 1.1
    assert (found.hyper["alpha"] != found.hyper["alpha"][0, 0]).any()


@pytest.mark.parametrize("n_dims", [1, 3])
def test_other_dimensions_work_too(n_dims, tmp_path):
    columns = ["x", "y", "z"][:n_dims]
    frame_of([walk(n_dims), walk(n_dims, seed=1)], columns).to_csv(tmp_path / "a.csv")
    result = call(tmp_path / "a.csv", tmp_path / "run", states=columns)
    assert result.exit_code == 0, result.output
    dynamics = Posterior.load(tmp_path / "run").problem.dynamics
    assert dynamics.n_dims == n_dims
    assert run("predict", tmp_path / "run", "--at", ",".join(["0.5"] * n_dims)).exit_code == 0


RING = np.stack([np.roll(np.eye(12), 1, axis=1), np.roll(np.eye(12), -1, axis=1)], axis=1)


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Twelve places on a ring, walked round one way or the other."""
    folder = tmp_path_factory.mktemp("ring")
    tracks = [np.arange(20) % 12, -np.arange(20) % 12]
    frame_of(tracks, ["place"]).to_csv(folder / "ring.csv", index=False)
    np.savez(folder / "table.npz", T=RING, other=np.zeros(3))
    (folder / "model.toml").write_text(
        '[dynamics]\nkind = "tabular"\nfile = "table.npz"\narray = "T"\n'
        'names = ["onwards", "backwards"]\n'
    )
    return folder


def test_integer_states_take_a_table_and_count_distances_in_steps(ring, tmp_path):
    result = call(
        ring / "ring.csv", tmp_path / "run", "--model", ring / "model.toml", states=["place"]
    )
    assert result.exit_code == 0, result.output
    assert Record.read(tmp_path / "run").names == ["onwards", "backwards"]
    found = Posterior.load(tmp_path / "run")
    np.testing.assert_array_equal(found.problem.dynamics.toarray(), RING)
    assert found.prior.metric[0, 11] == 1  # the ring closes: numbers alone would say 11
    assert found.prior.metric[0, 6] == 6
    predicted = run("predict", tmp_path / "run", "--at", "3")
    assert predicted.exit_code == 0, predicted.output
    assert "backwards" in predicted.stdout
    assert "nearest" not in predicted.stdout  # numbers of places have no distance


def test_whole_numbers_without_a_table_are_refused_rather_than_guessed(ring, tmp_path):
    result = call(ring / "ring.csv", tmp_path / "run", states=["place"])
    assert result.exit_code == 1
    assert 'kind = "tabular"' in result.stderr
    assert not (tmp_path / "run").exists()


def test_whole_numbers_are_positions_on_a_line_if_the_model_says_so(tmp_path):
    track = np.cumsum([0] + [1, -2, 1, 1, -3, 2, 1, -1, 2, -4] * 3)
    frame_of([track], ["floor"]).to_csv(tmp_path / "lift.csv")
    (tmp_path / "model.toml").write_text('[dynamics]\nkind = "displacement"\n')
    model = ["--model", tmp_path / "model.toml"]
    more = [*model, "--features", "none"]
    result = call(tmp_path / "lift.csv", tmp_path / "run", *more, states=["floor"])
    assert result.exit_code == 0, result.output
    assert Posterior.load(tmp_path / "run").problem.states.shape[1] == 1


@pytest.fixture(scope="module")
def sea(tmp_path_factory):
    """Drifters along the date line, with dates."""
    folder = tmp_path_factory.mktemp("sea")
    dynamics = GeographicDynamics.compass(4, step=100.0, sigma=15.0)
    rng = np.random.default_rng(0)
    rows = []
    for k in range(3):
        place = np.array([[179.0, 10.0 * k]])
        for t in range(25):
            rows.append([k, pd.Timestamp("2020-05-01") + pd.Timedelta(hours=6 * t), *place[0]])
            place = dynamics.sample(place, np.array([0 if k else 1]), rng)
    frame = pd.DataFrame(rows, columns=["id", "t", "lon", "lat"])
    with gzip.open(folder / "sea.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    (folder / "model.toml").write_text(
        'concentration = 1.0\n[data]\ntrajectory = "id"\ntime = "t"\n'
        '[[features]]\nkind = "heading"\nweight = 50\n'
        '[[features]]\nkind = "day_of_year"\nweight = 10\n'
    )
    return folder


def test_longitude_and_latitude_with_features_over_the_date_line(sea, tmp_path):
    result = run(
        "fit", sea / "sea.csv.gz", "--states", "lon,lat", "--geographic", "--directions", 8,
        "--speeds", 1, "--model", sea / "model.toml", *SMALL, "--output", tmp_path / "run",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Features in addition to the position: heading, day_of_year." in result.stdout
    assert "km towards" in result.stdout
    found = Posterior.load(tmp_path / "run")
    assert isinstance(found.problem.dynamics, FeatureDynamics)
    assert found.problem.dynamics.interval == 6 * 3600
    assert found.prior.metric == "chord"
    assert 40 < found.prior.decay.scale.low < 100  # km: the seam at 180° is none
    for state in ("179.5,10", ",".join(map(str, found.problem.states[0]))):
        assert run("predict", tmp_path / "run", "--at", state).exit_code == 0
    place = found.problem.states[0, :2] + [360, 1]  # a degree further north
    predicted = run("predict", tmp_path / "run", "--at", ",".join(map(str, place)), "--json")
    assert 0 < json.loads(predicted.stdout)["states"][0]["nearest_seen"] < 111.3  # km
    scored = run("anomaly", tmp_path / "run", sea / "sea.csv.gz", "--replicates", 20)
    assert scored.exit_code == 0, scored.output


@pytest.mark.parametrize(("states", "noted"), [("lat,lon", True), ("lon,lat", False)])
def test_a_latitude_in_the_place_of_the_longitude_is_noted(tmp_path, states, noted):
    path = tmp_path / "walk.csv"
    path.write_text("lon,lat\n" + "".join(f"{11 + 0.01 * t},{48 + 0.01 * t}\n" for t in range(9)))
    said = []

    def notify(text):
        said.append(text)
        if text.startswith("Actions"):
            raise InterruptedError  # the rest would take a while

    model = Model(data={"states": states.split(","), "geographic": True})
    with pytest.raises(InterruptedError):
        fit_tracks(path, model, tmp_path / "run", resume=False, notify=notify)
    assert any("other way round: --states lon,lat" in text for text in said) == noted


def test_gpx_files_are_geographic_without_being_told(tmp_path):
    points = "".join(
        f'<trkpt lon="{11 + 0.001 * t}" lat="{48 + 0.0007 * (t % 3)}">'
        f"<time>2020-05-01T00:{t:02d}:00Z</time></trkpt>"
        for t in range(30)
    )
    gpx = f'<gpx version="1.1"><trk><name>walk</name><trkseg>{points}</trkseg></trk></gpx>'
    (tmp_path / "walk.gpx").write_text(gpx)
    result = run("fit", tmp_path / "walk.gpx", *SMALL, "--output", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert type(Posterior.load(tmp_path / "run").problem.dynamics) is GeographicDynamics


def test_gymnasium_environments_are_known_by_name(tmp_path):
    gymnasium = pytest.importorskip("gymnasium")
    from onlooker.worlds.record import rollout

    env = gymnasium.make("MountainCar-v0")
    demos, _ = rollout(env, lambda seen: 2 if seen[1] >= 0 else 0, 2, 30, 0, record="state")
    frame_of(demos, ["x", "v"]).to_csv(tmp_path / "car.csv")
    (tmp_path / "model.toml").write_text('[dynamics]\nkind = "gymnasium"\nid = "MountainCar-v0"\n')
    model = ["--model", tmp_path / "model.toml", "--scale", "0.05"]
    result = call(tmp_path / "car.csv", tmp_path / "run", *model, states=["x", "v"])
    assert result.exit_code == 0, result.output
    assert Posterior.load(tmp_path / "run").problem.dynamics.n_actions == 3


def test_coordinates_of_integer_states_come_from_a_file(ring, tmp_path):
    places = np.column_stack([np.cos(np.arange(12)), np.sin(np.arange(12))])
    np.save(tmp_path / "places.npy", places)
    model = Model(prior={"kind": "ddcrp", "coordinates": "places.npy"}, folder=tmp_path)
    demos = Demonstrations([np.arange(12)])
    prior = make_prior(demos, TabularDynamics(RING), model)
    np.testing.assert_array_equal(prior.coordinates, places)
    assert prior.metric == "euclidean"


# -- stopped, resumed, refused --------------------------------------------------------------------


@pytest.mark.parametrize("draws", [[], ["--until-converged", "--max-minutes", "0.001"]])
def test_where_draws_could_not_be_stored_the_last_words_say_so(
    draws, tracks, tmp_path, monkeypatch
):
    words = ("fit", tracks, "--states", "x,y", "--trajectory", "id", "--time", "t",
             *(SMALL if not draws else [*SMALL[2:], *draws]), "--output", tmp_path)  # fmt: skip

    def write(path, arrays):
        if path.name.startswith("part"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        files.write_arrays(path, arrays)

    with monkeypatch.context() as full:
        full.setattr(store, "write_arrays", write)
        result = run(*words)
    assert result.exit_code == 1
    assert "Consensus partition" in result.stdout  # what was found is said all the same
    assert "Stored in" not in result.output
    assert f"{tmp_path} holds 0 of " in result.stderr
    again = run(*words, "--resume")
    assert again.exit_code == 0, again.output
    assert f"Stored in {tmp_path}" in again.stdout


def test_a_resumed_command_ends_with_the_draws_of_an_unbroken_one(tracks, tmp_path):
    assert call(tracks, tmp_path / "a").exit_code == 0
    again = call(tracks, tmp_path / "a", "--resume", draws=14)
    assert again.exit_code == 0, again.output
    assert call(tracks, tmp_path / "b", draws=14).exit_code == 0
    assert_same_draws(Posterior.load(tmp_path / "a"), Posterior.load(tmp_path / "b"))


def test_a_store_is_not_written_over(tracks, tmp_path):
    assert call(tracks, tmp_path / "run").exit_code == 0
    before = (tmp_path / "run" / "fit.json").read_bytes()
    result = call(tracks, tmp_path / "run", "--directions", 8)
    assert result.exit_code == 1
    assert "--resume" in result.stderr
    other = call(tracks, tmp_path / "run", "--directions", 8, "--resume")
    assert other.exit_code == 1
    told = "holds a run with other settings (--directions: stored: not given, asked: 8); repeat"
    assert told in other.stderr
    reach = call(tracks, tmp_path / "run", "--scale", 2, "--prior", "ddcrp", "--resume")
    assert (
        "--prior: stored: not given, asked: ddcrp; --scale: stored: not given, asked: 2)"
        in reach.stderr
    )
    assert reach.stderr.endswith("; repeat its settings, or choose another --output\n")
    assert (tmp_path / "run" / "fit.json").read_bytes() == before


def test_a_directory_with_other_files_is_refused_before_anything_takes_time(tracks, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    result = call(tracks, tmp_path / "mine")
    assert result.exit_code == 1
    assert "mine holds other files (notes.txt, ...); choose an empty directory" in result.stderr
    assert result.stdout == ""


def test_a_run_of_other_tracks_is_told_apart_by_its_data_not_by_what_follows_from_them(
    tracks, tmp_path
):
    assert call(tracks, tmp_path / "run").exit_code == 0
    moved = pd.read_csv(tracks).assign(x=lambda table: 2 * table["x"])
    moved.to_csv(tmp_path / "moved.csv", index=False)
    other = call(tmp_path / "moved.csv", tmp_path / "run", "--resume")
    assert "holds another run (its data differ); choose another --output" in other.stderr


def test_a_run_is_replaced_on_request_only_and_not_by_a_failure(tracks, tmp_path):
    assert run("fit", tracks, "--states", "x,y", *SMALL, "-o", tmp_path / "run").exit_code == 0
    missing = call(tmp_path / "nosuch.csv", tmp_path / "run")
    assert "there is no file" in missing.stderr  # rather than that there is a run
    assert call(tracks, tmp_path / "run", "--force", states=["x", "z"]).exit_code == 1
    assert Posterior.load(tmp_path / "run").problem.n_transitions == 89
    again = call(tracks, tmp_path / "run", "--force", draws=9)
    assert again.exit_code == 0, again.output
    assert Posterior.load(tmp_path / "run").n_draws == 9
    assert call(tracks, tmp_path / "run", "--force", "--resume").exit_code == 2
    nothing = call(tracks, tmp_path / "other", "--resume")
    assert nothing.exit_code == 1
    assert "other holds no run to resume" in nothing.stderr
    assert not (tmp_path / "other").exists()


def test_without_columns_fit_lists_those_of_the_file(tracks, tmp_path):
    result = run("fit", tracks, "--output", tmp_path / "run")
    assert result.exit_code == 1
    assert result.stderr.endswith("by --states; its columns: id, t, x, y\n")


def test_fit_ends_with_what_lies_at_a_bound_of_its_prior(tracks, tmp_path, monkeypatch):
    bound = AtBound("alpha", "lower", 0.25, 0.26)
    monkeypatch.setattr("onlooker.findings.words.at_bounds", lambda posterior: [bound])
    result = call(tracks, tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "\nα lies at the lower bound of its prior, 0.25: the answer depends" in result.stdout


def test_a_column_that_may_tell_trajectories_apart_is_noted(tracks, tmp_path):
    words = ["fit", tracks, "--states", "x,y", *SMALL, "--output", tmp_path / "run"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "Read 90 rows of 1 trajectory" in result.stdout
    note = "Note: column 'id' has 3 values; if they are trajectories: --trajectory id\n"
    assert note in result.stdout
    assert result.stdout.count("if they are trajectories") == 1
    named = call(tracks, tmp_path / "other")
    assert "if they are trajectories" not in named.output


def test_json_is_all_there_is_on_standard_output(tracks, tmp_path):
    result = call(tracks, tmp_path / "run", "--json")
    told = json.loads(result.stdout)
    assert told["run"] == str(tmp_path / "run")
    assert told["account"]["states"] == 90
    assert told["explained"]["n_steps"] == 87
    assert sum(one["probability"] for one in told["controllers"]) == pytest.approx(1.0)
    assert sum(one["states"] for one in told["regions"]) == 90
    assert told["convergence"]["level"] in ("good", "fair", "bad", "unknown")
    assert "Read 90 rows" in result.stderr


NAN = "id,t,x,y\na,0,0,0\na,1,,1\na,2,2,2\n"


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        (None, ["--states", "z"], "no column 'z'; it has id, t, x, y"),
        (None, ["--directions", "3", "--model", "nowhere.toml"], "there is no model file 'nowhere"),
        (NAN, [], "line 3 of the file"),
        (NAN, [], "no value of 'x' in row 1"),
        (
            NAN,
            [],
            "--missing drop, --missing interpolate or --missing infer",
        ),
        ("", [], "is empty"),
        ("id,t,x,y\n", [], "has no rows"),
        ("id,t,x,y\na,0,1,2\n", [], "no trajectory with two states is left"),
        ("<html></html>", [], "is not a CSV file"),
        ("PK\0\0\0", [], "is not a CSV file"),
        ("id,t,x,y\na,0,left,2\na,1,1,1\n", [], "column 'x' must hold numbers"),
        ("id,t,x,y\na,0,1,1\na,0,2,2\n", [], "choose --duplicates first, --duplicates last or "),
    ],
)
def test_bad_input_is_one_clear_line_and_leaves_nothing(content, more, told, tracks, tmp_path):
    path = tracks
    if content is not None:
        path = tmp_path / "bad.csv"
        path.write_text(content)
    result = call(path, tmp_path / "run", *more)
    assert result.exit_code == 1
    assert told in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert told in last
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fit", "nowhere.csv", "--states", "x"], "there is no file 'nowhere.csv'"),
        (["fit", ".", "--states", "x"], "is a directory, not a file"),
        (["fit", "tracks.docx", "--states", "x"], "onlooker reads csv"),
    ],
)
def test_a_file_that_is_none_is_said_to_be(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracks.docx").write_text("x")
    result = run(*words)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert told in result.stderr
    assert not (tmp_path / "run").exists()


def test_rows_that_are_dropped_are_told(tmp_path):
    (tmp_path / "holes.csv").write_text(NAN + "a,3,3,3\na,4,4,3\na,5,4,4\n")
    result = call(tmp_path / "holes.csv", tmp_path / "run", "--missing", "drop")
    assert result.exit_code == 0, result.output
    assert "1 dropped (--missing drop)" in result.stdout


def fails_after_writing(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    path.touch(exist_ok=False)


@pytest.mark.parametrize("there", [False, True])
def test_a_failed_fit_removes_what_it_made_and_no_more(tmp_path, there):
    store = tmp_path / "run"
    if there:
        store.mkdir()
    with pytest.raises(FileExistsError), remove_if_empty(store):
        fails_after_writing(store / "run.json")
    assert store.exists() == there
    assert not there or not any(store.iterdir())


def test_a_failed_fit_keeps_what_can_be_resumed_or_was_there_before(tmp_path):
    store = tmp_path / "run"
    with pytest.raises(FileExistsError), remove_if_empty(store):
        fails_after_writing(store / "chain-000" / "part-000000000001.npz")
    assert (store / "chain-000" / "part-000000000001.npz").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(ZeroDivisionError), remove_if_empty(other):
        raise ZeroDivisionError
    assert (other / "thesis.tex").exists()


def test_an_error_in_the_sampler_leaves_no_half_store(tracks, tmp_path):
    (tmp_path / "model.toml").write_text('[prior]\nmetric = "no such metric"\n')
    result = call(tracks, tmp_path / "run", "--model", tmp_path / "model.toml")
    assert result.exit_code == 1
    assert "no such metric" in result.stderr.splitlines()[-1]
    assert not (tmp_path / "run").exists()


# -- states that were not seen --------------------------------------------------------------------


@pytest.fixture(scope="module")
def holes(tracks, tmp_path_factory):
    frame = pd.read_csv(tracks)
    frame.loc[[4, 5, 40, 89], ["x", "y"]] = np.nan
    path = tmp_path_factory.mktemp("holes") / "holes.csv"
    frame.to_csv(path, index=False)
    return path


def test_unseen_positions_are_inferred_stored_resumed_and_reported(holes, tmp_path):
    store = tmp_path / "run"
    words = ["--missing", "infer", "--chains", 2, "--draws", 6]
    result = call(holes, store, *words)
    assert result.exit_code == 0, result.output
    assert "4 rows with a missing or infinite state" in result.stdout
    assert "3 to be inferred, 1 dropped (--missing infer)" in result.stdout
    result = call(holes, store, *words[:-1], 10, "--resume")
    assert result.exit_code == 0, result.output
    posterior = Posterior.load(store)
    assert posterior.imputed.shape == (2, 10, 3, 2)
    assert np.isfinite(posterior.imputed).all()
    for command in (["summary", store], ["report", store, "--output", tmp_path / "page.html"]):
        result = run(*command)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "page.html").stat().st_size > 10_000
    result = run("anomaly", store, holes, "--replicates", 50)
    assert result.exit_code == 0, result.output
    assert "Steps from or to a state that was not seen are left out." in result.stdout


def test_unseen_integers_are_inferred_in_a_finite_space(tmp_path):
    table = np.zeros((5, 2, 5))
    for state in range(5):
        table[state, 0, (state + 1) % 5] = table[state, 1, (state - 1) % 5] = 1.0
    np.save(tmp_path / "ring.npy", table)
    (tmp_path / "model.toml").write_text('[dynamics]\nkind = "tabular"\nfile = "ring.npy"\n')
    walk = [0, 1, 2, 3, 4, 0, 1, 0, 1, 2]
    rows = [f"a,{t},{state if t % 4 != 2 else ''}" for t, state in enumerate(walk)]
    (tmp_path / "walk.csv").write_text("\n".join(["id,t,s", *rows]) + "\n")
    words = ["fit", tmp_path / "walk.csv", "--states", "s", "--trajectory", "id", "--time", "t"]
    words += ["--model", tmp_path / "model.toml", *SMALL, "--output", tmp_path / "run"]
    result = run(*words, "--missing", "infer")
    assert result.exit_code == 0, result.output
    posterior = Posterior.load(tmp_path / "run")
    assert posterior.problem.n_nodes == 5
    assert posterior.imputed.shape[2] == 2


def test_features_of_unseen_positions_are_refused(holes, tmp_path):
    (tmp_path / "model.toml").write_text('[[features]]\nkind = "heading"\nweight = 2\n')
    result = call(holes, tmp_path / "run", "--missing", "infer", "--model", tmp_path / "model.toml")
    assert result.exit_code == 1
    assert "some were not seen" in result.stderr
    assert "choose --missing interpolate or --missing split" in result.stderr
    assert not (tmp_path / "run").exists()


# -- until converged ------------------------------------------------------------------------------


def until_converged(tracks, output, *more):
    words = ["fit", tracks, "--states", "x,y", "--trajectory", "id", "--prior", "crp"]
    words += ["--tune", 0, "--chains", 2, "--jobs", 1, "--output", output, "--until-converged"]
    return run(*words, *more)


def test_a_fit_goes_on_until_converged_and_says_so(tracks, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": True}))
    done = until_converged(tracks, tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "sampling: converged after 250 draws per chain" in done.stderr
    assert "Sampling ended when everything had settled." in done.stdout
    told = run("summary", tmp_path / "run", "--json")
    found = json.loads(told.stdout)
    assert found["model"]["ended"] == "converged"
    assert found["model"]["draws"] == 250
    assert "Sampling ended when everything had settled." in found["convergence"]["sentences"]
    status, view = read_view(tmp_path / "run")
    assert status.state == "finished"
    for _ in view.refine():
        pass
    sentences = overview(view)["verdict"]["sentences"]  # that of explorer and report
    assert "Sampling ended when everything had settled." in sentences


def test_a_fit_that_is_out_of_time_says_so_and_goes_on_when_asked_to(tracks, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": False}))
    done = until_converged(tracks, tmp_path / "run", "--max-minutes", 1e-9)
    assert done.exit_code == 0, done.output
    assert "Sampling reached its time limit before everything had settled." in done.stdout
    assert "--resume continues the run" in done.stdout
    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": True}))
    again = until_converged(tracks, tmp_path / "run", "--resume")
    assert "converged after 250 draws" in again.stderr


def test_a_model_file_may_ask_for_it(tracks, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": False}))
    model = tmp_path / "model.toml"
    model.write_text('[sampling]\ndraws = "auto"\nmax_minutes = 1e-9\ntune = 0\n')
    done = run("fit", tracks, "--states", "x,y", "--model", model, "--output", tmp_path / "run")
    assert "sampling: out of time after" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--until-converged", "--draws", 5], "--draws and --until-converged exclude each other"),
        (["--max-minutes", 5], "--max-minutes applies to --until-converged only"),
        (["--until-converged", "--max-minutes", 0], "0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(words, told, tracks, tmp_path):
    done = run("fit", tracks, "--states", "x,y", "--output", tmp_path / "run", *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "run").exists()
