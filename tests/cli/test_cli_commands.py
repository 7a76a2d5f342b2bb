"""`predict`, `summary` and `anomaly`: what a stored run answers from a shell."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bare import bare_problem
from click.testing import CliRunner

from onlooker import Posterior, Problem, sample
from onlooker.cli import main
from onlooker.cli.anomaly import _P_VALUES, _reason
from onlooker.dynamics import DisplacementDynamics
from onlooker.findings.opened import OpenedRun
from onlooker.partitions import ChineseRestaurant
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion

COMMAND = str(Path(sys.executable).with_name("onlooker"))
SMALL = ["--draws", "12", "--tune", "10", "--chains", "2", "--jobs", "1"]
SMALL += ["--repertoire", "actions"]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def shell(*words, **options):
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, **options)


def write_tracks(path, demos, name="fox"):
    rows = [
        (f"{name} {k}", t, *state) for k, track in enumerate(demos) for t, state in enumerate(track)
    ]
    pd.DataFrame(rows, columns=["id", "t", "x", "y"]).to_csv(path, index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tracks of foxes, a run that was fitted to them, and tracks of which one is odd."""
    folder = tmp_path_factory.mktemp("cli")
    world = CircularMotion()
    seen = world.rollout(6, 50, random_state=0)[0]
    write_tracks(folder / "tracks.csv", seen)
    write_tracks(folder / "nominal.csv", world.rollout(1, 50, random_state=2)[0], "next")
    write_tracks(folder / "reference.csv", world.rollout(24, 50, random_state=3)[0], "known")
    new = list(world.rollout(4, 50, random_state=1)[0])
    jump = new[2].copy()
    jump[25:] += 30.0  # a step that no action explains
    new[2] = jump
    new[3] = new[3][::-1]  # the way back
    write_tracks(folder / "new.csv", new, "new")
    words = [
        "fit",
        folder / "tracks.csv",
        "--trajectory",
        "id",
        "--states",
        "x,y",
        "--time",
        "t",
    ]
    result = run(*words, *SMALL, "--output", folder / "run")
    assert result.exit_code == 0, result.output
    return folder


def is_one_line(result, told, code=1, messages=False):
    """One line of error, after what was said of the files if `messages` are expected."""
    assert result.exit_code == code, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert messages or result.stderr.count("\n") == 1
    assert told in result.stderr
    assert result.stdout == ""


# -- predict --------------------------------------------------------------------------------------


def test_predict_tells_the_distribution_at_a_state(folder):
    result = run("predict", folder / "run", "--at", "1.0,2.0")
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^State \(1, 2\), of controller \d+, nearest seen state [\d.]+ away:$", result.stdout, re.M
    )
    assert re.search(r"^[\d.]+° +0\.\d{3} +0\.\d{3} +[01]\.\d{3}$", result.stdout, re.M)


def test_predict_agrees_with_the_library(folder):
    result = run("predict", folder / "run", "--at", "1,2", "--at", "-3 -4", "--json")
    told = json.loads(result.stdout)
    posterior = Posterior.load(folder / "run")
    points = np.array([[1.0, 2.0], [-3.0, -4.0]])
    expected = posterior.policy(points, interval=0.9)
    for part, values in zip(("probability", "low", "high"), expected, strict=True):
        np.testing.assert_allclose([row[part] for row in told["states"]], values)
    assert [row["action"] for row in told["states"]] == expected.mean.argmax(axis=1).tolist()
    clusters = [row["controller"] for row in told["states"]]
    assert clusters == [c + 1 if c >= 0 else None for c in posterior.assign(points)]


