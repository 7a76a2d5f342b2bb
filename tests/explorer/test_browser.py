"""The page in a real browser: load, click, slide, look; no error on the console."""

import re

import numpy as np
import pytest
from chromium import colours, draw_once, missing, until
from pictured_runs import KINDS

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

WIDTHS = (400, 1200, 2000)


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
    assert re.search(r"controllers? in the consensus partition", page.inner_text("#facts"))


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


@pytest.mark.parametrize("width", [400, 620, 970, 1280])
def test_the_table_of_hyper_parameters_is_not_cut_off(page_of, width):
    page = page_of("plane", width=width)
    prior = "Gamma(shape=1.234, rate=3.142, and_more=LogUniform(low=0.001, high=1000.0))"
    inside, outside, text = page.evaluate(
        """(prior) => {
        const run = onlooker.mainMap.run;
        run.hyper = run.hyper.map((row) => ({ ...row, prior, drawn: true }));
        onlooker.panels.hyper(run);
        const box = document.querySelector("#hyper .scroll");
        return [box.scrollWidth, box.clientWidth, box.innerText];
    }""",
        prior,
    )
    assert inside <= outside
    assert prior in text


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


def test_the_address_of_a_page_brings_back_what_it_shows(page_of, open_page):
    page = page_of("plane")
    page.evaluate("""() => onlooker.set({
        colour: 'entropy', field: 'none', paths: true, highlight: 0, trajectory: 2, step: 3,
        picked: { site: null, place: [0.25, -1.5] }, frame: { chain: 1, index: 7 } })""")
    draw_once(page, lambda: page.click("button[aria-label='Zoom in']"))
    until(page, "window.location.hash.includes('view=')")
    page.wait_for_timeout(500)
    again = open_page(page.url)
    until(again, "onlooker.mainMap.run && onlooker.mainMap.run.complete")
    look = "() => JSON.stringify([onlooker.state, onlooker.mainMap.zoom.toFixed(3)])"
    assert again.evaluate(look) == page.evaluate(look)
    assert again.input_value("#ask-0") == "0.25"
    until(again, "document.querySelector('#detail h3') !== null")


def test_an_address_that_names_what_is_not_there_is_no_harm(open_page, explorers):
    odd = "#run=7&across=9&colour=constructor&policy=x&controller=99&draw=5,a&at=1,2,3&track=-1"
    page = open_page(f"{explorers['plane'].url}{odd}")
    until(page, "onlooker.mainMap.run && onlooker.mainMap.run.complete")
    changed = page.evaluate("""() => ['run', 'x', 'y', 'colour', 'field', 'highlight', 'frame',
        'picked', 'trajectory', 'step'].map((name) => onlooker.state[name])""")
    assert changed == [0, 0, 1, "cluster", "arrows", None, None, None, None, None]


def test_the_ends_of_tracks_are_faded_and_a_chosen_track_has_a_colour_of_its_own(page_of, views):
    page = page_of("plane")
    n_ends = int((views["plane"].run.visits == 0).sum())
    assert n_ends > 0
    assert page.evaluate("onlooker.mainMap.run.nEnds") == n_ends
    assert "Faded: states from which no step was seen" in page.inner_text("#map-caption")
    draw_once(page, lambda: page.evaluate("onlooker.set({ field: 'none', behaviours: false })"))
    fills = page.evaluate("""() => {
        const run = onlooker.mainMap.run;
        const end = run.left.indexOf(0);
        const fill = onlooker.look(run.reference.values[end], run.n_reference).fill;
        return [fill, onlooker.mix(fill, onlooker.ink().card, 0.65)];
    }""")
    pale = tuple(int(fills[1][k : k + 2], 16) for k in (1, 3, 5))
    assert fills[1] != fills[0]
    assert f"{pale[0]},{pale[1]},{pale[2]},255" in colours(page)
    accent = page.evaluate("onlooker.mix(onlooker.ink().accent, '#000000', 0)")
    own = ",".join(str(int(accent[k : k + 2], 16)) for k in (1, 3, 5)) + ",255"
    assert colours(page).get(own, 0) == 0
    draw_once(page, lambda: page.evaluate("onlooker.set({ trajectory: 0 })"))
    assert colours(page)[own] > 50


