"""``onlooker explore``: says where the page is, opens it, and ends when told to."""

import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from onlooker.cli import main
from onlooker.cli.output import has_browser


@pytest.fixture
def launched(monkeypatch):
    """Addresses that a browser would have been sent to; the command is then ended."""
    seen = []

    def launch(url):
        seen.append(url)
        raise KeyboardInterrupt

    monkeypatch.setattr("click.launch", launch)
    monkeypatch.setenv("DISPLAY", ":0")
    return seen


def test_the_command_opens_the_page_that_it_names(runs, launched):
    result = CliRunner().invoke(main, ["explore", str(runs["line"])])
    assert result.exit_code == 0, result.output
    assert launched == [result.output.splitlines()[0]]
    assert launched[0].startswith("http://127.0.0.1:")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need no display")
def test_without_a_display_the_address_is_all_there_is(runs, launched, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)

    def interrupted(thread, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr("threading.Thread.join", interrupted)
    result = CliRunner().invoke(main, ["explore", str(runs["line"])])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("http://127.0.0.1:")
    assert launched == []


@pytest.mark.parametrize(
    ("platform", "name", "shown"),
    [
        ("linux", "DISPLAY", True),
        ("linux", "WAYLAND_DISPLAY", True),
        ("linux", "BROWSER", True),
        ("linux", "OTHER", False),
        ("darwin", "OTHER", True),
    ],
)
def test_where_a_page_can_be_shown(platform, name, shown, monkeypatch):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("os.environ", {name: "x"})
    assert has_browser() == shown


def test_a_run_that_is_not_there_is_refused(runs, tmp_path, launched):
    result = CliRunner().invoke(main, ["explore", str(runs["line"]), str(tmp_path / "later")])
    assert result.exit_code == 1
    assert result.stderr == f"Error: there is no run {str(tmp_path / 'later')!r}\n"
    assert launched == []


def test_a_directory_that_will_hold_a_run_is_waited_for(tmp_path, launched):
    assert CliRunner().invoke(main, ["explore", str(tmp_path)]).exit_code == 0
    assert len(launched) == 1


def test_without_a_browser_it_serves_until_it_is_stopped(runs, launched):
    code = "from onlooker.cli import main; main()"
    command = [sys.executable, "-c", code, "explore", "--no-browser", str(runs["line"])]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job may ignore it
    ) as process:
        try:
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(url, timeout=30) as response:
                assert response.status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_a_port_that_is_taken_is_one_clear_line(runs, launched):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, ["explore", "--port", port, str(runs["line"])])
    assert result.exit_code == 1
    assert "in use" in result.output
    assert "Traceback" not in result.output
