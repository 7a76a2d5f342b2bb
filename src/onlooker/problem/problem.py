"""The one form that every model sees: nodes, transitions and their likelihoods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from onlooker.checks import Array, as_array, finite_array, read_only
from onlooker.demonstrations import Demonstrations, as_states, distinct_states
from onlooker.dynamics.base import Dynamics, unknown_parameters
from onlooker.gibbs.arrays import Base, BaseSums, Data, sum_base
from onlooker.hyper import Prior
from onlooker.missing.seen import Incomplete
from onlooker.problem.nodes import Landmarks, Owners, Places, at_landmarks, node_states
from onlooker.warnings import DynamicsMisfitWarning, UnidentifiableActionsWarning, warn

if TYPE_CHECKING:
    from onlooker.repertoire.base import Kind, Policies

_FAR = 5.0  # sigma
_SAME = 1e-9  # log-likelihoods closer than this do not tell two actions apart


class Paths(NamedTuple):
    """Trajectories as nodes, one after the other; inference does without, pictures do not."""

    nodes: Array
    """The node of every state seen."""
    offsets: Array
    """Where each trajectory starts in `nodes`, and where the last one ends."""
    names: Array | None = None
    """The name of each trajectory, as text, if they have others than their numbers."""
    times: Array | None = None
    """The time of every state, if it is known."""
    rows: Array | None = None
    """The row of the source that every state stands in, if it is known."""


class Problem:
    """Transitions between nodes, with the likelihood of each under every behaviour.

    All that inference needs: finite or continuous, one trajectory or a thousand. Made by hand,
    its behaviours are the actions.

    Parameters
    ----------
    node_of
        ``(M,)``: the node where each transition starts.
    loglik
        ``(M, B)``: ``ln p(s' | s, b)`` of each transition under every behaviour, ``-inf`` allowed.
    states
        ``(N,)`` integers or ``(N, d)`` floats: the state of every node. Each distinct state is
        one node. Without it, nodes are the integers up to the largest in `node_of`.
    base
        ``(B,)``: the mean of the controllers' prior, above 0 and with sum 1; None: all alike.

    Examples
    --------
    >>> from onlooker.dynamics import DisplacementDynamics
    >>> compass = DisplacementDynamics.compass(8)
    >>> Problem.from_demonstrations([[[0.0, 0.0], [1.0, 0.1], [0.0, 0.0], [0.1, 1.0]]], compass)
    Problem(3 nodes, 3 transitions, 8 actions, 28 behaviours)
    """

    def __init__(self, node_of: Any, loglik: Any, states: Any = None, base: Any = None) -> None:
        self._set(node_of, loglik, states, base)
        self._warn_of_unidentifiable()

    def _set(self, node_of: Any, loglik: Any, states: Any, base: Any = None) -> None:
        if isinstance(node_of, Demonstrations) or isinstance(loglik, Dynamics):
            raise TypeError(
                "Problem takes node_of and loglik; for demonstrations and dynamics use "
                "Problem.from_demonstrations(demos, dynamics)"
            )
        node_of = as_array("node_of", node_of)
        if node_of.dtype.kind not in "iu" or node_of.ndim != 1 or len(node_of) == 0:
            raise ValueError(
                "node_of must be (M,) integers with M > 0, "
                f"got dtype {node_of.dtype} and shape {node_of.shape}"
            )
        states = np.arange(int(node_of.max()) + 1) if states is None else as_states(states)
        self.states = read_only(states)
        bad = (node_of < 0) | (node_of >= len(states))
        if bad.any():
            where = int(np.argmax(bad))
            raise ValueError(
                f"node_of holds {node_of[where]} at index {where}; there are {len(states)} nodes"
            )
        self._refuse_repeated_states()
        self.node_of = read_only(node_of.astype(np.int64))
        self.first_guess = read_only(_check_loglik(loglik, len(node_of)))
        """``(M, B)``: `loglik`, or, where states are unseen, that of where chains start."""
        n_behaviours = self.first_guess.shape[1]
        self.base = read_only(_check_base(base, n_behaviours))
        """``(B,)``: the mean of the controllers' prior; with kinds, where each has as much."""
        self.kinds = ["actions"]
        """Names of the kinds of behaviours."""
        self.kind_of = read_only(np.zeros(n_behaviours, dtype=np.int64))
        """``(B,)``: the kind of each behaviour."""
        self.policies: Policies | None = None
        """``π_b(a | s)``; None where behaviours are the actions."""
        self.dynamics: Dynamics | None = None
        self.next_states: Array | None = None
        self.paths: Paths | None = None
        self.incomplete: Incomplete | None = None
        self.landmarks: Landmarks | None = None
        """Which of the states are a chain's nodes; None: all."""
        self.owners: Owners | None = None
        """Where this is what one chain sees of a problem with landmarks."""

    def _warn_of_unidentifiable(self) -> None:
        if self.unidentifiable_share > 0:
            warn(
                f"{100 * self.unidentifiable_share:.1f} % of the transitions are equally likely "
                "under every action, so they say nothing about the policy; check the noise of the "
                "dynamics if that surprises you",
                UnidentifiableActionsWarning,
            )

    @classmethod
    def from_demonstrations(
        cls,
        demos: Demonstrations,
        dynamics: Dynamics,
        nodes: Literal["visited", "all"] | Landmarks | Any = "visited",
        *,
        observation_noise: float | Prior | None = None,
        repertoire: Sequence[Kind] | Policies | Literal["auto"] = "auto",
    ) -> Self:
        """Build the problem from what was seen and how the world moves.

        Parameters
        ----------
        demos
            The demonstrations; states that were not seen (``missing="infer"``) are inferred.
        dynamics
            The model of the world.
        nodes
            Which states carry an indicator. ``"visited"``: every distinct state seen, the last of
            each trajectory included. ``"all"``: every state of a finite space. An array of states:
            the visited ones and these, which join the inference without a transition.
            ``"all"`` where integer states are unseen. `Landmarks`: a random choice of the visited
            ones, to which the others belong; labels are still those of every visited state.
        observation_noise
            Standard deviation of Gaussian noise that positions were seen with: a number fixes it,
            a prior infers it (``posterior.hyper["observation_noise"]``). Positions are then
            unknown, and so are those that were not seen; the nodes stay where they were seen, or
            on the straight line between those that were.
        repertoire
            What controllers are distributions over: kinds of behaviours, such as ``[Actions(),
            Blurs(), Goals()]`` (`onlooker.repertoire`), each kind with a mass that is inferred.
            ``"auto"``: all that the dynamics offers. ``[Actions()]``: the actions alone, as in the
            paper, and as with ``"auto"`` where states were not seen exactly or parameters of the
            dynamics are unknown.
        """
        if not isinstance(demos, Demonstrations):
            demos = Demonstrations(demos)
        if isinstance(dynamics, type) or not isinstance(dynamics, Dynamics):
            what = dynamics if isinstance(dynamics, type) else type(dynamics)
            raise TypeError(
                f"dynamics must be a model with n_actions, log_likelihood and sample, such as "
                f"TabularDynamics(T), got {what.__name__}"
            )
        incomplete = None
        if demos.has_unseen or observation_noise is not None:
            from onlooker.missing.gaps import completed

            demos, incomplete = completed(demos, dynamics, nodes, observation_noise)
        states, next_states = demos.transitions()
        loglik = dynamics.log_likelihood(states, next_states)
        if np.shape(loglik) != (demos.n_transitions, dynamics.n_actions):
            raise ValueError(
                f"dynamics.log_likelihood gave shape {np.shape(loglik)} for "
                f"{demos.n_transitions} transitions and {dynamics.n_actions} actions"
            )
        visited, node_of_state = node_states(demos, nodes, getattr(dynamics, "n_states", None))
        policies = _policies(repertoire, dynamics, demos, incomplete)
        by_behaviour = loglik if policies is None else policies.log_likelihood(states, loglik)
        problem = cls.__new__(cls)
        problem._set(node_of_state[demos.transition_starts()], by_behaviour, visited)
        problem.set_world(dynamics, next_states)
        if policies is not None:
            problem.set_repertoire(policies)
        problem.incomplete = incomplete
        if isinstance(nodes, Landmarks):
            if incomplete is not None:
                raise ValueError("nodes must not be Landmarks where states were not seen exactly")
            problem.landmarks = nodes if nodes.n < len(visited) else None
        problem.paths = Paths(
            node_of_state, demos.offsets, _own_names(demos.names), demos.times, demos.rows
        )
        if incomplete is None:  # else the likelihoods are those of a first guess
            problem._warn_of_unidentifiable()
            _warn_of_misfit(dynamics, loglik)
        return problem

    def set_world(self, dynamics: Dynamics | None, next_states: Array | None) -> None:
        """Keep the model of the world, and where the transitions end."""
        self.dynamics = dynamics
        self.next_states = None if next_states is None else read_only(next_states)

    def set_repertoire(self, policies: Policies) -> None:
        """Keep what the behaviours do, and of which kinds they are."""
        if policies.n_behaviours != self.n_behaviours:
            raise ValueError(
                f"the repertoire has {policies.n_behaviours} behaviours, the likelihoods have "
                f"{self.n_behaviours}"
            )
        self.set_kinds(policies.kinds, policies.kind_of)
        self._behaviours = policies.names
        if not policies.are_actions:
            self.policies = policies

    def set_kinds(self, kinds: list[str], kind_of: Array) -> None:
        """Sort the behaviours into kinds, whose masses are inferred if there are several."""
        sizes = np.bincount(kind_of, minlength=len(kinds))
        if kind_of.shape != (self.n_behaviours,) or len(sizes) > len(kinds) or not sizes.all():
            raise ValueError("kind_of must have a kind for each behaviour, and each kind one")
        self.kinds, self.kind_of = list(kinds), read_only(kind_of.astype(np.int64))
        self.base = read_only(1 / (len(kinds) * sizes[kind_of]))

    @property
    def behaviours(self) -> list[str]:
        """A name for each behaviour."""
        if self._behaviours is None:
            from onlooker.dynamics.actions import action_names

            self._behaviours = action_names(self.dynamics, self.n_behaviours)
        return list(self._behaviours)

    _behaviours: list[str] | None = None

    def base_measure(self, masses: Array | None = None) -> Base | None:
        """The base measure for the kernels, given the masses of the kinds; None: all alike."""
        if masses is not None:
            sizes = np.bincount(self.kind_of)
            return Base(self.n_behaviours * masses / sizes, np.array(self.kind_of))
        if (self.base == self.base[0]).all():
            return None
        values, kind = np.unique(self.base, return_inverse=True)
        return Base(self.n_behaviours * values, kind)

    def to_actions(self, states: Array, weights: Array) -> Array:
        """``(..., n, A)``: ``Σ_b weights[..., n, b] π_b(a | s_n)`` at `states`."""
        return weights if self.policies is None else self.policies.mixed(states, weights)

    def chosen_actions(self, states: Array, weights: Array, rows: Array) -> Array:
        """``(D, n, A)``: the same with ``weights[rows[d, n]]``, ``(rows, B)``, at state n."""
        if self.policies is None:
            return np.asarray(weights[rows])
        return self.policies.chosen(states, weights, rows)

    @property
    def loglik(self) -> Array:
        """``(M, B)``: ``ln p(s' | s, b)`` of each transition under every behaviour.

        Refused where states were not seen, or not exactly: it differs from draw to draw.
        """
        if self.incomplete is not None:
            raise ValueError(
                "the likelihoods of the transitions are not known, since some states were not "
                "seen, or not exactly; problem.first_guess has those that chains start with"
            )
        return self.first_guess

    @property
    def parameters(self) -> dict[str, Prior]:
        """Unknown parameters of the dynamics, with their priors."""
        return {} if self.next_states is None else unknown_parameters(self.dynamics)

    def _refuse_repeated_states(self) -> None:
        distinct, index = distinct_states(self.states)
        if len(distinct) < len(self.states):
            second = int(np.argmax(np.bincount(index)[index] > 1))
            twin = int(np.flatnonzero(index == index[second])[1])
            raise ValueError(
                f"states holds the same state at {second} and {twin}; equal states share one node"
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, N."""
        return len(self.states)

    @property
    def n_transitions(self) -> int:
        """Number of transitions, M."""
        return len(self.node_of)

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return self.n_behaviours if self.policies is None else self.policies.n_actions

    @property
    def drawn(self) -> str:
        """What is drawn of every transition, as draws call it: its action or its behaviour."""
        return "actions" if self.policies is None else "behaviours"

    @property
    def n_behaviours(self) -> int:
        """Number of behaviours, B: of actions, if there is no repertoire."""
        return int(self.first_guess.shape[1])

    def __repr__(self) -> str:
        more = "" if self.policies is None else f", {self.n_behaviours} behaviours"
        return (
            f"Problem({self.n_nodes} nodes, {self.n_transitions} transitions, "
            f"{self.n_actions} actions{more})"
        )

    @property
    def unidentifiable_share(self) -> float:
        """Share of the transitions that are equally likely under every action."""
        if self.n_actions == 1:
            return 0.0
        spread = self.loglik.max(axis=1) - self.loglik.min(axis=1)
        return float(np.mean(spread < _SAME))

    @cached_property
    def layout(self) -> Layout:
        """The layout with nodes in their own order."""
        return self.layout_by(np.arange(self.n_nodes))

    def layout_by(self, nodes: Array) -> Layout:
        """Lay the transitions out for the kernels, node after node in the order `nodes`."""
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[nodes] = np.arange(self.n_nodes)
        place_of = place[self.node_of]
        order = np.argsort(place_of, kind="stable")
        counts = np.bincount(place_of, minlength=self.n_nodes)
        # each row is scaled to a maximum of 1, so that none underflows whole
        likelihood = self.first_guess[order]
        log_scale = likelihood.max(axis=1)
        likelihood -= log_scale[:, None]
        np.exp(likelihood, out=likelihood)
        first = np.concatenate([[0], np.cumsum(counts)])
        likelihood, row = _share_rows(likelihood, place_of[order])
        return Layout(self, nodes, Data(first, likelihood, row, order, log_scale))

    def for_chain(self, chain: int, places: Callable[[Problem], Places | None]) -> Problem:
        """The problem that a chain sees: the same for all, or one with landmarks as nodes.

        `places` says where the nodes of a problem lie.
        """
        return self if self.landmarks is None else at_landmarks(self, chain, places)

    def part(self, transitions: Array, nodes: Array) -> Problem:
        """Some of the transitions, among some of the nodes; of landmarks, half of these."""
        part = copy.copy(self)
        part.__dict__.pop("layout", None)
        place = np.full(self.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        part.states = read_only(self.states[nodes])
        part.node_of = read_only(place[self.node_of[transitions]])
        part.first_guess = read_only(self.first_guess[transitions])
        next_states = None if self.next_states is None else self.next_states[transitions]
        part.set_world(self.dynamics, next_states)
        part.paths = None
        if self.landmarks is not None:
            n = min(self.landmarks.n, -(-len(nodes) // 2))
            part.landmarks = replace(self.landmarks, n=n)
        return part

    @property
    def start_states(self) -> Array:
        """``(M, ...)``: where each transition starts."""
        whole = self if self.owners is None else self.owners.whole
        return np.asarray(whole.states[whole.node_of])


@dataclass(frozen=True)
class Layout:
    """The problem as the kernels work on it.

    Nodes that lie near each other should be near in memory too, so a sampler may number them in
    an order of its own.
    """

    problem: Problem
    nodes: Array
    """The problem's node at each place."""
    data: Data
    """The transitions, sorted by place."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def base_sums(self) -> BaseSums:
        """Sums of likelihoods over the behaviours of one share."""
        n_kinds = len(self.problem.kinds)
        base = self.problem.base_measure(np.full(n_kinds, 1 / n_kinds) if n_kinds > 1 else None)
        kind = np.zeros(self.problem.n_behaviours, dtype=np.int64) if base is None else base.kind
        return sum_base(self.data.likelihood, kind)

    @cached_property
    def place(self) -> Array:
        """Where each of the problem's nodes lies."""
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[self.nodes] = np.arange(self.n_nodes)
        return place

    def of_nodes(self, values: Array) -> Array:
        """What belongs to each place, in the order of the problem's nodes."""
        out = np.empty_like(values)
        out[self.nodes] = values
        return out


def _share_rows(likelihood: Array, place: Array) -> tuple[Array, Array]:
    """Likelihoods of which equal ones at one place are kept once, and the row of each transition.

    Rows are told apart by a weighted sum, then compared. Where few are equal, all are kept.
    """
    n, n_actions = likelihood.shape
    key = likelihood @ (1.0 + np.sqrt(np.arange(2.0, n_actions + 2.0)))
    by_key = np.lexsort([key, place])
    before, after = by_key[:-1], by_key[1:]
    same = (key[before] == key[after]) & (place[before] == place[after])
    if np.count_nonzero(same) < n // 4:
        return likelihood, np.arange(n)
    same[same] = (likelihood[before[same]] == likelihood[after[same]]).all(axis=1)
    new = np.concatenate([[True], ~same])
    row = np.empty(n, dtype=np.int64)
    row[by_key] = np.cumsum(new) - 1
    return likelihood[by_key[new]], row


def _policies(
    repertoire: Any, dynamics: Any, demos: Demonstrations, incomplete: Any
) -> Policies | None:
    """The policies of a repertoire; None: the actions alone.

    Those it must be where likelihoods of actions differ between draws.
    """
    from onlooker.repertoire.base import Policies
    from onlooker.repertoire.making import is_bare, make_policies

    if is_bare(repertoire):
        return None
    if incomplete is not None or unknown_parameters(dynamics):
        if repertoire == "auto":
            return None
        what = "states were not seen exactly" if incomplete is not None else "dynamics are unknown"
        raise ValueError(
            f"repertoire must be [Actions()] where {what}: actions alone are inferred there"
        )
    if isinstance(repertoire, Policies):
        return repertoire
    return make_policies(repertoire, dynamics, demos)


def _check_base(base: Any, n: int) -> Array:
    if base is None:
        return np.full(n, 1 / n)
    base = finite_array("base", base, ndim=1)
    if base.shape != (n,) or (base <= 0).any() or abs(base.sum() - 1) > 1e-6:
        raise ValueError(
            f"base must be ({n},) numbers above 0 with sum 1, one for each column of loglik, got "
            f"shape {base.shape} with smallest {base.min(initial=np.inf):.6g} and sum "
            f"{base.sum():.6g}"
        )
    return np.asarray(base / base.sum())


def _own_names(names: Array) -> Array | None:
    """The names, if they are not just "0", "1", ... ."""
    return None if np.array_equal(names, np.arange(len(names)).astype(np.str_)) else names


def _warn_of_misfit(dynamics: Any, loglik: Array) -> None:
    """Warn if a dynamics that can tell says that its actions are far from what was seen."""
    if not hasattr(dynamics, "misfit") or unknown_parameters(dynamics):
        return
    typical = float(np.median(dynamics.misfit(loglik)))
    if typical > _FAR:
        warn(
            f"half of the steps are more than {typical:.3g} sigma from what any action does; check "
            "the length of the actions' steps and their noise sigma against your data",
            DynamicsMisfitWarning,
        )


def _check_loglik(loglik: Any, n_transitions: int) -> Array:
    loglik = as_array("loglik", loglik)
    if loglik.dtype.kind not in "iuf":
        raise TypeError(f"loglik must hold numbers, got dtype {loglik.dtype}")
    loglik = loglik.astype(np.float64)  # a copy: the caller's may change
    if loglik.ndim != 2 or loglik.shape[0] != n_transitions or loglik.shape[1] == 0:
        raise ValueError(
            f"loglik must be (M, A) with M = {n_transitions} like node_of and A > 0, "
            f"got shape {loglik.shape}"
        )
    bad = np.isnan(loglik) | (loglik == np.inf)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"loglik[{row}, {column}] is {loglik[row, column]}; logs of densities are "
            "numbers or -inf"
        )
    impossible = ~np.isfinite(loglik).any(axis=1)
    if impossible.any():
        where = int(np.argmax(impossible))
        raise ValueError(
            f"transition {where} ({impossible.sum()} in all) cannot be explained by any action; "
            "remove it, or give the dynamics some noise"
        )
    return loglik
