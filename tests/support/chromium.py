"""A headless chromium from the system, driven by playwright."""

import contextlib
import os
import shutil

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    """Where the browser is: ``ONLOOKER_BROWSER``, or what the system has; None if nothing."""
    given = os.environ.get("ONLOOKER_BROWSER")
    return given or next((found for name in NAMES if (found := shutil.which(name))), None)


def missing():
    """Why there can be no browser, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "no browser test: playwright is not installed (pip install 'onlooker[browser]')"
    if executable() is None:
        return "no browser test: no chromium found (apt-get install chromium, or ONLOOKER_BROWSER)"
    return None


@contextlib.contextmanager
def open_browser():
    """A browser of playwright's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


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
