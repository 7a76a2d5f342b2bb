"""The one progress bar: in a terminal, in a notebook, in a log."""

import contextlib
import io
import itertools
import subprocess
import sys
import threading
import types

import pytest

from onlooker import progress
from onlooker.progress import Bar, Log, Progress, make_progress


class Screen(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def screen(monkeypatch, terminal=False):
    """What goes to standard error from here on."""
    monkeypatch.setattr(sys, "stderr", Screen(terminal))
    return sys.stderr


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]  # not 0, which would hide what counts from somewhere else
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_BEAT", 1e6)  # tests say themselves that time goes by
    return now


def test_a_log_gets_whole_lines_ever_more_rarely(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 100) as shown:
        shown.prepare()
        shown.start()
        for done in range(1, 101):
            clock[0] += 1
            shown.update(done, "3 controllers")
    text = log.getvalue()
    assert text.splitlines() == [
        "sampling: 2/100 sweeps (2 %), 0:02, 1:38 left; 3 controllers",
        "sampling: 4/100 sweeps (4 %), 0:04, 1:36 left; 3 controllers",
        "sampling: 8/100 sweeps (8 %), 0:08, 1:32 left; 3 controllers",
        "sampling: 16/100 sweeps (16 %), 0:16, 1:24 left; 3 controllers",
        "sampling: 32/100 sweeps (32 %), 0:32, 1:08 left; 3 controllers",
        "sampling: 62/100 sweeps (62 %), 1:02, 0:38 left; 3 controllers",
        "sampling: 92/100 sweeps (92 %), 1:32, 0:08 left; 3 controllers",
        "sampling: 100/100 sweeps (100 %), 1:40; 3 controllers",
    ]
    assert "\r" not in text
    assert "\x1b" not in text


def test_no_minute_of_a_log_is_silent(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 1000) as shown:
        shown.start()
        for done in range(1, 1001):
            clock[0] += 5
            shown.update(done)
    clocks = [line.split(", ")[1].split(":") for line in log.getvalue().splitlines()]
    seconds = [sum(int(part) * 60**k for k, part in enumerate(one[::-1])) for one in clocks]
    assert max(b - a for a, b in itertools.pairwise(seconds)) == 30


def test_slow_first_sweeps_do_not_make_the_time_left_long(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 1000, hint="fewer draws take less time") as shown:
        shown.start()
        for done in range(1, 1001):
            clock[0] += 4 if done <= 8 else 0.2
            shown.update(done)
    text = log.getvalue()
    assert "8/1000 sweeps (1 %), 0:32\n" in text  # too early to say anything
    at_a_minute = next(line for line in text.splitlines() if ", 1:02" in line)
    assert at_a_minute.endswith("3:31 left")  # at the speed of all the while it were 5:30


def test_a_long_task_says_once_what_would_shorten_it(clock, monkeypatch):
    log = screen(monkeypatch)
    for step in (1, 20):  # seconds a sweep: 100 s in all are not long, 2000 s are
        with make_progress(True, 100, "fitting", "sweeps", "fewer draws take less time") as shown:
            shown.start()
            for done in range(1, 101):
                clock[0] += step
                shown.update(done)
    hints = [line for line in log.getvalue().splitlines() if "fewer" in line]
    assert hints == ["fitting: about 33:00 left; fewer draws take less time"]


def test_a_brief_task_shows_nothing_unless_it_lasts(clock, monkeypatch):
    log = screen(monkeypatch)
    for step in (0.4, 3):
        with make_progress(True, 4, "findings", "steps", brief=True) as shown:
            for done in range(1, 5):
                clock[0] += step
                shown.update(done, "consensus")
    assert log.getvalue().splitlines() == [
        "findings: 1/4 steps (25 %), 0:03, 0:09 left; consensus",
        "findings: 2/4 steps (50 %), 0:06, 0:06 left; consensus",
        "findings: 4/4 steps (100 %), 0:12; consensus",
    ]


def test_a_brief_bar_leaves_no_trace_and_appears_while_one_step_lasts(monkeypatch):
    terminal = screen(monkeypatch, terminal=True)
    with make_progress(True, 4, "findings", "steps", brief=True) as shown:
        shown.update(1, "diagnostics")
    assert terminal.getvalue() == ""
    with make_progress(True, 4, "findings", "steps", brief=True) as shown:
        shown.update(1, "diagnostics")
        shown._bar.start_t -= 60  # a minute goes by, and nobody says a word
        shown._bar.last_print_t -= 60
        shown.wait()
        assert "1/4 steps (25 %), 01:00" in terminal.getvalue()
        assert "diagnostics" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    assert not terminal.getvalue().rpartition("\r")[0].rpartition("\r")[2].strip()


def test_one_long_step_of_a_log_is_not_silent(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 4, "findings", "steps", brief=True) as shown:
        shown.update(0, "diagnostics")
        for _ in range(60):
            clock[0] += 0.5
            shown.wait()
        shown.update(4, "consensus")
    assert log.getvalue().splitlines() == [
        "findings: 0/4 steps (0 %), 0:02; diagnostics",
        "findings: 0/4 steps (0 %), 0:04; diagnostics",
        "findings: 0/4 steps (0 %), 0:08; diagnostics",
        "findings: 0/4 steps (0 %), 0:16; diagnostics",
        "findings: 4/4 steps (100 %), 0:30; consensus",
    ]


