"""Runs of experiments: stopped, resumed, in parallel, failing."""

import dataclasses
import json
import os

import numpy as np
import pandas as pd
import pytest
from toy_experiment import TOY, ToyConfig

from onlooker.experiments import runner
from onlooker.experiments.experiment import Comparison, Reference, all_of, cell, compare, smaller
from onlooker.experiments.results import _minutes, comparison_table, reproduce
from onlooker.experiments.runner import Finished


def made(config, folder, **options):
    return reproduce(TOY, config, folder, progress=False, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return made(ToyConfig(), folder)


def same_files(one, other):
    assert (one / "results.csv").read_bytes() == (other / "results.csv").read_bytes()


def count_calls(monkeypatch):
    calls = []
    right = runner.execute

    def execute(run_one, config, run):
        calls.append(run)
        return right(run_one, config, run)

    monkeypatch.setattr(runner, "execute", execute)
    return calls


def test_a_stopped_command_resumes_without_repeating_runs(whole, tmp_path, monkeypatch):
    calls = count_calls(monkeypatch)
    counted = runner.execute

    def stopped(run_one, config, run):
        if run == 4:
            raise KeyboardInterrupt
        return counted(run_one, config, run)

    monkeypatch.setattr(runner, "execute", stopped)
    with pytest.raises(KeyboardInterrupt):
        made(ToyConfig(), tmp_path)
    assert calls == [0, 1, 2, 3]
    monkeypatch.setattr(runner, "execute", counted)
    resumed = made(ToyConfig(), tmp_path)
    assert calls == [0, 1, 2, 3, 4, 5]
    same_files(resumed.folder, whole.folder)
    pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)


def test_more_runs_build_on_those_there_are(whole, tmp_path, monkeypatch):
    calls = count_calls(monkeypatch)
    made(ToyConfig(runs=2), tmp_path)
    same_files(made(ToyConfig(), tmp_path).folder, whole.folder)
    assert calls == [0, 1, 2, 3, 4, 5]


def test_another_configuration_or_seed_never_takes_over_stored_runs(tmp_path, monkeypatch):
    calls = count_calls(monkeypatch)
    first = made(ToyConfig(runs=1), tmp_path).table
    second = made(ToyConfig(runs=1, seed=1), tmp_path).table
    made(ToyConfig(runs=1, seconds=0.001), tmp_path)
    assert calls == [0, 0, 0]
    assert not first["error"].equals(second["error"])


def test_a_torn_file_is_computed_again(whole, tmp_path):
    made(ToyConfig(), tmp_path)
    torn = runner.Store(tmp_path / "toy", TOY, ToyConfig()).path(3)
    torn.write_text(torn.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    same_files(made(ToyConfig(), tmp_path).folder, whole.folder)


def test_fresh_repeats_everything(tmp_path, monkeypatch):
    made(ToyConfig(runs=2), tmp_path)
    calls = count_calls(monkeypatch)
    made(ToyConfig(runs=2), tmp_path, fresh=True)
    assert calls == [0, 1]


def test_two_processes_give_the_bits_of_one(whole, tmp_path):
    two = made(ToyConfig(), tmp_path, jobs=2)
    same_files(two.folder, whole.folder)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_run_is_reported_and_the_others_are_kept(whole, tmp_path, jobs):
    part = made(ToyConfig(broken=(1, 4)), tmp_path, jobs=jobs)
    assert [one.run for one in part.failures] == [1, 4]
    assert "run 4 is out of luck" in part.failures[1].error
    kept = whole.table[~whole.table["run"].isin([1, 4])].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.table, kept, check_exact=True)
    info = json.loads((part.folder / "info.json").read_text(encoding="utf-8"))
    assert info["runs"] == 4
    assert [one["spawn_key"] for one in info["failed"]] == [[1], [4]]


@pytest.mark.filterwarnings("ignore")  # joblib tells of the lost worker
def test_a_run_that_kills_its_process_does_not_sink_the_others(tmp_path):
    part = made(ToyConfig(runs=4, lethal=(2,)), tmp_path, jobs=2)
    assert [one.run for one in part.failures] == [2]
    assert "process was lost" in part.failures[0].error
    assert set(part.table["run"]) == {0, 1, 3}


def test_if_every_run_fails_the_error_says_why(tmp_path):
    with pytest.raises(RuntimeError, match=r"all runs of toy failed(?s:.*)out of luck"):
        made(ToyConfig(runs=2, broken=(0, 1)), tmp_path)


