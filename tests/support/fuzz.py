"""Damaged files of every kind that is read: each is refused in words, or answered rightly.

    python tests/support/fuzz.py FIRST COUNT KIND...

runs the damaged files FIRST to FIRST + COUNT - 1 of some kinds, each in a process of its own, so
that a crash of the interpreter, too much memory or too much time is seen from outside.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from bare import bare_problem
from mutations import damage_arrays, damage_bytes, damage_json, damage_text
from small_runs import plane_problem, quick, ring_dynamics

from onlooker import Demonstrations, Posterior, Problem
from onlooker.dynamics import DisplacementDynamics
from onlooker.findings.opened import OpenedRun
from onlooker.hyper import Gamma, LogUniform
from onlooker.inference import threads
from onlooker.partitions import PRIORS as CLASSES
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Regions,
    Static,
    Uniform,
)
from onlooker.prediction import predictor
from onlooker.problem import Landmarks
from onlooker.repertoire import Actions, Goals
from onlooker.runs import store
from onlooker.runs.codec import UnknownPrior
from onlooker.runs.lock import Lock

SECONDS = 20  # for one file
MEMORY = 3 << 30  # bytes of address space beyond what the process has when it starts
INFERRED = LogUniform(0.1, 10.0)
PRIORS = {
    "static": Static(),
    "uniform": Uniform(3),
    "mixing": Mixing(3, Gamma(2.0, 1.0), collapsed=False),
    "potts": Potts(3, beta=INFERRED, n_neighbors=4),
    "crp": ChineseRestaurant(INFERRED),
    "regions": Regions(decay=GaussianDecay(INFERRED)),
    "ddcrp": DistanceDependent(decay=GaussianDecay(INFERRED, 0.01), reassign=1),
}
assert PRIORS.keys() >= CLASSES.keys(), "a new prior has its files damaged, too"


# -- problems -------------------------------------------------------------------------------------


def unseen_problem():
    """A finite space with unseen states."""
    walks = [[0, 1, -1, 3, 4, 5, -1, -1, 2], [3, 2, -1, 0, 5, 4]]
    demos = Demonstrations(walks, missing="infer")
    return bare_problem(demos, ring_dynamics(), nodes="all")


def noisy_problem():
    """Positions with gaps and noise, and an unknown step."""
    rng = np.random.default_rng(0)
    track = np.cumsum(rng.normal(0.5, 0.3, (12, 2)), axis=0)
    track[[4, 7], [0, 1]] = np.nan
    dynamics = DisplacementDynamics.compass(4, LogUniform(0.2, 2.0), LogUniform(0.05, 1.0))
    demos = Demonstrations([track], missing="infer")
    return bare_problem(demos, dynamics, observation_noise=LogUniform(0.01, 1.0))


def sparse_problem():
    """A sparse table of transitions, with names of trajectories."""
    import scipy.sparse

    from onlooker.dynamics import TabularDynamics

    table = ring_dynamics().toarray()
    sparse = TabularDynamics([scipy.sparse.csr_array(table[:, a]) for a in range(3)])
    demos = Demonstrations([[0, 1, 2, 3], [3, 2, 2, 1, 0]], names=["up", "down"])
    return bare_problem(demos, sparse)


def repertoire_problem():
    """Behaviours by tables, points and turns."""
    from onlooker.dynamics.features import Heading, Speed, with_features
    from onlooker.repertoire import Actions, Blurs, Goals, Turns

    steps = DisplacementDynamics.compass(4).steps
    compass = DisplacementDynamics(np.vstack([steps, np.zeros((1, 2))]), 0.5)
    track = np.random.default_rng(2).normal(0.4, 0.6, size=(9, 2)).cumsum(axis=0)
    demos, dynamics = with_features([track], [Heading(1.0), Speed(1.0)], compass)
    kinds = [Actions(), Blurs(), Goals(candidates=3), Turns((0.5,))]
    return Problem.from_demonstrations(demos, dynamics, repertoire=kinds)


def planned_problem():
    """Goals of a table."""
    demos = Demonstrations([[0, 1, 2, 3], [3, 2, 2, 1, 0]])
    return Problem.from_demonstrations(demos, ring_dynamics(), repertoire="auto")


def landmark_problem():
    """States of which each chain has some as its nodes."""
    tracks = [np.random.default_rng(k).normal(0.4, 0.6, (9, 2)).cumsum(axis=0) for k in range(3)]
    compass = DisplacementDynamics.compass(4, sigma=0.5)
    repertoire = [Actions(), Goals(candidates=3)]
    return Problem.from_demonstrations(tracks, compass, Landmarks(6), repertoire=repertoire)


PROBLEMS = {
    "plane": plane_problem,
    "unseen": unseen_problem,
    "noisy": noisy_problem,
    "sparse": sparse_problem,
    "repertoire": repertoire_problem,
    "planned": planned_problem,
}


# -- kinds: what is damaged, and what is then asked of it -----------------------------------------


def is_distribution(policy):
    return bool(np.isfinite(policy).all() and (policy >= 0).all()
                and np.allclose(policy.sum(axis=1), 1))  # fmt: skip


def ask(posterior):
    """What reports and summaries ask of every posterior."""
    assert is_distribution(posterior.policy())
    near = posterior.problem.states[:2] if posterior.problem.states.ndim == 1 else [
        posterior.problem.states[0] + 0.1
    ]  # fmt: skip
    if not isinstance(posterior.prior, UnknownPrior):
        assert is_distribution(posterior.policy(near))
    posterior.policy(interval=0.9)
    assert posterior.labels.max() < posterior.problem.n_nodes
    posterior.partition()


class StoredRun:
    """A store, one of whose files is damaged."""

    def __init__(self, problem, prior, resumed):
        make = (PROBLEMS | {"landmarks": landmark_problem})[problem]
        self.problem, self.prior, self.resumed = make(), PRIORS[prior], resumed
        self.options = {"concentration": Gamma(2.0, 1.0), "draws": 3, "tune": 1, "chains": 1}
        self.name = "run"

    def make(self, folder):
        store._MAX_WAIT, threads._SLICE = 0.0, 0.0  # every sweep is a part
        quick(self.problem, self.prior, store=folder / "run", **self.options)
        more = self.options | {"draws": 5}
        self.whole = quick(self.problem, self.prior, **more)
        if not self.resumed:
            OpenedRun.read(folder / "run").load_consensus()
            reading = {"states": ["x", "y"], "cleaning": {"missing": "drop"}}
            record = {"what": "onlooker fit", "names": list("abcd"), "reading": reading}
            (folder / "run" / "fit.json").write_text(json.dumps(record))

    def damage(self, folder, rng):
        files = sorted(item for item in (folder / "run").rglob("*") if item.is_file())
        file = files[int(rng.integers(len(files)))]
        blind = rng.random() < 0.3
        how = damage_json if file.suffix == ".json" else damage_arrays
        file.write_bytes((damage_bytes if blind else how)(file.read_bytes(), rng))
        return blind

    def use(self, folder, blind):
        if not self.resumed:
            run = OpenedRun.read(folder / "run")
            ask(run.posterior)
            run.load_consensus()
            assert len(run.action_names) == self.problem.n_actions
            assert all([run.progress, *run.notes, *run.axes])
            return
        more = self.options | {"draws": 5, "store": folder / "run", "resume": True}
        again = quick(self.problem, self.prior, **more)
        ask(again)
        if blind:  # what bytes say is checked by sums: all that is lost is drawn again
            for name, values in self.whole.draws.arrays.items():
                np.testing.assert_array_equal(again.draws.arrays[name], values, err_msg=name)


class SavedRun(StoredRun):
    """A file of `Posterior.save`."""

    def __init__(self, problem, prior):
        super().__init__(problem, prior, resumed=False)
        self.name = "run.npz"

    def make(self, folder):
        quick(self.problem, self.prior, **self.options).save(folder / "run.npz")

    def damage(self, folder, rng):
        file = folder / "run.npz"
        how = damage_bytes if rng.random() < 0.3 else damage_arrays
        file.write_bytes(how(file.read_bytes(), rng))

    def use(self, folder, _):
        ask(Posterior.load(folder / "run.npz"))


class Read:
    """A file of tracks, or of a model."""

    def __init__(self, name, write, read, *ways):
        self.name, self.write, self.read, self.ways = name, write, read, ways

    def make(self, folder):
        self.write(folder / self.name)

    def damage(self, folder, rng):
        file = folder / self.name
        how = self.ways[int(rng.integers(len(self.ways)))]
        file.write_bytes(how(file.read_bytes(), rng))

    def use(self, folder, _):
        self.read(folder / self.name)


def check_demos(demos):
    """What every reader promises."""
    offsets = demos.offsets
    assert (offsets[0], offsets[-1]) == (0, len(demos.states))
    assert np.diff(offsets).min() >= 2
    if demos.has_unseen:
        return
    if demos.is_discrete:
        assert demos.states.min() >= 0
    else:
        assert np.isfinite(demos.states).all()
    demos.transitions()


def table():
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "id": np.repeat(["a", "b", "=c", "d"], 5),
        "t": pd.date_range("2020-01-01", periods=20, freq="h"),
        "x": rng.normal(size=20).round(3),
        "y": np.arange(20),
    })  # fmt: skip


def read_table(path):
    check_demos(Demonstrations.read(path, ["x", "y"], "id", "t", missing="drop", gaps="split"))
    check_demos(Demonstrations.read(path, "y", "id"))


GPX = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><name>one</name><trkseg>
<trkpt lat="48.1" lon="11.5"><ele>1</ele><time>2020-01-01T00:00:00Z</time></trkpt>
<trkpt lat="48.2" lon="11.6"><time>2020-01-01T00:01:00Z</time></trkpt>
<trkpt lat="48.3" lon="11.7"><time>2020-01-01T00:02:00Z</time></trkpt></trkseg>
<trkseg><trkpt lat="-48.1" lon="179.9"><time>2020-01-01</time></trkpt>
<trkpt lat="-48.2" lon="-179.9"><time>2020-01-02T00:00:00+01:00</time></trkpt></trkseg></trk></gpx>
"""
TOML = """
concentration = {prior = "loguniform", low = 0.1, high = 10}
[data]
states = ["lon", "lat"]
geographic = true
[cleaning]
missing = "split"
gap = "6h"
[dynamics]
kind = "displacement"
directions = 8
names = ["a", "b"]
[prior]
kind = "ddcrp"
self_link = {prior = "exponential", mean = 0.1}
decay = {kind = "gaussian", scale = 300, offset = 0.01}
[[features]]
kind = "heading"
weight = 200
[sampling]
draws = 100
seed = 3
nodes = "visited"
"""


