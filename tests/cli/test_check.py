"""`check`; names that would steer a terminal or a spreadsheet; a command that is asked to end."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from small_runs import plane_problem, quick

import onlooker
from onlooker import Posterior
from onlooker.checks import printable
from onlooker.cli import main
from onlooker.cli.output import as_text, write_csv
from onlooker.inference import threads
from onlooker.partitions import Mixing
from onlooker.runs import store

PACKAGE = Path(onlooker.__file__).parent
EVIL = "\x1b[2J\x9b31m\x07\u202efox\U000e0001"


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


# -- check ----------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """A store with a part that is cut short."""
    monkeypatch.setattr(store, "_MAX_WAIT", 0.0)
    monkeypatch.setattr(threads, "_SLICE", 0.0)
    quick(plane_problem(), Mixing(3), store=tmp_path / "run")
    part = sorted((tmp_path / "run").glob("chain-000/part-*.npz"))[2]
    part.write_bytes(part.read_bytes()[:100])
    return tmp_path / "run"


def test_a_sound_run_is_one_line(tmp_path):
    quick(plane_problem(), Mixing(3), store=tmp_path / "run")
    result = run("check", tmp_path / "run")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'run'}: 2 chains of 8 draws, all sound.\n"


def test_damage_is_named_and_mended_on_request(damaged):
    result = run("check", damaged)
    assert result.exit_code == 1
    assert re.match(r"Lost: draws of chain-000 from number 2 on cannot be read ", result.stdout)
    assert result.stderr.startswith(f"Error: {damaged} is damaged: 2 chains of 2 draws are sound")
    assert "--repair" in result.stderr
    result = run("check", damaged, "--repair")
    assert result.exit_code == 0
    assert "resuming the run draws the rest again" in result.stdout
    assert "all sound" in run("check", damaged).stdout


@pytest.mark.parametrize("file", ["run.json", "problem.npz"])
def test_what_cannot_be_mended_is_an_error_in_one_line(damaged, file):
    (damaged / file).write_bytes(b"{")
    result = run("check", damaged, "--repair")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert file in result.stderr


def test_a_record_that_cannot_be_read_is_named(damaged):
    (damaged / "fit.json").write_text("{")
    assert "fit.json" in run("check", damaged).stdout


# -- names ----------------------------------------------------------------------------------------


def test_control_characters_are_shown_and_not_obeyed():
    shown = printable(f"a {EVIL}\nb é 日本")
    assert all(unicodedata.category(char)[0] != "C" or char == "\n" for char in shown)
    assert shown.startswith("a \\u001b[2J\\u009b31m\\u0007\\u202efox")
    assert shown.endswith("\nb é 日本")
    assert json.loads(f'"{printable(EVIL)}"') == EVIL  # as JSON escapes them, too


def test_every_command_prints_by_the_one_function_that_escapes():
    for path in (PACKAGE / "cli").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("click.echo") == (path.name == "output.py"), path
        assert not re.search(r"\bprint\(|secho", text), path


def test_names_from_files_do_not_steer_the_terminal(tmp_path):
    walk = np.cumsum(np.random.default_rng(0).normal(size=(40, 2)), axis=0)
    names = np.repeat([f"{EVIL}{k}" for k in range(4)], 10)
    frame = pd.DataFrame({"id": names, f"x{EVIL}": walk[:, 0], "y": walk[:, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    size = ["--draws", 10, "--tune", 5, "--chains", 2, "--jobs", 1]
    columns = ["--trajectory", "id", "--states", f"x{EVIL},y"]
    fit = run("fit", tmp_path / "t.csv", *columns, *size, "--output", tmp_path / "run")
    assert fit.exit_code == 0, fit.output
    new = tmp_path / "t.csv"
    said = [fit.output, run("summary", tmp_path / "run").output]
    said.append(run("predict", tmp_path / "run", "--at", "0,0", "--at", "1,1").output)
    said.append(run("anomaly", tmp_path / "run", new).output)
    said.append(run("anomaly", tmp_path / "run", new, "--json").output)
    said.append(run("fit", tmp_path / "t.csv", "--states", "x,y").output)  # an error that lists
    assert any("\\u001b[2J" in text for text in said[:4])
    for text in said:
        assert text
        assert not [c for c in text if unicodedata.category(c)[0] == "C" and c != "\n"], text


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd()", "'=cmd()"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-a", "'-a"),
        ("@x", "'@x"),
        ("\t=1", "'\t=1"),
        ("a=b", "a=b"),
        ("+1.5", "+1.5"),
        ("-3", "-3"),
        (-3.5, -3.5),
        (None, None),
    ],
)
def test_text_that_a_spreadsheet_would_compute_is_escaped_and_numbers_are_not(cell, written):
    assert as_text(cell) == written


def test_cells_index_and_header_of_a_table_are_escaped(tmp_path):
    frame = pd.DataFrame({"=x": ["=1+1", "b"], "n": [-1, -2], "f": [-0.5, np.nan]}, ["@i", "j"])
    write_csv(tmp_path / "t.csv", frame, index=True)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["index,'=x,n,f", "'@i,'=1+1,-1,-0.5", "j,b,-2,"]


# -- SIGTERM --------------------------------------------------------------------------------------


def test_a_fit_that_is_asked_to_end_stores_what_it_has_and_says_how_to_go_on(tmp_path):
    walk = np.cumsum(np.random.default_rng(0).normal(size=(60, 2)), axis=0)
    pd.DataFrame(walk, columns=["x", "y"]).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "run"
    command = [Path(sys.executable).with_name("onlooker"), "fit", tmp_path / "t.csv"]
    sizes = ["--states", "x,y", "--draws", "100000", "--tune", "5", "--chains", "2"]
    with subprocess.Popen(
        [*map(str, command), *sizes, "--output", str(out)], stderr=subprocess.PIPE, text=True
    ) as child:
        patience = time.monotonic() + 300  # kernels may have to be compiled
        while len(list(out.glob("chain-00?/part-*.npz"))) < 2 and child.poll() is None:
            assert time.monotonic() < patience
            time.sleep(0.05)
        stored = max(int(part.stem[5:]) for part in out.glob("chain-00?/part-*.npz"))
        time.sleep(0.5)  # draws that no part holds yet
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=60)[1]
    assert child.returncode == 143
    assert "To continue, repeat the command with --resume." in said
    assert "Stopped by SIGTERM." in said
    assert not (out / "lock").exists()
    assert max(int(part.stem[5:]) for part in out.glob("chain-00?/part-*.npz")) > stored
    assert Posterior.load(out).n_draws > 0


def test_a_handler_of_the_program_is_left_in_place():
    from onlooker.stopping import Terminated, terminable

    def own(*_):
        raise ValueError("mine")

    before = signal.signal(signal.SIGTERM, own)
    try:
        with terminable():
            assert signal.getsignal(signal.SIGTERM) is own
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with pytest.raises(Terminated), terminable():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        with terminable():
            with contextlib.suppress(Terminated):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)  # while what there is is being stored
    finally:
        signal.signal(signal.SIGTERM, before)
