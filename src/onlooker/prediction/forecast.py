"""What happens next, by the policies and the dynamics of the draws.

Where the dynamics has unknown parameters, each draw has dynamics of its own: predictions average
over (at most `MAX_DYNAMICS`, evenly spaced) draws what each one's policy does under them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, require_memory
from onlooker.demonstrations import Demonstrations, as_states, distinct_states
from onlooker.dynamics.base import Dynamics, unknown_parameters
from onlooker.dynamics.rollout import draw_actions, roll_out

if TYPE_CHECKING:
    from onlooker.posterior import Posterior

MAX_DYNAMICS = 500
_MAX_TABULATED = 100_000  # states of a finite space whose policies a rollout computes at once


class Forecast:
    """What follows from a posterior's policies and the dynamics of its draws.

    Parameters
    ----------
    posterior
        The draws.
    dynamics
        The model of the world; None: the problem's.
    how
        Arguments of `Posterior.policy`.
    """

    def __init__(
        self, posterior: Posterior, dynamics: Dynamics | None, how: dict[str, Any]
    ) -> None:
        dynamics = dynamics if dynamics is not None else posterior.problem.dynamics
        if dynamics is None:
            raise ValueError(
                "the problem was made without dynamics; give dynamics=, the model of the world"
            )
        self.posterior = posterior
        self.dynamics = dynamics
        self.how = how
        self._names = sorted(unknown_parameters(dynamics))
        unknown = [name for name in self._names if name not in posterior.hyper]
        if unknown:
            raise ValueError(
                f"there are no draws of the dynamics' {unknown[0]!r}; fix it: "
                f"dynamics.at({{{unknown[0]!r}: ...}})"
            )

    @property
    def chosen(self) -> Array:
        """The draws, pooled, whose dynamics are used; none if the dynamics are known."""
        if not self._names:
            return np.empty(0, dtype=np.int64)
        n = self.posterior.n_chains * self.posterior.n_draws
        return np.unique(np.linspace(0, n - 1, min(n, MAX_DYNAMICS)).astype(np.int64))

    def dynamics_of(self, draw: int) -> Dynamics:
        """The dynamics by one draw."""
        hyper = self.posterior.hyper
        values = {name: float(hyper[name].ravel()[draw]) for name in self._names}
        drawn: Dynamics = self.dynamics.at(values)  # type: ignore[attr-defined]
        return drawn

    def pairs(self, queries: Array) -> Iterator[tuple[Array, Dynamics]]:
        """Policies at `queries`, and the dynamics that they go with."""
        if len(self.chosen) == 0:
            yield self.posterior.policy(queries, **self.how), self.dynamics
            return
        policies = self.posterior.predictor.each(queries, self.chosen, **self.how)
        for draw, policy in zip(self.chosen, policies, strict=True):
            yield policy, self.dynamics_of(int(draw))

    @property
    def n_pairs(self) -> int:
        """How many there are."""
        return max(1, len(self.chosen))

    def next_state(self, states: Any) -> Array:
        """``Σ_j T(s' | s, j) p(j | s)`` of a finite space, ``(n, S)``."""
        if not hasattr(self.dynamics, "next_state_probabilities"):
            raise TypeError(
                f"{type(self.dynamics).__name__} has no table of next states; "
                "use next_state_log_density or next_state_samples"
            )
        queries = as_states(states)
        total: Any = 0.0
        for policy, dynamics in self.pairs(queries):
            total = total + dynamics.next_state_probabilities(queries, policy)  # type: ignore[attr-defined]
        return np.asarray(total / self.n_pairs)

    def log_density(self, states: Any, next_states: Any) -> Array:
        """``ln Σ_j T(s' | s, j) p(j | s, data)`` of each pair, ``(n,)``."""
        from scipy.special import logsumexp

        queries, ends = as_states(states), as_states(next_states)
        self.dynamics.log_likelihood(queries, ends)  # refuses what does not fit
        if len(queries) == 0:
            return np.empty(0)
        distinct, index = distinct_states(queries)
        total = np.full(len(queries), -np.inf)
        for policy, dynamics in self.pairs(distinct):
            loglik = dynamics.log_likelihood(queries, ends)
            total = np.logaddexp(total, logsumexp(loglik + np.log(policy)[index], axis=1))
        return total - np.log(self.n_pairs)

    def samples(self, states: Any, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws of the next state, ``(n_samples, n, ...)``."""
        queries = as_states(states)
        n_bytes = 8 * n_samples * (4 * queries.size + len(queries) * self.dynamics.n_actions)
        require_memory(n_bytes, f"{n_samples:,} samples of the next state", "choose fewer of them")
        tiled = np.concatenate([queries] * n_samples)
        which = np.zeros(len(tiled), dtype=np.int64)
        if self.n_pairs > 1:
            which = rng.integers(self.n_pairs, size=len(tiled))
        drawn = np.empty_like(tiled)
        for number, (policy, dynamics) in enumerate(self.pairs(queries)):
            mine = np.flatnonzero(which == number)
            cumulative = np.cumsum(policy, axis=1)[mine % max(len(queries), 1)]
            drawn[mine] = dynamics.sample(tiled[mine], draw_actions(cumulative, rng), rng)
        return drawn.reshape(n_samples, len(queries), *queries.shape[1:])

    def rollout(self, start_states: Any, length: int, rng: np.random.Generator) -> Demonstrations:
        """Trajectories of `length` states; each moves by the dynamics of one draw."""
        start = as_states(start_states)
        n_states = getattr(self.dynamics, "n_states", _MAX_TABULATED + 1)
        table = None
        if n_states <= _MAX_TABULATED:
            table = np.cumsum(self.posterior.policy(np.arange(n_states), **self.how), axis=1)

        def act(states: Array, rng: np.random.Generator) -> Array:
            if table is not None:
                return draw_actions(table[states], rng)
            policy = self.posterior.policy(states, **self.how)
            return draw_actions(np.cumsum(policy, axis=1), rng)

        dynamics = self.dynamics
        if self._names:
            which = rng.choice(self.chosen, size=len(start))
            drawn = {int(draw): self.dynamics_of(draw) for draw in np.unique(which)}
            dynamics = PerDrawDynamics(dynamics.n_actions, drawn, which)
        return roll_out(start, length, act, dynamics, rng)[0]


class PerDrawDynamics:
    """Every row of states moves by the dynamics of a draw of its own."""

    def __init__(self, n_actions: int, drawn: dict[int, Dynamics], which: Array) -> None:
        self.n_actions = n_actions
        self._drawn = drawn
        self._which = which

    def log_likelihood(self, states: Array, next_states: Array) -> Array:
        """Row by row."""
        rows = zip(self._which, states, next_states, strict=True)
        return np.concatenate(
            [self._drawn[int(b)].log_likelihood(s[None], e[None]) for b, s, e in rows]
        )

    def sample(self, states: Array, actions: Array, rng: np.random.Generator) -> Array:
        """Draw the next states."""
        out = np.empty_like(states)
        for number, dynamics in self._drawn.items():
            mine = np.flatnonzero(self._which == number)
            out[mine] = dynamics.sample(states[mine], actions[mine], rng)
        return out
