"""What a file says is not trusted: kernels index by it without looking.

Shapes and ranges follow from the problem and the prior. What a prior alone keeps it declares
(`PartitionPrior.kept`) or checks itself (`Bound.check`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array, stored_array, stored_offsets
from onlooker.gibbs.arrays import Slots, count
from onlooker.gibbs.state import State
from onlooker.hyper import Prior
from onlooker.inference.draws import Draws
from onlooker.inference.target import Target
from onlooker.partitions.base import Bound, PartitionPrior
from onlooker.problem import Problem
from onlooker.reading.states import UNSEEN, between_seen

_EVERY = ("labels", "log_joint", "hyper.alpha")
_LEAST, _MOST = 1e-150, 1e150  # hyper-parameters whose squares are numbers


# -- the problem ----------------------------------------------------------------------------------


def check_problem(problem: Problem) -> None:
    """Refuse a problem whose trajectories do not fit its nodes and transitions."""
    n_nodes, n_transitions = problem.n_nodes, problem.n_transitions
    each = problem.states.shape[1:]
    kind = problem.states.dtype
    if problem.next_states is not None:
        low = 0.0 if kind.kind == "i" else -math.inf
        stored_array("next_states", problem.next_states, kind, (n_transitions, *each), low)
    if problem.paths is not None:
        nodes, offsets, names, times, rows = problem.paths
        stored_array("paths.nodes", nodes, "i", (nodes.size,), 0, n_nodes)
        stored_offsets("paths.offsets", offsets, len(nodes))
        if names is not None:
            stored_array("trajectory_names", names, "U", (len(offsets) - 1,))
        if times is not None:
            _check_times(times, nodes.shape)
        if rows is not None:
            stored_array("state_rows", rows, "i", nodes.shape, 0)
    if problem.incomplete is not None:
        _check_incomplete(problem, n_transitions)


def _check_times(times: Array, shape: tuple[int, ...]) -> None:
    if times.dtype.kind not in "iufmM" or times.shape != shape:
        raise ValueError(
            f"state_times must be numbers or dates of shape {shape}, got {times.dtype} of shape "
            f"{times.shape}"
        )


def _check_incomplete(problem: Problem, n_transitions: int) -> None:
    assert problem.incomplete is not None
    observed, offsets = problem.incomplete.observed, problem.incomplete.offsets
    n = observed.size if problem.states.ndim == 1 else len(np.atleast_1d(observed))
    each = problem.states.shape[1:]
    seen = observed if problem.states.ndim == 1 else np.nan_to_num(observed, posinf=np.inf)
    low, high = (UNSEEN, problem.n_nodes) if problem.states.ndim == 1 else (-math.inf, math.inf)
    stored_array("seen.observed", seen, problem.states.dtype, (n, *each), low, high)
    stored_offsets("seen.offsets", offsets, n)
    if n - (len(offsets) - 1) != n_transitions:
        raise ValueError(f"seen.offsets must leave {n_transitions} transitions")
    if problem.next_states is None:
        raise ValueError("next_states is missing")
    if not between_seen(observed, offsets).all():
        raise ValueError("seen.observed must begin and end each trajectory with a seen state")
    if problem.states.ndim == 1 and not np.array_equal(problem.states, np.arange(problem.n_nodes)):
        raise ValueError("states must be all states, since some were not seen")


def check_dynamics(problem: Problem) -> None:
    """Refuse a dynamics that cannot make the problem's transitions."""
    dynamics, after = problem.dynamics, problem.next_states
    if dynamics is None:
        return
    if dynamics.n_actions != problem.n_actions:
        raise ValueError(f"dynamics has {dynamics.n_actions} actions, not {problem.n_actions}")
    n_states = getattr(dynamics, "n_states", None)
    if n_states is not None and problem.states.max() >= n_states:
        raise ValueError(f"states holds {problem.states.max()}; dynamics has {n_states} states")
    if after is not None:
        known = after if problem.states.ndim == 1 else after[:1]
        dynamics.log_likelihood(problem.states[problem.node_of[: len(known)]], known)


# -- draws ----------------------------------------------------------------------------------------


def check_draws(draws: Draws, target: Target, lead: int) -> None:
    """Refuse draws that do not fit; the first `lead` dimensions are chains and draws."""
    arrays, problem, n = draws.arrays, target.problem, target.problem.n_nodes
    inferred = [name for name, value in target.hyper().items() if isinstance(value, Prior)]
    incomplete = problem.incomplete
    wanted = {*_EVERY, problem.drawn, *(f"hyper.{name}" for name in inferred), *target.prior.kept}
    if len(problem.kinds) > 1:
        wanted.add("kinds")
    if incomplete is not None and len(incomplete.hidden):
        wanted.add("imputed")
    for name in sorted(wanted - arrays.keys()):
        raise ValueError(f"draws.{name} is missing")
    first = draws.labels.shape[:lead]
    for name, values in arrays.items():
        where = f"draws.{name}"
        if name == "labels":
            stored_array(where, values, "i", (*first, n), 0, n)
            _check_numbering(where, values)
        elif name == problem.drawn:
            shape = (*first, problem.n_transitions)
            stored_array(where, values, "i", shape, 0, problem.n_behaviours)
        elif name == "kinds":
            stored_array(where, values, np.float64, (*first, len(problem.kinds)), 0.0, 1 + 1e-6)
            if np.abs(values.sum(axis=-1) - 1).max(initial=0.0) > 1e-6:
                raise ValueError(f"{where} must sum to 1")
        elif name in ("links", "regions", *target.prior.kept):
            stored_array(where, values, "i", (*first, n), 0, n)
            if name == "regions":
                _check_numbering(where, values)
        elif name == "log_joint":
            stored_array(where, values, np.float64, first)
        elif name.startswith("hyper."):
            least = _LEAST if name.removeprefix("hyper.") in (*inferred, "alpha") else 0.0
            stored_array(where, values, np.float64, first, least, _MOST)
        elif name.startswith("info."):
            stored_array(where, np.nan_to_num(values), np.float64, first)
        elif name == "imputed" and incomplete is not None:
            shape = (*first, len(incomplete.hidden), *incomplete.observed.shape[1:])
            limits = (0.0, float(n)) if incomplete.observed.ndim == 1 else ()
            stored_array(where, values, "f" if not limits else "i", shape, *limits)
        elif values.shape[:lead] != first:  # of a prior of the user's own
            raise ValueError(f"{where} must be of shape {first}..., got {values.shape}")


