"""Record demonstrations in Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from onlooker.checks import Array, as_policy, positive_integer
from onlooker.demonstrations import Demonstrations

Record = Literal["observation", "state"] | Callable[[Any, Any], Any]


def rollout(
    env: Any,
    policy: Any,
    n_trajectories: int,
    length: int,
    random_state: int | np.random.Generator | None = None,
    *,
    record: Record = "observation",
) -> tuple[Demonstrations, list[Array]]:
    """Let a policy act, and record the states that an observer would see.

    Parameters
    ----------
    env
        The environment, wrapped or not.
    policy
        ``(S, A)`` probabilities of the actions in each state of a finite environment; or a
        function of the observation that returns an action, or the probabilities of all actions
        (as floats, one per action).
    n_trajectories
        Number of episodes.
    length
        The most states to record of an episode. One that ends or is cut off before is shorter.
    random_state
        Seed or generator. Every episode resets the environment with a seed drawn from it.
    record
        What the state is: the observation, the internal ``env.unwrapped.state``, or a function
        ``(env.unwrapped, observation) -> state``.

    Returns
    -------
    demos : one trajectory per episode, with two states or more
    actions : the actions of each, ``(T - 1,)`` numbers from 0, or ``(T - 1, k)`` vectors
    """
    n_trajectories = positive_integer("n_trajectories", n_trajectories)
    length = positive_integer("length", length, minimum=2)
    rng = np.random.default_rng(random_state)
    act = _Actor(env, policy, rng)
    read_state = _recorder(env, record)
    trajectories, actions = [], []
    for _ in range(n_trajectories):
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        states, taken, over = [read_state(observation)], [], False
        while len(states) < length and not over:
            number, action = act(observation)
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            states.append(read_state(observation))
            taken.append(number)
        trajectories.append(np.array(states))
        actions.append(np.array(taken))
    return Demonstrations(trajectories), actions


class _Actor:
    """Asks the policy for an action, as a number (or vector) and as the environment takes it."""

    def __init__(self, env: Any, policy: Any, rng: np.random.Generator) -> None:
        self.rng, self.space = rng, env.action_space
        self.n_actions = int(self.space.n) if hasattr(self.space, "n") else None
        self.first = int(getattr(self.space, "start", 0))
        self.ask = policy if callable(policy) else self._table(policy, env.observation_space)

    def _table(self, policy: Any, observations: Any) -> Callable[[Any], Array]:
        if self.n_actions is None or not hasattr(observations, "n"):
            raise TypeError(
                "a policy of probabilities needs finitely many states and actions; "
                "give a function of the observation"
            )
        table = as_policy("policy", policy, (int(observations.n), self.n_actions))
        first = int(getattr(observations, "start", 0))
        return lambda observation: table[int(observation) - first]

    def __call__(self, observation: Any) -> tuple[Any, Any]:
        answer = np.asarray(self.ask(observation))
        if self.n_actions is None:
            action = answer.astype(self.space.dtype).reshape(self.space.shape)
            if not self.space.contains(action):
                raise ValueError(f"policy returned {answer.tolist()}, which is not in {self.space}")
            return action.ravel().astype(np.float64), action
        if answer.dtype.kind == "f" and answer.shape == (self.n_actions,):
            if callable(self.ask):
                as_policy("policy(observation)", answer[None], (1, self.n_actions))
            number = int(np.searchsorted(np.cumsum(answer), self.rng.random(), side="right"))
            # rounding must not choose an action of probability zero at the end
            number = min(number, int(np.flatnonzero(answer)[-1]))
        elif answer.dtype.kind in "iu" and answer.size == 1:
            number = int(answer.reshape(())) - self.first
        else:
            raise TypeError(
                f"policy must return an action or the probabilities of all {self.n_actions}, "
                f"got {answer!r}"
            )
        if not 0 <= number < self.n_actions:
            raise ValueError(f"policy returned action {number}; there are {self.n_actions}")
        return number, number + self.first


def _recorder(env: Any, record: Record) -> Callable[[Any], Any]:
    if record == "state":

        def internal(_: Any) -> Array:
            state = getattr(env.unwrapped, "state", None)
            if state is None:
                raise TypeError(
                    f"{type(env.unwrapped).__name__} has no attribute state; record observations"
                )
            return np.array(state, dtype=np.float64)

        return internal
    if callable(record):
        return lambda observation: np.array(record(env.unwrapped, observation))
    if record != "observation":
        raise ValueError(f"record must be 'observation', 'state' or a function, got {record!r}")

    def observed(observation: Any) -> Array:
        if isinstance(observation, tuple | dict) or np.ndim(observation) > 1:
            raise TypeError(
                f"observations of {env.observation_space} are neither numbers nor vectors; "
                "choose what the state is by record=, a function (env, observation) -> state"
            )
        return np.array(observation)

    return observed
