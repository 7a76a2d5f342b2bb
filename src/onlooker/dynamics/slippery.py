"""A finite world where actions succeed with a probability that may be unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array, read_only
from onlooker.dynamics.base import TransitionLikelihood, Values
from onlooker.dynamics.tabular import TabularDynamics
from onlooker.files import decode, encode
from onlooker.hyper import PRIORS, Beta, Prior, check_hyper

MOSTLY = Beta(8.0, 2.0)
"""Actions mostly succeed."""


class SlipperyDynamics(TabularDynamics):
    """``T = p · T_intended + (1 - p) · T_slip``: an action succeeds with probability p.

    Parameters
    ----------
    intended
        What actions do when they succeed: `TabularDynamics`, or whatever makes one.
    slip
        What they do when they fail, likewise; None: what another action, each as likely, intends.
    success
        p: a number fixes it, a prior such as ``Beta(8, 2)`` infers it. Draws are then found in
        ``posterior.hyper["success"]``; the dynamics by itself is the one at the prior's mean.

    Examples
    --------
    >>> stay, swap = np.eye(2), 1 - np.eye(2)
    >>> dynamics = SlipperyDynamics(np.stack([stay, swap], axis=1), success=0.9)
    >>> np.exp(dynamics.log_likelihood([0], [0]))
    array([[0.9, 0.1]])
    """

    def __init__(self, intended: Any, slip: Any = None, success: float | Prior = MOSTLY) -> None:
        check_hyper("success", success, zero_ok=True)
        self.parameters: dict[str, Prior] = {}
        if isinstance(success, Prior):
            self.parameters["success"] = success
        self.success = success.mean if isinstance(success, Prior) else float(success)
        if not 0 <= self.success <= 1:
            raise ValueError(f"success is a probability, got {success!r}")
        self.intended = _as_tabular(intended)
        self.slip = _other_actions(self.intended) if slip is None else _as_tabular(slip)
        sizes = [(part.n_states, part.n_actions) for part in (self.intended, self.slip)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"intended has (states, actions) = {sizes[0]}, but slip has {sizes[1]}"
            )
        self._mix(self.success)
        self.action_order = self.intended.action_order
        self.action_names = self.intended.action_names

    def _mix(self, success: float) -> None:
        """Set the table; mixtures of checked rows need no check."""
        parts, shares = (self.intended, self.slip), (success, 1 - success)
        self._dense = None
        if any(part.is_sparse for part in parts):
            pairs = zip(*(part.matrices for part in parts), strict=True)
            self._sparse = [shares[0] * one + shares[1] * other for one, other in pairs]
        else:
            tables = [part.toarray() for part in parts]
            self._dense = read_only(shares[0] * tables[0] + shares[1] * tables[1])

    def at(self, values: Values) -> SlipperyDynamics:
        """The dynamics with a known probability of success."""
        return SlipperyDynamics(self.intended, self.slip, values.get("success", self.success))

    def transition_likelihood(self, states: Any, next_states: Any) -> TransitionLikelihood:
        """The likelihood of transitions as a function of the probability of success."""
        from onlooker.dynamics.unknown import MixtureLikelihood

        parts: list[Array] = [
            np.exp(part.log_likelihood(states, next_states)) for part in (self.intended, self.slip)
        ]
        return MixtureLikelihood(*parts)

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
        """JSON and arrays that `from_arrays` rebuilds the dynamics from."""
        intended, arrays = self.intended.to_arrays(f"{name}.intended")
        slip, others = self.slip.to_arrays(f"{name}.slip")
        arrays |= others
        success = self.parameters.get("success", self.success)
        return {
            "class": "SlipperyDynamics",
            "intended": intended,
            "slip": slip,
            "success": encode(success, f"{name}.success", arrays, PRIORS),
        }, arrays

    @classmethod
    def from_arrays(
        cls, description: dict[str, Any], arrays: dict[str, Array], name: str
    ) -> SlipperyDynamics:
        """Undo `to_arrays`."""
        from onlooker.dynamics.codec import decode_part

        intended = decode_part(description["intended"], arrays, f"{name}.intended")
        slip = decode_part(description["slip"], arrays, f"{name}.slip")
        return cls(intended, slip, decode(description["success"], arrays, PRIORS))


def _as_tabular(dynamics: Any) -> TabularDynamics:
    return dynamics if isinstance(dynamics, TabularDynamics) else TabularDynamics(dynamics)


def _other_actions(intended: TabularDynamics) -> TabularDynamics:
    """Any other action instead, each as likely."""
    n = intended.n_actions
    if n == 1:
        raise ValueError("slip must be given where there is one action only")
    if intended.is_sparse:
        total = sum(intended.matrices[1:], intended.matrices[0])
        return TabularDynamics([(total - matrix) / (n - 1) for matrix in intended.matrices])
    table = intended.toarray()
    return TabularDynamics(np.maximum(table.sum(axis=1, keepdims=True) - table, 0.0) / (n - 1))
