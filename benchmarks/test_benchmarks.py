"""Benchmarks: results are saved, the docs say what they say, and a slow kernel is caught."""

import argparse
import json

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks import _check, _page, _peers, _results, _storms
from benchmarks._models import MODELS, make_chain, plane, same_state, twin_of
from benchmarks.bench_sweeps import exponent, row_of
from onlooker import Demonstrations
from onlooker.datasets import load_storms
from onlooker.dynamics import GeographicDynamics
from onlooker.inference.chain import Chain

# -- the check -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest():
    """Ratios of two models as they are now."""
    cases = {
        "mixing": lambda: _check.against_the_twin("mixing, collapsed", 300),
        "ddCRP": lambda: _check.against_the_twin("ddCRP", 100),
    }
    return cases, {name: make()() for name, make in cases.items()}


def test_kernels_as_they_are_pass_the_check(honest):
    cases, ratios = honest
    assert all(passed for _, passed in _check.judge(cases, ratios).values())


def test_a_kernel_that_does_its_work_four_times_fails_the_check(honest, monkeypatch):
    cases, ratios = honest
    sweep = Chain.sweep

    def slow(chain):
        for _ in range(4):
            sweep(chain)

    monkeypatch.setattr(Chain, "sweep", slow)
    assert not any(passed for _, passed in _check.judge(cases, ratios).values())


def test_a_fallen_ratio_is_named_and_counted(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_check, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(_check, "CASES", {"good": lambda: lambda: 6.0, "bad": lambda: lambda: 4.9})
    _check.BASELINE.write_text(json.dumps({"ratios": {"good": 10.0, "bad": 10.0}}))
    assert _check.check() == 1
    assert "baseline.json: bad.\n" in capsys.readouterr().err


def test_a_ratio_that_was_low_once_by_chance_passes():
    measured = iter([1.0, 9.0])
    assert _check.judge({"a": lambda: lambda: next(measured)}, {"a": 10.0}) == {"a": (9.0, True)}


def test_the_baseline_holds_exactly_what_is_checked():
    assert set(json.loads(_check.BASELINE.read_text())["ratios"]) == set(_check.CASES)
    assert set(MODELS) < set(_check.CASES)


# -- kernels and twins -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("ddCRP")])
def test_a_twin_that_is_measured_does_what_the_kernel_does(name):
    chain = make_chain(name, plane(40, 2), 3)
    twin = twin_of(name, chain)
    twin.sweep()
    chain.sweep()
    assert same_state(chain, twin.plain)
    twin.plain.actions[0] = (twin.plain.actions[0] + 1) % 8
    assert not same_state(chain, twin.plain)


def test_labels_that_part_are_told():
    chain = make_chain("mixing, collapsed", plane(40), 3)
    twin = twin_of("mixing, collapsed", chain)
    assert same_state(chain, twin.plain)
    twin.plain.labels[3] = (twin.plain.labels[3] + 1) % 8
    assert not same_state(chain, twin.plain)


@pytest.mark.parametrize("name", ["ddCRP", "ddCRP, decay inferred"])
def test_the_twin_of_links_draws_links(name):
    chain = make_chain(name, plane(40), 3)
    twin = twin_of(name, chain)
    before = list(twin.plain.links)
    twin.sweep()
    assert twin.plain.links != before


def test_the_exponent_is_the_power_of_growth():
    assert exponent([[n, 3e-6 * n**1.5] for n in (10, 100, 1000)]) == pytest.approx(1.5)


def test_a_row_has_ratios_at_the_sizes_that_both_have():
    row = row_of("m", [[1_000, 0.001], [10_000, 0.01]], [[300, 0.03], [1_000, 0.1], [10_000, 2.0]])
    assert row[-1] == "100× (1,000) … 200× (10,000)"
    assert row[1:5] == ["1", "10", "–", "–"]


# -- results and the page --------------------------------------------------------------------------


def entry_of(rows=(("a", "1"),)):
    table = {"title": "A title", "header": ["what", "how much"], "rows": [list(r) for r in rows]}
    return {
        "date": _results.now(),
        "seconds": 3.0,
        "load_a_core_before": 0.1,
        "load_a_core_after": 0.5,
        "machine": _results.machine(),
        "tables": [table],
        "notes": ["A note."],
        "data": {},
    }


def test_saving_one_result_keeps_the_others(tmp_path):
    path = tmp_path / "results.json"
    _results.save(path, "arena", entry_of())
    _results.save(path, "start", entry_of((("b", "2"),)))
    found = _results.read(path)
    assert list(found) == ["arena", "start"]
    assert found["start"]["tables"][0]["rows"] == [["b", "2"]]
    assert _results.age_in_hours(found["start"]) < 1


def test_a_quick_look_is_not_saved_among_the_results():
    assert _results.place(quick=True) != _results.place(quick=False)


def test_nothing_of_a_machine_tells_whose_it_is():
    assert set(_results.machine()) == {
        "processor", "cores", "memory_gb", "system", "python", *_results.VERSIONS
    }  # fmt: skip


def test_a_block_is_replaced_by_its_table_and_the_rest_is_left():
    page = "Before.\n<!-- results: arena -->\nold\n<!-- end -->\nAfter.\n"
    filled = _page.fill_in(page, {"arena": entry_of()})
    assert "| a | 1 |" in filled
    assert "A note." in filled
    assert "old" not in filled
    assert filled.startswith("Before.\n")
    assert filled.endswith("After.\n")
    assert _page.fill_in(filled, {"arena": entry_of()}) == filled


@pytest.mark.parametrize("page", [_page.PAGE, _page.README], ids=lambda page: page.name)
def test_the_committed_pages_say_what_the_committed_results_say(page):
    text = page.read_text()
    assert _page.fill_in(text, _results.read(_results.RESULTS)) == text


def test_every_benchmark_has_one_place_on_the_page():
    places = _page.places(_page.PAGE.read_text())
    assert sorted(places) == sorted(["machine", "repertoires", *runner.names()])
    assert _page.places(_page.README.read_text()) == ["compared"]
    assert len(set(places)) == len(places)


def test_results_of_a_script_that_is_gone_name_the_version_that_measured_them():
    page = "<!-- results: repertoires -->\n<!-- end -->\n"
    filled = _page.fill_in(page, {"repertoires": entry_of()})
    assert f"with onlooker {_results.machine()['onlooker']}.*" in filled
    assert "python -m" not in filled


def test_figures_are_drawn_from_the_results_alone(tmp_path):
    sizes = [[1_000, 0.001], [10_000, 0.01]]
    growth = {name: {"kernel": sizes, "twin": sizes} for name in MODELS}
    held = [{"given": x, "peak": 2 * x} for x in (0.01, 0.1)]
    score = {"global marginal": [-2.0, 0.0], "k-NN": [-1.5, 0.1], "onlooker, 20": [-1.4, 1.0]}
    entries = {
        "sweeps": {"data": {"growth": {"N": growth, "M": growth}}},
        "memory": {"data": {"memory": dict.fromkeys(("a", "b", "c"), held)}},
        "cloning": {"data": {"scores": {"position": score, "all": score}}},
    }
    _page.draw(entries, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bench_cloning.png", "bench_growth.png", "bench_memory.png"
    ]  # fmt: skip


def test_what_runs_only_on_demand_leaves_no_gap_in_the_page():
    page = "<!-- results: explorer -->\n\nold\n\n<!-- end -->\n"
    assert _page.fill_in(page, {}) == "<!-- results: explorer -->\n<!-- end -->\n"
    assert set(runner.ON_DEMAND) <= set(runner.names())


# -- storms ----------------------------------------------------------------------------------------


def test_directions_given_actions_are_those_of_simulated_steps():
    sigma = np.array([10.0, 40.0, 50.0])
    dynamics = GeographicDynamics([[100.0, 0.0], [-20.0, 30.0], [0.0, -1.0]], sigma)
    shares = _storms.sector_given_action(dynamics)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
    rng = np.random.default_rng(0)
    for a in range(3):
        moves = dynamics.steps[a] + rng.normal(0, sigma[a], (40_000, 2))
        sector = np.round(np.arctan2(moves[:, 1], moves[:, 0]) / (np.pi / 4)).astype(int) % 8
        simulated = np.bincount(sector, minlength=8) / len(moves)
        np.testing.assert_allclose(shares[a], simulated, atol=0.012)


def test_pieces_of_a_storm_are_held_out_together():
    demos = load_storms().demos
    folds = _storms.folds(demos, 5, seed=0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(demos)))
    assert sum(len(set(demos.names[fold])) for fold in folds) == len(set(demos.names))


