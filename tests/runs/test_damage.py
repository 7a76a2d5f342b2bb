"""What disks, kills and other versions do to a store: nothing is lost without a word."""

import errno
import json
import os
import re
import shutil
import stat
import struct
import warnings

import numpy as np
import pytest
from small_runs import PRIORS, assert_same_draws, plane_problem, quick

from onlooker import Posterior, files
from onlooker.explorer.run import drawn
from onlooker.files import DamagedFileError
from onlooker.findings.opened import OpenedRun
from onlooker.inference import threads
from onlooker.partitions import Mixing
from onlooker.runs import store
from onlooker.runs.lock import Lock, StoreLockedError
from onlooker.runs.verifying import verify_run

PROBLEM = plane_problem()


@pytest.fixture
def many_parts(monkeypatch):
    """Let every sweep be a part of its own."""
    monkeypatch.setattr(store, "_MAX_WAIT", 0.0)
    monkeypatch.setattr(threads, "_SLICE", 0.0)


@pytest.fixture
def run(tmp_path, many_parts):
    """A store with a part for every draw."""
    quick(PROBLEM, Mixing(3), store=tmp_path / "run")
    return tmp_path / "run"


def whole():
    return quick(PROBLEM, Mixing(3))


def resumed(run, **options):
    return quick(PROBLEM, Mixing(3), store=run, resume=True, **options)


# -- a full disk ----------------------------------------------------------------------------------


class Disk:
    """Has no space for files, or for entries of directories, from one flush on until another."""

    def __init__(self, monkeypatch, kind, first, last, error=errno.ENOSPC):
        self.n, self.kind, self.first, self.last, self.error = 0, kind, first, last, error
        monkeypatch.setattr(files.os, "fsync", self.fsync)

    def fsync(self, handle):
        directory = stat.S_ISDIR(os.fstat(handle).st_mode)
        self.n += directory == (self.kind == "directories")
        if directory == (self.kind == "directories") and self.first <= self.n < self.last:
            raise OSError(self.error, os.strerror(self.error))


kinds = pytest.mark.parametrize("kind", ["files", "directories"])


@kinds
def test_while_the_disk_is_full_chains_go_on_and_draws_are_stored_later(
    tmp_path, monkeypatch, many_parts, kind
):
    Disk(monkeypatch, kind, 9, 13)
    with pytest.warns(RuntimeWarning, match=r"chain-00\d cannot be stored now.*No space") as caught:
        posterior = quick(PROBLEM, Mixing(3), store=tmp_path)
    assert all("sampling goes on" in str(item.message) for item in caught)
    assert_same_draws(posterior, whole())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_draws(Posterior.load(tmp_path), whole())
    assert not list(tmp_path.rglob(".*.tmp"))


@kinds
def test_draws_that_never_reach_the_disk_are_kept_named_and_drawn_again(
    tmp_path, monkeypatch, many_parts, kind
):
    with monkeypatch.context() as patch:
        Disk(patch, kind, 11, 10**9)
        with pytest.warns(RuntimeWarning, match=r"could not be stored: |stored now") as caught:
            posterior = quick(PROBLEM, Mixing(3), store=tmp_path)
    assert_same_draws(posterior, whole())
    said = [str(item.message) for item in caught]
    assert sum("stored now" in text for text in said) == 2  # once per chain
    lost = {name: int(n) for n, name in re.findall(r"(\d+) of (chain-\d+)", said[-1])}
    mark = json.loads((tmp_path / "run.json").read_text())["fingerprint"]
    for chain in range(2):
        path = store.folder_of(tmp_path, chain)
        folder = store.ChainFolder(path, posterior.target, posterior.schedule, mark)
        stored = folder.read().draws
        assert lost.get(path.name, 0) == 8 - (0 if stored is None else len(stored))
    assert sum(lost.values()) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_draws(resumed(tmp_path), whole())


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOTSUP])
def test_a_disk_that_flushes_no_directories_takes_runs_all_the_same(tmp_path, monkeypatch, error):
    disk = Disk(monkeypatch, "directories", 0, 10**9, error)
    quick(PROBLEM, Mixing(3), store=tmp_path)
    assert disk.n > 3
    assert_same_draws(Posterior.load(tmp_path), whole())


def test_a_part_without_draws_that_cannot_be_removed_does_no_harm(
    tmp_path, monkeypatch, many_parts
):
    def refuse(self, missing_ok=False):
        raise PermissionError("not yours")

    with monkeypatch.context() as patch:
        patch.setattr(store.Path, "unlink", refuse)
        patch.setattr(Lock, "__exit__", lambda self, *error: os.close(self._handle))
        quick(PROBLEM, Mixing(3), store=tmp_path)
    assert_same_draws(Posterior.load(tmp_path), whole())
    assert_same_draws(resumed(tmp_path), whole())


# -- damage: resumed ------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [None, 0, 100, 2000], ids=["gone", "empty", "torn", "cut"])
def test_a_damaged_problem_is_written_again_by_who_resumes(run, keep):
    problem = run / "problem.npz"
    before = problem.read_bytes()
    if keep is None:
        problem.unlink()
    else:
        problem.write_bytes(before[:keep])
    with pytest.warns(RuntimeWarning, match=r"problem\.npz is written again"):
        assert_same_draws(resumed(run), whole())
    assert_same_draws(Posterior.load(run), whole())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed(run)


