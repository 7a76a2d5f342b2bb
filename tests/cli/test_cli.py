"""The command line: what a newcomer meets first, README included."""

import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import onlooker
from onlooker import Posterior
from onlooker.cli import main
from onlooker.experiments import example1
from onlooker.explorer.report import is_report
from onlooker.warnings import ConvergenceWarning

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def call(*args, **options):
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "for it"
    size = ["--draws", 12, "--tune", 25, "--chains", 2, "--jobs", 1]
    return folder, call("demo", "--output", folder, "--seed", 3, *size)


def test_version():
    result = call("--version")
    assert result.exit_code == 0
    assert result.output == f"onlooker, version {onlooker.__version__}\n"


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["demo", "--help"]])
def test_help_says_how_to_call_it(args):
    result = call(*args)
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_the_list_of_commands_is_not_cut_off():
    told = call("--help", terminal_width=80).output
    listed = told.partition("Commands:")[2]
    assert len(listed.split("\n")) > len(main.commands)
    assert "..." not in listed


def test_help_imports_nothing_heavy():
    code = (
        "import sys, onlooker.cli\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pandas', 'sklearn', 'matplotlib', 'tqdm'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_installed_command_runs():
    command = Path(sys.executable).with_name("onlooker")
    done = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert onlooker.__version__ in done.stdout


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["dance"], "No such command 'dance'"),
        (["demo", "--drwas", "3"], "No such option '--drwas'"),
        (["demo", "--draws", "0"], "0 is not in the range"),
        (["demo", "--draws", "many"], "'many' is not a valid integer"),
        (["demo", "--seed", "-1"], "-1 is not in the range"),
    ],
)
def test_wrong_options_are_refused_in_words(args, told):
    result = call(*args)
    assert result.exit_code == 2
    assert told.replace("'", "") in result.stderr.replace("'", "")
    assert "Traceback" not in result.output


def test_a_directory_that_cannot_be_made_is_one_line_and_no_traceback(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    result = call("demo", "--output", tmp_path / "file" / "inside")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "file" / "inside") in result.stderr
    assert result.stdout == ""


def test_missing_matplotlib_is_told_before_any_sampling(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call("demo", "--output", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == "Error: plotting needs matplotlib: pip install onlooker[plot]\n"
    assert result.stdout == ""


@pytest.fixture
def fail(monkeypatch):
    def with_(error):
        def raise_it(*args, **options):
            raise error

        monkeypatch.setattr(example1, "recognise", raise_it)

    return with_


def test_an_error_of_several_lines_becomes_one(tmp_path, fail):
    fail(ValueError("draws is\n  wrong"))
    result = call("demo", "--output", tmp_path)
    assert (result.exit_code, result.stderr) == (1, "Error: draws is wrong\n")


def test_an_unexpected_error_names_its_kind_and_how_to_see_more(tmp_path, fail):
    fail(ZeroDivisionError("division by zero"))
    result = call("demo", "--output", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ZeroDivisionError: division by zero")
    assert "--debug" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "env"),
    [(["--debug"], {}), ([], {"ONLOOKER_DEBUG": "1"})],
    ids=["option", "variable"],
)
def test_debug_lets_the_error_through(tmp_path, fail, before, env):
    error = ValueError("as it was")
    fail(error)
    result = call(*before, "demo", "--output", tmp_path, env=env)
    assert result.exception is error


def test_ctrl_c_says_so(tmp_path, fail):
    fail(KeyboardInterrupt())
    result = call("demo", "--output", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "Stopped by Ctrl-C.\n"


# -- the demo -------------------------------------------------------------------------------------


def test_demo_succeeds_and_writes_its_figure(small_demo):
    folder, result = small_demo
    assert result.exit_code == 0, result.output
    assert (folder / "example1.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (folder / "example1.svg").read_text(encoding="utf-8")[:1000]
    assert str(folder / "example1.png") in result.stdout.replace("\n", "")
    assert is_report(folder / "report.html")
    assert f"Report: {folder / 'report.html'} (open it in a browser" in result.stdout
    assert f"onlooker explore {folder / 'run.npz'}" in result.stdout
    assert Posterior.load(folder / "run.npz").n_draws == 12


@pytest.mark.parametrize(
    "told",
    [
        r"10 trajectories of 100 states",
        r"No action was seen",
        r"number of controllers +\d+ \(\d+ %\) +8 of the expert",
        r"policy error where seen +\d\.\d{3} rad \(\d+°\) +1\.39\d rad if untrained",
        r"at unseen points near +\d\.\d{3} rad",
        r"nu +\d\.\d{3} ± \d\.\d{3}",
        r"Convergence: ",
        r"Took \d+ s: 2 chains of 37 sweeps, 12 draws kept of each",
        r"Try next: ",
    ],
)
def test_demo_tells(small_demo, told):
    assert re.search(told, small_demo[1].stdout)


def test_demo_learns_even_in_a_few_sweeps(small_demo):
    error = re.search(r"policy error where seen +(\d\.\d{3}) rad", small_demo[1].stdout)
    assert float(error[1]) < 0.7  # untrained: 1.396; about 0.45 for most seeds


def test_quick_is_smaller_and_explicit_numbers_win(tmp_path, monkeypatch):
    asked = {}

    def recognise(seed, **options):
        asked.update(options, seed=seed)
        raise ValueError("enough")

    monkeypatch.setattr(example1, "recognise", recognise)
    call("demo", "--output", tmp_path, "--quick", "--tune", 7, "--seed", 5)
    assert asked["draws"] == example1.QUICK["draws"]
    assert asked["chains"] < example1.FULL["chains"]
    assert (asked["tune"], asked["seed"], asked["n_jobs"]) == (7, 5, None)
    call("demo", "--output", tmp_path)
    assert {name: asked[name] for name in example1.FULL} == example1.FULL


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_demo_installs_what_the_demo_needs_and_make_test_the_rest(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)

    def plan(target):
        done = subprocess.run(
            ["make", "--dry-run", target], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return re.findall(r'--editable "(.*?)"', done.stdout)

    assert plan("demo") == [".[plot]"]
    assert plan("test") == [".[dev]"]
    (tmp_path / ".venv").mkdir()
    for mark in (".made", ".ready-demo"):
        (tmp_path / ".venv" / mark).touch()
    assert plan("demo") == []
    assert plan("test") == [".[dev]"]


# -- the README -----------------------------------------------------------------------------------


def python_blocks():
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_the_readme_has_python_in_it():
    assert len(python_blocks()) >= 2


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    angles = rng.integers(16, size=40) * np.pi / 8
    x, y = np.cumsum([np.cos(angles), np.sin(angles)], axis=1)
    rows = [f"{i // 20},{i},{x[i]},{y[i]}" for i in range(40)]
    (tmp_path / "tracks.csv").write_text("\n".join(["animal,t,x,y", *rows]))
    monkeypatch.chdir(tmp_path)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in python_blocks():
            small = re.sub(r"\bdraws=\d+", "draws=8, tune=8, chains=2, progress=False", block)
            assert small != block or "draws" not in block
            exec(compile(small, str(README), "exec"), names)
    assert names["recognizer"].posterior_.n_draws == 8


def test_the_readmes_pictures_and_pages_exist():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (README.parent / target).exists(), target
