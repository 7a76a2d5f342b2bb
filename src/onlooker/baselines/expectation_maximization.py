"""Policy recognition via expectation maximisation: deterministic controllers, coupled labels.

Šošić, Zoubir, Koeppl, "Policy recognition via expectation maximization", ICASSP 2016. The
derivation is in ``docs/theory/expectation_maximization.md``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from onlooker.baselines.base import Baseline, as_demonstrations
from onlooker.checks import Array, positive_integer, positive_number, require_memory
from onlooker.demonstrations import as_states
from onlooker.dynamics.tabular import TabularDynamics
from onlooker.partitions.decay import GaussianDecay
from onlooker.partitions.geometry import Geometry, symmetrised
from onlooker.problem.problem import Problem
from onlooker.progress import make_progress
from onlooker.repertoire import Actions

# An action that cannot explain a state's transitions is out, but sums of logs must stay numbers.
_IMPOSSIBLE = -1e10


class ExpectationMaximization(Baseline):
    r"""Each state follows one of K deterministic controllers; near states tend to share it.

    Model: controller :math:`k` always takes action :math:`\theta_k`; the labels follow a Potts
    model, :math:`p(z) \propto \exp(\beta\sum_{i<j} w_{ij}\,\delta(z_i, z_j))`. The E-step is a
    mean-field approximation :math:`q(z) = \prod_i q_i(z_i)` with

    .. math:: q_i(k) \propto \exp\Big(\ell_i(\theta_k) + \beta\sum_j w_{ij}\,q_j(k)\Big),\qquad
              \ell_i(a) = \sum_{t:\,s_t = i}\log T(s_{t+1}|s_t, a),

    the M-step :math:`\theta_k = \arg\max_a \sum_i q_i(k)\,\ell_i(a)`. Both raise the same lower
    bound of the log-likelihood, so the fit converges.

    Parameters
    ----------
    dynamics : Dynamics
    n_controllers : int
        K. Controllers start with different actions as far as there are any.
    beta : float
        Strength of the coupling.
    coordinates : array_like of shape (S, d), optional
        Positions of integer states; without them these lie on a line.
    decay : Decay, optional
        From distance to the weights ``w``; by default ``GaussianDecay(1.0)``.
    n_neighbors : int or None
        Only the nearest so many states are coupled, symmetrised; None couples all.
    n_starts : int
        Restarts from other actions; the best bound wins. With K of the number of actions or more,
        all starts are alike.
    tolerance : float
        Stops when no label probability moves by more.
    max_iter : int
    random_state : int, Generator or None
    progress : bool

    Attributes
    ----------
    controllers_ : ndarray of shape (K,)
        The action of each controller.
    labels_ : ndarray of shape (N,)
        The most probable controller of each node.
    label_probabilities_ : ndarray of shape (N, K)
    bound_ : float
        The lower bound, up to the Potts model's constant.
    convergence_ : Convergence
    """

    def __init__(
        self,
        dynamics: Any,
        n_controllers: int = 8,
        beta: float = 1.6,
        *,
        coordinates: Any = None,
        decay: Any = None,
        n_neighbors: int | None = 8,
        n_starts: int = 1,
        tolerance: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.n_controllers = n_controllers
        self.beta = beta
        self.coordinates = coordinates
        self.decay = decay
        self.n_neighbors = n_neighbors
        self.n_starts = n_starts
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.random_state = random_state
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Learn controllers and labels."""
        k = positive_integer("n_controllers", self.n_controllers)
        beta = positive_number("beta", self.beta, zero_ok=True)
        tolerance = positive_number("tolerance", self.tolerance)
        max_iter = positive_integer("max_iter", self.max_iter)
        n_starts = positive_integer("n_starts", self.n_starts)
        # A finite world is labelled everywhere; of the plane, what was seen.
        nodes = "all" if isinstance(self.dynamics, TabularDynamics) else "visited"
        problem = Problem.from_demonstrations(
            as_demonstrations(demos), self.dynamics, nodes, repertoire=[Actions()]
        )
        n_bytes = 24 * k * (problem.n_nodes + problem.n_actions)
        require_memory(n_bytes, f"n_controllers={k:,}", "choose fewer controllers")
        self._decay = GaussianDecay(1.0) if self.decay is None else self.decay
        self._geometry = Geometry(problem.states, self.coordinates)
        loglik = np.zeros((problem.n_nodes, problem.n_actions))
        np.add.at(loglik, problem.node_of, np.maximum(problem.loglik, _IMPOSSIBLE))
        field = _MeanField(loglik, self._coupling(), beta)
        rng = np.random.default_rng(self.random_state)
        best: tuple[float, Array, Array, int, float] | None = None
        with make_progress(self.progress, n_starts, "expectation maximisation", "starts") as bar:
            for start in range(n_starts):
                theta = _first_actions(k, problem.n_actions, rng)
                run = field.run(theta, tolerance, max_iter, rng)
                if best is None or run[0] > best[0]:
                    best = run
                bar.update(start + 1, f"bound {best[0]:.3f}")
        assert best is not None
        self.bound_, self.controllers_, self.label_probabilities_, n_iter, residual = best
        self.labels_ = self.label_probabilities_.argmax(axis=1)
        self._report(
            residual <= tolerance,
            n_iter,
            residual,
            f"last change of a label probability {residual:.2g}, tolerance {tolerance:g}",
            "raise max_iter",
        )
        return self

    def predict_proba(self, states: Any) -> Array:
        """All mass on the action of the state's most probable controller, shape (n, A).

        A state that is no node takes the controller to which its neighbours draw it.
        """
        check_is_fitted(self, "labels_")
        states = as_states(states)
        if isinstance(self.dynamics, TabularDynamics):
            if states.ndim != 1 or (len(states) and states.max() >= len(self.labels_)):
                raise ValueError(f"states must be integers below {len(self.labels_)}")
            label = self.labels_[states]
        else:
            label = (self._pull(states) @ self.label_probabilities_).argmax(axis=1)
        return np.asarray(np.eye(self.dynamics.n_actions)[self.controllers_[label]])

    def _coupling(self) -> sparse.csr_array:
        graph = self._geometry.similarity(self._decay, self.n_neighbors)
        if self.n_neighbors is not None:
            graph = symmetrised(graph)
        n = graph.n_nodes
        if graph.offset:
            return sparse.csr_array(graph.toarray())
        return sparse.csr_array((graph.weights, graph.indices, graph.indptr), shape=(n, n))

    def _pull(self, states: Array) -> Array:
        """Weights of the nodes for each query; a node itself outweighs the others."""
        distance = self._geometry.distances(states)
        nearest = distance.min(axis=1, keepdims=True)
        weight = self._decay(distance)
        if self.n_neighbors is not None:
            k = min(self.n_neighbors, distance.shape[1])
            reach = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
            weight = np.where(distance <= reach, weight, 0.0)
        # Far from all nodes every weight underflows: then the nearest decides.
        alone = (nearest == 0) | (weight.sum(axis=1, keepdims=True) == 0)
        return np.where(alone, distance == nearest, weight)


