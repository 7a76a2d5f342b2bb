"""Stored runs that the explorer's tests share, read and never written; pages that show them."""

import pytest
from chromium import open_browser, until
from pictured_runs import KINDS, store_run

from onlooker.explorer.run import read
from onlooker.explorer.server import Explorer

PAGES = {
    "test_every_kind_of_run_is_shown_with_all_its_sections[plane]",
    "test_every_kind_of_run_is_shown_with_all_its_sections[grid]",
    "test_every_kind_of_run_is_shown_with_all_its_sections[abstract]",
    "test_a_click_anywhere_is_answered[plane]",
    "test_a_report_opens_from_disk_and_answers[plane]",
    "test_a_run_that_grows_is_followed",
    "test_two_runs_are_compared_side_by_side",
}
"""What `make test` opens in a browser; `make test-all` opens every page."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name.startswith("test_browser") and item.name not in PAGES:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A store of every kind of state space, by its name."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        store_run(kind, folder / kind)
    return {kind: folder / kind for kind in KINDS}


@pytest.fixture(scope="session")
def views(runs):
    """The same, read and studied to the end."""
    found = {}
    for kind, path in runs.items():
        _, found[kind] = read(path)
        for _ in found[kind].refine():
            pass
    return found


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