def read_toml(path):
    from onlooker.fitting.model_file import read_model

    read_model(path)


def read_any(path, **options):
    check_demos(Demonstrations.read(path, **options))


def write_npz(path):
    track = np.cumsum(np.ones((6, 2)), axis=0)
    demos = Demonstrations([track, track[1:]], names=["a", "b"], times=[np.arange(6), np.arange(5)])
    demos.save(path)


KINDS = {
    **{f"stored {name}": partial(StoredRun, "plane", name, False) for name in PRIORS},
    **{f"resumed {name}": partial(StoredRun, "plane", name, True) for name in PRIORS},
    **{f"stored, {name}": partial(StoredRun, name, "crp", False) for name in PROBLEMS},
    **{f"resumed, {name}": partial(StoredRun, name, "crp", True) for name in PROBLEMS},
    "stored, landmarks": partial(StoredRun, "landmarks", "regions", False),
    "resumed, landmarks": partial(StoredRun, "landmarks", "regions", True),
    "saved": partial(SavedRun, "plane", "ddcrp"),
    "csv": partial(Read, "t.csv", lambda p: table().to_csv(p, index=False), read_table,
                   damage_bytes, damage_text),
    "csv.gz": partial(Read, "t.csv.gz", lambda p: table().to_csv(p, index=False), read_table,
                      damage_bytes),
    "parquet": partial(Read, "t.parquet", lambda p: table().to_parquet(p), read_table,
                       damage_bytes),
    "gpx": partial(Read, "t.gpx", lambda p: p.write_text(GPX), read_any, damage_bytes,
                   damage_text),
    "toml": partial(Read, "m.toml", lambda p: p.write_text(TOML), read_toml, damage_bytes,
                    damage_text),
    "npz": partial(Read, "t.npz", write_npz, read_any, damage_bytes, damage_arrays),
    "npy": partial(Read, "t.npy", lambda p: np.save(p, np.ones((4, 2))), read_any, damage_bytes),
}  # fmt: skip


