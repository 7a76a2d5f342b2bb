"""Bayesian nonparametric inverse reinforcement learning: a partition into subgoals.

Michini, How, "Bayesian nonparametric inverse reinforcement learning", ECML PKDD 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from onlooker.baselines.base import (
    TabularBaseline,
    explained_log_likelihood,
    log_mix,
)
from onlooker.checks import Array, positive_integer, positive_number
from onlooker.planning import soft_policy
from onlooker.planning.bellman import check_discount
from onlooker.planning.transitions import Transitions
from onlooker.progress import make_progress

_GOALS_AT_ONCE = 64


class BayesianNonparametricIRL(TabularBaseline):
    r"""Every transition serves one subgoal; a Chinese restaurant process groups the transitions.

    A subgoal :math:`g` is a reward at one state, and the expert is nearly optimal for it,
    :math:`\pi_g(a|s) \propto \exp(\alpha\,Q^*_g(s,a)/\max|Q^*_g|)`. As actions are unseen, a
    transition has the likelihood :math:`\sum_a T(s'|s,a)\,\pi_g(a|s)`. Subgoals are a priori
    uniform over the visited states, as in the paper. Gibbs sampling draws the subgoal of each
    transition, then the place of each subgoal.

    At a state that was seen, the policy averages those of the subgoals that its transitions
    serve; at an unseen one, those of all subgoals by their size, a new one included; each averaged
    over draws and chains.

    Parameters
    ----------
    dynamics : TabularDynamics
    discount : float
        The expert's discount factor.
    concentration : float
        Of the Chinese restaurant process: how readily there are new subgoals.
    confidence : float
        α: how nearly optimal the expert is. Values are scaled to a maximum of 1 first.
    draws, tune, chains : int
        Sweeps kept and dropped, per chain.
    tolerance : float
        Values of the subgoals' plans are exact to this share of their maximum.
    random_state : int, Generator or None
    progress : bool

    Attributes
    ----------
    policy_ : ndarray of shape (S, A)
    goals_ : ndarray of shape (G,)
        The states that may be subgoals.
    goal_probabilities_ : ndarray of shape (G,)
        Posterior probability that a transition serves each.
    n_subgoals_ : ndarray of shape (chains, draws)
    log_likelihood_ : ndarray of shape (chains, draws)
    convergence_ : Convergence
        Its residual is the split R-hat of the log-likelihood, which should be below 1.1.
    """

    def __init__(
        self,
        dynamics: Any,
        discount: float = 0.9,
        *,
        concentration: float = 1.0,
        confidence: float = 100.0,
        draws: int = 500,
        tune: int = 1000,
        chains: int = 2,
        tolerance: float = 1e-3,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.discount = discount
        self.concentration = concentration
        self.confidence = confidence
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.tolerance = tolerance
        self.random_state = random_state
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Sample the posterior over partitions into subgoals."""
        concentration = positive_number("concentration", self.concentration)
        confidence = positive_number("confidence", self.confidence)
        tolerance = positive_number("tolerance", self.tolerance)
        draws = positive_integer("draws", self.draws, minimum=4)
        tune = positive_integer("tune", self.tune, minimum=0)
        chains = positive_integer("chains", self.chains)
        demos, move = self._start(demos)
        states, _ = demos.transitions()
        self.goals_ = np.unique(demos.states)
        total = chains * (draws + tune)
        with make_progress(self.progress, total, "subgoals", "sweeps") as bar:
            bar.update(0, "planning")
            q = _goal_values(move, self.goals_, self.discount, tolerance)
            policies = soft_policy(confidence * q)
            by_action = explained_log_likelihood(self.dynamics, demos)
            loglik = np.empty((len(states), len(self.goals_)))
            for g in range(len(self.goals_)):
                loglik[:, g] = log_mix(by_action, policies[g, states])
            tally = _Tally(policies, states, concentration)
            self.n_subgoals_ = np.empty((chains, draws), dtype=np.int64)
            self.log_likelihood_ = np.empty((chains, draws))
            rng = np.random.default_rng(self.random_state)
            for c, stream in enumerate(rng.spawn(chains)):
                chain = _Chain.start(loglik, concentration)
                for sweep in range(tune + draws):
                    chain.sweep(stream)
                    bar.update(c * (draws + tune) + sweep + 1, f"{chain.n_used} subgoals")
                    if sweep >= tune:
                        self.n_subgoals_[c, sweep - tune] = chain.n_used
                        self.log_likelihood_[c, sweep - tune] = chain.log_likelihood()
                        tally.add(chain)
        self.policy_, self.goal_probabilities_ = tally.result()
        rhat = _split_rhat(self.log_likelihood_)
        self._report(
            rhat < 1.1,
            tune + draws,
            rhat,
            f"R-hat of the log-likelihood {rhat:.3f}, wanted below 1.1",
            "raise tune and draws",
        )
        return self