class _MeanField:
    """The two steps, on log-likelihoods (N, A) and a symmetric coupling (N, N)."""

    def __init__(self, loglik: Array, coupling: sparse.csr_array, beta: float) -> None:
        self.loglik, self.coupling, self.beta = loglik, coupling, beta
        # Nodes of one colour do not touch, so that updating them together is as good as in turn.
        self.colours = [
            (nodes, coupling[nodes]) for nodes in _colour_classes(coupling.indptr, coupling.indices)
        ]

    def run(
        self, theta: Array, tolerance: float, max_iter: int, rng: np.random.Generator
    ) -> tuple[float, Array, Array, int, float]:
        """Bound, actions, label probabilities, iterations and last change."""
        n, k = len(self.loglik), len(theta)
        q = np.full((n, k), 1 / k)
        if len(np.unique(theta)) < k:
            # Controllers with one action would stay twins for ever.
            q = rng.dirichlet(np.ones(k), size=n)
        change = np.inf
        n_iter = 0
        while n_iter < max_iter and change > tolerance:
            before = q.copy()
            self.expect(q, theta)
            after = self.maximise(q, theta)
            change = float(np.abs(q - before).max()) if np.array_equal(after, theta) else np.inf
            theta = after
            n_iter += 1
        return self.bound(q, theta), theta, q, n_iter, change

    def expect(self, q: Array, theta: Array) -> None:
        """One pass of mean-field updates, in place."""
        for nodes, coupling in self.colours:
            energy = self.loglik[np.ix_(nodes, theta)] + self.beta * (coupling @ q)
            energy -= energy.max(axis=1, keepdims=True)
            np.exp(energy, out=energy)
            q[nodes] = energy / energy.sum(axis=1, keepdims=True)

    def maximise(self, q: Array, theta: Array) -> Array:
        """The best action of each controller; the present one where none is better."""
        value = q.T @ self.loglik
        present = value[np.arange(len(theta)), theta]
        better = value.max(axis=1) > present + 1e-12 * np.abs(present)
        return np.where(better, value.argmax(axis=1), theta)

    def bound(self, q: Array, theta: Array) -> float:
        """``E_q[log p(data, z)] + H(q)`` without the Potts model's constant."""
        entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum()
        coupling = 0.5 * self.beta * (q * (self.coupling @ q)).sum()
        return float((q * self.loglik[:, theta]).sum() + coupling + entropy)


def _first_actions(k: int, n_actions: int, rng: np.random.Generator) -> Array:
    rounds = [rng.permutation(n_actions) for _ in range(-(-k // n_actions))]
    return np.concatenate(rounds)[:k]


def _colour_classes(indptr: Array, indices: Array) -> list[Array]:
    """Greedy colouring of the coupling's graph."""
    n = len(indptr) - 1
    colour = np.full(n, -1)
    for i in range(n):
        taken = set(colour[indices[indptr[i] : indptr[i + 1]]].tolist())
        c = 0
        while c in taken:
            c += 1
        colour[i] = c
    return [np.flatnonzero(colour == c) for c in range(int(colour.max()) + 1)]
