"""The store: resume bit for bit, survive kills, refuse what is another run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kill_loop import OPTIONS
from small_runs import PRIORS, Mortal, assert_same_draws, plane_problem, quick, ring_problem

from onlooker import Posterior, Problem
from onlooker.dynamics import TabularDynamics
from onlooker.hyper import Exponential
from onlooker.inference import threads
from onlooker.inference.runner import Runner
from onlooker.partitions import (
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
)
from onlooker.runs import lock as lock_module
from onlooker.runs import store
from onlooker.runs.header import StoreMismatchError
from onlooker.runs.lock import Lock, StoreLockedError
from onlooker.warnings import ChainFailedWarning

PROBLEM = plane_problem()
HERE = Path(__file__).parents[1] / "support"


def _environment():
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture
def many_parts(monkeypatch):
    """Let every sweep be a part of its own."""
    monkeypatch.setattr(store, "_MAX_WAIT", 0.0)
    monkeypatch.setattr(threads, "_SLICE", 0.0)


# -- going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("name", PRIORS)
def test_extending_a_finished_run_gives_the_bits_of_one_run(name, collapsed, tmp_path):
    prior = PRIORS[name]
    options = {"collapsed": collapsed, "thin": 2}
    if prior.collapsed_only and not collapsed:
        return  # there is no such sampler
    quick(PROBLEM, prior, draws=5, store=tmp_path / "s", **options)
    more = quick(PROBLEM, prior, draws=12, store=tmp_path / "s", resume=True, **options)
    whole = quick(PROBLEM, prior, draws=12, **options)
    assert_same_draws(more, whole)
    assert_same_draws(Posterior.load(tmp_path / "s"), whole)


def test_a_store_changes_no_bit_however_many_parts_it_has(tmp_path, many_parts):
    stored = quick(PROBLEM, PRIORS["ddcrp"], store=tmp_path)
    assert len(list(tmp_path.rglob("part-*.npz"))) > 8
    assert_same_draws(stored, quick(PROBLEM, PRIORS["ddcrp"]))
    assert_same_draws(Posterior.load(tmp_path), stored)


def test_a_run_can_get_more_chains(tmp_path):
    quick(PROBLEM, Mixing(3), chains=1, store=tmp_path)
    more = quick(PROBLEM, Mixing(3), chains=3, store=tmp_path, resume=True)
    assert_same_draws(more, quick(PROBLEM, Mixing(3), chains=3))


def test_asking_for_fewer_draws_gives_the_first_ones_and_keeps_the_rest(tmp_path):
    every = quick(PROBLEM, Mixing(3), draws=10, store=tmp_path)
    few = quick(PROBLEM, Mixing(3), draws=4, store=tmp_path, resume=True)
    assert_same_draws(few, quick(PROBLEM, Mixing(3), draws=4))
    assert_same_draws(Posterior.load(tmp_path), every)
    assert_same_draws(quick(PROBLEM, Mixing(3), draws=10, store=tmp_path, resume=True), every)


def test_resuming_without_a_seed_goes_on_with_the_stored_one(tmp_path):
    quick(PROBLEM, Mixing(3), draws=4, store=tmp_path, random_state=None)
    more = quick(PROBLEM, Mixing(3), draws=9, store=tmp_path, random_state=None, resume=True)
    whole = quick(PROBLEM, Mixing(3), draws=9, random_state=more.schedule.seed)
    assert_same_draws(more, whole)


def test_resuming_nothing_starts_anew(tmp_path):
    fresh = quick(PROBLEM, Mixing(3), store=tmp_path / "new", resume=True)
    assert_same_draws(fresh, quick(PROBLEM, Mixing(3)))


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_killed_many_times_ends_with_the_bits_of_an_unbroken_one(tmp_path, kills):
    done = subprocess.run(
        [sys.executable, HERE / "kill_loop.py", tmp_path / "store", "0", str(kills)],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    killed, torn, status = (int(word) for word in done.stdout.split())
    assert (killed, status) == (kills, 0)
    assert torn > 0 or kills < 20  # some were killed while they wrote
    whole = quick(PROBLEM, DistanceDependent(), **OPTIONS)
    assert_same_draws(Posterior.load(tmp_path / "store"), whole)
    assert not list((tmp_path / "store").rglob(".*.tmp"))


_ENDLESS = """
import sys
from small_runs import plane_problem
from onlooker import sample
from onlooker.runs import store
from onlooker.partitions import Mixing
store._MAX_WAIT = 0.0
sample(plane_problem(), Mixing(3), draws=10**6, tune=5, chains=2, random_state=3,
       store=sys.argv[1], resume=True)
