"""What the command line reads and says: names of columns, completion, help, the guide, tables."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from onlooker.cli import main
from onlooker.cli.output import plain, table
from onlooker.fitting import building, model_file
from onlooker.fitting.schema import DECAYS, HYPER, keys_of
from onlooker.partitions import PRIORS
from onlooker.reading.tracks import Cleaning

COMMAND = str(Path(sys.executable).with_name("onlooker"))
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


# -- lists of names, completion -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "states"), [("--states x,y", ["x", "y"]), ("--states x", ["x"]), ("", None)]
)
def test_names_of_columns_are_joined_by_commas(words, states, monkeypatch):
    seen = {}
    monkeypatch.setattr(main.commands["fit"], "callback", lambda **given: seen.update(given))
    assert run("fit", "tracks.csv", *words.split()).exit_code == 0
    assert seen["states"] == states


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("fit tracks.csv --states x y", "unexpected argument 'y'; join names of columns with com"),
        ("fit --states x y tracks.csv", "argument 'tracks.csv'; join .* commas: --states x,y"),
        ("anomaly run --states x y new.csv", "argument 'new.csv'; join .* commas: --states x,y"),
        ("predict run --states-file a.csv --states x y", "'y'; join .* commas: --states x,y"),
        ("fit tracks.csv more.csv", "unexpected argument 'more.csv'$"),
        ("fit tracks.csv --states x,,y", "a name is empty"),
        ("fit tracks.csv --states", "requires an argument"),
    ],
)
def test_other_ways_to_write_names_are_refused_with_the_remedy(words, told):
    result = run(*words.split())
    assert result.exit_code == 2
    assert re.search(told, result.stderr, re.M)


def shell(env):
    return subprocess.run([COMMAND], capture_output=True, text=True, check=True, env=env)


def test_commands_and_options_are_completed():
    env = os.environ | {"_ONLOOKER_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    words = shell(env | {"COMP_WORDS": "onlooker s"}).stdout
    assert words == "plain,summary\n"
    env["COMP_CWORD"] = "3"
    options = shell(env | {"COMP_WORDS": "onlooker anomaly run --fa"}).stdout
    assert options == "plain,--fail-if-anomalous\n"


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "predict", "summary", "anomaly", "check"])
def test_help_answers_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example:\n +onlooker {command} ", result.stdout)


def test_the_guide_knows_every_option():
    text = GUIDE.read_text(encoding="utf-8")
    for name in ("fit", "predict", "summary", "anomaly", "check"):
        for param in main.commands[name].params:
            if isinstance(param, click.Option) and param.name != "help":
                assert param.opts[0] in text, (name, param.opts)
    for code in ("0", "1", "2", "3", "130", "143"):
        assert re.search(rf"^\| {code} \|", text, re.M)


def test_the_guide_knows_every_key_of_a_model():
    text = GUIDE.read_text(encoding="utf-8")
    known = {*keys_of(Cleaning), *model_file.DATA, *model_file.SAMPLING, *model_file.MODEL}
    for kinds in (building.DYNAMICS, PRIORS, building.FEATURES, DECAYS, HYPER):
        known |= {*kinds, *(key for make in kinds.values() for key in keys_of(make))}
    assert [key for key in known if not re.search(rf"\b{key}\b", text)] == []


def test_models_in_the_guide_can_be_read(tmp_path):
    blocks = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    for block in blocks:
        (tmp_path / "model.toml").write_text(block, encoding="utf-8")
        model_file.read_model(tmp_path / "model.toml")


def test_json_knows_no_infinity():
    values = {"a": np.float64(np.inf), "b": [np.nan, np.int64(3)], "c": np.array([1.5]), "d": None}
    assert plain(values) == {"a": None, "b": [None, 3], "c": [1.5], "d": None}


def test_tables_put_numbers_to_the_right():
    told = table(["name", "p"], [["a", "0.5"], ["bb", "10"]])
    assert told == "name    p\na     0.5\nbb     10"
