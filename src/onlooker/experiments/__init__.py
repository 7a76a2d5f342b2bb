"""The paper's experiments as programs: ``onlooker reproduce NAME``.

Each module holds a typed configuration whose defaults are the paper's, `run_one` for a single
Monte Carlo run, a `plot`, and the figures that an independent reproduction gave.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlooker.experiments.experiment import Experiment

NAMES = (
    "learning-curves",
    "controllers",
    "partition",
    "grid-circular",
    "grid-mdp",
    "robustness",
)

__all__ = ["NAMES", "load"]


def load(name: str) -> Experiment:
    """The experiment called `name`, one of `NAMES`."""
    if name not in NAMES:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}")
    module = import_module(f"onlooker.experiments.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
