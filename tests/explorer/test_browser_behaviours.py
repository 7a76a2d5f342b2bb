"""What controllers do, in words on their cards and as marks on the map."""

import re

import numpy as np
import pytest
from chromium import draw_once, missing
from pictured_runs import store_run

from onlooker.explorer.server import Explorer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

LEAST = 0.2  # probability of a behaviour that is marked
KINDS = ("goals", "circling")
PIXELS = """() => {
    const { canvas } = onlooker.mainMap;
    return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
}"""


@pytest.fixture(scope="module")
def explorers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("behaviours")
    for kind in KINDS:
        store_run(kind, folder / kind, tune=60)
    found = {kind: Explorer([folder / kind]) for kind in KINDS}
    for server in found.values():
        server.start()
    yield found
    for server in found.values():
        server.close()


def controllers(page):
    """What the page knows: number, behaviours with mean and picture, and words of their cards."""
    known = page.evaluate("onlooker.mainMap.run.controllers")
    cards = page.locator("#controllers article").all_inner_texts()
    return [(one, text) for one, text in zip(known, cards, strict=True) if one["behaviours"]]


def marked(page, what):
    """The controllers whose likeliest behaviour has such a mark."""
    found = [
        one
        for one, _ in controllers(page)
        if (first := one["behaviours"][0])["mean"] > LEAST and what in (first["picture"] or {})
    ]
    assert found
    return found


def alone(page, number):
    """Show one controller only."""
    buttons = page.locator("#controllers article button")
    draw_once(page, lambda: buttons.nth(number).click())
    assert page.evaluate("onlooker.state.highlight") == number


def colour_of(page, number):
    """The fill of a controller, as red, green and blue."""
    return page.evaluate(
        """(number) => {
            const ink = document.createElement("canvas").getContext("2d");
            ink.fillStyle = onlooker.look(number, onlooker.mainMap.run.n_reference).fill;
            ink.fillRect(0, 0, 1, 1);
            return Array.from(ink.getImageData(0, 0, 1, 1).data).slice(0, 3);
        }""",
        number,
    )


def marks(page):
    """Where the marks of what is done are on the map, in pixels."""
    page.evaluate(f"() => {{ window.marked = ({PIXELS})(); }}")
    draw_once(page, lambda: page.uncheck("#behaviours"))
    return np.array(
        page.evaluate(f"""() => {{
            const {{ width, data }} = window.marked, bare = ({PIXELS})().data, found = [];
            for (let p = 0; p < data.length; p += 4) {{
                const changes = [0, 1, 2].map((k) => Math.abs(data[p + k] - bare[p + k]));
                const x = (p / 4) % width;
                if (changes[0] + changes[1] + changes[2] > 30) found.push([x, (p / 4 - x) / width]);
            }}
            return found;
        }}""")
    )


def colours_with_marks(page, places):
    """What the map was at pixels before `marks` took the marks away."""
    return np.array(
        page.evaluate(
            """(places) => places.map(([x, y]) => {
                const { width, data } = window.marked;
                const p = 4 * (Math.round(x) + width * Math.round(y));
                return [data[p], data[p + 1], data[p + 2]];
            })""",
            np.asarray(places, dtype=float).tolist(),
        )
    )


def test_cards_say_what_is_headed_for_and_how_sure_that_is(page_of):
    page = page_of("goals")
    for one, text in controllers(page):
        first = one["behaviours"][0]
        low, high = (round(100 * first[name]) for name in ("low", "high"))
        assert re.search(rf"{re.escape(first['name'])}, \d+\s% \[{low}–{high}\]", text), text
    assert "heads for state 24" in page.inner_text("#controllers article >> nth=0")


@pytest.mark.parametrize("width", [400, 1900])
def test_a_goal_is_a_target_at_its_state(page_of, width):
    page = page_of("goals", width=width)
    one = marked(page, "goals")[0]
    alone(page, one["number"])
    first = one["behaviours"][0]
    goal = first["picture"]["goals"][0]
    at = np.array(
        page.evaluate(
            "(goal) => [onlooker.mainMap.px(goal[0]), onlooker.mainMap.py(goal[1])]", goal
        )
    )
    r = 6 + 6 * np.sqrt(first["mean"])
    found = marks(page)
    away = np.linalg.norm(found - at, axis=1)
    assert away.max() < r + 4
    around = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ring = at + 0.5 * r * np.column_stack([np.cos(around), np.sin(around)])
    colour = np.median(colours_with_marks(page, ring), axis=0)
    assert np.abs(colour - colour_of(page, one["number"])).max() < 20
    assert np.abs(colours_with_marks(page, [at])[0] - colour).max() > 40
    rim = found[away > 0.8 * r] - at
    assert len(np.unique(np.sign(rim[np.abs(rim).min(axis=1) > 2]), axis=0)) == 4  # all around


@pytest.mark.parametrize("width", [400, 1900])
def test_a_blur_is_a_fan_over_its_directions(page_of, width):
    page = page_of("circling", width=width)
    fans = [one for one in marked(page, "actions")
            if len(one["behaviours"][0]["picture"]["actions"]) == 3]  # fmt: skip
    one = max(fans, key=lambda one: one["behaviours"][0]["mean"])
    alone(page, one["number"])
    first = one["behaviours"][0]
    node, width_of_map, down = page.evaluate(
        """(number) => {
            const map = onlooker.mainMap;
            return [map.at(map.middles()[number]), map.box.w, map.flipped ? 1 : -1];
        }""",
        one["number"],
    )
    r = min(42, 0.1 * width_of_map) * np.sqrt(first["mean"])
    angles = 2 * np.pi * np.array(first["picture"]["actions"]) / 8
    found = marks(page)
    x, y = (found - node).T
    turn = np.angle(np.exp(1j * (np.arctan2(down * y, x) - np.angle(np.exp(1j * angles).sum()))))
    rim = (np.hypot(x, y) > 0.8 * r) & (np.hypot(x, y) < r - 3)
    assert np.hypot(x, y).max() < 1.4 * r  # the tip of its arrow
    assert np.abs(turn[rim]).max() == pytest.approx(3 * np.pi / 8, abs=0.3)
    assert turn[rim].min() < -0.8
    assert turn[rim].max() > 0.8
