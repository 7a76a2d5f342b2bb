"""One face for the transitions that the planners meet: dense, sparse, or tabular dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from onlooker.dynamics.tabular import TabularDynamics

Floats = NDArray[np.float64]
_ROW_TOLERANCE = 1e-6


class _Transitions:
    """What the planners ask of transitions, whatever holds them."""

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        stacked: Any,
        under: Callable[[Floats], Any],
    ) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        # (A·S, S), so that one product serves all actions.
        self._stacked = stacked
        self._stacked_t = stacked.T.tocsr() if sparse.issparse(stacked) else stacked.T
        self.under = under

    def expect(self, values: Floats) -> Floats:
        """``E[V(s') | s, a]``, shape (S, A)."""
        return np.asarray((self._stacked @ values).reshape(self.n_actions, self.n_states).T)

    def expect_many(self, values: Floats) -> Floats:
        """``E[V(s') | s, a]`` of many value functions (S, G) at once, shape (A, S, G)."""
        return np.asarray((self._stacked @ values).reshape(self.n_actions, self.n_states, -1))

    def push(self, mass: Floats) -> Floats:
        """Where mass (S, A) on states and actions goes, shape (S,)."""
        return np.asarray(self._stacked_t @ mass.T.ravel())


def _transition_matrices(T: Any) -> _Transitions:
    """Adapt dense arrays, lists of sparse matrices and tabular dynamics to one face."""
    if isinstance(T, _Transitions):
        return T
    if isinstance(T, TabularDynamics):
        T = T.matrices if T.is_sparse else T.toarray()
    if isinstance(T, list | tuple) and T and all(sparse.issparse(m) for m in T):
        return _from_sparse([sparse.csr_array(m) for m in T])
    dense = np.asarray(T, dtype=float)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise ValueError(
            f"T must have shape (S, A, S) or be a list of sparse (S, S) matrices, got {dense.shape}"
        )
    by_action = np.ascontiguousarray(dense.transpose(1, 0, 2))
    n_actions, n_states, _ = by_action.shape
    stacked = by_action.reshape(-1, n_states)
    _check_rows(stacked.sum(axis=1), stacked.min(axis=1), n_states)

    def under(policy: Floats) -> Floats:
        return np.asarray(np.matmul(policy[:, None, :], dense)[:, 0, :])

    return _Transitions(n_states, n_actions, stacked, under)


def _from_sparse(matrices: list[Any]) -> _Transitions:
    n_states = matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (n_states, n_states):
            raise ValueError(f"T[{a}] has shape {matrix.shape}, expected {(n_states, n_states)}")
    stacked = sparse.csr_array(sparse.vstack(matrices, format="csr"))
    _check_rows(stacked.sum(axis=1), stacked.min(axis=1).toarray().ravel(), n_states)

    def under(policy: Floats) -> Any:
        n_actions = policy.shape[1]
        states = np.arange(n_states)
        # Block a of the chooser weighs the rows of action a; absent actions cost nothing.
        chooser = sparse.csr_array(
            (policy.T.ravel(), (np.tile(states, n_actions), np.arange(n_actions * n_states))),
            shape=(n_states, n_actions * n_states),
        )
        chooser.eliminate_zeros()
        return chooser @ stacked

    return _Transitions(n_states, len(matrices), stacked, under)


def _check_rows(total: Floats, lowest: Floats, n_states: int) -> None:
    bad = np.flatnonzero(~((np.abs(total - 1.0) <= _ROW_TOLERANCE) & (lowest >= 0)))
    if bad.size:
        a, s = divmod(int(bad[0]), n_states)
        raise ValueError(
            f"T: the row of state {s} and action {a} sums to {total[bad[0]]:.6g} with smallest "
            f"entry {lowest[bad[0]]:.6g}; every row must be a distribution"
        )