def test_predict_tells_how_far_away_the_data_are(folder, tmp_path):
    seen = pd.read_csv(folder / "tracks.csv")[["x", "y"]].to_numpy()
    words = ["predict", folder / "run", "--at", "100,100", "--at", "{},{}".format(*seen[3])]
    far = np.linalg.norm(seen - 100, axis=1).min()
    told = json.loads(run(*words, "--json", "--csv", tmp_path / "out.csv").stdout)
    assert [row["nearest_seen"] for row in told["states"]] == pytest.approx([far, 0.0])
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["nearest seen"].tolist() == pytest.approx([far, 0.0])
    lines = run(*words).stdout.splitlines()
    assert lines[0].endswith("nearest seen")
    assert [line.split()[-1] for line in lines[1:]] == [f"{far:.4g}", "0"]


@pytest.mark.parametrize(("n", "end"), [(50, None), (51, "and 1 more: see --csv or --json")])
def test_predict_lists_fifty_states_and_says_how_many_more_there_are(folder, n, end):
    words = [word for k in range(n) for word in ("--at", f"{k},1")]
    lines = run("predict", folder / "run", *words).stdout.splitlines()
    assert lines[51:] == ([] if end is None else [end])


def test_predict_takes_points_from_a_file_by_the_columns_of_the_fit(folder, tmp_path):
    points = pd.DataFrame({"y": [2.0, -4.0], "other": 0, "x": [1.0, -3.0]})
    points.to_csv(tmp_path / "points.csv", index=False)
    out = tmp_path / "out.csv"
    result = run("predict", folder / "run", "--states-file", tmp_path / "points.csv", "--csv", out)
    assert result.exit_code == 0, result.output
    found = pd.read_csv(out)
    np.testing.assert_allclose(found[["x", "y"]], [[1.0, 2.0], [-3.0, -4.0]])
    probabilities = found.filter(regex="^p ").to_numpy()
    np.testing.assert_allclose(
        probabilities, Posterior.load(folder / "run").policy([[1.0, 2.0], [-3.0, -4.0]])
    )
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_predict_shows_one_line_a_state_where_there_are_many(folder):
    result = run("predict", folder / "run", "--at", "1,2", "--at", "0,0")
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("x, y")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--at", "1,2,3"], "a state of this run has 2 numbers (x, y), got 3"),
        (["--states-file", "nowhere.csv"], "there is no file 'nowhere.csv'"),
        (["--at", "1,2", "--csv", "nowhere/out.csv"], "there is no directory 'nowhere'"),
    ],
)
def test_predict_refuses_in_one_line(folder, words, told):
    is_one_line(run("predict", folder / "run", *words), told)


def test_points_that_are_missing_are_named(folder, tmp_path):
    (tmp_path / "points.csv").write_text("x,y\n1,2\n,3\n")
    result = run("predict", folder / "run", "--states-file", tmp_path / "points.csv")
    is_one_line(result, "the state in row 1 (line 3 of the file) is missing")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give states by --at, or a file"),
        (["--at", "1,2", "--states-file", "a.csv"], "give states by --at, or a file"),
        (["--at", "1,north"], "'1,north' is not a state"),
        (["--at", "1,nan"], "is not finite"),
        (["--at", "1,2", "--at", "1"], "have different lengths"),
        (["--at", "1,2", "--interval", "1"], "not in the range"),
    ],
)
def test_predict_refuses_a_wrong_call(folder, words, told):
    result = run("predict", folder / "run", *words)
    assert result.exit_code == 2
    assert told in result.stderr


# -- summary --------------------------------------------------------------------------------------


def test_summary_tells_data_model_and_trust(folder):
    result = run("summary", folder / "run")
    assert result.exit_code == 0, result.output
    for told in (
        "6 trajectories, 300 distinct states, 294 steps.",
        "Actions: 16 directions × steps of ",
        "they explain ",
        "Prior: regions (self-link weight ν, sharing γ, length scale of the decay inferred).",
        "Concentration of the controllers: inferred.",
        "2 chains of 12 draws after 10 sweeps of tuning, seed 0.",
        " controllers",
        "The consensus partition has ",
        "hyper-parameter",
        "\nconvergence ",
        "R-hat",
        "The chains ",
    ):
        assert told in result.stdout
    assert not re.search(r" fixed$", result.stdout, re.M)  # all hyper-parameters are inferred