"""


def test_control_c_keeps_what_was_drawn_and_says_how_to_go_on(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, tmp_path],
        env=_environment(),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job may ignore it
    )
    patience = time.monotonic() + 300  # kernels may have to be compiled
    while len(list(tmp_path.glob("chain-00?/part-*.npz"))) < 3:
        assert time.monotonic() < patience
        assert child.poll() is None
        time.sleep(0.02)
    with pytest.raises(StoreLockedError, match=f"process {child.pid}"):
        quick(PROBLEM, Mixing(3), tune=5, store=tmp_path, resume=True)
    child.send_signal(signal.SIGINT)
    told = child.communicate(timeout=60)[1].decode()
    assert child.returncode != 0
    assert "stopped after" in told
    assert f"store={str(tmp_path)!r}, resume=True" in told
    assert not (tmp_path / "lock").exists()
    found = Posterior.load(tmp_path)
    assert found.n_draws > 0
    draws = max(400, found.n_draws)
    more = quick(PROBLEM, Mixing(3), tune=5, draws=draws, store=tmp_path, resume=True)
    assert_same_draws(more, quick(PROBLEM, Mixing(3), tune=5, draws=draws))


def test_control_c_amid_a_sweep_stores_what_the_last_whole_sweep_left(tmp_path, monkeypatch):
    right = Runner.sweep

    def sweep(self):
        if self.index == 0 and self.sweeps == 7:
            labels = self.chain.state.labels.copy()
            self.chain.state.labels[:] = 0
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            self.chain.state.labels[:] = labels
        right(self)

    monkeypatch.setattr(Runner, "sweep", sweep)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="resume=True"):
            quick(PROBLEM, Mixing(3), tune=5, draws=20, store=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    more = quick(PROBLEM, Mixing(3), tune=5, draws=20, store=tmp_path, resume=True)
    assert_same_draws(more, quick(PROBLEM, Mixing(3), tune=5, draws=20))


def test_without_a_store_control_c_says_what_would_have_helped(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "run", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"nothing is kept: with store="):
        quick(PROBLEM, Mixing(3))


def test_a_chain_that_died_is_taken_up_again_from_where_it_was_stored(
    tmp_path, monkeypatch, many_parts
):
    right = Runner.sweep

    def sweep(self):
        if self.index == 1 and self.sweeps == 7:
            self.chain.state.labels[:] = 0  # a death in mid-sweep leaves a mess behind
            raise MemoryError("no more")
        right(self)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "sweep", sweep)
        with pytest.warns(ChainFailedWarning, match="resume=True tries again"):
            part = quick(PROBLEM, Mixing(3), store=tmp_path)
    whole = quick(PROBLEM, Mixing(3))
    assert part.chain_ids == [0]
    np.testing.assert_array_equal(part.labels[0], whole.labels[0])
    assert_same_draws(quick(PROBLEM, Mixing(3), store=tmp_path, resume=True), whole)


def test_a_part_that_the_disk_broke_is_drawn_again(tmp_path, many_parts):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    part = sorted(tmp_path.glob("chain-001/part-*.npz"))[-2]
    part.write_bytes(part.read_bytes()[:200])
    with pytest.warns(RuntimeWarning, match=part.name):
        again = quick(PROBLEM, Mixing(3), store=tmp_path, resume=True)
    assert_same_draws(again, quick(PROBLEM, Mixing(3)))
    assert_same_draws(Posterior.load(tmp_path), again)


def test_a_run_that_goes_on_can_be_read_meanwhile(tmp_path, many_parts):
    whole = quick(PROBLEM, Mixing(3), store=tmp_path)
    for part in sorted(tmp_path.glob("chain-001/part-*.npz"))[-3:]:
        part.unlink()
    meanwhile = Posterior.load(tmp_path)
    assert meanwhile.labels.shape == (2, 5, 15)
    np.testing.assert_array_equal(meanwhile.labels, whole.labels[:, :5])
    for part in tmp_path.glob("chain-001/part-*.npz"):
        part.unlink()
    assert Posterior.load(tmp_path).chain_ids == [0]
    for part in tmp_path.glob("chain-000/part-*.npz"):
        part.unlink()
    with pytest.raises(ValueError, match="no draws yet"):
        Posterior.load(tmp_path)


def test_long_runs_write_ever_fewer_parts(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: clock[0])
    written = []
    folder = store.ChainFolder(tmp_path, None, None, "")
    monkeypatch.setattr(folder, "write", lambda runner: written.append(clock[0]))

    class Endless:
        done = False
        sweeps = 1

    for second in range(24 * 3600):
        clock[0] = float(second)
        folder.offer(Endless())
    assert 100 < len(written) < 500
    lost = np.diff(written) / np.array(written[1:])
    assert lost[20:].max() < 0.1


# -- refusals -----------------------------------------------------------------------------------


def test_a_store_that_is_taken_is_refused_unless_it_is_to_go_on(tmp_path):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    with pytest.raises(StoreMismatchError, match="resume=True"):
        quick(PROBLEM, Mixing(3), store=tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": plane_problem(seed=1)}, "its data differ"),
        ({"problem": plane_problem(n_nodes=16)}, "problem: "),
        ({"prior": Mixing(4)}, "prior: "),
        ({"prior": Mixing(3, concentration=2.0)}, "prior: "),
        ({"random_state": 4}, r"seed \(stored: 3, asked: 4\)"),
        ({"tune": 5}, "options: "),
        ({"thin": 2}, "options: "),
        ({"collapsed": False}, "options: "),
        ({"concentration": 2.0}, "options: "),
    ],
)
def test_another_run_is_refused(changes, message, tmp_path):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    options = {"problem": PROBLEM, "prior": Mixing(3)} | changes
    with pytest.raises(StoreMismatchError, match=message):
        quick(store=tmp_path, resume=True, **options)


def _edit_header(path, **changes):
    header = json.loads((path / "run.json").read_text())
    header |= changes
    (path / "run.json").write_text(json.dumps(header))


def test_another_format_and_another_version_are_refused(tmp_path):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    _edit_header(tmp_path, versions={"onlooker": "0.0.1"})
    with pytest.raises(StoreMismatchError, match=r"onlooker 0\.0\.1"):
        quick(PROBLEM, Mixing(3), store=tmp_path, resume=True)
    assert Posterior.load(tmp_path).n_draws == 8  # reading needs the format alone
    _edit_header(tmp_path, format=99)
    for action in (
        lambda: quick(PROBLEM, Mixing(3), store=tmp_path, resume=True),
        lambda: Posterior.load(tmp_path),
    ):
        with pytest.raises(StoreMismatchError, match="format 99"):
            action()


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("99.1.0", r"onlooker 99\.1\.0, which is newer than this .*: update onlooker"),
        ("0.0.1", "is damaged"),
        ("9" * 5000, "is newer than this"),
    ],
)
def test_what_a_newer_version_wrote_is_called_newer_and_not_damaged(tmp_path, version, told):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    header = json.loads((tmp_path / "run.json").read_text())
    header["versions"]["onlooker"] = version
    _edit_header(tmp_path, versions=header["versions"], options={"tune": "much", "thin": 1})
    with pytest.raises(ValueError, match=told):
        Posterior.load(tmp_path)
    _edit_header(tmp_path, options=header["options"], seed="a new kind of seed")
    with pytest.raises(ValueError, match=told):
        Posterior.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tempering": 4}, r"made with tempering=4, which this version .* no longer has"),
        ({"concentration": {"class": "PerController", "params": {}}}, "=PerController, which"),
    ],
)
def test_runs_that_made_use_of_what_is_gone_are_refused(tmp_path, options, told):
    quick(PROBLEM, Mixing(3), store=tmp_path)
    known = json.loads((tmp_path / "run.json").read_text())["options"]
    _edit_header(tmp_path, options=known | {"tempering": None, "blocked": False})
    assert Posterior.load(tmp_path).n_draws == 8  # it was there, and did nothing
    _edit_header(tmp_path, options=known | options)
    with pytest.raises(StoreMismatchError, match=told):
        Posterior.load(tmp_path)


def test_a_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(StoreMismatchError, match=r"thesis\.txt"):
        quick(PROBLEM, Mixing(3), store=tmp_path)
    with pytest.raises(ValueError, match="no store"):
        Posterior.load(tmp_path)


HOLDER = """
import sys, time
from pathlib import Path
from onlooker.runs.lock import Lock
with Lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_and_a_killed_one_is_succeeded(tmp_path):
    with Lock(tmp_path), pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
        quick(PROBLEM, Mixing(3), store=tmp_path)
    assert not (tmp_path / "lock").exists()
    command = [sys.executable, "-c", HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        assert Lock(tmp_path).writer()["pid"] == other.pid
        with pytest.raises(StoreLockedError, match=f"process {other.pid} on "), Lock(tmp_path):
            pass
        other.kill()
    assert (tmp_path / "lock").exists()  # it died without a chance to remove it
    assert Lock(tmp_path).writer() is None
    with Lock(tmp_path):
        assert Lock(tmp_path).writer()["pid"] == os.getpid()
    assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize("text", ["", '{"pid": 1', "[]"])
def test_a_lock_file_that_nobody_holds_is_taken_whatever_it_says(tmp_path, text):
    (tmp_path / "lock").write_text(text)
    assert Lock(tmp_path).writer() is None
    with Lock(tmp_path) as lock:
        assert lock.writer()["pid"] == os.getpid()


def test_a_lock_that_its_holder_removes_meanwhile_is_not_held_by_two(tmp_path, monkeypatch):
    first = Lock(tmp_path)
    first.__enter__()
    monkeypatch.setattr(lock_module.time, "sleep", lambda _: first.__exit__())
    with Lock(tmp_path) as second:
        assert (tmp_path / "lock").exists()
        assert second.writer()["pid"] == os.getpid()


# -- what is stored ------------------------------------------------------------------------------


def test_the_header_tells_what_the_run_is(tmp_path):
    quick(PROBLEM, DistanceDependent(), store=tmp_path)
    header = json.loads((tmp_path / "run.json").read_text())
    assert header["problem"] == {"nodes": 15, "transitions": 40, "actions": 4, "dimensions": 2}
    assert header["prior_text"].startswith("DistanceDependent(self_link=Exponential(mean=0.1)")
    assert (header["seed"], header["draws"], header["chains"]) == ("3", 8, 2)
    assert {"onlooker", "numpy", "numba", "python"} <= set(header["versions"])


RICH = [
    DistanceDependent(self_link=Exponential(0.3), decay=GaussianDecay(0.5, 0.02), n_neighbors=5),
    Potts(3, coordinates=[[0, 0], [0, 1], [1, 1], [1, 0], [2, 0], [2, 1]], n_neighbors=2),
    Potts(2, metric=np.abs(np.arange(6)[:, None] - np.arange(6)), n_neighbors=None),
]


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("number", range(len(RICH)))
def test_what_was_loaded_answers_like_what_was_sampled(number, as_file, tmp_path):
    prior = RICH[number]
    problem = PROBLEM if number == 0 else ring_problem()
    posterior = quick(problem, prior, store=tmp_path / "store")
    path = tmp_path / "store"
    if as_file:
        path = tmp_path / "posterior.onlooker"
        posterior.save(path)
    loaded = Posterior.load(path)
    assert_same_draws(loaded, posterior)
    assert loaded.chain_ids == posterior.chain_ids
    states = np.array([[0.3, 0.2], [1.0, 2.0]]) if number == 0 else np.array([0, 5])
    np.testing.assert_array_equal(loaded.policy(states), posterior.policy(states))
    np.testing.assert_array_equal(
        loaded.next_state_samples(states, random_state=1),
        posterior.next_state_samples(states, random_state=1),
    )
    assert loaded.schedule.tune == posterior.schedule.tune
    assert repr(loaded.prior)[:20] == repr(prior)[:20]


def test_sparse_tables_are_stored_as_such(tmp_path):
    problem = ring_problem()
    problem.dynamics = TabularDynamics(problem.dynamics.matrices)
    posterior = quick(problem, Mixing(2))
    posterior.save(tmp_path / "p")
    loaded = Posterior.load(tmp_path / "p")
    assert loaded.problem.dynamics.is_sparse
    np.testing.assert_allclose(loaded.next_state([0, 1]), posterior.next_state([0, 1]))


class _Home:
    """Dynamics of the user's own."""

    n_actions = 4

    def log_likelihood(self, states, next_states):
        return np.zeros((len(states), 4))


def test_code_of_your_own_is_not_stored_but_can_be_given_back(tmp_path):
    problem = Problem(PROBLEM.node_of, PROBLEM.loglik, PROBLEM.states)
    problem.dynamics = _Home()
    prior = Mortal(3)
    prior.doomed = ()
    posterior = quick(problem, prior)
    posterior.save(tmp_path / "p")
    loaded = Posterior.load(tmp_path / "p")
    np.testing.assert_array_equal(loaded.policy(), posterior.policy())
    with pytest.raises(TypeError, match=r"Mortal.*prior="):
        loaded.policy([[0.0, 0.0]])
    with pytest.raises(ValueError, match="dynamics="):
        loaded.log_predictive([PROBLEM.states[:3]])
    helped = Posterior.load(tmp_path / "p", prior=prior, dynamics=_Home())
    np.testing.assert_array_equal(helped.policy([[0.0, 0.0]]), posterior.policy([[0.0, 0.0]]))
    assert helped.log_predictive([PROBLEM.states[:3]]).shape == (2,)


def test_a_callable_metric_is_not_stored(tmp_path):
    def metric(x, y):
        return float(np.abs(x - y).sum())

    posterior = quick(PROBLEM, DistanceDependent(metric=metric), store=tmp_path / "s")
    again = quick(
        PROBLEM, DistanceDependent(metric=metric), store=tmp_path / "s", resume=True, draws=9
    )
    np.testing.assert_array_equal(again.labels[:, :8], posterior.labels)
    loaded = Posterior.load(tmp_path / "s")
    np.testing.assert_array_equal(loaded.policy(), again.policy())


def test_files_of_others_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=1)
    (tmp_path / "text").write_text("hello")
    for name in ("other.npz", "text"):
        with pytest.raises(ValueError, match=r"Posterior\.save"):
            Posterior.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Posterior.load(tmp_path / "nowhere")


