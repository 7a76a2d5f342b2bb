"""What a file says is not trusted: whatever kernels would index by is checked first."""

import gzip
import io
import json
import re
import shutil
import zipfile

import numpy as np
import pytest
from chains import make_chain
from fuzz import PRIORS, PROBLEMS, sparse_problem
from small_runs import plane_problem, quick

from onlooker import Posterior
from onlooker.blocks import slices_of
from onlooker.files import DamagedFileError, Unpacked, parse_json, read_array, read_arrays
from onlooker.findings.opened import OpenedRun
from onlooker.gibbs.state import State
from onlooker.hyper import Exponential, TotalMass
from onlooker.inference.draws import Draws
from onlooker.inference.unseen import Unseen
from onlooker.partitions import ChineseRestaurant, Regions
from onlooker.runs import checking
from onlooker.runs.checking import check_state

FAR = (-(2**31), -2, 2**29)


def rewrite(path, change):
    """Change the arrays of a sound archive; it stays sound."""
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(path, **arrays)


# -- states of chains -----------------------------------------------------------------------------


def states_of(problem, prior, collapsed, sweeps):
    chain = make_chain(problem, prior, collapsed=collapsed, rng=np.random.default_rng(0))
    for _ in range(sweeps):
        chain.sweep()
        yield chain


def through_arrays(chain, arrays=None):
    """The state as a store would read it, with other arrays than its own."""
    stored, rest = chain.state.as_arrays()
    unseen = None if chain.problem.incomplete is None else Unseen
    rest = json.loads(json.dumps(rest))
    return State.from_arrays(stored | (arrays or {}), rest, chain.target.prior.state, unseen)


CASES = [
    (problem, prior, collapsed)
    for problem in PROBLEMS
    for prior in PRIORS
    for collapsed in (True, False)
    if (problem == "plane" or prior == "crp") and (collapsed or not PRIORS[prior].collapsed_only)
]


@pytest.mark.parametrize(("problem", "prior", "collapsed"), CASES)
def test_every_state_that_a_chain_leaves_is_accepted(problem, prior, collapsed):
    for chain in states_of(PROBLEMS[problem](), PRIORS[prior], collapsed, 100):
        check_state(through_arrays(chain), chain.target, chain.bound)


def test_lists_of_links_that_were_moved_about_are_accepted():
    problem = plane_problem(n_nodes=150, n_transitions=200)
    for chain in states_of(problem, PRIORS["ddcrp"], True, 150):
        check_state(through_arrays(chain), chain.target, chain.bound)


@pytest.mark.parametrize(("problem", "prior", "collapsed"), CASES)
def test_a_state_with_any_number_out_of_range_is_refused(problem, prior, collapsed):
    """Of a prior that is new, too: what its `Bound.check` forgets is found here."""
    *_, chain = states_of(PROBLEMS[problem](), PRIORS[prior], collapsed, 3)
    stored, _ = chain.state.as_arrays()
    rng = np.random.default_rng(0)
    for name, array in stored.items():
        values = FAR if array.dtype.kind == "i" else (np.nan, -np.inf)
        for value in values if array.size else ():
            bad = np.array(array)
            bad.flat[rng.integers(array.size)] = value
            with pytest.raises(ValueError, match=r"must|does not fit|differs|names slots"):
                check_state(through_arrays(chain, {name: bad}), chain.target, chain.bound)
        for wrong in (array.reshape(-1)[:-1], np.stack([array] * 2), array.astype(np.float32)):
            if wrong.size and (wrong.shape, wrong.dtype) != (array.shape, array.dtype):
                with pytest.raises((ValueError, TypeError, IndexError)):
                    check_state(through_arrays(chain, {name: wrong}), chain.target, chain.bound)


@pytest.mark.parametrize("prior", ["ddcrp", "potts", "mixing"])
def test_a_state_with_a_slot_too_many_is_refused_though_all_else_fits(prior):
    *_, chain = states_of(plane_problem(), PRIORS[prior], True, 3)
    stored, _ = chain.state.as_arrays()
    n = len(stored["slots.order"])
    more = {f"slots.{name}": np.append(stored[f"slots.{name}"], n) for name in ("order", "where")}
    for name in ("counts.cluster", "counts.total", "counts.size"):
        more[name] = np.concatenate([stored[name], np.zeros_like(stored[name][:1])])
    with pytest.raises(ValueError, match=f"slots.order must have {n} slots"):
        check_state(through_arrays(chain, more), chain.target, chain.bound)


def test_lists_that_lead_in_circles_are_refused():
    """All numbers are in range, and yet a walk along them would never end."""
    *_, chain = states_of(plane_problem(), PRIORS["ddcrp"], True, 20)
    siblings = chain.state.partition.siblings
    targets = np.bincount(chain.state.partition.link, minlength=15)
    parent = int(np.argmax(targets - (chain.state.partition.link == np.arange(15))))
    bad = siblings.copy()
    bad[bad[parent, 0], 1] = bad[parent, 0]
    with pytest.raises(ValueError, match="siblings"):
        check_state(through_arrays(chain, {"partition.siblings": bad}), chain.target, chain.bound)


