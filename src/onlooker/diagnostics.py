"""Have the chains converged? R-hat and effective sample sizes of scalars that know no labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlooker.posterior import Posterior


class ConvergenceWarning(UserWarning):
    """The chains disagree, or have drawn too little to tell."""


def check_convergence(posterior: Posterior, stacklevel: int = 2) -> None:
    """Warn if R-hat or the effective sample sizes are poor."""