def test_distances_on_earth_are_in_km(page_of):
    page = page_of("earth")
    away = page.evaluate("""() => {
        const run = onlooker.mainMap.run;
        const [lon, lat] = run.place(0);
        return [[lon, lat + 1], [lon + 1, lat], [lon + 360, lat]].map((to) => run.distance(to, 0));
    }""")
    lat = page.evaluate("onlooker.mainMap.run.place(0)[1]")
    degree = np.pi / 180 * 6371.0088
    assert away == pytest.approx([degree, degree * np.cos(np.radians(lat)), 0], rel=1e-4, abs=1e-6)


def test_a_click_shows_what_the_library_says(page_of, views):
    page = page_of("plane")
    page.evaluate("onlooker.set({picked: {site: 5, place: onlooker.mainMap.run.place(5)}})")
    page.wait_for_selector("#detail h3")
    view = views["plane"]
    likely = int(view.policy[5].argmax())
    assert f"Likeliest: {view.action_names[likely]}," in page.inner_text("#detail")
    assert f"{round(100 * view.policy[5, likely])}\u00a0%" in page.inner_text("#detail")


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


def test_sliding_shows_the_draws_of_the_store(page_of, views):
    page = page_of("plane")
    page.select_option("#chain", "1")
    draw_once(page, lambda: page.locator("#draw").fill("7"))
    until(page, "document.getElementById('draw-words').textContent.includes('draw 7')")
    names = page.evaluate(
        "Promise.resolve(onlooker.mainMap.run.names(1, 7)).then((names) => [...names])"
    )
    labels = views["plane"].posterior.labels[1, 7]
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


def test_colours_of_a_draw_are_those_of_the_consensus(page_of, views):
    """A draw that equals the consensus must look the same, whatever its labels are."""
    page = page_of("plane")
    view = views["plane"]
    target = view.posterior.partition()
    together = target[:, None] == target
    labels = view.posterior.labels
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


def test_a_controller_can_be_shown_alone(page_of):
    page = page_of("plane")
    before = colours(page)
    draw_once(page, lambda: page.click("#controllers article button"))
    assert page.evaluate("onlooker.state.highlight") == 0
    assert colours(page) != before


def test_petals_of_a_rose_widen_towards_where_their_action_leads(page_of, views):
    """Its ink must lie on the side of the likeliest action: not the look of an arrow back."""
    page = page_of("plane")
    (card, *_) = views["plane"].controllers
    likely = int(card.mean.argmax())
    far, wide = page.evaluate("""() => {
        const path = document.querySelector("#controllers svg.rose path:last-of-type");
        const wedge = path.getAttribute("d").split("Z").map((part) => part.slice(1).split("L")
            .map((corner) => corner.split(" ").map(Number)))
            .reduce((most, one) => (reach(one) > reach(most) ? one : most));
        function reach(corners) {
            return Math.max(...corners.map(([x, y]) => Math.hypot(x - 48, y - 48)));
        }
        const middle = wedge[wedge.length / 2];
        const ends = [wedge[1], wedge[wedge.length - 1]];
        return [[middle[0] - 48, 48 - middle[1]],
            Math.hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1])];
    }""")
    move = views["plane"].moves[likely]
    assert np.dot(far, move) == pytest.approx(45 * np.linalg.norm(move), rel=0.02)
    assert wide > 20


@pytest.mark.parametrize("kind", ["plane", "space", "grid"])
def test_roses_are_drawn_on_the_map(page_of, kind):
    page = page_of(kind)
    before = colours(page)
    draw_once(page, lambda: page.select_option("#field", "roses"))
    assert colours(page) != before
    assert "petals" in page.inner_text("#map-caption")


