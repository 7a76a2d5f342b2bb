"""The unknown parameters of the dynamics, drawn given the actions."""

from __future__ import annotations

import numpy as np

from onlooker.dynamics.unknown import likelihood_of
from onlooker.gibbs.slices import slice_sample_log
from onlooker.gibbs.state import State
from onlooker.hyper import Prior
from onlooker.problem.problem import Layout, Problem


class ParameterSampler:
    """Draws the parameters, and keeps a chain's own table of likelihoods up to date with them.

    Parameters
    ----------
    problem
        Its dynamics has unknown parameters.
    layout
        How the transitions lie.
    """

    def __init__(self, problem: Problem, layout: Layout) -> None:
        assert problem.next_states is not None
        self.priors = problem.parameters
        self.likelihood = np.empty_like(layout.likelihood)
        """``(M, A)``: the scaled likelihoods at the values last set."""
        states = problem.states[problem.node_of[layout.order]]
        self.model = likelihood_of(problem.dynamics, states, problem.next_states[layout.order])

    def start(self) -> dict[str, float]:
        """The priors' means."""
        return {name: prior.mean for name, prior in self.priors.items()}

    def set(self, hyper: dict[str, float]) -> None:
        """Write the table for the values in `hyper`."""
        self.model.fill({name: hyper[name] for name in self.priors}, self.likelihood)

    def update(self, state: State) -> None:
        """Draw every parameter, ``p(ϑ | a) ∝ p(ϑ) Π_t T(s' | s, a_t, ϑ)``, and the new table."""
        log_likelihood = self.model.given(state.actions)
        values = {name: state.hyper[name] for name in self.priors}
        for name, prior in self.priors.items():

            def log_density(value: float, name: str = name, prior: Prior = prior) -> float:
                log_prior = prior.logpdf(value)  # outside its support, a model need not answer
                if log_prior == -np.inf:
                    return log_prior
                return log_likelihood(values | {name: value}) + log_prior

            values[name] = slice_sample_log(log_density, values[name], state.rng)
        state.hyper.update(values)
        self.model.fill(values, self.likelihood)

    def log_likelihood(self, state: State) -> float:
        """``ln p(s' | s, a, ϑ)`` of all transitions."""
        return self.model.given(state.actions)({name: state.hyper[name] for name in self.priors})
