"""The paper's Example 1 once, by the default model: what ``onlooker demo`` shows."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlooker import plot
from onlooker.defaults import default_prior
from onlooker.demonstrations import Demonstrations
from onlooker.experiments import partition
from onlooker.experiments.drawing import legend_below, new_figure, save
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.posterior import Posterior
from onlooker.problem.problem import Problem
from onlooker.sampling import sample
from onlooker.warnings import ConvergenceWarning

if TYPE_CHECKING:
    import pandas as pd

FULL: dict[str, Any] = {"draws": "auto", "tune": 300, "chains": 4}
QUICK = {"draws": 100, "tune": 100, "chains": 2}


@dataclass(frozen=True)
class Example:
    """What was seen and recognised."""

    config: partition.Config
    demos: Demonstrations
    posterior: Posterior
    table: pd.DataFrame
    """Region, error and mean step at the states seen and over the plane."""

    @property
    def n_controllers(self) -> int:
        """Different controllers that the expert used at the states seen."""
        return len(np.unique(self.config.world().controllers(self.demos.states)))


def recognise(
    seed: int,
    *,
    draws: int | Literal["auto"],
    tune: int,
    chains: int,
    n_jobs: int | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> Example:
    """Simulate the expert, and recognise its policy from states alone."""
    import pandas as pd

    config = partition.Config(seed=seed)
    world = config.world()
    demos, _ = world.rollout(config.trajectories, config.length, random_state=seed)
    say(
        f"Seen: {len(demos)} trajectories of {demos.lengths[0]} states in the plane, "
        f"{demos.n_transitions} steps. No action was seen."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report has its own words
        posterior = sample(
            Problem.from_demonstrations(demos, world.dynamics),
            default_prior(demos, world.dynamics),
            CONCENTRATION,
            draws=draws,
            tune=tune,
            chains=chains,
            random_state=seed,
            n_jobs=n_jobs,
        )
    say("Computing the consensus partition ...")
    side = float(np.ceil(np.abs(demos.states).max() + 0.5))
    config = dataclasses.replace(config, side=side)
    table = pd.DataFrame(partition.rows_of(posterior, config)).assign(run=0)
    return Example(config, demos, posterior, table)


def draw(example: Example, folder: Path) -> Path:
    """Write ``example1.png`` and ``example1.svg`` into `folder`; return the first."""
    # By hand: the automatic layout makes room for legends at the cost of equal panels.
    figure = new_figure(14.5, 10.6, layout="none")
    figure.subplots_adjust(0.045, 0.115, 0.985, 0.965, wspace=0.18, hspace=0.38)
    axes = [figure.add_subplot(2, 3, place) for place in (1, 2, 3, 4, 5)]
    partition.panels(axes[:4], example.table, example.demos, example.config)
    plot.n_controllers(example.posterior, axes[4], truth=example.n_controllers)
    axes[4].set_title("(e) How many controllers?")
    legend_below(axes[4])
    _at_one_state(example, figure.add_subplot(2, 3, 6, projection="polar"))
    return save(figure, folder, "example1")


def _at_one_state(example: Example, ax: Any) -> None:
    """The policy at a typical state, with how sure it is."""
    posterior, world = example.posterior, example.config.world()
    states = posterior.problem.states
    errors = circular_emd(posterior.policy(), world.policy(states))
    typical = states[[int(np.argsort(errors)[len(errors) // 2])]]
    mean, low, high = posterior.policy(typical, interval=0.9)
    plot.rose(
        mean[0], world.angles, ax, low=low[0], high=high[0], reference=world.policy(typical)[0]
    )
    x, y = typical[0]
    ax.set_title(f"(f) Policy at ({x:.1f}, {y:.1f}), of median error")
    legend_below(ax)
