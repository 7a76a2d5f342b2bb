"""The protocol of a prior: all that sampling, storing, predicting and reporting ask of it.

A prior is a dataclass of parameters. Bound to a problem it starts chains and lists the updates of a
sweep; its draws say with which weight a state that is no node joins each cluster. A prior that
implements this, in a folder of its own and with a line in ``partitions/__init__.py``, needs nothing
else anywhere.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, get_type_hints

import numpy as np

from onlooker.checks import Array, ChoiceError, require_memory
from onlooker.gibbs.arrays import Slots
from onlooker.gibbs.state import Nothing, P, State
from onlooker.hyper import Prior
from onlooker.partitions.continuation import Continuation

if TYPE_CHECKING:
    from onlooker.gibbs.update import Update
    from onlooker.partitions.decay import Decay
    from onlooker.partitions.geometry import Geometry
    from onlooker.problem import Layout, Problem

Hyper = float | Prior
"""A hyper-parameter: a number fixes it, a prior infers it."""

Strategy = Literal["map", "local", "average"]
"""What to do about a state that is no node."""


class HyperText(NamedTuple):
    """A hyper-parameter in words."""

    symbol: str
    name: str
    effect: str
    """What a larger value does."""


class Start(NamedTuple, Generic[P]):
    """Where a chain starts."""

    labels: Array
    slots: Slots
    partition: P
    hyper: dict[str, float]


class Drawn(NamedTuple):
    """Some draws as `PartitionPrior.weights` sees them."""

    first: Array
    """``(B + 1,)``: the clusters of draw b are the rows ``first[b]`` to ``first[b + 1] - 1``, of
    which the last stands for a new one."""
    size: Array
    """Nodes in each cluster, by row."""
    n_regions: Array
    """Regions of each cluster, by row; 0 where draws have none."""
    hyper: Callable[[str], Array]
    """``(B,)``: the draws of a hyper-parameter, or what it is fixed to."""
    n_neighbors: int | None
    """Only the nearest so many nodes count; None: all."""

    @property
    def n_used(self) -> Array:
        """``(B,)``: clusters in use."""
        return np.diff(self.first) - 1


class Weights(NamedTuple):
    """With which weight a state that is no node joins each cluster, in each draw.

    A cluster's score is ``Σ_j (factor · g_j + plus)`` over the state's neighbours in it, plus
    ``mass``, which needs no neighbour.
    """

    factor: Array
    """``(B,)``, as the next one."""
    plus: Array
    mass: Array
    """One number for each row of all draws; that of a new cluster does not count."""
    new: Array
    """``(B,)``: score of a new cluster, or of all empty ones together."""
    beta: Array
    """``(B,)``: weights are ``exp(β · score)``; empty: the scores are the weights."""
    n_slots: int
    """With `beta`: clusters, empty ones included."""


def refuse_clusters(n_clusters: int, n_actions: int) -> None:
    """Refuse so many clusters that the counts of all do not fit into memory."""
    require_memory(
        n_clusters * (24 * n_actions + 64), f"n_clusters={n_clusters:,}", "choose fewer clusters"
    )


def require_slots(state: State[Any], n_slots: int) -> None:
    """Refuse a stored state that has not this many slots."""
    if len(state.slots.order) != n_slots:
        raise ValueError(f"slots.order must have {n_slots} slots, got {len(state.slots.order)}")


def make_weights(drawn: Drawn, **given: Any) -> Weights:
    """Weights that are zero but for what is given."""
    zero = np.zeros(len(drawn.first) - 1)
    nothing = Weights(zero, zero, np.zeros(len(drawn.size)), zero, beta=np.zeros(0), n_slots=0)
    return nothing._replace(**given)


def by_row(drawn: Drawn, values: Array) -> Array:
    """What each draw has, for each of its rows."""
    return np.repeat(values, np.diff(drawn.first))


class Reach(NamedTuple):
    """Which neighbours count, and how much, for priors by which near states share a cluster."""

    decay: Decay
    n_neighbors: int | None
    tolerance: float
    """The decaying part counts where it exceeds this share of its maximum."""
    continuation: Continuation = Continuation()
    """How nodes count for a state that is none."""


class Bound(ABC, Generic[P]):
    """A prior bound to a problem: neighbours found once, shared by chains and threads."""

    layout: Layout
    """How nodes and transitions lie in the kernels' arrays."""
    scattered: bool = False
    """Chains start far apart, each at a place of its own, with hyper-parameters of its own."""

    @abstractmethod
    def start(self, rng: np.random.Generator, chain: int) -> Start[P]:
        """Draw where the chain of this number starts."""

    @abstractmethod
    def updates(self, collapsed: bool) -> list[Update[P]]:
        """The prior's part of a sweep, in its order."""

    @abstractmethod
    def log_prior(self, state: State[P]) -> float:
        """``ln p(z)`` or ``ln p(c)``, a normaliser that is out of reach left out."""

    def kept(self, state: State[P]) -> dict[str, Array]:
        """What is kept of a draw beside labels, in the problem's order: `PartitionPrior.kept`."""
        return {}

    def check(self, state: State[P]) -> None:
        """Refuse a stored state whose slots or `partition` no chain of this prior could have left.

        Kernels do not look where they index: whatever they read there has its shape, its type and
        its range checked here. All else about the state was checked before.
        """