def test_a_missing_middle_part_ends_its_chain_there_and_is_drawn_again(run):
    parts = sorted(run.glob("chain-001/part-*.npz"))
    parts[3].unlink()
    said = r"draws of chain-001 from number 3 on cannot be read .*begins with draw 4, but 3 are"
    with pytest.warns(RuntimeWarning, match=said + ".*left out"):
        found = Posterior.load(run)
    assert found.labels.shape == (2, 3, 15)
    np.testing.assert_array_equal(found.labels, whole().labels[:, :3])
    with pytest.warns(RuntimeWarning, match=said + ".*drawn again"):
        assert_same_draws(resumed(run), whole())
    assert len(list(run.glob("chain-001/*.broken"))) == 4
    assert_same_draws(Posterior.load(run), whole())


def test_copies_of_parts_by_other_names_are_no_parts(run):
    for name, source in {" (copy)": 3, "0 conflict": 5, "-x": 8}.items():
        part = sorted(run.glob("chain-000/part-*.npz"))[source]
        shutil.copy(part, part.with_name(f"{part.stem}{name}.npz"))
    found = OpenedRun.read(run)
    assert (found.n_stored, drawn(run, found.header)) == (8, 8)
    assert verify_run(run) == (2, 8, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert_same_draws(found.posterior, whole())
        assert_same_draws(resumed(run, draws=10), quick(PROBLEM, Mixing(3), draws=10))


def test_a_flipped_bit_in_the_directory_of_a_part_is_never_overlooked(run):
    part = sorted(run.glob("chain-000/part-*.npz"))[4]
    sound = part.read_bytes()
    size, start = struct.unpack("<II", sound[-10:-2])  # of the directory, at the archive's end
    assert sound[start : start + 4] == b"PK\1\2"
    right = Posterior.load(run).draws.arrays
    n_lost = 0
    for bit in range(0, 8 * (size + 22), 37):
        damaged = bytearray(sound)
        damaged[start + bit // 8] ^= 1 << bit % 8
        part.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = Posterior.load(run).draws.arrays
        n = 4 if caught else 8
        n_lost += n == 4
        assert found.keys() == right.keys(), bit
        for name, values in right.items():
            np.testing.assert_array_equal(found[name], values[:, :n], err_msg=f"{name} {bit}")
    assert n_lost > 20


def test_resuming_with_fewer_draws_does_not_shrink_what_was_planned(run):
    def planned():
        header = json.loads((run / "run.json").read_text())
        return header["draws"], header["chains"]

    assert planned() == (8, 2)
    resumed(run, draws=3, chains=1)
    assert planned() == (8, 2)
    resumed(run, draws=9)
    assert planned() == (9, 2)


@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_resuming_under_another_version_of_a_library_warns(run, name):
    header = json.loads((run / "run.json").read_text())
    header["versions"][name] = "0.0.1"
    (run / "run.json").write_text(json.dumps(header))
    with pytest.warns(RuntimeWarning, match=rf"{name} 0\.0\.1.*may differ"):
        resumed(run)


# -- checked and mended ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIORS)
def test_sound_stores_are_found_sound(name, tmp_path):
    posterior = quick(PROBLEM, PRIORS[name], store=tmp_path / "s")
    assert verify_run(tmp_path / "s") == (2, 8, [])
    posterior.save(tmp_path / "p.npz")
    assert verify_run(tmp_path / "p.npz") == (2, 8, [])


def test_repair_sets_damaged_parts_aside_and_the_run_goes_on(run):
    parts = sorted(run.glob("chain-001/part-*.npz"))
    parts[5].write_bytes(parts[5].read_bytes()[:-50])
    chains, draws, lost = verify_run(run)
    assert (chains, draws, len(lost)) == (2, 5, 1)
    assert "draws of chain-001 from number 5 on" in lost[0]
    assert sorted(run.glob("chain-001/part-*.npz")) == parts  # looking changes nothing
    assert verify_run(run, repair=True) == (chains, draws, lost)
    assert verify_run(run) == (2, 5, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_draws(resumed(run), whole())


def test_a_state_that_no_chain_can_go_on_from_is_damage_too(run):
    part = sorted(run.glob("chain-000/part-*.npz"))[-1]
    with np.load(part) as archive:
        arrays = dict(archive)
    arrays["state.labels"][0] = 99
    np.savez(part, **arrays)
    assert Posterior.load(run).n_draws == 8
    assert verify_run(run, repair=True).draws == 7
    assert_same_draws(resumed(run), whole())


def test_settings_that_were_tampered_with_are_found(run):
    header = json.loads((run / "run.json").read_text())
    header["seed"] = "4"
    (run / "run.json").write_text(json.dumps(header))
    with pytest.raises(DamagedFileError, match="not those that it was begun with"):
        verify_run(run)


def test_a_damaged_problem_cannot_be_mended_without_data_and_that_is_said(run):
    (run / "problem.npz").write_bytes(b"PK")
    with pytest.raises(DamagedFileError, match=r"problem\.npz is damaged.*[Rr]esuming"):
        verify_run(run, repair=True)


def test_a_run_that_is_being_written_is_not_repaired(run):
    with Lock(run), pytest.raises(StoreLockedError):
        verify_run(run, repair=True)


def test_old_stores_are_checked_as_far_as_they_can_be(tmp_path):
    from pathlib import Path

    for old in sorted((Path(__file__).parents[1] / "golden" / "stores").iterdir()):
        if old.is_dir():
            shutil.copytree(old, tmp_path / old.name)
            assert verify_run(tmp_path / old.name).lost == []
