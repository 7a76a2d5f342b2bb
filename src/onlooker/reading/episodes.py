"""Episodes of other libraries, by what they have rather than by what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from onlooker.reading.archives import from_arrays
from onlooker.reading.tracks import Missing, Tracks

Observation = str | int | Callable[[Any], Any] | None


def read_minari(dataset: Any, observation: Observation, missing: Missing) -> Tracks:
    """The observations of all episodes of a Minari data set."""
    if not callable(getattr(dataset, "iterate_episodes", None)):
        raise TypeError(
            f"dataset must have iterate_episodes, as a Minari data set, got "
            f"{type(dataset).__name__}; load one by minari.load_dataset"
        )
    arrays, names = [], []
    for number, episode in enumerate(dataset.iterate_episodes()):
        name = str(getattr(episode, "id", number))
        arrays.append(_states(f"episode {name}", _part(episode, "observations"), observation))
        names.append(name)
    return from_arrays("the data set", arrays, names, missing)


def read_imitation(trajs: Iterable[Any], observation: Observation, missing: Missing) -> Tracks:
    """The observations of trajectories with ``obs``."""
    if hasattr(trajs, "obs") or not isinstance(trajs, Iterable):
        raise TypeError(
            f"trajs must be a list of trajectories, got {type(trajs).__name__}; "
            "wrap a single one in a list"
        )
    arrays = [
        _states(f"trajectory {index}", _part(item, "obs"), observation)
        for index, item in enumerate(trajs)
    ]
    return from_arrays("trajs", arrays, None, missing)


def _part(item: Any, attribute: str) -> Any:
    try:
        return getattr(item, attribute)
    except AttributeError:
        raise TypeError(f"a {type(item).__name__} has no {attribute}") from None


def _states(where: str, observations: Any, observation: Observation) -> Any:
    """The part of the observations that is the state, as an array."""
    if callable(observation):
        observations = observation(observations)
    elif observation is not None:
        observations = _chosen(where, observations, observation)
    if _is_dictionary(observations) or isinstance(observations, tuple):
        if _is_dictionary(observations):
            kind, parts = "dictionaries", ", ".join(map(repr, observations.keys()))
        else:
            kind, parts = "tuples", ", ".join(map(str, range(len(observations))))
        raise TypeError(
            f"{where} has {kind} as observations; choose what the state is by observation=, one "
            f"of {parts}, or a function from the observations to (T, d) states"
        )
    array = np.asarray(observations)
    if array.ndim > 2:
        raise ValueError(
            f"{where} has observations of shape {array.shape[1:]}; states are numbers or vectors: "
            "reduce them by observation=, a function from the observations to (T, d) states"
        )
    return array


def _is_dictionary(observations: Any) -> bool:
    # imitation's DictObs maps without being a Mapping
    return isinstance(observations, Mapping) or (
        hasattr(observations, "keys") and hasattr(observations, "get")
    )


def _chosen(where: str, observations: Any, observation: str | int) -> Any:
    try:
        if hasattr(observations, "get") and not isinstance(observations, Mapping):
            return observations.get(observation)
        if not isinstance(observations, Mapping | tuple):
            raise TypeError(
                f"{where} has plain observations; leave out observation={observation!r}, or "
                "give a function"
            )
        return observations[observation]  # type: ignore[index]
    except (KeyError, IndexError) as error:
        raise ValueError(f"{where} has no observation {observation!r}") from error
