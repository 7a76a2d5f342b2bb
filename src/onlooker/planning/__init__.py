"""Planning in tabular worlds: (soft) value and policy iteration, state visitation.

Transitions ``T`` are a dense ``(S, A, S)`` array, a list of one ``(S, S)`` scipy.sparse matrix an
action, or a `TabularDynamics`. Rewards are ``r(s)``, shape ``(S,)``, or ``r(s, a)``, shape
``(S, A)``, collected when leaving ``s``::

    Q(s, a) = r(s, a) + γ Σ_s' T(s'|s, a) V(s').

A temperature τ > 0 replaces ``max_a`` by ``τ log Σ_a exp(·/τ)``, computed in log space.
"""

from onlooker.planning.goals import goal_actions
from onlooker.planning.iteration import (
    Solution,
    greedy_policy,
    policy_iteration,
    soft_policy,
    soft_value_iteration,
    state_visitation,
    value_iteration,
)

__all__ = [
    "Solution",
    "goal_actions",
    "greedy_policy",
    "policy_iteration",
    "soft_policy",
    "soft_value_iteration",
    "state_visitation",
    "value_iteration",
]
