"""What all partition priors share."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from onlooker.partitions.geometry import Geometry
from onlooker.problem.problem import Problem

if TYPE_CHECKING:
    from onlooker.partitions.partition import PartitionSampler


class PartitionPrior:
    """A prior over partitions of the nodes: a dataclass of parameters that makes samplers.

    ``get_params`` and ``set_params`` follow scikit-learn, so that a grid search can reach
    ``partition__beta`` and ``partition__decay__scale``.

    Examples
    --------
    >>> from onlooker.partitions import Potts
    >>> Potts(3).set_params(beta=2.0, decay__scale=0.5).decay
    GaussianDecay(scale=0.5, offset=0.0)
    """

    collapsed_only: ClassVar[bool] = False
    """Whether the sampler exists only with the controllers integrated out."""

    def sampler(self, problem: Problem) -> PartitionSampler:
        """Make the sampler for `problem`; costly preparations happen here, once."""
        raise NotImplementedError

    def geometry(self, problem: Problem) -> Geometry | None:
        """Where the nodes lie, for priors that care."""
        return None

    def _check(self) -> None:
        """Refuse bad parameters."""

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
        changed._check()
        self.__dict__.update(changed.__dict__)  # only now: a refusal leaves the prior as it was
        return self
