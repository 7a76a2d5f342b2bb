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
