"""Pages in a real browser: of several runs, of runs that grow or cannot be shown, of reports."""

import csv
import json
import shutil

import pytest
from chromium import draw_once, missing, until, until_state
from pictured_runs import KINDS, store_run

from onlooker.explorer.report import write_report
from onlooker.explorer.server import Explorer
from onlooker.runs.lock import Lock

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

# -- compare ------------------------------------------------------------------------------------


def test_two_runs_are_compared_side_by_side(page_of):
    page = page_of("plane")
    page.select_option("#other", "1")
    page.wait_for_selector("#compare-words table")
    assert "Distance of the policies" in page.inner_text("#compare-words")
    until(page, "onlooker.otherMap && onlooker.otherMap.drawn > 0")
    page.click("#show-difference")
    assert page.evaluate("onlooker.state.colour") == "difference"
    page.evaluate("onlooker.set({picked: {site: 5, place: onlooker.mainMap.run.place(5)}})")
    until(page, "document.getElementById('detail').textContent.includes('other run')")


def test_the_run_that_is_shown_can_be_changed(page_of):
    page = page_of("plane")
    page.select_option("#run", "1")
    until(page, "onlooker.mainMap.run.number === 1")
    assert page.inner_text("#title") == "second"


# -- export -------------------------------------------------------------------------------------


def test_what_is_shown_can_be_saved_as_a_picture_and_as_a_table(page_of, views, tmp_path):
    page = page_of("plane")
    files = {}
    for kind in ("png", "svg", "csv"):
        with page.expect_download() as download:
            page.click(f"#save-{kind}")
        files[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[kind])
        assert files[kind].name == f"plane-consensus.{kind}"
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    svg = files["svg"].read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert svg.count("<circle") >= views["plane"].posterior.problem.n_nodes
    with files["csv"].open() as file:
        rows = list(csv.DictReader(file))
    view = views["plane"]
    assert [int(row["controller"]) - 1 for row in rows] == view.posterior.partition().tolist()
    assert float(rows[3][f"p {view.action_names[2]}"]) == pytest.approx(view.policy[3, 2], rel=1e-5)
    assert float(rows[3]["x"]) == view.posterior.problem.states[3, 0]


