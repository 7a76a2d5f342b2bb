"""The default model, of the recognizer, of `onlooker fit` and of the demo alike."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from onlooker.choosing.continuation import MANY_TRANSITIONS, choose_continuation
from onlooker.choosing.lengths import distances, typical_step
from onlooker.demonstrations import Demonstrations
from onlooker.hyper import CONCENTRATION, Gamma, TotalMass
from onlooker.partitions import ChineseRestaurant, PartitionPrior, Regions, ScaledAxes
from onlooker.problem import Landmarks, Problem
from onlooker.repertoire import Actions

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.hyper import Prior
    from onlooker.partitions.base import Hyper

CLUSTERS = 10
"""Of the priors that need their number."""
PRIOR = Regions.key
"""Of a model that names none."""
SHARING = Gamma(1.0, 1.0)
"""γ of the priors that have one."""
_MANY = 4_000  # nodes above which links go to the nearest ones only
_NEAREST = 100


class Sizes(NamedTuple):
    """How much is sampled, by default."""

    chains: int = 4
    tune: int = 500
    draws: int = 1000


WITH_LANDMARKS = Sizes(chains=8, tune=40, draws=40)
"""More chains, since each sees other states, and short ones: what is predicted is their mean."""
WITH_MANY_TRANSITIONS = Sizes(chains=8, tune=20, draws=20)
"""With landmarks as well."""


class DefaultModel(NamedTuple):
    """What is sampled, and how much of it."""

    problem: Problem
    prior: PartitionPrior[Any]
    concentration: Hyper | TotalMass
    chains: int
    tune: int
    draws: int | Literal["auto"]
    notes: list[str]
    """What was chosen from the tracks, a sentence each."""


def default_model(
    demos: Demonstrations,
    dynamics: Dynamics,
    *,
    prior: PartitionPrior[Any] | None = None,
    metric: Any = None,
    concentration: Hyper | TotalMass | None = None,
    chains: int | None = None,
    tune: int | None = None,
    draws: int | Literal["auto"] | None = None,
    nodes: Any = None,
    repertoire: Any = None,
    observation_noise: float | Prior | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> DefaultModel:
    """The default model of demonstrations; what is given stays as it is.

    Parameters
    ----------
    demos, dynamics
        What was seen, features of the states included, and how the world moves.
    prior, concentration, chains, tune, draws
        As in `sample`; None: chosen. How regions go on is chosen with the prior only, by short
        chains (`onlooker.choosing.continuation`).
    metric
        Distances between states, for a prior that is chosen; None: Euclidean, on the Earth in km,
        in steps in a finite space.
    nodes, repertoire, observation_noise
        As in `Problem.from_demonstrations`; without `nodes` and `repertoire`, these are chosen.
    seed, n_jobs
        Of the short chains, and of landmarks.
    progress
        Whether to show how far the short chains are.
    """
    demos = demos if isinstance(demos, Demonstrations) else Demonstrations(demos)
    notes: list[str] = []
    chosen = prior is None
    if prior is None:
        prior = default_prior(demos.split(), dynamics, metric)
    problem = Problem.from_demonstrations(
        demos,
        dynamics,
        _nodes(demos, prior, observation_noise, seed) if nodes is None else nodes,
        observation_noise=observation_noise,
        repertoire=default_repertoire(prior) if repertoire is None else repertoire,
    )
    concentration = default_concentration(prior) if concentration is None else concentration
    if problem.landmarks is not None:
        notes.append(_words(problem.n_nodes, problem.landmarks.n))
    if chosen and isinstance(prior, Regions):
        continuation, note = choose_continuation(
            problem, prior, concentration, seed=seed, n_jobs=n_jobs, progress=progress
        )
        prior = replace(prior, continuation=continuation)
        notes += [note] * bool(note)
    sizes = default_sizes(problem)
    return DefaultModel(
        problem,
        prior,
        concentration,
        sizes.chains if chains is None else chains,
        sizes.tune if tune is None else tune,
        sizes.draws if draws is None else draws,
        notes,
    )


def _words(n_nodes: int, n: int) -> str:
    """What landmarks are, in a sentence."""
    return (
        f"{n_nodes:,} distinct states are many: each chain draws {n:,} of them at random, "
        "as landmarks that stand for the states around them."
    )


def _nodes(demos: Demonstrations, prior: PartitionPrior[Any], noise: Any, seed: int) -> Any:
    return "visited" if noise is not None else default_nodes(demos, prior, seed)


def default_nodes(demos: Demonstrations, prior: PartitionPrior[Any], seed: int) -> Any:
    """Those seen, or, with `Regions`, landmarks where they are many.

    All states of a finite space where some were not seen, which may be any.
    """
    if demos.is_discrete or demos.has_unseen or not isinstance(prior, Regions):
        return "all" if demos.is_discrete and demos.has_unseen else "visited"
    return Landmarks.for_states(len(demos.distinct()[0]), seed) or "visited"


def default_sizes(problem: Problem) -> Sizes:
    """How much is sampled."""
    if problem.landmarks is None:
        return Sizes()
    few = problem.n_transitions < MANY_TRANSITIONS
    return WITH_LANDMARKS if few else WITH_MANY_TRANSITIONS


def default_prior(
    demos: Demonstrations, dynamics: Dynamics, metric: Any = None
) -> PartitionPrior[Any]:
    """Regions that share controllers, everything inferred, with a typical step to go by.

    In a finite space without coordinates distances are counted in steps; where it is too large
    for that, states have no place and the Chinese restaurant process must do. A `metric` that is
    given is kept.
    """
    space = distances(demos, dynamics) if metric is None else metric
    if space is None:
        return ChineseRestaurant(**settings(ChineseRestaurant))
    return Regions(**_in_space(Regions, space, demos, dynamics))


def default_concentration(prior: PartitionPrior[Any]) -> float | TotalMass:
    """Inferred where all else is; the paper's priors have the paper's."""
    return CONCENTRATION if isinstance(prior, Regions) else 1.0


def default_repertoire(prior: PartitionPrior[Any]) -> Any:
    """All that the dynamics offers where its masses are inferred; the paper's priors: actions."""
    return "auto" if isinstance(prior, Regions) else [Actions()]


