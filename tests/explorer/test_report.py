"""The report is one file that needs no other."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from bare import bare_problem
from click.testing import CliRunner
from pictured_runs import KINDS
from small_runs import made_up, plane_problem, quick, ring_dynamics

from onlooker import Demonstrations
from onlooker.cli import main
from onlooker.explorer import report as reports
from onlooker.explorer.packing import unpack
from onlooker.explorer.page import page
from onlooker.explorer.report import write_report
from onlooker.partitions import ChineseRestaurant, DistanceDependent
from onlooker.progress import Progress

STORES = Path(__file__).parents[1] / "golden" / "stores"


def embedded(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="embedded">(.*?)</script>', text, re.DOTALL)[1])


def opened(text):
    return gzip.decompress(base64.b64decode(text))


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for kind, path in runs.items():
        write_report(path, folder / f"{kind}.html")
    return {kind: folder / f"{kind}.html" for kind in runs}


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_refers_to_nothing_outside(files, kind):
    text = files[kind].read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=(?!\"data:,\")", text)
    assert not re.search(r"@import|url\((?!#)", text.replace("url(#${", "url(#"))
    addresses = set(re.findall(r"https?://[^\s\"'`<)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "connect-src &#x27;none&#x27;" in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_holds_its_overview_and_its_draws(files, views, kind):
    data = embedded(files[kind])
    seen = json.loads(opened(data["overview"]))
    posterior = views[kind].posterior
    np.testing.assert_array_equal(unpack(seen["reference"]), posterior.partition())
    names = np.frombuffer(opened(data["draws"]), "<u2").reshape(len(data["frames"]), -1)
    names = names ^ posterior.partition().astype(np.uint16)
    for row, (chain, draw) in enumerate(data["frames"]):
        labels = posterior.labels[chain, draw]
        same = names[row][:, None] == names[row]
        np.testing.assert_array_equal(labels[:, None] == labels, same)


def test_a_report_holds_the_librarys_intervals(files, views):
    at_nodes = json.loads(opened(embedded(files["plane"])["overview"]))["at_nodes"]
    wanted = views["plane"].posterior.policy(interval=0.9)
    np.testing.assert_allclose(unpack(at_nodes["low"]) / 65535, wanted.low, atol=1e-5)
    np.testing.assert_allclose(unpack(at_nodes["high"]) / 65535, wanted.high, atol=1e-5)


def test_a_large_run_keeps_some_draws_of_every_chain_and_says_so(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "_MAX_FRAMES", 8)
    monkeypatch.setattr(reports, "_MAX_VALUES", 10_000)
    told = write_report(runs["plane"], tmp_path / "small.html")
    data = embedded(tmp_path / "small.html")
    assert told["frames"] == len(data["frames"]) == 8
    assert {chain for chain, _ in data["frames"]} == {0, 1}
    assert data["frames"][0] == [0, 0]
    assert data["frames"][-1] == [1, 29]
    assert json.loads(opened(data["overview"]))["at_nodes"]["n_draws"] < 60


def test_a_report_of_a_fit_has_its_columns_and_actions(tmp_path):
    store = shutil.copytree(STORES / "fit", tmp_path / "run")
    write_report(store, tmp_path / "r.html")
    seen = json.loads(opened(embedded(tmp_path / "r.html")["overview"]))
    assert seen["space"]["axes"] == ["east", "north"]
    assert seen["actions"] == ["0°", "60°", "120°", "180°", "240°", "300°", "stay"]


def test_intervals_of_a_large_run_keep_its_unseen_states(tmp_path, monkeypatch):
    demos = Demonstrations([[0, 1, -1, -1, 4, 5], [5, -1, -1, 2, 1, 0]], missing="infer")
    problem = bare_problem(demos, ring_dynamics(6), nodes="all")
    posterior = quick(problem, ChineseRestaurant(), store=tmp_path / "run")
    n_values = posterior.n_chains * posterior.n_draws * problem.n_nodes * problem.n_actions
    monkeypatch.setattr(reports, "_MAX_VALUES", n_values // 2)
    write_report(tmp_path / "run", tmp_path / "r.html")
    at_nodes = json.loads(opened(embedded(tmp_path / "r.html")["overview"]))["at_nodes"]
    expected = posterior.thin(2).policy(interval=0.9)
    np.testing.assert_allclose(unpack(at_nodes["low"]) / 65535, expected.low, atol=1e-5)
    np.testing.assert_allclose(unpack(at_nodes["high"]) / 65535, expected.high, atol=1e-5)


def test_the_same_run_gives_the_same_report(runs, files, tmp_path):
    write_report(runs["line"], tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == files["line"].read_bytes()


def test_a_name_cannot_break_out_of_the_page():
    name = "</script><script>alert(1)</script>{{script}}"
    text = page(name, {"runs": [{"name": name}], "overview": None})
    assert "<script>alert" not in text
    assert text.count("<script") == 2


def test_the_command_says_what_it_wrote(runs, tmp_path):
    output = tmp_path / "r.html"
    result = CliRunner().invoke(main, ["report", str(runs["line"]), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert "with 60 draws" in result.output
    assert "Finished" in result.output
    assert output.stat().st_size > 10_000


def test_a_broken_run_gives_a_page_that_says_so_and_an_exit_code(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{")
    output = tmp_path / "r.html"
    result = CliRunner().invoke(main, ["report", str(tmp_path / "run"), "-o", str(output)])
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    data = embedded(output)
    assert data["overview"] is None
    assert data["runs"][0]["state"] == "broken"


def test_a_failing_report_leaves_the_file_that_is_in_the_way(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{")
    output = tmp_path / "r.html"
    output.write_text("last week's")
    words = ["report", str(tmp_path / "run"), "-o", str(output), "--force"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "no readable run" in result.stderr
    assert f"{output} is left as it was" in result.stderr
    assert output.read_text() == "last week's"


@pytest.mark.parametrize("kind", ["csv", "npz", "folder"])
def test_what_is_no_run_at_all_is_refused_and_nothing_written(kind, tmp_path):
    given = tmp_path / f"tracks.{kind}"
    if kind == "csv":
        given.write_text("x,y\n0,1\n")
    elif kind == "npz":
        np.savez(given, states=np.zeros((3, 2)))
    else:
        given.mkdir()
    output = tmp_path / "r.html"
    result = CliRunner().invoke(main, ["report", str(given), "-o", str(output)])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    told = "holds no run" if kind == "folder" else "is not a run; a run is the directory that"
    assert told in result.stderr
    assert not output.exists()


def test_a_torn_archive_gives_a_page_that_says_so(tmp_path):
    (tmp_path / "run.npz").write_bytes(b"PK\3\4 and no more")
    output = tmp_path / "r.html"
    result = CliRunner().invoke(main, ["report", str(tmp_path / "run.npz"), "-o", str(output)])
    assert result.exit_code == 1
    assert embedded(output)["runs"][0]["state"] == "broken"


def test_the_consensus_of_the_store_is_used(runs, tmp_path, monkeypatch):
    shutil.copytree(runs["line"], tmp_path / "run")
    (tmp_path / "run" / "consensus.npz").unlink(missing_ok=True)
    first = write_report(tmp_path / "run", tmp_path / "first.html")
    monkeypatch.setattr("onlooker.consensus.search.consensus", None)  # not searched again
    again = write_report(str(tmp_path / "run"), str(tmp_path / "again.html"))
    assert again == first
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "first.html").read_bytes()


def test_a_posterior_in_memory_has_a_report_with_the_consensus_that_it_has(tmp_path, monkeypatch):
    posterior = made_up(plane_problem(), DistanceDependent(), {"nu": 0.1}, n_chains=2, n_draws=20)
    known = posterior.consensus()
    monkeypatch.setattr("onlooker.consensus.search.consensus", None)  # not searched again
    sizes = write_report(posterior, tmp_path / "r.html")
    assert sizes["readable"]
    data = embedded(tmp_path / "r.html")
    assert data["runs"][0]["text"] == "20 draws of 2 chains."
    assert json.loads(opened(data["overview"]))["consensus"]["n_clusters"] == known.n_clusters


def test_a_report_says_what_it_is_doing_and_reaches_its_end(runs, tmp_path, monkeypatch):
    steps = []

    class Watched(Progress):
        def update(self, done, note=""):
            super().update(done, note)
            steps.append((done / self.total, note))

    monkeypatch.setattr(
        "onlooker.explorer.report.make_progress", lambda show, total, *_, **__: Watched(total)
    )
    shutil.copytree(runs["line"], tmp_path / "run")
    (tmp_path / "run" / "consensus.npz").unlink(missing_ok=True)
    write_report(tmp_path / "run", tmp_path / "r.html", progress=True)
    shares = [share for share, _ in steps]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert sum(note == "consensus" for _, note in steps) > 16
    assert {"policy", "diagnostics", "controllers", "trajectories", "intervals"} <= {
        note for _, note in steps
    }


@pytest.mark.parametrize(("content", "code"), [("my notes", 1), (None, 0)])
def test_what_is_no_report_is_replaced_on_request_only(runs, tmp_path, content, code):
    output = tmp_path / "r.html"
    words = ["report", str(runs["line"]), "-o", str(output)]
    if content is None:
        write_report(runs["line"], output)
    else:
        output.write_text(content)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    if code:
        assert result.stderr == f"Error: {output} is not a report; --force replaces it\n"
        assert output.read_text() == content
        assert CliRunner().invoke(main, [*words, "--force"]).exit_code == 0


def test_a_report_that_cannot_be_written_is_one_clear_line(runs, tmp_path):
    output = tmp_path / "nowhere" / "r.html"
    result = CliRunner().invoke(main, ["report", str(runs["line"]), "-o", str(output)])
    assert result.exit_code == 1
    assert "there is no directory" in result.output


def test_no_run_at_all_is_one_clear_line(tmp_path):
    result = CliRunner().invoke(main, ["report", str(tmp_path / "nothing")])
    assert result.exit_code == 1
    assert "there is no run" in result.output


def test_the_assets_are_part_of_the_package():
    from importlib import resources

    names = {item.name for item in (resources.files("onlooker.explorer") / "web").iterdir()}
    assert {"page.html", "style.css", "app.js"} <= names
