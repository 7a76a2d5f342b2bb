"""What the command line reads and says: lists of names, completion, help, the guide, tables."""

import json
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
from onlooker.cli.options import CommandWithNames, Names
from onlooker.cli.output import plain, table
from onlooker.fitting import model_file

COMMAND = str(Path(sys.executable).with_name("onlooker"))
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


# -- lists of names -------------------------------------------------------------------------------


@click.command(cls=CommandWithNames)
@click.argument("run")
@click.argument("file")
@click.option("--states", cls=Names)
@click.option("-n", "--number", type=int)
@click.option("--flag", is_flag=True)
@click.option("--pair", nargs=2)
def _list(run, file, states, number, flag, pair):
    click.echo(json.dumps([run, file, states, number, flag, pair]))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("r f --states x y", ["r", "f", ["x", "y"], None, False, None]),
        ("r f --states x --states y", ["r", "f", ["x", "y"], None, False, None]),
        ("r f --states x,y", ["r", "f", ["x", "y"], None, False, None]),
        ("r f --states=x,y z", None),
        ("r f", ["r", "f", None, None, False, None]),
        ("r f --states x y --flag", ["r", "f", ["x", "y"], None, True, None]),
        ("r f --states x y -n 3", ["r", "f", ["x", "y"], 3, False, None]),
        ("r f -n3 --states x y", ["r", "f", ["x", "y"], 3, False, None]),
        ("r f --number=3 --states x y", ["r", "f", ["x", "y"], 3, False, None]),
        ("r --states x y f", ["r", "f", ["x", "y"], None, False, None]),
        ("--states x y r f", ["r", "f", ["x", "y"], None, False, None]),
        ("--states x y r f --flag", ["r", "f", ["x", "y"], None, True, None]),
        ("--states x y -- r f", ["r", "f", ["x", "y"], None, False, None]),
        ("--pair a b r --states x y f", ["r", "f", ["x", "y"], None, False, ["a", "b"]]),
        ("--states x -n 3 r f", ["r", "f", ["x"], 3, False, None]),
        ("r --states x", None),
        ("r f --states", None),
        ("r f --states x,,y", None),
        ("r f --states --flag", ["r", "f", ["--flag"], None, False, None]),
    ],
)
def test_a_list_of_names_ends_where_the_next_option_begins(words, told):
    result = CliRunner().invoke(_list, words.split())
    if told is None:
        assert result.exit_code == 2
    else:
        assert json.loads(result.stdout) == told


# -- completion, help and the guide ---------------------------------------------------------------


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell_name):
    result = run("completion", shell_name)
    assert result.exit_code == 0, result.output
    assert "_ONLOOKER_COMPLETE" in result.stdout
    assert "onlooker" in result.stdout


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


@pytest.mark.parametrize("command", ["fit", "predict", "summary", "anomaly", "completion"])
def test_help_answers_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example:\n +onlooker {command} ", result.stdout)


def test_the_guide_knows_every_option():
    text = GUIDE.read_text(encoding="utf-8")
    for name in ("fit", "predict", "summary", "anomaly", "completion"):
        for param in main.commands[name].params:
            if isinstance(param, click.Option) and param.name != "help":
                assert param.opts[0] in text, (name, param.opts)
    for code in ("0", "1", "2", "3", "130"):
        assert re.search(rf"^\| {code} \|", text, re.M)


def test_the_guide_knows_every_key_of_a_model():
    text = GUIDE.read_text(encoding="utf-8")
    known = {
        *model_file.CLEANING, *model_file._DATA, *model_file._SAMPLING, *model_file.FEATURES,
        *model_file.DECAYS, *model_file._HYPER, *model_file._MODEL,
    }  # fmt: skip
    for kinds in (model_file.DYNAMICS, model_file.PRIORS):
        known |= {*kinds, *(key for keys in kinds.values() for key in keys)}
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
