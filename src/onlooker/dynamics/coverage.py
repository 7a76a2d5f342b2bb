"""Which steps of tracks the actions of a dynamics explain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.dynamics.displacement import DisplacementDynamics

_WITHIN = 0.999  # a step is explained if this share of an action's own steps lie as near
_ROWS = 100_000  # steps looked at a time
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class StepCoverage:
    """Which steps lie where some action leads.

    Attributes
    ----------
    misfit
        ``(M,)``: how far each step is from the nearest action's mean, in that action's sigma.
    nearest
        ``(M,)``: that action.
    trajectory, index
        ``(M,)``: the trajectory of each step, and which step of it (from 0).
    limit
        A step beyond it is not explained: 99.9 % of what an action does is nearer to its mean.
    n_actions
        Number of actions.
    demos
        The trajectories.
    starts
        ``(M,)``: where each step starts, as an index into their states.
    """

    misfit: Array
    nearest: Array
    trajectory: Array
    index: Array
    limit: float
    n_actions: int
    demos: Demonstrations
    starts: Array

    @cached_property
    def unexplained(self) -> Array:
        """The steps that no action explains (numbers of transitions, pooled)."""
        return np.flatnonzero(self.misfit > self.limit)

    @property
    def n_steps(self) -> int:
        """Number of steps, M."""
        return len(self.misfit)

    @property
    def share(self) -> float:
        """Share of the steps that some action explains."""
        return 1 - len(self.unexplained) / self.n_steps

    @property
    def usage(self) -> Array:
        """``(A,)``: share of the explained steps that are nearest to each action."""
        used = np.bincount(self.nearest[self.misfit <= self.limit], minlength=self.n_actions)
        return used / max(1, used.sum())

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Plain numbers and lists, for JSON; of unexplained steps the `most` worst, or all."""
        listed = self.unexplained if most is None else self.worst[:most]
        return {
            "n_steps": self.n_steps,
            "n_actions": self.n_actions,
            "limit": self.limit,
            "share": self.share,
            "usage": self.usage.tolist(),
            "unexplained": [
                {
                    "transition": int(t),
                    "trajectory": int(self.trajectory[t]),
                    "step": int(self.index[t]),
                    "place": self.demos.place(int(self.starts[t])),
                    "misfit": float(self.misfit[t]),
                }
                for t in listed
            ],
        }

    @cached_property
    def worst(self) -> Array:
        """The steps that no action explains, the worst first."""
        return self.unexplained[np.argsort(-self.misfit[self.unexplained], kind="stable")]

    def __str__(self) -> str:
        summary = (
            f"{self.n_actions} actions explain {100 * self.share:.2f} % of {self.n_steps:,} steps "
            f"(within {self.limit:.3g} sigma)."
        )
        if not len(self.unexplained):
            return summary
        worst = self.worst
        verb = "is" if len(worst) == 1 else "are"
        rows = "; rows count from 0" if self.demos.rows is not None else ""
        lines = [summary, f"{len(worst):,} {verb} not explained, the worst first{rows}:"]
        for t in worst[:_SHOWN]:
            lines.append(
                f"  {self.demos.place(int(self.starts[t]))}: {_sigmas(self.misfit[t])} sigma"
            )
        if len(worst) > _SHOWN:
            lines.append(f"  and {len(worst) - _SHOWN:,} more")
        return "\n".join(lines)


def _sigmas(misfit: float) -> str:
    """Three digits at least, never as a power of ten."""
    return f"{misfit:,.0f}" if misfit >= 1000 else f"{misfit:.3g}"


def coverage_of(dynamics: DisplacementDynamics, demos: Demonstrations) -> StepCoverage:
    """Compare the steps of `demos` between seen states with the actions of `dynamics`."""
    from scipy.stats import chi2

    starts, trajectory = demos.transition_starts(), demos.trajectory_of()
    seen = ~(demos.hidden[starts] | demos.hidden[starts + 1])
    starts, trajectory = starts[seen], trajectory[seen]
    states, next_states = demos.states[starts], demos.states[starts + 1]
    misfit, nearest = np.empty(len(states)), np.empty(len(states), dtype=np.int64)
    for start in range(0, len(states), _ROWS):
        rows = slice(start, start + _ROWS)
        loglik = dynamics.log_likelihood(states[rows], next_states[rows])
        misfit[rows] = dynamics.misfit(loglik)
        nearest[rows] = loglik.argmax(axis=1)
    index = starts - demos.offsets[trajectory]
    limit = math.sqrt(chi2.ppf(_WITHIN, dynamics.n_dims))
    return StepCoverage(
        misfit, nearest, trajectory, index, limit, dynamics.n_actions, demos, starts
    )