def test_the_record_holds_configuration_seed_versions_and_minutes(whole):
    info = json.loads((whole.folder / "info.json").read_text(encoding="utf-8"))
    assert info["config"] == json.loads(json.dumps(dataclasses.asdict(ToyConfig())))
    assert (info["seed"], info["runs"], info["failed"]) == (0, 6, [])
    assert {"onlooker", "numpy", "numba"} <= set(info["versions"])
    assert info["processor_minutes"] > 0


@pytest.mark.parametrize(("seconds", "minutes"), [([90.0, 60.0], 2.5), ([60.0, None], None)])
def test_minutes_are_of_all_runs_or_not_told(seconds, minutes):
    assert _minutes([Finished(k, [], one) for k, one in enumerate(seconds)]) == minutes


def test_table_figure_and_comparison_are_written(whole):
    assert (whole.folder / "toy.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (whole.folder / "toy.svg").read_text(encoding="utf-8")[:1000]
    parquet = pd.read_parquet(whole.folder / "results.parquet")
    pd.testing.assert_frame_equal(parquet, whole.table, check_exact=True)
    assert "| error of a |" in (whole.folder / "comparison.md").read_text(encoding="utf-8")
    left = [name for name in os.listdir(whole.folder) if name.endswith(".tmp")]
    assert left == []


# -- comparisons ----------------------------------------------------------------------------------


def errors(values, method="a"):
    return pd.DataFrame({"run": range(len(values)), "method": method, "error": values})


def test_the_jackknife_of_a_mean_is_the_standard_deviation():
    values = np.random.default_rng(0).normal(size=20)
    found = compare(Reference("a", 0.0, 10, cell(method="a")), errors(values))
    assert found.value == pytest.approx(values.mean())
    assert found.sd == pytest.approx(values.std(ddof=1))
    assert found.standard_error == pytest.approx(values.std(ddof=1) * np.sqrt(1 / 20 + 1 / 10))


@pytest.mark.parametrize(("value", "agrees"), [(1.0, True), (1.44, True), (1.46, False)])
def test_figures_agree_within_three_standard_errors(value, agrees):
    reference = Reference("a", 1.0, 20, cell(), sd=0.5, digits=4)
    found = Comparison(reference, value, sd=np.sqrt(0.2), runs=20)
    assert found.standard_error == pytest.approx(0.15)  # √(0.2/20 + 0.25/20)
    assert found.agrees is agrees


def test_one_run_cannot_tell():
    found = compare(Reference("a", 1.0, 20, cell(), sd=0.5), errors([5.0]))
    assert found.agrees is None
    assert "one run cannot tell" in comparison_table([found])


def test_what_the_table_does_not_hold_is_not_compared():
    assert compare(Reference("b", 1.0, 20, cell(method="b")), errors([1.0, 2.0])) is None


def test_smaller_is_judged_run_by_run():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=20)
    table = pd.concat([errors(shared), errors(shared + 0.1 + 0.01 * rng.normal(size=20), "b")])
    assert smaller(table, {"method": "a"}, {"method": "b"}) is True
    assert smaller(table, {"method": "b"}, {"method": "a"}) is False
    noise = pd.concat([errors([0.0, 1.0, 0.0, 1.0]), errors([1.0, 0.0, 1.0, 0.1], "b")])
    assert smaller(noise, {"method": "a"}, {"method": "b"}) is None
    for n, verdict in ((1, None), (2, True)):  # of two runs there is a spread, of one there is none
        few = pd.concat([errors(np.arange(n)), errors(np.arange(n) + 5.0, "b")])
        assert smaller(few, {"method": "a"}, {"method": "b"}) is verdict


def test_one_failure_sinks_a_claim_and_a_doubt_leaves_it_open():
    assert all_of([True, True]) is True
    assert all_of([True, None]) is None
    assert all_of([None, False]) is False
    assert all_of([]) is None


@pytest.mark.parametrize(("name", "value"), [("runs", 0), ("runs", 1.5), ("seed", -1)])
def test_experiments_without_a_run_or_a_seed_are_refused_before_they_begin(name, value):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        ToyConfig(**{name: value})


def test_sizes_that_are_not_the_papers_are_not_compared(tmp_path):
    assert made(ToyConfig(runs=2), tmp_path).comparisons
    assert made(ToyConfig(runs=2, seconds=0.001), tmp_path).comparisons == []


# -- progress -------------------------------------------------------------------------------------


def test_a_log_counts_kept_runs_and_hears_of_the_end(tmp_path, capsys):
    made(ToyConfig(runs=2), tmp_path)
    reproduce(TOY, ToyConfig(runs=3), tmp_path)
    assert capsys.readouterr().err.startswith("toy: 3/3 runs (100 %), 0:0")


def test_silence_is_silent(tmp_path, capsys):
    made(ToyConfig(runs=1), tmp_path)
    assert capsys.readouterr() == ("", "")