def test_steps_that_stand_still_have_no_direction():
    demos = Demonstrations([[[-50.0, 20.0], [-49.0, 20.0], [-49.0, 20.0], [-49.0, 21.0]]])
    moving, sectors = _storms.seen_directions(demos)
    assert moving.tolist() == [True, False, True]
    assert sectors.tolist() == [0, 2]  # east, north


# -- running them ----------------------------------------------------------------------------------


def options(**more):
    given = {"names": ["a", "b", "c"], "quick": True, "all": False, "resume": False}
    given["limit"] = 9.0
    return argparse.Namespace(**(given | more))


def test_one_that_fails_is_reported_and_keeps_no_other_from_running(monkeypatch, capsys):
    ran = []

    def measure(name, quick, limit):
        ran.append(name)
        return "exit code 1" if name == "b" else ""

    monkeypatch.setattr(runner, "measure", measure)
    assert runner.run_all(options()) == 1
    assert ran == ["a", "b", "c"]
    assert "failed: b: exit code 1" in capsys.readouterr().err


def test_a_resumed_run_leaves_out_what_was_measured_today(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(_results, "QUICK", tmp_path / "quick.json")
    _results.save(_results.QUICK, "a", entry_of())
    _results.save(_results.QUICK, "b", entry_of() | {"date": "2020-01-01 00:00"})

    def measure(name, quick, limit):
        ran.append(name)
        return ""

    monkeypatch.setattr(runner, "measure", measure)
    runner.run_all(options(resume=True))
    assert ran == ["b", "c"]


def test_one_that_takes_too_long_is_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(_results, "QUICK", tmp_path / "quick.json")
    assert runner.measure("arena", quick=True, limit=0.01) == "stopped after 0 s"
    assert not _results.QUICK.exists()


def test_a_peer_that_is_not_there_is_said_to_be_absent(monkeypatch, tmp_path):
    monkeypatch.setattr(_peers, "HOME", tmp_path)
    monkeypatch.setenv("ONLOOKER_NO_PEERS", "1")
    with pytest.raises(_peers.Absent, match="imitation is not installed"):
        _peers.ask("imitation", _results.ROOT, {"x": np.zeros(1)}, 1.0)
