"""How a chain is made, and what many of its sweeps draw: the one place that tests know it from."""

from types import SimpleNamespace

import numpy as np
from exact_parts import components

from onlooker import Posterior
from onlooker.gibbs.arrays import count, make_slots
from onlooker.inference.chain import Chain
from onlooker.inference.draws import Draws
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.partitions.links.forest import list_in_links, make_forest


class WatchedChain(Chain):
    """A chain that tells what is kept beside labels and actions, and lets updates be made alone."""

    @property
    def problem(self):
        return self.target.problem

    def update(self, name):
        """The update of this name, to be called alone."""
        return next(update for update in self.updates if update.name == name)

    def place_links(self, links, actions):
        """Go to these links between places, and these sorted actions."""
        state = self.state
        state.partition, state.labels, state.slots = make_forest(links)
        state.actions = actions.astype(np.int32)
        n_slots, n_actions = state.counts.cluster.shape
        state.counts = count(state.actions, state.labels, state.data.first, n_actions, n_slots)

    def place_regions(self, links, controllers):
        """Go to these links between nodes, and the controllers of the regions that they make.

        Regions are numbered by first appearance, over nodes; controllers so over regions.
        """
        state, layout, n_slots = self.state, self.bound.layout, len(self.state.counts.size)
        links, labels = np.array(links), np.array(controllers)[list(components(links))]
        link = layout.place[links[layout.nodes]].astype(np.int32)
        siblings = np.full((len(link), 3), -1, dtype=np.int32)
        list_in_links(link, siblings)
        state.partition = state.partition._replace(
            link=link, siblings=siblings, n_regions=np.bincount(controllers, minlength=n_slots)
        )
        state.labels = labels[layout.nodes].astype(np.int32)
        state.slots = make_slots(n_slots, len(set(controllers)))
        n_actions = state.counts.cluster.shape[1]
        state.counts = count(state.actions, state.labels, state.data.first, n_actions, n_slots)

    @property
    def links(self):
        return self.bound.layout.of_nodes(self.bound.layout.nodes[self.state.partition.link])

    @property
    def imputed(self):
        return self.draw().get("imputed")


def make_chain(problem, prior, *, alpha=1.0, collapsed=True, bound=None, **others):
    """A chain; `bound` is the prior bound to the problem, where it is shared or was altered."""
    bound = prior.bind(problem) if bound is None else bound
    return WatchedChain(Target(problem, prior, alpha, collapsed), bound, **others)


def make_posterior(problem, prior, draws, *, concentration=1.0, tune=0, seed=1):
    """A posterior of draws that were never sampled; `draws` are arrays of stacked chains."""
    n_chains, n_draws = draws["labels"].shape[:2]
    schedule = Schedule(draws=n_draws, tune=tune, chains=n_chains, seed=seed)
    target = Target(problem, prior, concentration)
    return Posterior(target, schedule, Draws(draws), range(n_chains))


def draws_of(
    problem, prior, *, bound=None, sweeps, chains=2, seed=0, step=None, more=None, **options
):
    """Draws of a few chains, in the shape of a posterior; `more` holds functions of a chain."""
    bound = prior.bind(problem) if bound is None else bound
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