def test_a_table_that_is_saved_holds_no_formulas(page_of, tmp_path):
    """Names of columns are what somebody's file calls them."""
    page = page_of("plane")
    page.evaluate("""onlooker.mainMap.run.space.axes = ['=cmd("x")', '-1.5']""")
    with page.expect_download() as download:
        page.click("#save-csv")
    download.value.save_as(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open() as file:
        assert next(csv.reader(file))[1:3] == ["""'=cmd("x")""", "-1.5"]


# -- stores that are not as they should be --------------------------------------------------------


@pytest.mark.parametrize("damage", ["no run", "torn header", "tuning"])
def test_a_run_that_cannot_be_shown_says_so(open_page, runs, tmp_path, damage):
    path = tmp_path / "run"
    if damage == "torn header":
        path.mkdir()
        (path / "run.json").write_text('{"what": "onlo')
    elif damage == "tuning":
        shutil.copytree(runs["plane"], path, ignore=shutil.ignore_patterns("chain-*"))
    server = Explorer([path])
    server.start()
    try:
        page = open_page(server.url)
        until(page, "!document.getElementById('state').textContent.includes('Reading')")
        assert page.is_visible("#trouble")
        assert not page.is_visible("#content")
        assert len(page.inner_text("#trouble-text")) > 20
        assert "Traceback" not in page.content()
    finally:
        server.close()


def test_a_run_that_grows_is_followed(open_page, runs, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(runs["plane"], path, ignore=shutil.ignore_patterns("chain-*"))
    server = Explorer([path])
    server.start()
    try:
        with Lock(path):
            page = open_page(server.url)
            until_state(page, "tuning")
            shutil.copytree(runs["plane"] / "chain-000", path / "chain-000")
            until_state(page, "goes on")
            until(page, "onlooker.mainMap.drawn > 0")
            shutil.copytree(runs["plane"] / "chain-001", path / "chain-001")
            until(page, "onlooker.mainMap.run.draws.chains.length === 2")
        until_state(page, "Finished")
    finally:
        server.close()


# -- the report -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_opens_from_disk_and_answers(open_page, runs, tmp_path, kind):
    file = tmp_path / "report.html"
    write_report(runs[kind], file)
    page = open_page(file.as_uri())
    assert page.locator("#controllers article").count() >= 1
    page.evaluate("onlooker.set({picked: {site: 2, place: onlooker.mainMap.run.place(2)}})")
    page.wait_for_selector("#detail h3")
    assert "Likeliest" in page.inner_text("#detail")
    draw_once(page, lambda: page.locator("#draw").fill("3"))
    assert "draw 3" in page.inner_text("#draw-words")
    assert "This file holds" in page.inner_text("#footer")


def test_a_report_does_not_answer_about_a_state_that_was_never_visited(open_page, runs, tmp_path):
    file = tmp_path / "report.html"
    write_report(runs["abstract"], file)
    page = open_page(file.as_uri())
    page.evaluate("""() => {
        const { run } = onlooker.mainMap;
        onlooker.set({ picked: { site: run.nNodes, place: run.place(run.nNodes) } });
    }""")
    until(page, "document.querySelector('#detail').textContent.includes('never visited')")
    assert "onlooker explore" in page.inner_text("#detail")
    assert "Likeliest" not in page.inner_text("#detail")


def test_a_report_of_nothing_says_so(open_page, tmp_path):
    (tmp_path / "run").mkdir()
    write_report(tmp_path / "run", tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    assert page.is_visible("#trouble")
    assert "holds no run" in page.inner_text("#trouble-text")


def test_the_report_and_the_explorer_say_the_same_at_a_node(open_page, page_of, runs, tmp_path):
    file = tmp_path / "report.html"
    write_report(runs["plane"], file)
    answers = []
    for page in (open_page(file.as_uri()), page_of("plane")):
        answers.append(
            page.evaluate("""async () => {
                const run = onlooker.mainMap.run;
                return run.source.live ? run.source.at(0, run.stateOf(4)) : run.answer(4);
            }""")
        )
    one, other = (json.loads(json.dumps(answer)) for answer in answers)
    assert one["mean"] == pytest.approx(other["mean"], abs=1e-4)
    assert one["low"] == pytest.approx(other["low"], abs=0.05)
    shares = [{c["cluster"]: c["share"] for c in answer["candidates"]} for answer in (one, other)]
    assert shares[0] == pytest.approx(shares[1], abs=1e-4)


def test_trajectories_are_called_by_their_names(open_page, tmp_path):
    store_run("plane", tmp_path / "run", names=["deer07", "deer08", "7", "elk", "elk", "Ærø"])
    write_report(tmp_path / "run", tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    told = {"deer08": 1, "DEER07": 0, "7": 2, "3": 3, "elk": 3, "elk (4)": 4, "ærø": 5}
    for words, number in told.items():
        page.fill("#trajectory-number", words)
        page.press("#trajectory-number", "Enter")
        assert page.evaluate("onlooker.state.trajectory") == number, words
    assert page.input_value("#trajectory-number") == "Ærø"
    page.fill("#trajectory-number", "moose")
    page.press("#trajectory-number", "Enter")
    assert page.evaluate("onlooker.state.trajectory") == 5
    invalid = "document.getElementById('trajectory-number').validationMessage"
    assert page.evaluate(invalid) == "There is no trajectory moose."
    options = page.evaluate(
        "[...document.querySelectorAll('#trajectory-names option')].map((one) => one.value)"
    )
    assert options == ["deer07", "deer08", "7", "elk (3)", "elk (4)", "Ærø"]
    page.evaluate("onlooker.set({picked: {site: 2, place: onlooker.mainMap.run.place(2)}})")
    page.wait_for_selector("#detail h3")
    assert "trajectory deer07, step 2" in page.inner_text("#detail")


def test_trajectories_without_names_are_numbered(page_of):
    page = page_of("plane")
    assert page.get_attribute("#trajectory-number", "placeholder") == "0 – 5"
    page.fill("#trajectory-number", "6")
    page.press("#trajectory-number", "Enter")
    assert page.evaluate("onlooker.state.trajectory") is None