def test_members_in_the_place_of_others_are_refused():
    *_, chain = states_of(plane_problem(n_nodes=150), PRIORS["ddcrp"], True, 20)
    forest, slots = chain.state.partition, chain.state.slots
    start = forest.start.copy()
    used = slots.order[: slots.n[0]]
    assert len(used) > 1
    start[used[0]] = start[used[1]]
    with pytest.raises(ValueError, match="start and capacity"):
        check_state(through_arrays(chain, {"partition.start": start}), chain.target, chain.bound)


@pytest.mark.parametrize("value", [0.0, -1.0, 11.0, float("nan"), "1", True, None])
def test_hyper_parameters_that_their_prior_excludes_are_refused(value):
    *_, chain = states_of(plane_problem(), PRIORS["crp"], True, 3)
    state = through_arrays(chain)
    state.hyper["gamma"] = value
    with pytest.raises((ValueError, TypeError)):
        check_state(state, chain.target, chain.bound)


@pytest.mark.parametrize("value", [0.0, 1e-200])
def test_a_concentration_too_small_to_compute_with_is_refused_though_its_prior_allows_it(value):
    problem, concentration = plane_problem(), TotalMass(Exponential(1.0))
    rng = np.random.default_rng(0)
    chain = make_chain(problem, Regions.inferred(1.0), alpha=concentration, rng=rng)
    state = through_arrays(chain)
    check_state(state, chain.target, chain.bound)
    state.hyper["alpha"] = value
    with pytest.raises(ValueError, match="alpha"):
        check_state(state, chain.target, chain.bound)


# -- draws ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    quick(plane_problem(), PRIORS["ddcrp"]).save(path)
    return path


@pytest.mark.parametrize("value", FAR)
@pytest.mark.parametrize(
    "name",
    ["draws.labels", "draws.actions", "draws.links", "run.node_of"],
)
def test_draws_out_of_range_are_refused(saved, tmp_path, name, value):
    path = tmp_path / "run.npz"
    shutil.copy(saved, path)

    def change(arrays):
        array = arrays[name]
        arrays[name] = array.astype(np.int64)
        arrays[name].flat[-1] = value

    rewrite(path, change)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        Posterior.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda a: np.where(a == 0, 1, a)),  # no cluster 0
        ("labels", lambda a: a[:, :, :-1]),
        ("labels", lambda a: a.astype(float)),
        ("labels", lambda a: a[:, :0]),
        ("actions", lambda a: a[..., None]),
        ("log_joint", lambda a: np.full(a.shape, np.nan)),
        ("log_joint", lambda a: a[0]),
        ("hyper.alpha", lambda a: np.zeros(a.shape)),
        ("hyper.nu", lambda a: -a),
        ("hyper.scale", lambda a: a.astype(np.float16)),
        ("links", lambda a: None),
    ],
)
def test_draws_that_no_chain_makes_are_refused(saved, tmp_path, name, change):
    path = tmp_path / "run.npz"
    shutil.copy(saved, path)

    def put(arrays):
        new = change(arrays.pop(f"draws.{name}"))
        arrays |= {} if new is None else {f"draws.{name}": new}

    rewrite(path, put)
    with pytest.raises(DamagedFileError, match=re.escape(str(path))):
        Posterior.load(path)


def test_what_a_prior_of_the_users_own_keeps_has_an_entry_for_each_draw():
    posterior = quick(plane_problem(), PRIORS["crp"])
    shape = posterior.labels.shape[:2]
    for extra, right in ((shape, True), ((*shape, 3), True), (shape[::-1], False), ((), False)):
        draws = Draws(posterior.draws.arrays | {"mine": np.zeros(extra)})
        if right:
            checking.check_draws(draws, posterior.target, 2)
        else:
            with pytest.raises(ValueError, match=r"draws\.mine must be of shape"):
                checking.check_draws(draws, posterior.target, 2)