def test_a_long_compilation_is_not_silent(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 10) as shown:
        shown.prepare()
        for _ in range(10):
            clock[0] += 0.5
            shown.wait()
        shown.start()
    assert log.getvalue().splitlines() == [
        "compiling, once: 0:02 so far",
        "compiling, once: 0:04 so far",
        "compiling, once: took 5.0 s; later runs find it on disk",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_time_goes_by_without_being_told(terminal, monkeypatch):
    log = screen(monkeypatch, terminal)
    waited = threading.Event()
    monkeypatch.setattr(progress, "_BEAT", 1e-3)
    with make_progress(True, 10) as shown:
        monkeypatch.setattr(shown, "wait", waited.set)
        assert waited.wait(60)
    assert not shown._pulse.is_alive()
    assert log is sys.stderr


def test_time_left_leaves_out_what_was_done_before(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 12, "toy", "runs") as shown:
        shown.start(2)
        for _ in range(10):
            clock[0] += 360
            shown.advance(1)
    lines = log.getvalue().splitlines()
    assert lines[0] == "toy: 3/12 runs (25 %), 6:00, 54:00 left"
    assert [line.split()[1] for line in lines] == [f"{done}/12" for done in range(3, 13)]


def test_a_log_hears_of_the_end_wherever_that_is_but_not_after_an_error(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 1000, "fitting", "iterations") as shown:
        shown.update(7, "loss 0.5")
    assert log.getvalue() == "fitting: 7/1000 iterations (1 %), 0:00; loss 0.5\n"
    with contextlib.suppress(ArithmeticError), make_progress(True, 10) as shown:
        shown.update(7)
        raise ArithmeticError
    assert log.getvalue().count("\n") == 1


def test_a_log_hears_of_the_end_once(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 10) as shown:
        shown.start()
        clock[0] += 1
        for _ in range(3):
            shown.update(10)
    assert len(log.getvalue().splitlines()) == 1


def test_a_log_hears_of_a_compilation_only_if_there_was_one(clock, monkeypatch):
    log = screen(monkeypatch)
    for seconds, line in ((0.5, ""), (30.0, "compiling, once: took 30.0 s")):
        with make_progress(True, 10) as shown:
            shown.prepare()
            clock[0] += seconds
            shown.start()
        assert log.getvalue().startswith(line)
        assert bool(log.getvalue()) == bool(line)


def test_a_terminal_gets_one_live_bar_that_says_what_goes_on(monkeypatch):
    terminal = screen(monkeypatch, terminal=True)
    with make_progress(True, 20) as shown:
        shown.prepare()
        before = terminal.getvalue()
        shown.start(4)
        shown._bar.mininterval = 0
        shown.update(12, "5 controllers")
        half = terminal.getvalue()
        shown.update(20, "4 to 6 controllers")
    text = terminal.getvalue()
    assert "compiling, once" in before
    assert "sampling" in text.removeprefix(before)
    assert "20/20 sweeps (100 %)" in text
    assert "left; 5 controllers" in half
    assert ", 4 to 6 controllers" in text
    assert text.count("\n") == 1


def test_a_remark_has_a_line_of_its_own_and_changes_what_is_to_be_done(clock, monkeypatch):
    log = screen(monkeypatch)
    with make_progress(True, 10) as shown:
        shown.start()
        shown.update(10)
        shown.remark("not yet", 20)
        shown.update(15)
        shown.remark("out of time", 15)
    assert log.getvalue().splitlines() == [
        "sampling: 10/10 sweeps (100 %), 0:00",
        "sampling: not yet",
        "sampling: 15/20 sweeps (75 %), 0:00, 0:00 left",
        "sampling: out of time",
    ]


def test_a_remark_stays_above_the_bar(monkeypatch):
    terminal = screen(monkeypatch, terminal=True)
    with make_progress(True, 10) as shown:
        shown.start()
        shown.update(10)
        shown.remark("not yet", 20)
        shown.update(20)
    assert "sampling: not yet\n" in terminal.getvalue()
    assert "20/20 sweeps (100 %)" in terminal.getvalue()


def in_a_notebook(monkeypatch):
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)


def test_a_notebook_gets_a_live_bar_without_widgets_too(monkeypatch):
    log = screen(monkeypatch)
    in_a_notebook(monkeypatch)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with make_progress(True, 10) as shown:
        shown.prepare()
        shown.start()
        shown.update(10, "2 controllers")
    assert "compiling, once" in log.getvalue()
    assert "10/10 sweeps (100 %)" in log.getvalue()


def test_a_notebook_with_widgets_gets_one(monkeypatch):
    screen(monkeypatch)
    from tqdm import tqdm

    class Widget(tqdm):
        made = 0

        def __init__(self, **options):
            Widget.made += 1
            super().__init__(**options)

    in_a_notebook(monkeypatch)
    notebook = types.ModuleType("tqdm.notebook")
    notebook.tqdm = Widget
    monkeypatch.setitem(sys.modules, "ipywidgets", types.ModuleType("ipywidgets"))
    monkeypatch.setitem(sys.modules, "tqdm.notebook", notebook)
    with make_progress(True, 10) as shown:
        shown.update(10, "2 controllers")
    assert Widget.made == 1


def test_progress_suits_the_place(monkeypatch, capsys):
    assert type(make_progress(False, 10)) is Progress
    assert type(make_progress(True, 10)) is Log
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with make_progress(True, 10) as shown:
        assert type(shown) is Bar
    monkeypatch.setattr(sys, "stderr", None)
    assert type(make_progress(True, 10)) is Progress


def test_tqdm_is_imported_for_a_bar_only():
    code = "import sys, onlooker.sampling; assert 'tqdm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
