"""``onlooker reproduce``: the command and the page it writes."""

import dataclasses
import re

import pytest
from click.testing import CliRunner
from toy_experiment import TOY, ToyConfig

from onlooker import experiments
from onlooker.cli import main
from onlooker.experiments import command, report


def call(*args):
    return CliRunner().invoke(main, ["reproduce", *(str(arg) for arg in args)])


@pytest.fixture
def toy(monkeypatch):
    """Let the toy pass for one of the paper's experiments."""

    def install(experiment):
        monkeypatch.setattr(experiments, "NAMES", ("toy",))
        monkeypatch.setattr(report, "NAMES", ("toy",))
        for module in (command, report):
            monkeypatch.setattr(module, "load", lambda name: experiment)

    install(TOY)
    return install


def test_reproduce_writes_results_and_tells(toy, tmp_path):
    result = call("toy", "--output", tmp_path, "--runs", 3)
    assert result.exit_code == 0, result.output
    assert "toy: 3 runs" in result.stdout
    assert (tmp_path / "toy" / "results.csv").exists()


def test_options_reach_the_experiment(toy, tmp_path, monkeypatch):
    asked = {}

    def reproduce(experiment, config, output, **options):
        asked.update(options, runs=config.runs, seed=config.seed)
        raise ValueError("enough")

    monkeypatch.setattr(command, "reproduce", reproduce)
    numbers = ["--runs", 2, "--jobs", 3, "--seed", 4, "--fresh"]
    assert call("toy", "--output", tmp_path, *numbers).exit_code == 1
    assert asked == {"runs": 2, "seed": 4, "jobs": 3, "fresh": True}


def test_failed_runs_are_named_and_the_exit_is_not_zero(toy, tmp_path):
    config = dataclasses.make_dataclass(
        "Broken", [("broken", tuple, (1,))], bases=(ToyConfig,), frozen=True
    )
    toy(dataclasses.replace(TOY, config=config))
    result = call("toy", "--output", tmp_path, "--runs", 3)
    assert result.exit_code == 1
    assert re.search(r"run 1 failed \(its seed: spawn_key \(1,\)\).*out of luck", result.stdout)
    assert "1 run failed" in result.stderr
    assert (tmp_path / "toy" / "toy.png").exists()


def test_all_means_all(toy, tmp_path):
    result = call("all", "--output", tmp_path, "--runs", 1)
    assert result.exit_code == 0
    assert "toy: 1 runs" in result.stdout


def test_quick_results_stay_apart_from_real_ones(toy, tmp_path):
    assert call("toy", "--output", tmp_path, "--quick").exit_code == 0
    assert (tmp_path / "quick" / "toy" / "results.csv").exists()
    assert not (tmp_path / "toy").exists()


def test_the_report_holds_counts_claims_figures_and_comparisons(toy, tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    result = call("toy", "--output", tmp_path, "--runs", 3, "--report", page)
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    assert "| [toy](#toy) | 3 | 6 | 0 | 0 |" in text
    assert "Fewer runs than the default were made of: toy" in text
    assert "| toy | It is a toy. | holds | 6 rows |" in text
    assert "| error of a |" in text
    picture = re.search(r"!\[A toy\]\((.+?)\)", text)[1]
    assert (page.parent / picture).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["dance"], "no experiment 'dance'"),
        ([], "Missing argument"),
        (["partition", "--runs", "0"], "0 is not in the range"),
        (["partition", "--quick", "--report", "page.md"], "--quick does not give"),
    ],
)
def test_wrong_calls_are_refused_in_words(args, told):
    result = call(*args)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
