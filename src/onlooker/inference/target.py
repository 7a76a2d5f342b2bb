"""What is sampled: a problem, a prior over partitions, a prior over controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onlooker.gibbs.slices import start_of
from onlooker.gibbs.update import ACTIONS, Update
from onlooker.hyper import Prior, TotalMass, check_hyper
from onlooker.inference.unseen import NOISE, unseen_updates
from onlooker.inference.updates import (
    Behaviours,
    CollapsedActions,
    Concentration,
    Controllers,
    KindMasses,
    OrdinaryActions,
    dynamics_updates,
)
from onlooker.partitions.base import Bound, Hyper, PartitionPrior
from onlooker.problem import Layout, Problem

_MAX_ALPHA = 1e9


@dataclass(frozen=True)
class Target:
    """Which posterior is sampled, and nothing about how long."""

    problem: Problem
    prior: PartitionPrior[Any]
    concentration: Hyper | TotalMass = 1.0
    """α of the controllers' Dirichlet prior."""
    collapsed: bool = True
    """Controllers are integrated out."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise TypeError(
                f"problem must be a Problem, got {type(self.problem).__name__}; "
                "make one by Problem.from_demonstrations(demos, dynamics)"
            )
        if not isinstance(self.prior, PartitionPrior):
            raise TypeError(
                f"prior must be a partition prior such as DistanceDependent(), got {self.prior!r}"
            )
        if not isinstance(self.concentration, TotalMass):
            check_hyper("concentration", self.concentration)
        if isinstance(self.concentration, int | float) and self.concentration > _MAX_ALPHA:
            raise ValueError(
                f"concentration must be at most {_MAX_ALPHA:g}, got {self.concentration}: counts "
                "would drown in rounding"
            )
        if self.prior.collapsed_only and not self.collapsed:
            raise ValueError(
                f"{type(self.prior).__name__} has no ordinary Gibbs sampler: its controllers are "
                "always integrated out; use collapsed=True"
            )
        names = [name for part in self._hyper() for name in part]
        taken = {name for name in names if names.count(name) > 1}
        if taken:
            raise ValueError(
                f"two hyper-parameters are called {min(taken)!r}; rename that of the dynamics or "
                "of the prior"
            )

    @property
    def start_alpha(self) -> float:
        """Where chains start α."""
        return start_of(self.alpha)

    @property
    def alpha(self) -> Hyper:
        """α: a number, or its prior."""
        if isinstance(self.concentration, TotalMass):
            return self.concentration.over(self.problem.n_behaviours)
        return self.concentration

    def hyper(self) -> dict[str, Hyper]:
        """All hyper-parameters by the names of their draws: numbers, or priors."""
        return {name: value for part in self._hyper() for name, value in part.items()}

    def _hyper(self) -> list[dict[str, Any]]:
        incomplete = self.problem.incomplete
        noise = {} if incomplete is None else {NOISE: incomplete.noise}
        alpha = {"alpha": self.alpha}
        return [alpha, self.problem.parameters, noise, self.prior.hyper()]

    def updates(self, bound: Bound[Any]) -> list[Update[Any]]:
        """A sweep, in its order."""
        problem, collapsed = bound.layout.problem, self.collapsed
        dynamics = dynamics_updates(problem, bound.layout)
        alpha = self.alpha
        tables: list[Update[Any]] = []  # the last of them makes the tables
        if len(problem.kinds) > 1:
            tables.append(KindMasses(problem, tabulate=not isinstance(alpha, Prior)))
        if isinstance(alpha, Prior):
            tables.append(Concentration(alpha))
        actions = self._action_updates(bound.layout)
        sweep: list[Update[Any]] = [
            *unseen_updates(problem, bound.layout, dynamics),
            *actions,
            *dynamics,
            *tables,
            *([] if collapsed else [Controllers()]),
        ]
        for update in bound.updates(collapsed):
            sweep += [*actions, *tables] if update is ACTIONS else [update]
        return sweep

    def _action_updates(self, layout: Layout) -> list[Update[Any]]:
        """All passes over the actions."""
        if not self.collapsed:
            return [OrdinaryActions()]
        passes = self.prior.passes
        return [CollapsedActions()] if passes == 1 else [Behaviours(passes, layout, self.alpha)]


class Binder:
    """Binds the prior to the problem of each chain, once where chains share it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._seen: dict[int, Problem] = {}
        self._bound: dict[int, Bound[Any]] = {}

    def __call__(self, chain: int) -> Bound[Any]:
        """The prior bound to what this chain sees."""
        prior = self.target.prior
        if chain not in self._seen:
            self._seen[chain] = self.target.problem.for_chain(chain, prior.geometry)
        problem = self._seen[chain]
        if id(problem) not in self._bound:
            self._bound[id(problem)] = prior.bind(problem)
        return self._bound[id(problem)]
