"""How a chain is made, and what many of its sweeps draw: the one place that tests know it from."""

from types import SimpleNamespace

import numpy as np

from onlooker.inference.chain import Chain
from onlooker.inference.runner import Plan


def make_chain(
    problem,
    prior,
    *,
    alpha=1.0,
    collapsed=True,
    rng=None,
    state=None,
    bound=None,
):
    """A chain; `bound` is the prior bound to the problem, where it is shared or was altered."""
    bound = prior.sampler(problem) if bound is None else bound
    return Chain(
        problem,
        bound,
        alpha=alpha,
        collapsed=collapsed,
        rng=rng,
        state=state,
    )


def make_plan(problem, prior, *, concentration=1.0, draws=5, tune=0, chains=2, seed=1):
    """The plan of a run that was never made."""
    return Plan(problem, prior, concentration, True, draws, tune, 1, chains, seed)


def draws_of(
    problem, prior, *, bound=None, sweeps, chains=2, seed=0, step=None, more=None, **options
):
    """Draws of a few chains, in the shape of a posterior; `more` holds functions of a chain."""
    bound = prior.sampler(problem) if bound is None else bound
    keep = {"labels": lambda chain: chain.labels, "actions": lambda chain: chain.actions}
    keep |= more or {}
    kept = {name: [] for name in keep}
    hyper = []
    for stream in np.random.SeedSequence(seed).spawn(chains):
        rng = np.random.default_rng(stream)
        chain = make_chain(problem, prior, bound=bound, rng=rng, **options)
        for sweep in range(20 + sweeps):
            if step is None:
                chain.sweep()
            else:
                step(chain)
            if sweep >= 20:
                for name, value_of in keep.items():
                    kept[name].append(value_of(chain))
                hyper.append(dict(chain.state.hyper))
    arrays = {
        name: np.array(values).reshape(chains, sweeps, *np.shape(values[0]))
        for name, values in kept.items()
    }
    arrays["hyper"] = {
        name: np.array([values[name] for values in hyper]).reshape(chains, sweeps)
        for name in hyper[0]
    }
    return SimpleNamespace(**arrays)
