"""Ten thousand damaged files: every one is refused in words, or answered rightly.

Each kind of file has a process of its own, so that a crash is a failure and not the end of all
tests. ``python tests/support/fuzz.py KIND FIRST COUNT -v`` repeats what failed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import KINDS

import onlooker

SUPPORT = Path(__file__).parent / "support"
N_FILES = 10_000
N_QUICK = 30  # of each kind, in `make test`
SHARES = {kind: 2 if kind.startswith(("stored", "resumed")) else 6 for kind in KINDS}


def fuzz(kind, first, count):
    package = Path(onlooker.__file__).parents[1]
    path = os.pathsep.join([str(SUPPORT), str(package)])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", SUPPORT / "fuzz.py", kind, str(first), str(count)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-10_000:]
    return int(done.stdout.split()[0])


def count_of(kind):
    return -(-N_FILES * SHARES[kind] // sum(SHARES.values()))


def test_there_are_ten_thousand():
    assert sum(map(count_of, KINDS)) >= N_FILES


@pytest.mark.parametrize("kind", ["stored ddcrp", "resumed crp", "resumed, landmarks", "saved",
                                  "csv", "parquet", "gpx", "toml", "npz", "npy"])  # fmt: skip
def test_some_damaged_files_are_refused_or_answered_rightly(kind):
    n_refused = fuzz(kind, 0, N_QUICK)
    assert 0 < n_refused <= N_QUICK


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_or_answered_rightly(kind):
    fuzz(kind, N_QUICK, count_of(kind))