def settings(kind: type[PartitionPrior[Any]]) -> dict[str, Any]:
    """Parameters of a prior that need no tracks."""
    known = {"n_clusters": CLUSTERS, "concentration": SHARING}
    return {name: value for name, value in known.items() if name in _names(kind)}


def settings_from(
    kind: type[PartitionPrior[Any]],
    demos: Demonstrations,
    dynamics: Dynamics,
    metric: Any = None,
) -> dict[str, Any]:
    """Parameters of a prior as the tracks suggest them."""
    if "decay" not in _names(kind):
        return settings(kind)
    space = distances(demos, dynamics) if metric is None else metric
    return _in_space(kind, space, demos, dynamics)


def _in_space(
    kind: type[PartitionPrior[Any]], space: Any, demos: Demonstrations, dynamics: Dynamics
) -> dict[str, Any]:
    given = settings(kind)
    plain: Any = kind(**given)
    nodes = default_nodes(demos, plain, 0)
    landmarks = nodes if isinstance(nodes, Landmarks) else None
    step = typical_step(demos, dynamics, space, landmarks)
    given["decay"] = (
        Regions.inferred(step).decay if kind is Regions else replace(plain.decay, scale=step)
    )
    if space is None:
        return given
    given["metric"] = space
    many = len(demos.distinct()[0]) > _MANY
    if many and plain.n_neighbors is None and isinstance(space, str | ScaledAxes):
        given["n_neighbors"] = _NEAREST
    if "reassign" in _names(kind):
        given["reassign"] = int(not many)
    return given


def _names(kind: type[PartitionPrior[Any]]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]