def test_summary_as_json_is_nothing_but_json(folder):
    told = json.loads(run("summary", folder / "run", "--json").stdout)
    posterior = Posterior.load(folder / "run")
    assert told["hyper"]["nu"]["mean"] == pytest.approx(posterior.hyper["nu"].mean())
    assert told["data"]["columns"]["states"] == ["x", "y"]
    assert len(told["model"]["actions"]) == posterior.problem.n_actions
    sizes = np.bincount(posterior.partition())
    assert [one["states"] for one in told["regions"]] == sizes.tolist()


@pytest.mark.parametrize(("share", "told"), [(0.5, False), (0.99, True)])
def test_summary_tells_what_lies_at_a_bound_of_its_prior(folder, monkeypatch, share, told):
    opened = OpenedRun.read(folder / "run")
    bounds = opened.posterior.prior.decay.scale
    scale = np.full_like(opened.posterior.hyper["scale"], share * bounds.high)
    opened.posterior.hyper = {**opened.posterior.hyper, "scale": scale}
    monkeypatch.setattr(OpenedRun, "read", lambda path: opened)
    line = (
        f"The length scale of the decay lies at the upper bound of its prior, {bounds.high:.4g}: "
        "the answer depends on that bound (see docs, Choosing a prior)."
    )
    assert (line in run("summary", folder / "run").stdout) == told
    found = json.loads(run("summary", folder / "run", "--json").stdout)["at_bounds"]
    bound = {"name": "scale", "side": "upper", "bound": bounds.high, "median": scale[0, 0]}
    assert found == ([bound] if told else [])


def test_a_run_made_in_python_is_summarised_too(tmp_path):
    problem = Problem(node_of=[0, 1, 2], loglik=np.log([[0.9, 0.1]] * 3))
    options = {"draws": 2, "tune": 1, "chains": 1, "random_state": 0, "progress": False}
    with pytest.warns(ConvergenceWarning):
        found = sample(problem, ChineseRestaurant(), store=tmp_path / "run", **options)
    found.save(tmp_path / "run.npz")
    for path in (tmp_path / "run", tmp_path / "run.npz"):
        result = run("summary", path)
        assert result.exit_code == 0, result.output
        assert "Actions: not stored" in result.stdout
        assert "too few to compare" in result.stdout
        assert re.search(r"1 +- +- +fixed", result.stdout)


def test_the_consensus_is_sought_once_and_again_when_the_run_has_grown(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    kept = tmp_path / "run" / "consensus.npz"
    before = kept.stat().st_mtime_ns
    first = run("summary", tmp_path / "run", "--json").stdout
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(b"torn")
    assert run("summary", tmp_path / "run", "--json").stdout == first
    words = ["fit", folder / "tracks.csv", "--trajectory", "id", "--states", "x,y", "--time", "t"]
    grown = run(*words, *SMALL, "--draws", 14, "--resume", "--output", tmp_path / "run")
    assert grown.exit_code == 0, grown.output
    labels = np.load(kept)["labels"]
    np.testing.assert_array_equal(labels, Posterior.load(tmp_path / "run").partition())


def test_too_many_draws_for_a_quick_consensus_are_thinned_and_told(folder, tmp_path, monkeypatch):
    from onlooker.findings import opened

    shutil.copytree(folder / "run", tmp_path / "run")
    monkeypatch.setattr(opened, "_MAX_LABELS", 300 * 2 * 4)
    result = run("summary", tmp_path / "run")
    assert "one draw in 3" in result.stdout


# -- runs that are none ---------------------------------------------------------------------------

ASK = {
    "summary": [],
    "predict": ["--at", "1,2"],
    "anomaly": ["tracks.csv"],
}


@pytest.mark.parametrize("command", ASK)
@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (shutil.rmtree, "there is no run"),
        (lambda path: (path / "run.json").unlink(), "holds no run: it has no run.json"),
        (lambda path: (path / "run.json").write_text('{"what": '), "run.json is damaged"),
        (lambda path: (path / "run.json").write_text("{}"), "was not written by onlooker"),
        (lambda path: (path / "problem.npz").unlink(), "holds no readable run"),
        (lambda path: (path / "problem.npz").write_bytes(b"PK\3\4"), "problem.npz is damaged"),
        (lambda path: [shutil.rmtree(p) for p in path.glob("chain-*")], "stopped before the first"),
    ],
    ids=["none", "empty", "torn", "foreign", "without problem", "torn problem", "without draws"],
)
def test_a_run_that_is_none_is_one_line(folder, tmp_path, command, break_it, told):
    shutil.copytree(folder / "run", tmp_path / "run")
    break_it(tmp_path / "run")
    is_one_line(run(command, tmp_path / "run", *ASK[command]), told)


