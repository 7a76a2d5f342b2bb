"""Example 2 (c): inference with a wrong model of the world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from onlooker.dynamics import PerturbedDynamics
from onlooker.experiments.drawing import curves, legend_outside, new_figure, save
from onlooker.experiments.experiment import (
    Claim,
    Experiment,
    Reference,
    Row,
    cell,
)
from onlooker.experiments.grid import METHODS, GridConfig, fit_all, next_state_error
from onlooker.worlds.grid import grid_dynamics

if TYPE_CHECKING:
    import pandas as pd

_NAMES = tuple(name for name in METHODS if name != "EM β=3.2")


@dataclass(frozen=True)
class Config(GridConfig):
    """The setting of (b), but the assumed model is perturbed and has more directions."""

    runs: int = 20
    etas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.99)
    """Strengths of the perturbation."""
    trajectories: int = 1000
    assumed_actions: int = 24
    methods: tuple[str, ...] = _NAMES

    @classmethod
    def quick(cls) -> Self:
        """Few perturbations, a small world, short chains."""
        return cls(runs=2, size=15, etas=(0.0, 0.5, 0.99), sweeps=60, burn_in=30)


def run_one(config: Config, run: int) -> list[Row]:
    """Errors, by the assumed and by the clean model, of policies learned with the assumed one."""
    world = config.with_reward(run)
    true = world.dynamics.next_state_probabilities(np.arange(world.n_states), world.policy())
    demos, _ = world.rollout(config.trajectories, config.length, config.stream(run, 1))
    clean = grid_dynamics(config.size, config.assumed_actions)
    rows: list[Row] = []
    for eta in config.etas:
        key = round(1000 * eta)  # streams belong to η, whichever others there are
        assumed = PerturbedDynamics(clean, eta, config.stream(run, 2, key))
        policies, converged = fit_all(
            config, world.coordinates, assumed, demos, config.sequence(run, 3, key)
        )
        for method, policy in policies.items():
            for name, model in (("assumed", assumed), ("clean", clean)):
                error = next_state_error(true, model, policy, world.coordinates, config.tolerance)
                rows.append(
                    {
                        "eta": eta,
                        "method": method,
                        "model": name,
                        "error": error,
                        "converged": converged[method],
                    }
                )
    return rows


def plot(table: pd.DataFrame, folder: Path, config: Config) -> Path:
    """Error against the strength of the perturbation, judged by two models."""
    figure = new_figure(11.0, 5.0)
    axes = figure.subplots(1, 2, sharey=True)
    panels = (
        ("assumed", "(a) Judged by the assumed, wrong model"),
        ("clean", "(b) Judged by the clean model"),
    )
    for ax, (model, title) in zip(axes, panels, strict=True):
        part = table[table["model"] == model]
        curves(ax, part, x="eta", by="method", names=METHODS)
        ax.set(xlabel="strength of the perturbation, η", title=title, ylim=(0, None))
    axes[0].set_ylabel("EMD of next-state distributions [grid steps]")
    legend_outside(figure, axes[0], 5)
    return save(figure, folder, "robustness")


_RUNS = 10
_ERRORS: dict[str, tuple[float, ...]] = {
    "ddCRP": (0.316, 0.320, 0.335, 0.362, 0.486),
    "EM β=1.6": (0.142, 0.268, 0.367, 0.486, 0.698),
    "max-margin": (0.251, 0.341, 0.441, 0.571, 0.985),
    "max-ent greedy": (0.198, 0.290, 0.385, 0.527, 0.933),
    "max-ent soft": (0.332, 0.336, 0.344, 0.371, 0.494),
}
_CLEAN = {"ddCRP": 0.426, "EM β=1.6": 0.463, "max-margin": 0.569}
_SD = {("ddCRP", 0.0): 0.046, ("ddCRP", 0.99): 0.021}


def _references() -> tuple[Reference, ...]:
    found = [
        Reference(
            f"{method}, η = {eta:g}", error, _RUNS,
            cell(method=method, eta=eta, model="assumed"), _SD.get((method, eta)),
        )
        for method, errors in _ERRORS.items()
        for eta, error in zip(Config.etas, errors, strict=True)
    ]  # fmt: skip
    found += [
        Reference(
            f"{method}, η = 0.99, clean model", error, _RUNS,
            cell(method=method, eta=0.99, model="clean"),
        )
        for method, error in _CLEAN.items()
    ]  # fmt: skip
    return tuple(found)


def claims(table: pd.DataFrame, config: Config) -> list[Claim]:
    """What the paper says of modelling errors."""
    low, high = min(config.etas), max(config.etas)
    found = []
    for model, judge in (("assumed", "assumed model"), ("clean", "clean model")):
        part = table[table["model"] == model]
        mean = part.groupby(["method", "eta"])["error"].mean()
        rise = {name: float(mean[name, high] - mean[name, low]) for name in config.methods}
        others = [name for name in config.methods if name not in ("ddCRP", "max-ent soft")]
        found.append(
            Claim(
                "The ddCRP is least sensitive to modelling errors "
                f"(rise of the error from η = {low:g} to {high:g}, judged by the {judge}; "
                "max-ent soft, which the paper does not have, is only listed).",
                all(rise["ddCRP"] < rise[name] for name in others),
                ", ".join(f"{name} {rise[name]:+.3f}" for name in rise),
            )
        )
    part = table[table["model"] == "assumed"]
    sd = part.groupby(["method", "eta"])["error"].std().groupby(level="method").mean()
    typical = {name: float(sd[name]) for name in config.methods}
    found.append(
        Claim(
            "Its prediction variance is smaller than those of the intentional models.",
            all(typical["ddCRP"] < typical[name] for name in ("max-margin", "max-ent greedy")),
            "standard deviation over runs, mean over η: "
            + ", ".join(f"{name} {value:.3f}" for name, value in typical.items()),
        )
    )
    return found


EXPERIMENT = Experiment(
    name="robustness",
    title="Example 2 (c): wrong model of the world",
    config=Config,
    run_one=run_one,
    plot=plot,
    references=_references(),
    claims=claims,
    caption=(
        "Inference assumes 24 directions and transition probabilities that are perturbed with "
        "strength η. The metric with the assumed model (a) favours stochastic policies, as "
        "averaging over actions cancels the perturbation; (b) judges the same policies by the "
        "clean model. Mean over runs with a band of one standard deviation."
    ),
    remarks=(
        "EM under a wrong model comes out worse than the reference; its start and its coupling "
        "are choices that the paper leaves open."
    ),
)