def test_a_trajectory_shows_its_surprise_step_by_step(page_of, views):
    page = page_of("plane")
    page.fill("#trajectory-number", "2")
    page.press("#trajectory-number", "Enter")
    page.wait_for_selector("#surprise svg")
    page.focus("#trajectory input[type=range]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    words = page.inner_text("#step-words")
    assert words.startswith("Step 2:")
    surprise = views["plane"].surprise[2 * 14 + 2]
    assert f"surprise {surprise:.3g}".replace("-", "−").rstrip("0") in words


@pytest.mark.parametrize("kind", ["plane", "grid"])
def test_the_oddest_trajectory_is_the_rarest_of_the_run(page_of, views, kind):
    page = page_of(kind)
    page.click("#oddest")
    scores = views[kind].anomaly.trajectories
    wanted = np.lexsort((-scores.score, scores.p_combined))[0]
    assert page.evaluate("onlooker.state.trajectory") == wanted


def test_which_trajectory_is_oddest_does_not_hang_on_scores_alone(page_of):
    page = page_of("plane")
    found = page.evaluate("""() => {
        const of = (...rows) => onlooker.oddest(
            { anomaly: rows.map(([p_combined, score]) => ({ p_combined, score })) });
        return [of([0.84, 9], [0.01, 1]), of([0.01, 1], [0.01, 2]), of([0.01, 1], [0.01, null])];
    }""")
    assert found == [1, 1, 1]


def test_the_oddest_is_not_offered_before_it_is_known(page_of):
    page = page_of("plane")
    assert page.is_enabled("#oddest")
    page.evaluate("""() => {
        const run = Object.create(onlooker.mainMap.run);
        Object.assign(run, { anomaly: null, complete: false });
        onlooker.showTrajectory(run, {});
    }""")
    assert page.is_disabled("#oddest")
    assert "still being compared" in page.get_attribute("#oddest", "title")


# -- on Earth ----------------------------------------------------------------------------------


def test_places_on_earth_have_land_a_scale_and_one_map_across_the_date_line(page_of):
    page = page_of("earth")
    land = {"230,227,218,255"}
    assert land <= set(colours(page))
    assert "2 states lie far off" in page.inner_text("#map-caption")
    svg = page.evaluate("onlooker.mainMap.toSvg()")
    assert re.search(r">\d+ km<", svg)
    assert "180°" in svg
    assert re.search(r">17\d(\.\d)?°E<", svg)
    assert re.search(r">17\d(\.\d)?°W<", svg)
    assert "longitude" in svg
    narrow = page.evaluate("onlooker.mainMap.canvas.clientHeight")
    draw_once(page, lambda: page.click("text=Show all"))
    assert "far off" not in page.inner_text("#map-caption")
    assert page.evaluate("onlooker.mainMap.canvas.clientHeight") != narrow


def test_with_features_the_policy_is_drawn_over_the_position(page_of):
    page = page_of("earth")
    with_arrows = colours(page)
    draw_once(page, lambda: page.select_option("#field", "none"))
    assert colours(page) != with_arrows
    assert "speed" in page.inner_text("#axis-x")


def test_with_features_a_state_is_said_in_words_and_asked_for_by_its_position(page_of):
    page = page_of("earth")
    assert "distinct states of position and speed;" in page.inner_text("#facts")
    assert page.locator("#ask input").count() == 2
    page.fill("#ask-0", "179.5")
    page.fill("#ask-1", "-18")
    page.press("#ask-1", "Enter")
    until(page, "document.querySelector('#detail .chart') !== null")
    said = page.inner_text("#detail p >> nth=0")
    assert re.match(r"\([\d.]+°[EW], [\d.]+°[NS]; speed [\d.,]+\xa0km\)", said), said
    assert page.locator("#detail svg.rose").count() == 1


def test_actions_of_long_names_are_listed_by_name_the_likeliest_first(page_of):
    page = page_of("space")
    run = page.evaluate(
        "({ names: onlooker.mainMap.run.actions, all: onlooker.mainMap.run.controllers })"
    )
    first = np.argsort(-np.array(run["all"][0]["mean"]), kind="stable")[:6]
    texts = page.locator("#controllers article >> nth=0 >> .chart text").all_text_contents()
    assert texts[::2][:6] == [run["names"][j] for j in first]
    assert texts[-1].startswith("2 others: ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_of_states_can_be_read_on_every_colour(page_of, scheme):
    page = page_of("abstract", scheme=scheme)
    contrasts = page.evaluate("""() => {
        const paper = onlooker.ink().card;
        const { controllers } = onlooker.mainMap.run;
        const fills = controllers.map((one) => onlooker.look(one.number, 8).fill);
        const all = fills.flatMap((fill) => [fill, onlooker.mix(fill, paper, 0.65)]);
        const level = (colour) => [1, 3, 5]
            .map((k) => parseInt(colour.slice(k, k + 2), 16) / 255)
            .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
            .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
        return [paper, ...all].map((fill) => {
            const [a, b] = [level(fill), level(onlooker.readableOn(fill))].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
        });
    }""")
    assert min(contrasts) > 3.0
