"""One interface for what the planners take as transitions: dense, sparse, or tabular dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from onlooker.dynamics.tabular import TabularDynamics
from onlooker.planning.bellman import Floats

ROW_TOLERANCE = 1e-6
_NEGLIGIBLE = 1e-6  # against the likeliest next state
_DENSE_GAIN = 10  # an entry of a product of dense matrices is so many times faster


class Transitions:
    """What the planners ask of transitions, whatever holds them."""

    def __init__(self, stacked: Any, by_state: Floats | None = None) -> None:
        self.n_states = stacked.shape[1]
        self.n_actions = stacked.shape[0] // self.n_states
        _check_rows(stacked, self.n_states)
        self._stacked = stacked  # (A·S, S), so that one product serves all actions
        self._stacked_t = stacked.T.tocsr() if by_state is None else stacked.T
        self._by_state = by_state  # (S, A, S) if dense

    @property
    def work(self) -> float:
        """Cost of one product with the table, in entries of sparse matrices."""
        by_state = self._by_state
        return float(self._stacked.nnz) if by_state is None else by_state.size / _DENSE_GAIN

    def without_tails(self) -> Transitions:
        """Without what is next to impossible, and sparse, unless much of a dense table is left.

        In a table of a normal density that is most of its entries.
        """
        stacked = self._stacked
        if self._by_state is not None:
            top = stacked.max(axis=1, keepdims=True)
            kept = stacked >= _NEGLIGIBLE * top
            if kept.mean() > 1 / _DENSE_GAIN:
                return self
            stacked = sparse.csr_array(np.where(kept, stacked, 0.0))
        else:
            stacked = stacked.copy()
            top = stacked.max(axis=1).toarray().ravel()
            few = stacked.data < _NEGLIGIBLE * np.repeat(top, np.diff(stacked.indptr))
            stacked.data[few] = 0.0
            stacked.eliminate_zeros()
        stacked.data /= np.repeat(stacked.sum(axis=1), np.diff(stacked.indptr))
        return Transitions(stacked)

    def expect(self, values: Floats) -> Floats:
        """``E[V(s') | s, a]``, shape (S, A)."""
        return np.asarray((self._stacked @ values).reshape(self.n_actions, self.n_states).T)

    def expect_many(self, values: Floats) -> Floats:
        """``E[V(s') | s, a]`` of many value functions (S, G) at once, shape (A, S, G)."""
        return np.asarray((self._stacked @ values).reshape(self.n_actions, self.n_states, -1))

    def push(self, mass: Floats) -> Floats:
        """Where mass (S, A) on states and actions goes, shape (S,)."""
        return np.asarray(self._stacked_t @ mass.T.ravel())

    def under(self, policy: Floats) -> Any:
        """``P(s' | s)`` under a policy (S, A), shape (S, S)."""
        if self._by_state is not None:
            return np.asarray(np.matmul(policy[:, None, :], self._by_state)[:, 0, :])
        n = self.n_states
        # Block a of the chooser weighs the rows of action a; absent actions cost nothing.
        chooser = sparse.csr_array(
            (policy.T.ravel(), (np.tile(np.arange(n), self.n_actions), np.arange(policy.size))),
            shape=(n, policy.size),
        )
        chooser.eliminate_zeros()
        return chooser @ self._stacked


def as_transitions(T: Any) -> Transitions:
    """Take dense arrays, lists of sparse matrices and tabular dynamics alike."""
    if isinstance(T, Transitions):
        return T
    if isinstance(T, TabularDynamics):
        T = T.matrices if T.is_sparse else T.toarray()
    if isinstance(T, list | tuple) and T and all(sparse.issparse(m) for m in T):
        expected = (T[0].shape[0], T[0].shape[0])
        for a, matrix in enumerate(T):
            if matrix.shape != expected:
                raise ValueError(f"T[{a}] has shape {matrix.shape}, expected {expected}")
        return Transitions(sparse.csr_array(sparse.vstack(T, format="csr")))
    dense = np.asarray(T, dtype=float)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise ValueError(
            f"T must have shape (S, A, S) or be a list of sparse (S, S) matrices, got {dense.shape}"
        )
    by_action = np.ascontiguousarray(dense.transpose(1, 0, 2))
    return Transitions(by_action.reshape(-1, len(dense)), dense)


def _check_rows(stacked: Any, n_states: int) -> None:
    total, lowest = stacked.sum(axis=1), stacked.min(axis=1)
    if sparse.issparse(lowest):
        lowest = lowest.toarray().ravel()
    bad = np.flatnonzero(~((np.abs(total - 1.0) <= ROW_TOLERANCE) & (lowest >= 0)))
    if bad.size:
        a, s = divmod(int(bad[0]), n_states)
        raise ValueError(
            f"T: the row of state {s} and action {a} sums to {total[bad[0]]:.6g} with smallest "
            f"entry {lowest[bad[0]]:.6g}; every row must be a distribution"
        )
