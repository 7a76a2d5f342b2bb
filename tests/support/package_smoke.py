"""What an installed package must do, told to the interpreter that has it: `make package`.

Run as ``python -I -W error tests/support/package_smoke.py``: only what is installed is seen, not
this checkout, and no import may warn.
"""

import importlib
import subprocess
import sys
import tempfile
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np

import onlooker
from onlooker import Demonstrations, PolicyRecognizer, Posterior
from onlooker.datasets import load_storms
from onlooker.dynamics import DisplacementDynamics
from onlooker.partitions import Mixing
from onlooker.warnings import ConvergenceWarning


def public_names() -> None:
    """Every public name and room is there."""
    for name in dir(onlooker):
        assert getattr(onlooker, name) is not None, name
    for name in ("cli", "explorer", "experiments", "fitting"):
        importlib.import_module(f"onlooker.{name}")


def files_beside_the_code() -> None:
    """The marker of types, the page of the explorer and the data came along."""
    package = files("onlooker")
    assert (package / "py.typed").is_file()
    assert "<html" in (package / "explorer" / "web" / "page.html").read_text(encoding="utf-8")
    assert len(load_storms().demos) > 600


def small_run(folder: Path) -> None:
    """A walk to the right is recognised; draws survive a file."""
    rng = np.random.default_rng(0)
    steps = rng.normal([1.0, 0.0], 0.1, size=(3, 20, 2))
    demos = Demonstrations(list(steps.cumsum(axis=1)))
    dynamics = DisplacementDynamics.compass(4, step=1.0, sigma=0.1)
    recognizer = PolicyRecognizer(
        dynamics, Mixing(2), draws=20, tune=20, chains=2, random_state=0, progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a run as short as this
        posterior = recognizer.fit(demos).posterior_
    ahead = posterior.policy()[:, dynamics.steps[:, 0].argmax()]
    assert ahead.min() > 0.8, ahead.min()
    posterior.save(folder / "run.npz")
    assert np.array_equal(Posterior.load(folder / "run.npz").labels, posterior.labels)


def command_line() -> None:
    """The command is on the path and knows its version."""
    command = Path(sys.executable).with_name("onlooker")
    for option, said in (("--help", "Usage: onlooker"), ("--version", onlooker.__version__)):
        done = subprocess.run([command, option], check=True, capture_output=True, text=True)
        assert said in done.stdout, done.stdout


if __name__ == "__main__":
    assert str(files("onlooker")).startswith(sys.prefix), files("onlooker")
    public_names()
    files_beside_the_code()
    with tempfile.TemporaryDirectory() as folder:
        small_run(Path(folder))
    command_line()
    print(f"onlooker {onlooker.__version__} works as installed")
