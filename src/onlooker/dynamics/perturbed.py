"""A model that is wrong on purpose, to see how much that matters."""

from __future__ import annotations

import numpy as np

from onlooker.checks import positive_number
from onlooker.dynamics.tabular import TabularDynamics


class PerturbedDynamics(TabularDynamics):
    """A transition table with multiplicative errors, as in the paper's Example 2 (c).

    Every probability is multiplied by ``tan(π/4 · (u + 1))`` with ``u ~ U(-eta, eta)``, and the
    rows are normalised again. ``eta = 0`` leaves the table as it is.

    Parameters
    ----------
    dynamics
        The table to perturb.
    eta
        Strength of the perturbation, from 0 up to (but not including) 1.
    random_state
        Seed or generator of the errors.
    """

    def __init__(
        self,
        dynamics: TabularDynamics,
        eta: float,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(dynamics, TabularDynamics):
            raise TypeError(
                f"dynamics must be TabularDynamics, got {type(dynamics).__name__}: "
                "the perturbation acts on a table of probabilities"
            )
        eta = positive_number("eta", eta, zero_ok=True)
        if eta >= 1:
            raise ValueError(f"eta must be below 1, got {eta}: the error has no bound there")
        rng = np.random.default_rng(random_state)
        if dynamics.is_sparse:
            matrices = [matrix.copy() for matrix in dynamics.matrices]
            for matrix in matrices:
                matrix.data *= _errors(eta, matrix.data.shape, rng)
                matrix.data /= np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))
            super().__init__(matrices, dynamics.action_order, dynamics.action_names)
        else:
            table = dynamics.toarray() * _errors(eta, dynamics.toarray().shape, rng)
            table = table / table.sum(axis=2, keepdims=True)
            super().__init__(table, dynamics.action_order, dynamics.action_names)
        self.eta = eta


def _errors(
    eta: float, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.tan(np.pi / 4 * (rng.uniform(-eta, eta, size=shape) + 1))
