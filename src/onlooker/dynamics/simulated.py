"""Gymnasium environments whose state can be set, as simulators with noise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlooker.checks import Array, as_array, finite_array, read_only
from onlooker.dynamics.base import check_actions
from onlooker.dynamics.gymnasium import GymnasiumDynamics, names_of, unwrapped
from onlooker.files import CannotDecode
from onlooker.reading.states import as_real_states

_TURN = (-math.pi, math.pi)
# Angles in the internal state, which wrap from one end of their range to the other.
_PLAIN = (bool, int, float, str, type(None))
_ANGLES = {"AcrobotEnv": {0: _TURN, 1: _TURN}, "PendulumEnv": {0: _TURN}}


class SimulatedGymnasium(GymnasiumDynamics):
    """``s' = step(s, a) + N(0, diag(sigma²))``: one step of a simulator, plus noise.

    Parameters
    ----------
    env
        An environment whose state can be set. Its step should not be random; one that is, is
        taken at a single draw.
    sigma
        Standard deviation of the noise: a number, or one for each dimension of the state.
        `GymnasiumDynamics.from_demonstrations` proposes it.
    actions
        The candidate actions, where the environment's are not finitely many; by default all.
    state_of
        Function from a demonstrated state to the environment's internal one. Without it the
        demonstrations must hold internal states (as `rollout(..., record="state")` does); with
        it they may hold observations, such as Acrobot's sines and cosines.
    observe
        Function from an internal state to a demonstrated one; by default, with `state_of`, what
        the environment's step shows as observation.
    periodic
        ``{dimension: (low, high)}`` of demonstrated states that wrap round; by default the
        angles of Acrobot's and Pendulum's internal states.
    get_state, set_state
        Functions ``env -> state`` and ``(env, state) -> None`` of the unwrapped environment,
        where it is not its attribute ``state``.

    Notes
    -----
    Environments step one state at a time, so the likelihood of n transitions costs n·A calls of
    ``env.step``, some tens of microseconds each (Acrobot's some hundreds). The state of `env`
    is put back after each use.
    """

    def __init__(
        self,
        env: Any,
        *,
        sigma: Any = None,
        actions: Sequence[Any] | None = None,
        state_of: Callable[[Array], Any] | None = None,
        observe: Callable[[Array], Any] | None = None,
        periodic: Mapping[int, tuple[float, float]] | None = None,
        get_state: Callable[[Any], Any] | None = None,
        set_state: Callable[[Any, Array], Any] | None = None,
    ) -> None:
        self._env = unwrapped(env)
        if (get_state is None) != (set_state is None):
            raise ValueError("get_state and set_state go together: give both or none")
        if get_state is None and getattr(self._env, "state", None) is None:
            env.reset()  # some have a state only then
        if get_state is None and getattr(self._env, "state", None) is None:
            raise TypeError(
                f"{type(self._env).__name__} has neither a table of transitions (P) nor an "
                "attribute state; give get_state and set_state"
            )
        if observe is not None and state_of is None:
            raise ValueError("observe needs state_of, the way back to the internal state")
        self._get, self._set = get_state or _get_state, set_state or _set_state
        self._state_of, self._observe = state_of, observe
        self.actions = _candidates(self._env.action_space, actions)
        self.n_dims = self._count_dims()
        self.sigma = self._check_sigma(sigma)
        if periodic is None and state_of is None:
            periodic = _ANGLES.get(type(self._env).__name__, {})
        self.periodic = _check_periodic(dict(periodic or {}), self.n_dims)

    def _count_dims(self) -> int:
        with self._borrowed():
            internal = np.array(self._get(self._env), dtype=np.float64).ravel()
            if self._state_of is None:
                return len(internal)
            return len(self._step(internal, self.actions[0]))

    def _check_sigma(self, sigma: Any) -> Array:
        if sigma is None:
            raise ValueError(
                "give sigma, the noise of a step, or let it be proposed: "
                "GymnasiumDynamics.from_demonstrations(env, demos)"
            )
        given = finite_array("sigma", np.atleast_1d(sigma), ndim=1)
        if len(given) not in (1, self.n_dims) or not (given > 0).all():
            raise ValueError(
                f"sigma must be one number above 0, or one for each of {self.n_dims} dimensions, "
                f"got {sigma!r}"
            )
        return read_only(np.array(np.broadcast_to(given, self.n_dims)))

    @property
    def n_actions(self) -> int:
        """Number of candidate actions, A."""
        return len(self.actions)

    @property
    def action_names(self) -> list[str] | None:
        """What the actions are called, where that is known."""
        return names_of(self._env, self.n_actions)

    def __repr__(self) -> str:
        name = type(self._env).__name__
        return f"GymnasiumDynamics({name}: {self.n_actions} actions, {self.n_dims} dimensions)"

    # -- simulation -----------------------------------------------------------------------------

    @contextmanager
    def _borrowed(self) -> Iterator[None]:
        """Put the environment's state back afterwards."""
        before = np.array(self._get(self._env))
        steps = getattr(self._env, "steps_beyond_terminated", None)
        try:
            yield
        finally:
            self._set(self._env, before)
            if hasattr(self._env, "steps_beyond_terminated"):
                self._env.steps_beyond_terminated = steps

    def _step(self, internal: Array, action: Any) -> Array:
        """One step from an internal state, as a demonstrated state."""
        if hasattr(self._env, "steps_beyond_terminated"):
            self._env.steps_beyond_terminated = None  # CartPole would warn of states off its track
        self._set(self._env, internal.copy())
        observation = self._env.step(action)[0]
        if self._state_of is None:
            reached = self._get(self._env)
        elif self._observe is not None:
            reached = self._observe(np.array(self._get(self._env)))
        else:
            reached = observation
        return np.asarray(reached, dtype=np.float64).ravel()

    def _internal(self, state: Array) -> Array:
        return state if self._state_of is None else np.asarray(self._state_of(state), dtype=float)

    def means(self, states: Any) -> Array:
        """Where each action leads from each state without noise, ``(n, A, d)``."""
        states = self._check("states", states)
        reached = np.empty((len(states), self.n_actions, self.n_dims))
        with self._borrowed():
            for i, state in enumerate(states):
                internal = self._internal(state)
                for j, action in enumerate(self.actions):
                    reached[i, j] = self._step(internal, action)
        return reached

    def log_likelihood(self, states: Any, next_states: Any) -> Array:
        """Return ``ln N(s' | step(s, j), diag(sigma²))`` as ``(n, A)``."""
        away = self._residuals(states, next_states) / self.sigma
        return -0.5 * (away**2).sum(axis=2) - self._log_norm

    def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array:
        """Draw the next states."""
        states = self._check("states", states)
        actions = check_actions(actions, self.n_actions, len(states))
        moved = np.empty_like(states)
        with self._borrowed():
            for i, (state, action) in enumerate(zip(states, actions, strict=True)):
                moved[i] = self._step(self._internal(state), self.actions[action])
        moved += rng.normal(0.0, 1.0, size=moved.shape) * self.sigma
        for dim, (low, high) in self.periodic.items():
            moved[:, dim] = low + (moved[:, dim] - low) % (high - low)
        return moved

    def misfit(self, loglik: Array) -> Array:
        """How far each transition is from the nearest action's mean, in sigma."""
        return np.sqrt(np.maximum(-2 * (loglik.max(axis=1) + self._log_norm), 0.0))

    @property
    def _log_norm(self) -> float:
        return float(np.log(self.sigma).sum() + 0.5 * self.n_dims * math.log(2 * math.pi))

    def propose(self, states: Any, next_states: Any) -> Array:
        """A noise for each dimension; see `GymnasiumDynamics.from_demonstrations`."""
        away = self._residuals(states, next_states)
        choice = np.median(away.std(axis=1), axis=0)  # what the action changes, by dimension
        matters = choice > 0
        scaled = away[:, :, matters] / choice[matters] if matters.any() else away
        best = (scaled**2).sum(axis=2).argmin(axis=1)
        left = 1.4826 * np.median(np.abs(away[np.arange(len(away)), best]), axis=0)
        moves = self._turn(np.asarray(next_states, dtype=float) - np.asarray(states, dtype=float))
        lowest = np.maximum(choice / 4, 1e-3 * np.sqrt((moves**2).mean(axis=0)))
        return np.maximum(np.maximum(left, lowest), 1e-9)

    def _residuals(self, states: Any, next_states: Any) -> Array:
        next_states = self._check("next_states", next_states)
        reached = self.means(states)
        if len(reached) != len(next_states):
            raise ValueError(f"{len(reached)} states but {len(next_states)} next_states")
        return self._turn(next_states[:, None, :] - reached)

    def _turn(self, away: Array) -> Array:
        """The short way round in dimensions that wrap, in place."""
        for dim, (low, high) in self.periodic.items():
            away[..., dim] -= (high - low) * np.round(away[..., dim] / (high - low))
        return away

    def _check(self, name: str, states: Any) -> Array:
        array = as_array(name, states)
        if array.dtype.kind not in "iuf" or array.ndim != 2 or array.shape[1] != self.n_dims:
            remedy = (
                "these are internal states of the environment: record them, or give state_of "
                "to use observations"
            )
            raise ValueError(
                f"{name} must be (n, {self.n_dims}) numbers, got dtype {array.dtype} and shape "
                f"{array.shape}; {remedy if self._state_of is None else 'they are observations'}"
            )
        return as_real_states(name, array)

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """JSON and arrays for `from_arrays`, if `gymnasium.make` makes the environment again."""
        spec = getattr(self._env, "spec", None)
        arguments = {k: v for k, v in getattr(spec, "kwargs", {}).items() if k != "render_mode"}
        own_functions = self._state_of is not None or self._get is not _get_state
        if spec is None or own_functions or not _all_plain(arguments):
            return None
        arrays = {f"{name}.sigma": self.sigma}
        discrete = hasattr(self._env.action_space, "n")
        if not discrete:
            arrays[f"{name}.actions"] = np.array(self.actions, dtype=np.float64)
        return {
            "class": type(self).__name__,
            "id": spec.id,
            "arguments": arguments,
            "actions": [int(action) for action in self.actions] if discrete else None,
            "periodic": [[dim, *ends] for dim, ends in self.periodic.items()],
        }, arrays

    @classmethod
    def from_arrays(
        cls, description: dict[str, Any], arrays: dict[str, Array], name: str
    ) -> SimulatedGymnasium:
        """Undo `to_arrays`."""
        try:
            import gymnasium
        except ImportError as error:
            raise CannotDecode(description["id"]) from error
        # Only what is registered: "module:Name" would import that module, and a file must never
        # choose what code runs.
        arguments = description["arguments"]
        if description["id"] not in gymnasium.registry or "render_mode" in arguments:
            raise CannotDecode(description["id"])
        if not _all_plain(arguments):
            raise CannotDecode(description["id"])
        with warnings.catch_warnings():  # that there is a newer version of the environment
            warnings.simplefilter("ignore")
            try:
                env = gymnasium.make(description["id"], **description["arguments"])
            except gymnasium.error.Error as error:
                raise CannotDecode(description["id"]) from error
        actions = description["actions"]
        return cls(
            env,
            sigma=arrays[f"{name}.sigma"],
            actions=list(arrays[f"{name}.actions"] if actions is None else actions),
            periodic={int(dim): (low, high) for dim, low, high in description["periodic"]},
        )


def _all_plain(arguments: Mapping[str, Any]) -> bool:
    return all(isinstance(value, _PLAIN) for value in arguments.values())


def _get_state(env: Any) -> Any:
    return env.state


def _set_state(env: Any, state: Array) -> None:
    env.state = state


def _candidates(space: Any, actions: Sequence[Any] | None) -> list[Any]:
    """Actions as the environment takes them."""
    if actions is None:
        if not hasattr(space, "n"):
            raise ValueError(
                f"the actions of {space} are not finitely many; give candidates, actions=[...]"
            )
        first = int(getattr(space, "start", 0))
        return list(range(first, first + int(space.n)))
    if len(actions) == 0:
        raise ValueError("actions is empty; give at least one candidate")
    candidates: list[Any] = list(actions)
    if not hasattr(space, "n"):
        candidates = [np.asarray(a, dtype=space.dtype).reshape(space.shape) for a in actions]
    for index, action in enumerate(candidates):
        if not space.contains(action):
            raise ValueError(f"actions[{index}] = {actions[index]!r} is not in {space}")
    return candidates


def _check_periodic(
    periodic: dict[int, tuple[float, float]], n_dims: int
) -> dict[int, tuple[float, float]]:
    for dim, ends in periodic.items():
        if not 0 <= dim < n_dims:
            raise ValueError(f"periodic names dimension {dim}; there are 0 to {n_dims - 1}")
        low, high = ends
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"periodic[{dim}] must be (low, high) with low < high, got {ends!r}")
    return periodic