class PartitionPrior(ABC, Generic[P]):
    """A prior over partitions of the nodes: a dataclass whose fields carry their checks.

    A field ``beta: Annotated[Hyper, check_hyper]`` is checked by ``check_hyper("beta", value)``.
    ``get_params`` and ``set_params`` follow scikit-learn, so that a grid search can reach
    ``partition__beta`` and ``partition__decay__scale``.

    Examples
    --------
    >>> from onlooker.partitions import Potts
    >>> Potts(3).set_params(beta=2.0, decay__scale=0.5).decay
    GaussianDecay(scale=0.5, offset=0.0)
    """

    key: ClassVar[str]
    """Its name in TOML files, on the command line and in stores."""
    state: ClassVar[type[Any]] = Nothing
    """P, a NamedTuple of arrays: what its chains remember beside labels; stored by field."""
    kept: ClassVar[tuple[str, ...]] = ()
    """What its draws keep beside labels: ``(N,)`` integers each, from 0 to N - 1."""
    collapsed_only: ClassVar[bool] = False
    """Whether it can be sampled only with the controllers integrated out."""
    passes: ClassVar[int] = 1
    """Passes over the actions in a sweep: more where they are cheap beside the partition."""
    strategies: ClassVar[tuple[Strategy, ...]] = ("average", "map")
    """What can be done about a state that is no node; the first is the default."""
    texts: ClassVar[Mapping[str, HyperText]] = {}
    """Its hyper-parameters in words."""

    @abstractmethod
    def hyper(self) -> dict[str, Hyper]:
        """The hyper-parameters by the names of their draws: numbers, or priors."""

    @abstractmethod
    def bind(self, problem: Problem) -> Bound[P]:
        """Prepare for `problem`; what is costly happens here, once."""

    @abstractmethod
    def weights(self, drawn: Drawn, strategy: Strategy) -> Weights:
        """With which weight a state that is no node joins each cluster."""

    def geometry(self, problem: Problem) -> Geometry | None:
        """Where the nodes lie, for priors to which location matters."""
        return None

    @property
    def reach(self) -> Reach | None:
        """By which neighbours a state is placed; None where location does not matter."""
        return None

    def advice(self, n_clusters: int) -> str:
        """What to try where chains with up to so many clusters do not mix; empty: nothing."""
        return ""

    # -- parameters: the same for every prior ---------------------------------------------------

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse bad parameters; what concerns several fields is added by the prior."""
        for name, check in _checks_of(type(self)):
            check(name, getattr(self, name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` those of nested objects too."""
        params: dict[str, Any] = {}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            params[item.name] = value
            if deep and hasattr(value, "get_params"):
                nested = value.get_params(deep=True).items()
                params |= {f"{item.name}__{name}": inner for name, inner in nested}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones as ``decay__scale``; returns the prior itself."""
        known = [item.name for item in fields(self)]  # type: ignore[arg-type]
        changed = copy.copy(self)
        for name in sorted(params, key=lambda name: "__" in name):  # whole objects before parts
            own, _, nested = name.partition("__")
            value = params[name]
            if own not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {own!r}; it has {', '.join(known)}"
                )
            if nested:
                whole = getattr(changed, own)
                if not hasattr(whole, "set_params"):
                    raise ValueError(f"{own} is {whole!r}, which has no parameter {nested!r}")
                value = whole.set_params(**{nested: value})
            setattr(changed, own, value)
        changed.check()
        self.__dict__.update(changed.__dict__)  # only now: a refusal leaves the prior as it was
        return self


@cache
def _checks_of(prior: type) -> list[tuple[str, Callable[[str, Any], Any]]]:
    """The checks that a prior's fields carry."""
    hints = get_type_hints(prior, include_extras=True)
    return [
        (item.name, check)
        for item in fields(prior)
        for check in getattr(hints[item.name], "__metadata__", ())
    ]


def check_strategy(prior: PartitionPrior[Any], strategy: Strategy | None) -> Strategy:
    """The strategy, or the prior's default; refused if the prior has no such one."""
    if strategy is None:
        return prior.strategies[0]
    if strategy not in prior.strategies:
        raise ChoiceError("extrapolate", strategy, prior.strategies)
    return strategy