@pytest.mark.parametrize("command", ASK)
def test_tracks_in_place_of_a_run_are_told_from_one(folder, command):
    result = run(command, folder / "tracks.csv", *ASK[command])
    is_one_line(result, "tracks.csv is not a run; a run is the directory that `onlooker fit")


def test_a_damaged_part_is_noted_and_the_rest_is_used(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    for part in (tmp_path / "run" / "chain-001").glob(
        "part-*.npz"
    ):  # a slow machine writes several
        part.write_bytes(b"torn")
    result = run("summary", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "cannot be read" in result.stdout
    assert "The run was stopped: 12 of 12 draws of 1 of 2 chains" in result.stdout


# -- anomaly --------------------------------------------------------------------------------------


def test_anomaly_ranks_by_the_columns_of_the_fit(folder):
    words = ["--replicates", 20, "--reference", folder / "reference.csv"]
    result = run("anomaly", folder / "run", folder / "new.csv", *words)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert f"P-values from 24 reference trajectories of {folder / 'reference.csv'}." in lines
    assert "The smallest p-value that 24 tracks allow is 0.04." in lines
    assert lines[0].startswith("Read 200 rows of 4 trajectories")
    at = next(i for i, line in enumerate(lines) if line.startswith("trajectory"))
    first_two = {line[:5] for line in lines[at + 1 : at + 3]}
    assert first_two == {"new 2", "new 3"}
    assert "Alarm: no action explains 1 of 196 steps; the worst first; rows count" in result.stdout
    assert re.search(r"^  new 2, step 24, (time \d+, )?row \d+: ", result.stdout, re.M)
    assert re.search(
        r"^  new 3, step \d+, .*row \d+: other actions from there", result.stdout, re.M
    )


def test_anomaly_as_json_and_csv(folder, tmp_path):
    out = tmp_path / "ranking.csv"
    result = run(
        "anomaly", folder / "run", folder / "new.csv", "--json", "--csv", out, "--replicates", 20,
        "--reference", folder / "reference.csv",
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert told["settings"]["n_reference"] == 24
    assert all(row["p_combined"] * 25 == pytest.approx(round(row["p_combined"] * 25))
               for row in told["ranking"])  # fmt: skip
    found = pd.read_csv(out)
    assert found["trajectory"].tolist() == [row["trajectory"] for row in told["ranking"]]
    np.testing.assert_allclose(found["p_combined"], [row["p_combined"] for row in told["ranking"]])
    assert (np.diff(found["p_combined"]) >= 0).all()
    assert [(row["trajectory"], row["step"]) for row in told["unexplained"]] == [("new 2", 24)]
    assert told["anomalous"] == []


@pytest.mark.parametrize(("file", "level", "code"), [("new.csv", 0.1, 3), ("nominal.csv", 0.05, 0)])
def test_anomaly_fails_if_asked_to(folder, file, level, code):
    words = ["anomaly", folder / "run", folder / file, "--fail-if-anomalous", level, "--json"]
    result = run(*words, "--reference", folder / "reference.csv", "--replicates", 20)
    assert result.exit_code == code, result.output
    assert bool(json.loads(result.stdout)["anomalous"]) == (code == 3)


def test_the_same_seed_gives_the_same_ranking(folder):
    words = ["anomaly", folder / "run", folder / "nominal.csv", "--replicates", 20, "--json"]
    words += ["--reference", folder / "reference.csv"]
    first = run(*words).stdout
    assert run(*words).stdout == first
    assert run(*words, "--seed", 1).stdout != first


def test_other_columns_can_be_named(folder, tmp_path):
    frame = pd.read_csv(folder / "nominal.csv").rename(columns={"x": "east", "y": "north"})
    frame.to_csv(tmp_path / "other.csv")
    words = ["anomaly", folder / "run", tmp_path / "other.csv", "--replicates", 20]
    is_one_line(run(*words), "no column 'x'")
    odd = run(*words, "--states", "east,north")
    assert odd.exit_code == 0, odd.output
    assert "P-values from 6 trajectories of the fit, scored by short chains without them." in (
        odd.stdout
    )
    told = "The smallest p-value that 6 tracks allow is 0.143; 20 allow p-values below 0.05 (--ref"
    assert told in odd.stdout


@pytest.mark.parametrize(("combined", "told"), [(0.125, "a long stop"), (0.25, "none")])
def test_one_odd_respect_of_five_is_no_deviation(combined, told):
    """With seven reference tracks each respect of a nominal one is the oddest in one of eight."""
    row = dict.fromkeys(_P_VALUES, 0.5) | {"p_stopped": 0.125, "p_combined": combined}
    assert _reason(row, 0.125) == told


def test_a_run_made_in_python_asks_for_the_columns(tmp_path, folder):
    demos, _ = CircularMotion().rollout(2, 20, random_state=0)
    problem = bare_problem(demos, DisplacementDynamics.compass(8))
    with pytest.warns(ConvergenceWarning):
        sample(
            problem, ChineseRestaurant(), draws=2, tune=1, chains=1, progress=False,
            store=tmp_path / "run",
        )  # fmt: skip
    words = ["anomaly", tmp_path / "run", folder / "nominal.csv", "--replicates", 20]
    is_one_line(run(*words), "--states")
    assert run(*words, "--states", "x,y", "--trajectory", "id").exit_code == 0


def test_a_reference_that_would_deceive_is_refused(folder, tmp_path):
    words = ["anomaly", folder / "run", folder / "new.csv", "--reference"]
    is_one_line(
        run(*words, folder / "tracks.csv", "--json"),
        "the run was fitted to 6 trajectories of it (such as 'fox 0'); give tracks that it has not",
        messages=True,
    )
    is_one_line(
        run(*words, folder / "nominal.csv", "--json"),
        "it holds 1 trajectory; 20 allow p-values below 0.05, 2 are the least",
        messages=True,
    )
    (tmp_path / "empty.csv").write_text("id,t,x,y\n")
    result = run(*words, tmp_path / "empty.csv", "--json")
    is_one_line(result, "empty.csv", messages=True)
    result = run(*words, folder / "reference.csv", "--json", "--fail-if-anomalous", 0.01)
    is_one_line(
        result,
        "--fail-if-anomalous 0.01 would never fail: with 24 reference tracks no p-value is below "
        "0.04; it takes 99 of them, by --reference",
        messages=True,
    )


def test_tracks_of_the_fit_that_are_judged_are_named(folder):
    words = ["anomaly", folder / "run", folder / "tracks.csv", "--replicates", 20]
    result = run(*words, "--reference", folder / "reference.csv")
    assert "Note: the run was fitted to 6 trajectories of the file (such as 'fox 0')" in (
        result.stdout
    )


def test_tracks_that_the_fit_sets_aside_calibrate_later_ones(folder, tmp_path):
    store, out = tmp_path / "run", tmp_path / "many.csv"
    many = CircularMotion().rollout(40, 10, random_state=4)[0]
    write_tracks(out, many)
    words = ["fit", out, "--trajectory", "id", "--states", "x,y", "--time", "t", *SMALL]
    words += ["--prior", "crp", "--output", store]
    fitted = run(*words, "--hold-out", 0.5)
    assert fitted.exit_code == 0, fitted.output
    line = "Set aside: 20 of 40 trajectories, to calibrate the p-values of onlooker anomaly"
    assert line in fitted.stdout
    held_out = json.loads((store / "fit.json").read_text())["held_out"]
    problem = Posterior.load(store).problem
    assert len(held_out) == 20
    assert set(problem.paths.names) == {f"fox {k}" for k in range(40)} - set(held_out)
    told = run("summary", store).stdout
    assert "20 trajectories, 200 distinct states" in told
    assert "Set aside for calibration: 20 trajectories." in told
    scored = run("anomaly", store, folder / "nominal.csv", "--replicates", 20)
    assert scored.exit_code == 0, scored.output
    assert "P-values from 20 trajectories that the fit set aside." in scored.stdout
    grown = run(*words, "--draws", 14, "--resume")
    assert grown.exit_code == 0, grown.output
    assert line in grown.stdout
    assert json.loads((store / "fit.json").read_text())["held_out"] == held_out


def test_a_fifth_of_ten_tracks_is_set_aside_and_none_of_nine(tmp_path):
    for n, share, n_aside in ((10, None, 2), (9, None, 0), (10, 0, 0), (4, 0.25, 1)):
        write_tracks(tmp_path / "t.csv", CircularMotion().rollout(n, 8, random_state=5)[0])
        words = ["fit", tmp_path / "t.csv", "--trajectory", "id", "--states", "x,y", *SMALL]
        words += ["--prior", "crp", "--output", tmp_path / f"run {n} {share}"]
        result = run(*words, *([] if share is None else ["--hold-out", share]), "--json")
        assert result.exit_code == 0, result.output
        assert len(json.loads(result.stdout)["held_out"] or []) == n_aside
    result = run(*words[:-1], tmp_path / "none", "--hold-out", 0.1, "--json")
    is_one_line(
        result, "cannot set aside 10 % of 4 trajectories: give another share", messages=True
    )
    assert "--hold-out" in result.stderr


# -- real processes -------------------------------------------------------------------------------


def test_json_of_a_real_process_is_alone_on_standard_output(folder):
    done = shell("summary", folder / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"] == str(folder / "run")


def test_exit_codes_of_real_processes(folder, tmp_path):
    assert shell("summary", tmp_path / "nothing").returncode == 1
    assert shell("summary").returncode == 2
    found = shell(
        "anomaly", folder / "run", folder / "new.csv", "--fail-if-anomalous", 0.1,
        "--replicates", 20, "--reference", folder / "reference.csv",
    )  # fmt: skip
    assert found.returncode == 3, found.stderr
    assert "Anomalous (q_combined <= 0.1): " in found.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_ctrl_c_ends_with_130_and_the_run_can_be_resumed(folder, tmp_path):
    words = ["fit", folder / "tracks.csv", "--trajectory", "id", "--states", "x,y", "--tune", 0]
    words += ["--draws", 100_000, "--chains", 1, "--output", tmp_path / "run"]
    process = subprocess.Popen(
        [COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # shells start background jobs with Ctrl-C ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for _ in range(3000):
        if any((tmp_path / "run").glob("chain-*/part-*.npz")) or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "To continue, repeat the command with --resume.\nStopped by Ctrl-C.\n" in told
    assert "Traceback" not in told
    result = run("summary", tmp_path / "run")
    assert "The run was stopped" in result.stdout
