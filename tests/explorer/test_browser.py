"""The page in a real browser: load, click, slide, compare, export; no error on the console."""

import csv
import json
import re
import shutil

import pytest

from chromium import missing, open_browser
from onlooker.explorer.report import write_report
from onlooker.explorer.server import Explorer
from onlooker.inference.lock import Lock
from pictured_runs import KINDS, store_run

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

WIDTHS = (400, 1200, 2000)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def explorers(runs, tmp_path_factory):
    """A server for each kind of run; that of the plane has a second run to compare with."""
    second = tmp_path_factory.mktemp("second") / "second"
    store_run("plane", second, seed=1)
    paths = {kind: [path] for kind, path in runs.items()}
    paths["plane"].append(second)
    found = {kind: Explorer(given) for kind, given in paths.items()}
    for server in found.values():
        server.start()
    yield found
    for server in found.values():
        server.close()


@pytest.fixture
def open_page(browser):
    """Opens pages that may not complain, nor ask anyone but their own server."""
    complaints, contexts = [], []

    def open_one(url, width=1200, scheme="light", height=900):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            accept_downloads=True,
        )
        context.set_default_timeout(90_000)  # machines that test may be busy
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text + str(message.location)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        own = url.rsplit("/", 1)[0]
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((own, "blob:", "data:"))
                else complaints.append(f"asked {request.url}")
            ),
        )
        page.goto(url)
        page.wait_for_selector("html[data-up=yes]", state="attached")
        return page

    yield open_one
    for context in contexts:
        context.close()
    # the tests' own reading of pixels is not the page's doing
    assert [text for text in complaints if "willReadFrequently" not in text] == []


@pytest.fixture
def page_of(open_page, explorers):
    """A page whose run has been studied to the end."""

    def opened(kind, **options):
        page = open_page(explorers[kind].url, **options)
        until(page, "onlooker.mainMap.run && onlooker.mainMap.run.complete")
        return page

    return opened


def until(page, condition):
    """Wait for a condition; as a function, since the page forbids to evaluate text."""
    page.wait_for_function(f"() => {condition}")


def until_state(page, words):
    until(page, f"document.getElementById('state').textContent.includes('{words}')")


def draw_once(page, act):
    """Do something, and wait until the map has been drawn again."""
    before = page.evaluate("onlooker.mainMap.drawn")
    act()
    until(page, f"onlooker.mainMap.drawn > {before}")


def colours(page):
    """How often each colour occurs on the map."""
    return page.evaluate("""() => {
        const map = onlooker.mainMap, { width, height } = map.canvas, counts = {};
        const data = map.canvas.getContext('2d').getImageData(0, 0, width, height).data;
        for (let p = 0; p < data.length; p += 4) {
            const key = `${data[p]},${data[p + 1]},${data[p + 2]},${data[p + 3]}`;
            counts[key] = (counts[key] || 0) + 1;
        }
        return counts;
    }""")


# -- load ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_is_shown_with_all_its_sections(page_of, kind):
    page = page_of(kind)
    assert page.title().startswith(kind)
    assert "Finished" in page.inner_text("#state")
    for section in ("facts", "verdict", "count", "unsure", "controllers", "hyper", "again"):
        text = page.inner_text(f"#{section}")
        assert len(text) > 20, section
        assert not re.search(r"NaN|undefined|null|\[object", text), (section, text)
    assert len(colours(page)) > 20
    assert page.locator("#controllers article").count() >= 1
    assert "random_state=0" in page.inner_text("#again")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_needs_scrolling_sideways(page_of, width, scheme):
    page = page_of("plane", width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for button in page.locator("button:visible, select:visible, input:visible").all():
        box = button.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_on_its_paper(page_of, scheme):
    """WCAG's contrast of 4.5 for the colours that text is written in."""
    page = page_of("line", scheme=scheme)
    ratios = page.evaluate("""() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
            const hex = style.getPropertyValue(name).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255)
                .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const out = {};
        for (const name of ['--ink', '--soft', '--accent', '--good', '--fair', '--bad']) {
            const [a, b] = [light(name), light('--card')].sort((x, y) => y - x);
            out[name] = (a + 0.05) / (b + 0.05);
        }
        return out;
    }""")
    assert {name for name, ratio in ratios.items() if ratio < 4.5} == set()


def test_the_theme_can_be_chosen(page_of):
    page = page_of("line")
    page.click("#theme")
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: dark"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


# -- click --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_click_anywhere_is_answered(page_of, kind):
    page = page_of(kind)
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + 0.62 * box["width"], box["y"] + 0.41 * box["height"])
    page.wait_for_selector("#detail h3")
    text = page.inner_text("#detail")
    assert "Likeliest" in text
    assert "interval" in text
    assert "Controllers it may belong to" in text
    assert not re.search(r"NaN|undefined", text)


def test_a_click_off_the_data_says_that_no_one_was_there(page_of):
    page = page_of("plane")
    page.fill("#ask-0", "0.05")
    page.fill("#ask-1", "7.5")
    page.press("#ask-1", "Enter")
    page.wait_for_selector("#detail h3")
    text = page.inner_text("#detail")
    assert "never visited" in text
    assert "away" in text