def _check_numbering(name: str, labels: Array) -> None:
    """Clusters and regions are numbered by first appearance: none is without a node."""
    pooled = labels.reshape(-1, labels.shape[-1])
    for rows in slices_of(len(pooled), labels.shape[-1]):
        some = pooled[rows]
        highest = np.maximum.accumulate(some, axis=1)
        if some[:, 0].any() or (some[:, 1:] > highest[:, :-1] + 1).any():
            raise ValueError(f"{name} must be numbered by first appearance")


# -- states of chains -----------------------------------------------------------------------------


def check_state(state: State[Any], target: Target, bound: Bound[Any]) -> None:
    """Refuse a state that a chain could not have left: its next sweep would index by it."""
    problem, layout = bound.layout.problem, bound.layout
    n_slots = state.slots.order.size
    n_behaviours = problem.n_behaviours
    stored_array("actions", state.actions, np.int32, (problem.n_transitions,), 0, n_behaviours)
    stored_array("labels", state.labels, np.int32, (problem.n_nodes,), 0, n_slots)
    _check_slots(state.slots, n_slots)
    _check_unseen(state, problem)
    first = layout.data.first
    if problem.incomplete is not None and problem.states.ndim == 1:
        place = layout.place[state.unseen.states[problem.incomplete.starts]]
        visits = np.bincount(place, minlength=problem.n_nodes)
        first = np.concatenate([[0], np.cumsum(visits)])
    counts = count(state.actions, state.labels, first, n_behaviours, n_slots)
    for name, stored, right in zip(counts._fields, state.counts, counts, strict=True):
        if stored.dtype != right.dtype or not np.array_equal(stored, right):
            raise ValueError(f"counts.{name} does not fit actions and labels")
    if state.counts.size[state.slots.order[state.slots.n[0] :]].any():
        raise ValueError("labels names slots that are not in use")
    _check_controllers(state, n_slots, n_behaviours, target.collapsed)
    _check_masses(state.masses, len(problem.kinds))
    _check_hyper(state.hyper, target)
    bound.check(state)


def _check_slots(slots: Slots, n_slots: int) -> None:
    for name, array in (("order", slots.order), ("where", slots.where)):
        stored_array(f"slots.{name}", array, np.int64, (n_slots,), 0, n_slots)
    stored_array("slots.n", slots.n, np.int64, (1,), 0, n_slots + 1)
    if not np.array_equal(slots.order[slots.where], np.arange(n_slots)):
        raise ValueError("slots.where must be the inverse of slots.order")


def _check_unseen(state: State[Any], problem: Problem) -> None:
    if problem.incomplete is None:
        return
    incomplete, states = problem.incomplete, state.unseen.states
    observed = incomplete.observed
    limits = (0, problem.n_nodes) if observed.ndim == 1 else ()
    stored_array("unseen.states", states, observed.dtype, observed.shape, *limits)
    seen = observed != UNSEEN if observed.ndim == 1 else ~np.isnan(observed)
    if incomplete.noise == 0 and not np.array_equal(states[seen], observed[seen]):
        raise ValueError("unseen.states differs from what was seen")


def _check_controllers(state: State[Any], n_slots: int, n_actions: int, collapsed: bool) -> None:
    if (state.controllers is None) != collapsed:
        raise ValueError(f"controllers must {'not ' if collapsed else ''}be there")
    if state.controllers is None:
        return
    stored_array("controllers", state.controllers, np.float64, (n_slots, n_actions), 0.0, 1 + 1e-6)
    used = state.slots.order[: state.slots.n[0]]
    if np.abs(state.controllers[used].sum(axis=1) - 1).max(initial=0.0) > 1e-6:
        raise ValueError("controllers must sum to 1")


def _check_masses(masses: Array | None, n_kinds: int) -> None:
    if (masses is None) != (n_kinds == 1):
        raise ValueError(f"masses must {'not ' if n_kinds == 1 else ''}be there")
    if masses is not None:
        stored_array("masses", masses, np.float64, (n_kinds,), _LEAST, 1 + 1e-6)
        if abs(masses.sum() - 1) > 1e-6:
            raise ValueError("masses must sum to 1")


def _check_hyper(values: dict[str, float], target: Target) -> None:
    known = target.hyper()
    for name, value in known.items():
        if isinstance(value, Prior) and not math.isfinite(value.logpdf(values[name])):
            raise ValueError(f"hyper {name} is {values[name]}, which its prior excludes")
    for name, number in values.items():
        least = _LEAST if isinstance(known.get(name), Prior) else 0.0
        if name not in known or not isinstance(number, float) or not least <= number < _MOST:
            raise ValueError(f"hyper {name} is {number!r}")


def check_prior(prior: PartitionPrior[Any], problem: Problem) -> None:
    """Refuse a prior whose coordinates or distances do not fit the nodes."""
    prior.geometry(problem)
