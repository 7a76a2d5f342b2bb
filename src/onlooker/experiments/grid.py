"""What the experiments in the grid world (Example 2) share: methods and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onlooker.checks import Array
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import TabularDynamics
from onlooker.experiments.experiment import Config
from onlooker.hyper import Exponential, LogUniform
from onlooker.inference.chain import Chain
from onlooker.inference.target import Target
from onlooker.metrics import planar_emd
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.planning import value_iteration
from onlooker.problem.problem import Problem
from onlooker.repertoire import Actions
from onlooker.sampling import sample
from onlooker.worlds import GridWorld

METHODS = (
    "ddCRP",
    "EM β=1.6",
    "EM β=3.2",
    "max-margin",
    "max-ent greedy",
    "max-ent soft",
)
OTHERS = ("ddCRP, all inferred", "cloning")
"""Methods that the paper does not have: ``config(methods=OTHERS)``."""
WORLD = 0  # key of the stream that worlds come from
Fit = tuple[dict[str, Array], dict[str, bool]]
"""Policies by method, and whether each converged."""


@dataclass(frozen=True)
class GridConfig(Config):
    """Example 2 of the paper: a 21×21 grid world."""

    size: int = 21
    actions: int = 8
    length: int = 10
    """States of a trajectory."""
    sweeps: int = 400
    burn_in: int = 200
    alpha: float = 1.0
    nu_mean: float = 0.1
    scale: float = 1.0
    offset: float = 0.01
    controllers: int = 8
    """K of the EM method."""
    discount: float = 0.9
    tolerance: float = 1e-6
    """Probabilities that the planar EMD may ignore; the error is below 1e-4."""
    methods: tuple[str, ...] = METHODS

    @classmethod
    def quick(cls) -> Self:
        """Small worlds and short chains."""
        return cls(runs=2, size=11, sweeps=60, burn_in=30)

    def with_reward(self, run: int) -> GridWorld:
        """The world of a run with sparse rewards and the expert that is optimal for them."""
        return GridWorld.with_reward(
            self.stream(run, WORLD), size=self.size, n_actions=self.actions, discount=self.discount
        )


def fit_all(
    config: GridConfig,
    coordinates: Array,
    dynamics: TabularDynamics,
    demos: Demonstrations,
    seed: np.random.SeedSequence,
) -> Fit:
    """Every method's policy at all states."""
    policies: dict[str, Array] = {}
    converged: dict[str, bool] = {}
    states = np.arange(dynamics.n_states)
    max_ent: Any = None
    known = METHODS + OTHERS
    seed_of = dict(zip(known, seed.spawn(len(known)), strict=True))
    for method in config.methods:
        rng = np.random.default_rng(seed_of[method])
        if method == "ddCRP":
            policies[method] = ddcrp_policy(config, coordinates, dynamics, demos, rng)
            converged[method] = True
            continue
        if method == "ddCRP, all inferred":
            policies[method] = _inferred_policy(coordinates, dynamics, demos, rng)
            converged[method] = True
            continue
        if max_ent is not None and method.startswith("max-ent"):
            model = max_ent  # one fit serves the greedy and the soft policy
        else:
            model = _baseline(method, config, coordinates, dynamics, rng).fit(demos)
        if method.startswith("max-ent"):
            max_ent = model
        policies[method] = (
            value_iteration(dynamics, model.reward_, config.discount).policy
            if method == "max-ent greedy"
            else model.predict_proba(states)
        )
        converged[method] = bool(model.convergence_.converged)
    return policies, converged


def ddcrp_policy(
    config: GridConfig,
    coordinates: Array,
    dynamics: TabularDynamics,
    demos: Demonstrations,
    rng: np.random.Generator,
) -> Array:
    """The posterior mean policy at all states, unvisited ones included in the inference."""
    problem = Problem.from_demonstrations(demos, dynamics, "all", repertoire=[Actions()])
    prior = DistanceDependent(
        self_link=Exponential(config.nu_mean),
        decay=GaussianDecay(config.scale, config.offset),
        coordinates=coordinates,
        start="self",
    )
    chain = Chain(Target(problem, prior, config.alpha), prior.bind(problem), rng=rng)
    total = np.zeros((problem.n_nodes, problem.n_actions))
    for sweep in range(config.sweeps):
        chain.sweep()
        if sweep >= config.burn_in:
            total += chain.policy()
    policy = np.empty_like(total)
    policy[problem.states] = total / (config.sweeps - config.burn_in)
    return policy


def _inferred_policy(
    coordinates: Array,
    dynamics: TabularDynamics,
    demos: Demonstrations,
    rng: np.random.Generator,
) -> Array:
    """The same with all hyper-parameters inferred, from four chains of the default length."""
    problem = Problem.from_demonstrations(demos, dynamics, "all", repertoire=[Actions()])
    prior = DistanceDependent.inferred(coordinates=coordinates, start="nearest")
    alpha = LogUniform(0.25, 10.0)
    posterior = sample(problem, prior, alpha, random_state=rng, progress=False)
    policy = np.empty((problem.n_nodes, problem.n_actions))
    policy[problem.states] = posterior.policy()
    return policy


def _baseline(
    method: str,
    config: GridConfig,
    coordinates: Array,
    dynamics: TabularDynamics,
    rng: np.random.Generator,
) -> Any:
    from onlooker.baselines import (
        BehavioralCloning,
        ExpectationMaximization,
        MaximumEntropyIRL,
        MaximumMarginIRL,
    )

    if method == "cloning":
        seed = int(rng.integers(2**31))
        return BehavioralCloning(dynamics, coordinates=coordinates, rounds=5, random_state=seed)
    if method == "max-margin":
        return MaximumMarginIRL(dynamics, discount=config.discount)
    if method.startswith("max-ent"):
        return MaximumEntropyIRL(dynamics, discount=config.discount)
    beta = float(method.rpartition("=")[2])
    return ExpectationMaximization(
        dynamics, config.controllers, beta, coordinates=coordinates, random_state=rng
    )


def next_state_error(
    true: Array, model: TabularDynamics, policy: Array, coordinates: Array, tolerance: float
) -> float:
    """Mean Euclidean EMD of next-state distributions: the `true` ones, and the policy's."""
    states = np.arange(model.n_states)
    learned = model.next_state_probabilities(states, policy)
    return float(planar_emd(true, learned, coordinates, tolerance).mean())
