"""An experiment that takes no time, for tests of what carries experiments out."""

import os
import time
from dataclasses import dataclass

from onlooker.experiments import experiment
from onlooker.experiments.drawing import new_figure, save
from onlooker.experiments.experiment import Claim, Experiment, Reference, cell


@dataclass(frozen=True)
class ToyConfig(experiment.Config):
    runs: int = 6
    broken: tuple[int, ...] = ()
    lethal: tuple[int, ...] = ()
    """Runs that kill their process."""
    seconds: float = 0.0


def run_one(config, run):
    if run in config.broken:
        raise ArithmeticError(f"run {run} is out of luck")
    if run in config.lethal:
        os._exit(1)
    time.sleep(config.seconds)
    rng = config.stream(run, 0)
    product = rng.normal(size=(150, 150)) @ rng.normal(size=(150, 150))
    return [{"method": name, "error": float(product.sum() + i)} for i, name in enumerate("ab")]


def plot(table, folder, config):
    figure = new_figure(2, 2)
    figure.subplots().plot(table["run"], table["error"])
    return save(figure, folder, "toy")


def claims(table, config):
    return [Claim("It is a toy.", True, f"{len(table)} rows")]


TOY = Experiment(
    name="toy",
    title="A toy",
    config=ToyConfig,
    run_one=run_one,
    plot=plot,
    references=(Reference("error of a", 0.0, 10, cell(method="a")),),
    claims=claims,
    caption="Nothing to see.",
)
