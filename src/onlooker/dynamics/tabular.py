"""Transition tables over finitely many states, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse

from onlooker.checks import Array, as_array, finite_array, one_of, read_only, require_texts
from onlooker.dynamics.actions import Ring
from onlooker.dynamics.base import check_actions

_ROW_SUM_TOLERANCE = 1e-6
_CSR = ("data", "indices", "indptr")


class TabularDynamics:
    """Transition probabilities of a finite state space.

    Parameters
    ----------
    transitions
        ``T[s, a, s']`` as a dense ``(S, A, S)`` array, or a sequence of ``A`` sparse ``(S, S)``
        matrices, one per action. Every row must sum to 1; rounding below 1e-6 is taken out.
    action_order
        Which actions are neighbours: ``"circle"``, each of the one before and after, and the last
        of the first; ``"line"``, the same without an end meeting the other; None: none.
    action_names
        A name for each action.

    Examples
    --------
    >>> stay, swap = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> dynamics = TabularDynamics(np.stack([stay, swap], axis=1))
    >>> np.exp(dynamics.log_likelihood([0, 1], [0, 0]))
    array([[1., 0.],
           [0., 1.]])
    """

    action_order: Literal["circle", "line"] | None = None
    action_names: list[str] | None = None

    def __init__(
        self,
        transitions: Any,
        action_order: Literal["circle", "line"] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        self._dense: Array | None = None
        if _is_sparse_sequence(transitions):
            n_states = transitions[0].shape[0]
            for a, matrix in enumerate(transitions):
                if matrix.shape != (n_states, n_states) or n_states == 0:
                    raise ValueError(
                        f"transitions[{a}] has shape {matrix.shape}; "
                        "all must be square matrices of one size (S, S)"
                    )
            self._sparse = [_check_sparse(a, matrix) for a, matrix in enumerate(transitions)]
        else:
            self._dense = read_only(_check_dense(transitions))
        self.action_order = one_of("action_order", action_order, ("circle", "line", None))
        if action_names is not None:
            self.action_names = list(action_names)
            require_texts("action_names", self.action_names)
            if len(self.action_names) != self.n_actions:
                raise ValueError(
                    f"action_names has {len(self.action_names)} names; there are {self.n_actions} "
                    "actions"
                )

    def action_rings(self) -> list[Ring]:
        """Which actions are neighbours."""
        if self.action_order is None:
            return []
        return [Ring(np.arange(self.n_actions), closed=self.action_order == "circle")]

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return int(self._sparse[0].shape[0] if self._dense is None else self._dense.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return int(len(self._sparse) if self._dense is None else self._dense.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the table was given as sparse matrices."""
        return self._dense is None

    @cached_property
    def matrices(self) -> list[scipy.sparse.csr_array]:
        """One sparse ``(S, S)`` matrix per action."""
        if self._dense is None:
            return self._sparse
        return [scipy.sparse.csr_array(self._dense[:, a]) for a in range(self.n_actions)]

    def toarray(self) -> Array:
        """The dense ``(S, A, S)`` array; think of the memory first."""
        if self._dense is not None:
            return self._dense
        return np.stack([matrix.toarray() for matrix in self._sparse], axis=1)

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        name = type(self).__name__
        return f"{name}({self.n_states} states, {self.n_actions} actions, {kind})"

    def check_states(self, name: str, states: Any) -> Array:
        """Return `states` as ``(n,)`` integers that the table has."""
        array = as_array(name, states)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise TypeError(
                f"{name} must be (n,) integers, got dtype {array.dtype} and shape {array.shape}; "
                "tabular dynamics need integer states"
            )
        bad = (array < 0) | (array >= self.n_states)
        if bad.any():
            where = int(np.argmax(bad))
            raise ValueError(
                f"{name} holds {array[where]} at index {where}; "
                f"the dynamics have states 0 to {self.n_states - 1}"
            )
        return array

    def log_likelihood(self, states: Any, next_states: Any) -> Array:
        """Return ``ln T[s, j, s']`` as ``(n, A)``; ``-inf`` where action j cannot do it."""
        states = self.check_states("states", states)
        next_states = self.check_states("next_states", next_states)
        if len(states) != len(next_states):
            raise ValueError(f"{len(states)} states but {len(next_states)} next_states")
        if self._dense is not None:
            likelihood = self._dense[states, :, next_states]
        else:
            likelihood = np.empty((len(states), self.n_actions))
            for a, matrix in enumerate(self._sparse):
                likelihood[:, a] = _entries(matrix, states, next_states)
        with np.errstate(divide="ignore"):
            return np.log(likelihood)

    def next_state_probabilities(self, states: Any, policy: Any) -> Array:
        """Return ``Σ_j T(s' | s, j) policy[n, j]`` as ``(n, S)``."""
        states = self.check_states("states", states)
        policy = finite_array("policy", policy, ndim=2)
        if policy.shape != (len(states), self.n_actions):
            raise ValueError(
                f"policy must be (n, A) = {(len(states), self.n_actions)}, got {policy.shape}"
            )
        if self._dense is not None:
            mixed: Array = np.einsum("nas,na->ns", self._dense[states], policy)
            return mixed
        result = np.zeros((len(states), self.n_states))
        for a, matrix in enumerate(self._sparse):
            result += policy[:, a, None] * matrix[states].toarray()
        return result

    @cached_property
    def _cumulative(self) -> list[Array]:
        """Running sums of each action's stored entries, row after row."""
        return [np.concatenate([[0.0], np.cumsum(matrix.data)]) for matrix in self.matrices]

    def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array:
        """Draw the next states by inversion."""
        states = self.check_states("states", states)
        actions = check_actions(actions, self.n_actions, len(states))
        uniforms = rng.random(len(states))
        result = np.empty(len(states), dtype=np.int64)
        for a in np.unique(actions):
            chosen = np.flatnonzero(actions == a)
            matrix, cumulative = self.matrices[a], self._cumulative[a]
            first, last = matrix.indptr[states[chosen]], matrix.indptr[states[chosen] + 1]
            low, high = cumulative[first], cumulative[last]
            entry = np.searchsorted(cumulative, low + uniforms[chosen] * (high - low), side="right")
            # rounding must not carry the draw over the end of its row
            result[chosen] = matrix.indices[np.clip(entry - 1, first, last - 1)]
        return result

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
        """JSON and arrays that `from_arrays` rebuilds the table from, whatever made it."""
        description: dict[str, Any] = {"class": "TabularDynamics", "sparse": self.is_sparse}
        about = {"action_order": self.action_order, "action_names": self.action_names}
        description |= {key: value for key, value in about.items() if value is not None}
        if not self.is_sparse:
            return description, {f"{name}.table": self.toarray()}
        arrays = {
            f"{name}.{action}.{part}": getattr(matrix, part)
            for action, matrix in enumerate(self.matrices)
            for part in _CSR
        }
        return description | {"n_states": self.n_states, "n_actions": self.n_actions}, arrays

    @classmethod
    def from_arrays(
        cls, description: dict[str, Any], arrays: dict[str, Array], name: str
    ) -> TabularDynamics:
        """Undo `to_arrays`."""
        about = [description.get(key) for key in ("action_order", "action_names")]
        if not description["sparse"]:
            return cls(arrays[f"{name}.table"], *about)
        shape = (description["n_states"], description["n_states"])
        matrices = []
        for action in range(description["n_actions"]):
            parts = tuple(arrays[f"{name}.{action}.{part}"] for part in _CSR)
            matrix = scipy.sparse.csr_array(parts, shape=shape)
            matrix.check_format(full_check=True)  # else SciPy trusts the indices
            matrices.append(matrix)
        return cls(matrices, *about)


def _is_sparse_sequence(transitions: Any) -> bool:
    if scipy.sparse.issparse(transitions):
        raise TypeError("transitions must be one sparse matrix per action, in a list; got one")
    if not isinstance(transitions, Sequence) or len(transitions) == 0:
        return False
    sparse = [scipy.sparse.issparse(matrix) for matrix in transitions]
    if any(sparse) and not all(sparse):
        raise TypeError(
            f"transitions[{sparse.index(False)}] is not sparse, others are; "
            "give one sparse matrix per action, or one dense (S, A, S) array"
        )
    return all(sparse)


def _refuse_bad_probability(value: float, where: str) -> None:
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{where} is {value}; probabilities are finite and not negative")


def _check_dense(transitions: Any) -> Array:
    table = as_array("transitions", transitions)
    if table.dtype.kind not in "biuf":
        raise TypeError(
            "transitions must be a dense (S, A, S) array of numbers or a list of sparse "
            f"matrices, got dtype {table.dtype}"
        )
    table = np.array(table, dtype=np.float64)  # a copy: the caller's may change
    if table.ndim != 3 or table.shape[0] != table.shape[2] or 0 in table.shape:
        raise ValueError(f"transitions must be (S, A, S), indexed [s, a, s'], got {table.shape}")
    good = np.isfinite(table) & (table >= 0)
    if not good.all():
        s, a, target = (int(i) for i in np.argwhere(~good)[0])
        _refuse_bad_probability(table[s, a, target], f"transitions[{s}, {a}, {target}]")
    sums = table.sum(axis=2)
    bad = np.abs(sums - 1) > _ROW_SUM_TOLERANCE
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"transitions[{s}, {a}] sums to {sums[s, a]:.6g}; every row must sum to 1: normalise it"
        )
    table /= sums[:, :, None]
    return table


def _check_sparse(action: int, matrix: Any) -> scipy.sparse.csr_array:
    name = f"transitions[{action}]"
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {matrix.dtype}")
    matrix = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    good = np.isfinite(matrix.data) & (matrix.data >= 0)
    if not good.all():
        at = int(np.argmin(good))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        _refuse_bad_probability(matrix.data[at], f"{name}[{row}, {int(matrix.indices[at])}]")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    bad = np.abs(sums - 1) > _ROW_SUM_TOLERANCE
    if bad.any():
        s = int(np.argmax(bad))
        raise ValueError(
            f"row {s} of {name} sums to {sums[s]:.6g}; every row must sum to 1: normalise it"
        )
    matrix.data /= np.repeat(sums, np.diff(matrix.indptr))
    return matrix


def _entries(matrix: scipy.sparse.csr_array, rows: Array, columns: Array) -> Array:
    if len(rows) == 0:
        return np.empty(0)
    picked = matrix[rows, columns]
    return np.asarray(picked.toarray() if scipy.sparse.issparse(picked) else picked).ravel()
