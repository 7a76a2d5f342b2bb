"""What the experiments in the plane (Example 1) share: the data, and chains on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.demonstrations import Demonstrations
from onlooker.experiments.experiment import Config
from onlooker.hyper import Exponential
from onlooker.inference.chain import Chain
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent, GaussianDecay, PartitionPrior
from onlooker.plot import distance_to
from onlooker.posterior import Posterior
from onlooker.problem import Problem
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion

DATA = 0  # key of the stream that the data come from


@dataclass(frozen=True)
class PlaneConfig(Config):
    """Example 1 of the paper: circular motion in the plane."""

    trajectories: int = 10
    length: int = 100
    """States of a trajectory."""
    sigma: float = 0.2
    """Standard deviation of the noise of a step."""
    alpha: float = 1.0
    """Concentration of the controllers."""
    nu_mean: float = 0.1
    """Mean of the exponential prior of ν."""
    scale: float = 1.0
    """σ_f of the ddCRP's similarity."""
    offset: float = 0.01
    """ε of the ddCRP's similarity."""
    reach: float = 1.0
    """A point farther than this from all data is not judged."""

    def world(self) -> CircularMotion:
        """The world and its expert."""
        return CircularMotion(sigma=self.sigma)

    def demonstrations(self, run: int) -> Demonstrations:
        """The data of a run."""
        demos, _ = self.world().rollout(self.trajectories, self.length, self.stream(run, DATA))
        return demos

    def problem(self, run: int) -> Problem:
        """What is to be inferred from the data of a run."""
        return Problem.from_demonstrations(
            self.demonstrations(run), self.world().dynamics, repertoire=[Actions()]
        )

    def ddcrp(self, nu_mean: float | None = None) -> DistanceDependent:
        """The paper's model; chains start with all links to self."""
        return DistanceDependent(
            self_link=Exponential(self.nu_mean if nu_mean is None else nu_mean),
            decay=GaussianDecay(self.scale, self.offset),
            start="self",
        )


def make_chain(
    problem: Problem,
    prior: PartitionPrior[Any],
    config: PlaneConfig,
    rng: np.random.Generator,
    collapsed: bool = True,
) -> Chain:
    """A chain at its start."""
    target = Target(problem, prior, config.alpha, collapsed)
    return Chain(target, prior.bind(problem), rng=rng)


def draw_of(chain: Chain) -> Draws:
    """Where a chain is now, as a draw."""
    return Draws({name: np.asarray(value)[None] for name, value in chain.draw().items()})


def posterior_of(chain: Chain, draws: list[Draws], seed: int) -> Posterior:
    """Draws of one chain as a posterior, to be asked about any state."""
    schedule = Schedule(draws=len(draws), seed=seed)
    return Posterior(chain.target, schedule, join([join(draws)], axis="chain"), [0])


def near_points(world: CircularMotion, problem: Problem, reach: float) -> Array:
    """Points of the world's 21×21 grid that have data within reach."""
    points = world.coordinates
    return np.asarray(points[distance_to(points, problem.states) <= reach])


def mean_error(world: CircularMotion, points: Array, policy: Array) -> float:
    """Circular EMD to the expert in radians, averaged over points."""
    return float(circular_emd(world.policy(points), policy).mean())