# -- when parts are due ---------------------------------------------------------------------------


class Writer(store.ChainFolder):
    """Notes the times at which parts are written, each of which takes a while."""

    def __init__(self, clock, cost):
        super().__init__(Path("nowhere"), None, None, "")
        self.clock, self.cost, self.written = clock, cost, []

    def write(self, runner):
        self.written.append(self.clock[0])
        self.clock[0] += self.cost


@pytest.mark.parametrize(
    ("cost", "began", "times"),
    [
        (0.0, 0.0, [1.0, 2.0, 3.0]),  # at first one a second
        (0.0, 1000.0, [1053.0, 1108.5, 1167.0]),  # a kill costs a twentieth of a run at most
        (0.0, 1e6, [1000300.0, 1000600.0, 1000900.0]),  # or five minutes
        (2.0, 0.0, [1.0, 43.0, 85.0]),  # writing takes at most a twentieth of the time
    ],
)
def test_parts_are_as_frequent_as_kills_and_the_disk_ask_for(cost, began, times, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: clock[0])
    folder = Writer(clock, cost)
    clock[0] = folder._last = began
    runner = SimpleNamespace(done=False, sweeps=1)
    while len(folder.written) < len(times):
        clock[0] += 0.5
        folder.offer(runner)
    assert folder.written == times


def test_control_c_while_threads_start_ends_those_that_run(monkeypatch):
    """One left running would write beside a resumed run."""
    started, right = [], threading.Thread.start

    def start(self):
        if started:
            raise KeyboardInterrupt
        right(self)
        started.append(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        quick(PROBLEM, Mixing(3), draws=1_000_000, n_jobs=2)
    assert not started[0].is_alive()
