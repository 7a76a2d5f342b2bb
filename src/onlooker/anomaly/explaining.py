"""What deviating trajectories do instead: the behaviour that explains each of them best."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.anomaly.result import AnomalyScores
from onlooker.checks import Array
from onlooker.repertoire.making import make_policies
from onlooker.warnings import RepertoireWarning

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.repertoire.base import Policies

LEVEL = 0.05
"""What is above does not deviate."""
_ODD = 0.05  # share of steps that may be anything, so that one of them rules no behaviour out


def explained(
    scores: AnomalyScores, demos: Demonstrations, dynamics: Any, policies: Policies | None = None
) -> AnomalyScores:
    """The scores with `behaviour` and `gain` where `p_combined` says that a trajectory deviates.

    Candidates are `policies`; by default all that the dynamics can offer, with the ends of these
    very trajectories among the goals. Where behaviour changed, the stretch counts, else all.
    """
    table = scores.trajectories
    level = max(LEVEL, 1 / (1 + scores.settings["n_reference"]))
    odd = np.flatnonzero(table.p_combined <= level)
    if not len(odd):
        return scores
    if policies is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepertoireWarning)
            policies = make_policies("auto", dynamics, demos[odd])
    states, next_states = demos.transitions()
    behaviour, gain = [""] * len(scores), np.full(len(scores), np.nan)
    for k in odd:
        mine = scores.steps.trajectory == k
        if table.p_change[k] <= level and table.onset[k] >= 0:
            step = scores.steps.step
            mine &= (step >= table.onset[k]) & (step <= table.end[k])
        loglik = np.asarray(dynamics.log_likelihood(states[mine], next_states[mine]))
        gains = _gains(policies, states[mine], loglik, scores.steps.surprise[mine])
        best = int(gains.argmax())
        if gains[best] > np.log(policies.n_behaviours):  # the best of so many gains that by chance
            behaviour[k], gain[k] = policies.names[best], gains[best]
    return replace(scores, trajectories=replace(table, behaviour=np.array(behaviour), gain=gain))


def _gains(policies: Policies, states: Array, loglik: Array, surprise: Array) -> Array:
    """``(B,)``: how much likelier the steps are under each behaviour than nominally, in nats."""
    possible = np.isfinite(loglik.max(axis=1))
    states, loglik, surprise = states[possible], loglik[possible], surprise[possible]
    top = loglik.max(axis=1, keepdims=True)
    anything = np.log(_ODD * np.exp(loglik - top).mean(axis=1)) + top[:, 0]
    doing = np.log1p(-_ODD) + policies.log_likelihood(states, loglik)
    nominal = np.logaddexp(np.log1p(-_ODD) - surprise, anything)
    return np.asarray((np.logaddexp(doing, anything[:, None]) - nominal[:, None]).sum(axis=0))