@pytest.mark.parametrize("problem", ["plane", "noisy"])
def test_a_run_without_one_of_its_arrays_is_refused_or_answers_all_the_same(problem, tmp_path):
    path = tmp_path / "run.npz"
    quick(PROBLEMS[problem](), ChineseRestaurant()).save(path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        names = archive.files
    refused = set()
    for name in names:
        path.write_bytes(whole)
        rewrite(path, lambda arrays, name=name: arrays.pop(name))
        try:
            posterior = Posterior.load(path)
        except DamagedFileError:
            refused.add(name)
        else:
            posterior.policy()
            posterior.summary()
    assert {"header", "draws.labels", "draws.actions", "draws.hyper.alpha"} <= refused


def test_long_draws_are_checked_piece_by_piece(monkeypatch):
    monkeypatch.setattr(slices_of, "__defaults__", (3,))
    labels = np.array([[0, 1, 2], [0, 0, 1], [0, 2, 1]])
    checking._check_numbering("labels", labels[:2])
    with pytest.raises(ValueError, match="first appearance"):
        checking._check_numbering("labels", labels)


# -- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "name", "value"),
    [
        ("sparse", "paths.nodes", 2**29),
        ("sparse", "paths.nodes", -1),
        ("sparse", "paths.offsets", 2**40),
        ("sparse", "next_states", 2**29),
        ("sparse", "dynamics.0.indices", 2**29),
        ("sparse", "dynamics.0.indices", -(2**29)),
        ("sparse", "dynamics.1.indptr", 2**29),
        ("unseen", "seen.observed", 2**29),
        ("unseen", "seen.offsets", 2),
        ("noisy", "seen.observed", np.inf),
        ("noisy", "next_states", np.nan),
    ],
)
def test_problems_out_of_range_are_refused(problem, name, value, tmp_path):
    path = tmp_path / "run.npz"
    quick(PROBLEMS[problem](), PRIORS["crp"]).save(path)

    def change(arrays):
        arrays[f"run.{name}"].flat[-1] = value

    rewrite(path, change)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        Posterior.load(path)


def test_a_stored_run_is_whole_after_all_these_checks(tmp_path):
    posterior = quick(sparse_problem(), PRIORS["crp"], store=tmp_path / "run")
    np.testing.assert_array_equal(
        OpenedRun.read(tmp_path / "run").posterior.labels, posterior.labels
    )


# -- files that claim too much --------------------------------------------------------------------


def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"0" * 1000)
        archive.filelist[0].file_size = (
            3 << 30
        )  # what the directory says, which is what is believed
    for load in (read_arrays, Posterior.load):
        with pytest.raises(DamagedFileError, match=r"bomb\.npz.*3\.0 GiB"):
            load(path)


def test_the_largest_size_that_is_unpacked_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("onlooker.files._MAX_UNPACKED", 50_000)
    path = tmp_path / "packed.gz"
    for n, right in ((50_000, True), (50_001, False)):
        path.write_bytes(gzip.compress(b"0" * n))
        assert 200 * path.stat().st_size < 50_000
        file = Unpacked(gzip.GzipFile(path), path)
        if right:
            assert len(file.readall()) == n
        else:
            with pytest.raises(DamagedFileError, match="refused above"):
                file.readall()
        file.close()
        assert file.closed
        assert file._unpacking.closed


def test_what_is_really_large_may_unpack_to_much(tmp_path, monkeypatch):
    monkeypatch.setattr("onlooker.files._MAX_UNPACKED", 1000)
    zeros = np.zeros(100_000)
    np.savez_compressed(tmp_path / "packed.npz", zeros)
    with pytest.raises(DamagedFileError, match="unpack"):
        read_arrays(tmp_path / "packed.npz")
    np.savez(tmp_path / "plain.npz", zeros)
    assert read_arrays(tmp_path / "plain.npz")["arr_0"].sum() == 0


def npy(shape, dtype, data):
    file = io.BytesIO()
    header = {"shape": shape, "fortran_order": False, "descr": dtype}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + data


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((10**12,), "<f8"), ((-1, -8), "|i1"), ((10**15,), "<U0"), ((1,), "|O"), ((3,), "|V8")],
)
def test_an_array_that_claims_more_than_there_is_is_refused(shape, dtype, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy(shape, dtype, b"12345678"))
    with pytest.raises(DamagedFileError, match=r"a\.npy"):
        read_array(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy(shape, dtype, b"12345678"))
    with pytest.raises(DamagedFileError, match=r"a\.npz"):
        read_arrays(tmp_path / "a.npz")


def test_two_arrays_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy((1,), "<f8", b"12345678"))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("x.npy", npy((1,), "<f8", b"12345678"))
    with pytest.raises(DamagedFileError, match="same name"):
        read_arrays(tmp_path / "a.npz")


def test_arrays_of_other_machines_are_read_as_our_own(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(6, dtype=">i4").reshape(2, 3, order="F"))
    array = read_arrays(tmp_path / "a.npz")["x"]
    assert array.dtype == np.int32
    assert array.flags.c_contiguous
    assert array.flags.writeable
    np.testing.assert_array_equal(array, np.arange(6).reshape(2, 3, order="F"))


@pytest.mark.parametrize("depth", [40, 5_000, 200_000])
def test_deep_json_is_refused(depth, tmp_path):
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * depth + "]" * depth)
    (tmp_path / "run.json").write_text('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(DamagedFileError, match=r"run\.json.*nested"):
        Posterior.load(tmp_path)


def test_the_generator_of_a_chain_is_the_one_that_chains_have(tmp_path):
    """A name in a file never chooses which code runs."""
    *_, chain = states_of(plane_problem(), PRIORS["crp"], True, 1)
    stored, rest = chain.state.as_arrays()
    for name in ("MT19937", "__class__", "os.system"):
        rest["rng"]["bit_generator"] = name
        with pytest.raises(ValueError, match="PCG64"):
            State.from_arrays(stored, rest, chain.target.prior.state)
