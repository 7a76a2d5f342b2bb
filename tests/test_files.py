"""Files appear whole or not at all, and what is no regular file is never replaced."""

import errno
import io
import os
import stat
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from onlooker import files
from onlooker.files import write_arrays, write_atomically


def content(text):
    return lambda file: file.write(text)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def fail(handle):
        handle.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, fail)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_full_disk_refuses_is_named(tmp_path):
    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*report\.html'"):
        write_atomically(tmp_path / "report.html", fail)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(mode)
    seen = []

    def write(handle):  # the new text is as private while it is written
        seen.append(stat.S_IMODE(os.fstat(handle.fileno()).st_mode))
        handle.write(b"new")

    write_atomically(file, write)
    assert file.read_bytes() == b"new"
    assert [*seen, stat.S_IMODE(file.stat().st_mode)] == [mode, mode]


@pytest.mark.parametrize("left", ["a file", "a link"])
def test_what_a_dead_process_left_is_in_nobodys_way(tmp_path, left):
    """It had the number that this process has; or someone guessed it, and set a trap."""
    file, victim = tmp_path / "file", tmp_path / "victim"
    victim.write_bytes(b"precious")
    leftover = []

    def look(handle):
        leftover.extend(path for path in tmp_path.iterdir() if path != victim)

    write_atomically(file, look)
    file.unlink()
    if left == "a link":
        leftover[0].symlink_to(victim)
    else:
        leftover[0].write_bytes(b"half")
    write_atomically(file, content(b"new"))
    assert file.read_bytes() == b"new"
    assert victim.read_bytes() == b"precious"
    assert sorted(tmp_path.iterdir()) == [file, victim]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127], ids=["ASCII", "two bytes each"])
def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path, name):
    write_atomically(tmp_path / name, lambda file: file.write(b"new"))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_new_file_has_the_mode_that_others_get(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(tmp_path / "file", content(b"new"))
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_links_are_followed(tmp_path, there):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, content(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()


@pytest.mark.parametrize("write", [content(b"text"), lambda f: np.savez(f, a=np.arange(3))])
def test_a_fifo_is_written_to_and_stays_one(tmp_path, write):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()))
    reader.start()
    write_atomically(fifo, write)
    reader.join(10)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    expected = io.BytesIO()
    write(expected)
    if zipfile.is_zipfile(expected):
        with np.load(io.BytesIO(received[0])) as archive:
            assert archive["a"].tolist() == [0, 1, 2]
    else:
        assert received == [expected.getvalue()]


def test_a_device_is_written_to_and_stays_one():
    """A terminal of our own, in a file system where nothing can be replaced: if the code is wrong,
    this test fails, and no device of the machine is gone."""
    keeper, device = os.openpty()
    try:
        path = Path(os.ttyname(device))
        before = path.stat()
        write_atomically(path, content(b"text"))
        assert os.read(keeper, 100) == b"text"
        assert stat.S_ISCHR(path.stat().st_mode)
        assert path.stat().st_ino == before.st_ino
    finally:
        os.close(keeper)
        os.close(device)


def test_files_and_then_their_directory_reach_the_disk(tmp_path, monkeypatch):
    """A rename may reach the disk before what was renamed, unless both are flushed in turn."""
    log = []
    fsync, replace = os.fsync, os.replace

    def flushed(handle):
        log.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(old, new):
        assert old.read_bytes().startswith(b"PK")  # nothing is left in Python's buffer
        log.append("rename")
        replace(old, new)

    monkeypatch.setattr(files.os, "fsync", flushed)
    monkeypatch.setattr(files.os, "replace", renamed)
    write_arrays(tmp_path / "a.npz", {"a": np.arange(3)})
    assert log == ["file", "rename", "directory"]
    assert os.listdir(tmp_path) == ["a.npz"]