@dataclass
class _Chain:
    """All that a chain remembers: who serves which subgoal, and where the subgoals are."""

    loglik: Array
    log_marginal: Array
    concentration: float
    labels: Array
    goals: Array
    sizes: Array
    n_used: int

    @classmethod
    def start(cls, loglik: Array, concentration: float) -> Self:
        """Nobody is seated: the first sweep seats one after the other."""
        n, n_goals = loglik.shape
        return cls(
            loglik=loglik,
            log_marginal=logsumexp(loglik, axis=1) - np.log(n_goals),
            concentration=concentration,
            labels=np.full(n, -1),
            goals=np.zeros(n + 1, dtype=np.int64),
            sizes=np.zeros(n + 1, dtype=np.int64),
            n_used=0,
        )

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every label, then every goal."""
        from onlooker.baselines._bnirl_kernels import sweep_goals, sweep_labels

        self.n_used = sweep_labels(
            self.loglik,
            self.log_marginal,
            self.concentration,
            self.labels,
            self.goals,
            self.sizes,
            self.n_used,
            rng,
        )
        sweep_goals(self.loglik, self.labels, self.goals, self.n_used, rng)

    def log_likelihood(self) -> float:
        """``ln p(data | z, g)``; the same however transitions of one goal are split up."""
        return float(self.loglik[np.arange(len(self.labels)), self.goals[self.labels]].sum())


class _Tally:
    """Averages the draws' policies."""

    def __init__(self, policies: Array, states: Array, concentration: float) -> None:
        self._policies, self._states, self._concentration = policies, states, concentration
        n_states = policies.shape[1]
        self._served = np.zeros(policies.shape[:2])
        self._size = np.zeros(len(policies))
        self._visits = np.bincount(states, minlength=n_states)
        self._n_draws = 0

    def add(self, chain: _Chain) -> None:
        """Count which goal each transition serves."""
        goal = chain.goals[chain.labels]
        np.add.at(self._served, (goal, self._states), 1.0)
        self._size += np.bincount(goal, minlength=len(self._size))
        self._n_draws += 1

    def result(self) -> tuple[Array, Array]:
        """The policy, and the share of transitions that serve each goal."""
        n_goals = len(self._size)
        share = self._size / self._size.sum()
        n, eta = len(self._states), self._concentration
        anywhere = (n * share + eta / n_goals) / (n + eta)
        seen = self._visits > 0
        weight = np.where(
            seen,
            self._served / np.where(seen, self._visits * self._n_draws, 1),
            anywhere[:, None],
        )
        return np.einsum("gs,gsa->sa", weight, self._policies), share


def _goal_values(move: Transitions, goals: Array, discount: float, tolerance: float) -> Array:
    """``Q*_g(s, a)`` of a reward of 1 at each goal, scaled to a maximum of 1; (G, S, A)."""
    gamma = check_discount(discount)
    n_states, n_actions = move.n_states, move.n_actions
    result = np.empty((len(goals), n_states, n_actions))
    for first in range(0, len(goals), _GOALS_AT_ONCE):
        block = goals[first : first + _GOALS_AT_ONCE]
        columns = np.arange(len(block))
        reward = np.zeros((n_states, len(block)))
        reward[block, columns] = 1.0
        values = reward.copy()
        while True:
            q = reward + gamma * move.expect_many(values)
            new = q.max(axis=0)
            step = new - values
            # Halfway between MacQueen's bounds, as in value iteration, for each goal.
            low, high = step.min(axis=0), step.max(axis=0)
            values = new
            spread = 0.5 * gamma / (1 - gamma) * (high - low)
            if np.all(spread <= tolerance * new.max(axis=0)):
                break
        # A constant shift of the values moves all of a state's actions alike, so it is left out.
        top = (values + 0.5 * gamma / (1 - gamma) * (low + high)).max(axis=0)
        result[first : first + len(block)] = np.moveaxis(q / top, 2, 0).transpose(0, 2, 1)
    return result


def _split_rhat(draws: Array) -> float:
    """Split R-hat of (chains, draws)."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = float(parts.var(axis=1, ddof=1).mean())
    if within == 0.0:
        return 1.0 if np.ptp(parts) == 0 else float("inf")
    between = float(parts.mean(axis=1).var(ddof=1))
    return float(np.sqrt((half - 1) / half + between / within))