# -- one after the other --------------------------------------------------------------------------


def limit_memory():
    """Have the system refuse memory beyond what one damaged file may take."""
    import resource

    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))


def refusal(error, name):
    """Whether an error is one of ours that names the file."""
    return isinstance(error, ValueError | TypeError) and name in str(error)


def contents(folder):
    """The files of a folder, and what they hold."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def restore(folder, files):
    """Give a folder the files that it had, and no others: quicker than a copy for every use."""
    for name, data in contents(folder).items():
        if files.get(name) != data:
            (folder / name).unlink()
    for name, data in files.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(data)


def run(kind, first, count):
    """Return how many files were refused, and those that were neither refused nor right."""
    warnings.simplefilter("ignore")
    os.fsync = lambda handle: None  # it takes most of the time, and no disk fails here
    np.seterr(all="ignore")
    predictor._MIN_VALUES = 20  # draws of controllers for an interval, each by the same way
    subject = KINDS[kind]()
    failures, n_refused = [], 0
    with tempfile.TemporaryDirectory() as root:
        original = Path(root) / "original"
        original.mkdir()
        subject.make(original)
        shutil.copytree(original, Path(root) / "sound")
        subject.use(Path(root) / "sound", True)  # sound files are answered; kernels are compiled
        if sys.platform == "linux":
            limit_memory()
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(BaseException("too long")))
        folder, files = Path(root) / "damaged", contents(original)
        shutil.copytree(original, folder)
        for number in range(first, first + count):
            restore(folder, files)
            signal.alarm(SECONDS)
            try:
                how = subject.damage(folder, np.random.default_rng(number))
                subject.use(folder, how)
            except BaseException as error:
                n_refused += 1
                if "-v" in sys.argv:
                    print(number, type(error).__name__, error)
                if not refusal(error, subject.name):
                    failures.append(f"{kind} {number}: {traceback.format_exc()}")
                    if len(failures) == 5:
                        break
            finally:
                signal.alarm(0)
            assert Lock(folder / "run").writer() is None, f"{kind} {number} leaves a lock"
    return n_refused, failures


def run_apart(kind, first, count):
    """Run a kind in a process of its own, which crashes alone; whether all went well."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            n_refused, failures = run(kind, first, count)
            print(f"{kind}: {n_refused} of {count} refused", *failures, sep="\n\n", flush=True)
            os._exit(bool(failures))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if status:
        print(f"{kind} failed: {status}", flush=True)
    return status == 0


if __name__ == "__main__":
    first, count, *kinds = (word for word in sys.argv[1:] if word != "-v")
    passed = [run_apart(kind, int(first), int(count)) for kind in kinds]
    sys.exit(not all(passed))
