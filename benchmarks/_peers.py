"""Other people's libraries, each in an environment of its own under ``.benchmarks/peers``.

They are never imported here: a script of ours runs in their environment, reads arrays from a file
and writes what it found to another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parents[1] / ".benchmarks" / "peers"


@dataclass(frozen=True)
class Peer:
    """A library to compare with."""

    name: str
    steps: tuple[tuple[str, ...], ...]
    """What pip installs, one call after the other."""
    module: str
    """Importing it tells that all is there."""
    gigabytes: float
    """That the environment takes."""


PEERS = {
    # Newer releases of torch exist than imitation's other needs can be resolved with at once.
    "imitation": Peer(
        "imitation",
        (("torch==2.13.0",), ("imitation==1.0.1",)),
        "imitation.algorithms.mce_irl",
        1.7,
    ),
    "hmmlearn": Peer("hmmlearn", (("hmmlearn==0.3.3",),), "hmmlearn.hmm", 0.3),
    # It uses `np.float`, which NumPy 1.24 took away.
    "irl-maxent": Peer(
        "irl-maxent", (("numpy<1.24", "irl-maxent==0.1.0"),), "irl_maxent.maxent", 0.2
    ),
}


class Absent(Exception):
    """A peer that cannot be had here."""


def python_of(name: str) -> Path:
    """The interpreter of a peer's environment, which is made if need be."""
    peer = PEERS[name]
    place = HOME / name
    python = place / "bin" / "python"
    ready = place / ".ready"
    if ready.exists():
        return python
    if os.environ.get("ONLOOKER_NO_PEERS"):
        raise Absent(f"{name} is not installed, and ONLOOKER_NO_PEERS is set")
    HOME.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(HOME).free < 2e9 * peer.gigabytes:
        raise Absent(f"{name} needs {peer.gigabytes} GB, and the disk has hardly more")
    print(f"installing {name} into .benchmarks/peers ({peer.gigabytes} GB, once) ...", flush=True)
    commands = [[sys.executable, "-m", "venv", "--without-pip", "--clear", str(place)]]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    commands += [[*pip, "--disable-pip-version-check", *step] for step in peer.steps]
    commands += [[str(python), "-W", "ignore", "-c", f"import {peer.module}"]]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(place, ignore_errors=True)
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise Absent(f"{name} could not be installed: {' '.join(last)}")
    ready.touch()
    return python


def ask(name: str, script: Path, arrays: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run a script in a peer's environment: it gets two paths, of its input and its output."""
    python = python_of(name)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **arrays)
        command = [str(python), "-W", "ignore", str(script), str(given), str(found)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise Absent(f"{name} was stopped after {limit:.0f} s") from None
        except subprocess.CalledProcessError as failed:
            last = " ".join(failed.stderr.strip().splitlines()[-1:])
            raise Absent(f"{name} failed: {last}") from None
        with np.load(found) as archive:
            return dict(archive)