def test_a_click_shows_what_the_library_says(page_of, studies):
    page = page_of("plane")
    page.evaluate("onlooker.set({picked: {site: 5, place: onlooker.mainMap.run.place(5)}})")
    page.wait_for_selector("#detail h3")
    study = studies["plane"]
    likely = int(study.policy[5].argmax())
    assert f"action {likely}" in page.inner_text("#detail")
    assert f"{round(100 * study.policy[5, likely])}\u00a0%" in page.inner_text("#detail")


def test_a_state_that_there_is_not_is_refused_with_words(page_of):
    page = page_of("abstract")
    page.fill("#ask-0", "444")
    page.press("#ask-0", "Enter")
    assert "There is no state 444" in page.inner_text("#detail")


def test_the_map_can_be_used_with_the_keyboard_alone(page_of):
    page = page_of("plane")
    page.focus("#map")
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowRight", "+", "-", "0"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail h3")
    assert "Likeliest" in page.inner_text("#detail")


def test_every_control_can_be_reached_with_the_tabulator(page_of):
    page = page_of("plane")
    wanted = set(
        page.evaluate("""() => [...document.querySelectorAll('button, select, input, canvas')]
            .filter((node) => node.offsetParent && !node.disabled && node.id)
            .map((node) => node.id)""")
    )
    seen = set()
    for _ in range(100):
        if wanted <= seen:
            break
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert wanted - seen == set()


# -- slide --------------------------------------------------------------------------------------


def test_sliding_shows_the_draws_of_the_store(page_of, studies):
    page = page_of("plane")
    page.select_option("#chain", "1")
    draw_once(page, lambda: page.locator("#draw").fill("7"))
    until(page, "document.getElementById('draw-words').textContent.includes('draw 7')")
    names = page.evaluate(
        "Promise.resolve(onlooker.mainMap.run.names(1, 7)).then((names) => [...names])"
    )
    labels = studies["plane"].posterior.labels[1, 7]
    pairs = {(int(a), b) for a, b in zip(labels, names, strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    page.click("#consensus")
    assert "consensus" in page.inner_text("#draw-words")


def test_the_slider_obeys_the_arrow_keys(page_of):
    page = page_of("plane")
    page.focus("#draw")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "draw 3 " in page.inner_text("#draw-words") + " "


def test_play_goes_through_the_draws(page_of):
    page = page_of("plane")
    page.click("#play")
    until(page, "onlooker.state.frame && onlooker.state.frame.index > 3")
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "false"


def test_colours_of_a_draw_are_those_of_the_consensus(page_of, studies):
    """A draw that equals the consensus must look the same, whatever its labels are."""
    page = page_of("plane")
    study = studies["plane"]
    target = study.posterior.partition()
    together = target[:, None] == target
    labels = study.posterior.labels
    same = [
        (chain, draw)
        for chain in range(labels.shape[0])
        for draw in range(labels.shape[1])
        if ((labels[chain, draw][:, None] == labels[chain, draw]) == together).all()
    ]
    assert same
    before = colours(page)
    chain, index = same[0]
    page.evaluate(f"onlooker.mainMap.run.names({chain}, {index})")
    frame = f"onlooker.set({{frame: {{chain: {chain}, index: {index}}}}})"
    draw_once(page, lambda: page.evaluate(frame))
    assert colours(page) == before


# -- views --------------------------------------------------------------------------------------


def test_any_pair_of_coordinates_can_be_chosen(page_of):
    page = page_of("space")
    draw_once(page, lambda: page.select_option("#axis-y", "3"))
    assert page.evaluate("onlooker.mainMap.axes[1].name") == "x4"


@pytest.mark.parametrize("colour", ["certainty", "spread", "entropy"])
def test_doubts_can_be_shown_on_the_map(page_of, colour):
    page = page_of("plane")
    draw_once(page, lambda: page.select_option("#colour", colour))
    assert page.locator("#legend svg").count() == 1


def test_abstract_states_are_a_table_or_a_graph(page_of):
    page = page_of("abstract")
    draw_once(page, lambda: page.select_option("#graph", "1"))
    assert page.evaluate("onlooker.mainMap.graph !== null")


def test_a_controller_can_be_shown_alone(page_of):
    page = page_of("plane")
    before = colours(page)
    draw_once(page, lambda: page.click("#controllers article button"))
    assert page.evaluate("onlooker.state.highlight") == 0
    assert colours(page) != before


def test_a_trajectory_shows_its_surprise_step_by_step(page_of, studies):
    page = page_of("plane")
    page.fill("#trajectory-number", "2")
    page.press("#trajectory-number", "Enter")
    page.wait_for_selector("#surprise svg")
    page.focus("#trajectory input[type=range]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    words = page.inner_text("#step-words")
    assert words.startswith("Step 2:")
    surprise = studies["plane"].surprise[2 * 14 + 2]
    assert f"surprise {surprise:.3g}".replace("-", "−").rstrip("0") in words


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


def test_what_is_shown_can_be_saved_as_a_picture_and_as_a_table(page_of, studies, tmp_path):
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
    assert svg.count("<circle") >= studies["plane"].posterior.problem.n_nodes
    with files["csv"].open() as file:
        rows = list(csv.DictReader(file))
    study = studies["plane"]
    assert [int(row["controller"]) - 1 for row in rows] == study.posterior.partition().tolist()
    assert float(rows[3]["action_2"]) == pytest.approx(study.policy[3, 2], rel=1e-5)
    assert float(rows[3]["x"]) == study.posterior.problem.states[3, 0]


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
