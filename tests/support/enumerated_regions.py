"""Regions that share controllers on problems small enough to enumerate."""

import exact
import numpy as np
import scipy.stats
from agreement import compare
from chains import draws_of
from exact_regions import regions

from onlooker import Problem
from onlooker.gibbs.arrays import Base, make_tables
from onlooker.hyper import Exponential, Gamma, LogUniform, TotalMass
from onlooker.partitions import GaussianDecay, Regions
from onlooker.partitions.regions import bound as updates

ALPHA, NU, SHARING, SCALE = 0.4, 0.3, 0.8, 0.9
PRIORS = {
    "alpha": TotalMass(Exponential(1.0)),
    "nu": Exponential(0.5),
    "gamma": Gamma(1.0, 1.0),
    "scale": LogUniform(0.4, 1.6),
}
"""Of the unknowns, where they are inferred."""
MORE = {
    "regions": lambda chain: chain.bound.kept(chain.state)["regions"],
    "links": lambda chain: chain.links,
}


def many_visits():
    """Twelve transitions a node, four nodes, two actions; one pair of nodes differs."""
    rng = np.random.default_rng(1)
    node_of = np.repeat(np.arange(4), 12)
    played = rng.random(48) < np.array([0.2, 0.25, 0.45, 0.6])[node_of]
    loglik = np.where(np.eye(2, dtype=bool)[played.astype(int)], 0.0, -2.0)
    return node_of, loglik + rng.normal(0, 0.2, (48, 2)), 4, np.array([[0], [0.6], [1.1], [2.0]])


def far_groups():
    """Two pairs of nodes far apart: a node of one pair plays what one of the other does."""
    rng = np.random.default_rng(2)
    node_of = np.array([0, 0, 1, 2, 2, 3, 3])
    loglik = rng.normal(0, 0.5, (7, 3))
    loglik[np.arange(7), [0, 0, 1, 0, 0, 1, 2]] += 2.0
    return node_of, loglik, 4, np.array([[0.0], [0.7], [50.0], [50.5]])


def mostly_idle():
    """Five nodes on a line; all that was seen happened at the second, but for one transition."""
    rng = np.random.default_rng(3)
    node_of = np.array([1, 1, 1, 1, 1, 1, 4])
    loglik = rng.normal(0, 0.5, (7, 3))
    loglik[np.arange(7), [0, 0, 0, 2, 0, 0, 1]] += 2.0
    return node_of, loglik, 5, np.array([[0.0], [0.5], [0.9], [1.6], [2.1]])


def differing_neighbours():
    """Five nodes with sharp likelihoods: pairs that agree lie a little nearer than others.

    The wider the scale, the worse links fit: many a carry is rejected.
    """
    node_of = np.repeat(np.arange(5), 4)
    loglik = np.random.default_rng(0).normal(0, 0.3, (20, 2))
    loglik[np.arange(20), np.array([0, 0, 1, 1, 0])[node_of]] += 4.0
    return node_of, loglik, 5, np.array([[0.0], [0.6], [1.5], [2.1], [3.0]])


def scales():
    """The grid of scales and its probabilities: that of the library, written down again."""
    prior = PRIORS["scale"]
    mean = (prior.high - prior.low) / np.log(prior.high / prior.low)
    values = mean * np.exp(0.025 * np.arange(-60, 61))
    values = values[(values >= prior.low) & (values <= prior.high)]
    return values, np.full(len(values), 1 / len(values))


class OfBase:
    """Policies of counts under a base measure, for `compare`."""

    def __init__(self, shapes):
        self.shapes = shapes

    def policy(self, xi):
        more = xi + self.shapes
        return more / more.sum(axis=-1, keepdims=True)


class Case:
    """A problem, what is inferred, and both ways to its posterior.

    `share` is the base measure over the actions times their number, for a known α.
    """

    def __init__(self, problem, *inferred, alpha=ALPHA, share=None, kinds=None, n_neighbors=None):
        self.node_of, self.loglik, self.n_nodes, self.coordinates = problem
        self.inferred = inferred
        self.share = share
        self.kinds = kinds
        self.n_neighbors = n_neighbors
        self.alpha = PRIORS["alpha"] if "alpha" in inferred else alpha

    @property
    def problem(self):
        base = None if self.share is None else np.asarray(self.share) / len(self.share)
        problem = Problem(self.node_of, self.loglik, self.coordinates, base=base)
        if self.kinds is not None:
            problem.set_kinds(["few", "many"], np.array(self.kinds))
        return problem

    @property
    def prior(self):
        fixed = {"nu": NU, "gamma": SHARING, "scale": SCALE}
        values = {name: PRIORS[name] if name in self.inferred else fixed[name] for name in fixed}
        return Regions(
            values["nu"], GaussianDecay(values["scale"]), values["gamma"], self.n_neighbors
        )

    def oracle(self, given=None):
        n_actions = self.loglik.shape[1]
        of = {
            "alpha": scipy.stats.expon(scale=1 / n_actions),
            "nu": scipy.stats.expon(scale=0.5),
            "gamma": scipy.stats.gamma(1.0),
            "scale": scales(),
        }
        fixed = {"alpha": self.alpha, "nu": NU, "gamma": SHARING, "scale": SCALE}
        values = {name: of[name] if name in self.inferred else fixed[name] for name in of}
        return regions(
            self.node_of,
            self.loglik,
            self.n_nodes,
            values["alpha"],
            values["nu"],
            values["gamma"],
            exact.pairwise_distances(self.coordinates),
            values["scale"],
            share=self.share,
            kinds=self.kinds,
            n_neighbors=self.n_neighbors,
            given=given,
        )

    def draws(self, sweeps, step=None, **options):
        """Draws of two chains."""
        return draws_of(
            self.problem,
            self.prior,
            sweeps=sweeps,
            alpha=self.alpha,
            more=MORE,
            step=step if self.share is None else self.sweep_with_base,
            **options,
        )

    def sweep_with_base(self, chain):
        n_actions = len(self.share)
        base = Base(np.array(self.share), np.arange(n_actions))
        chain.state.tables = make_tables(self.alpha, n_actions, len(self.loglik), base)
        chain.sweep()

    def errors(self, sweeps, given=None, **options):
        """What the draws get wrong."""
        alpha = None if self.share is None else OfBase(self.alpha * np.array(self.share))
        return compare(self.draws(sweeps, **options), self.oracle(given), alpha=alpha)


# -- parts of a sweep ---------------------------------------------------------------------------


def only(*names):
    """Some of the updates of a sweep."""

    def step(chain):
        for update in chain.updates:
            if update.name in names:
                update(chain.state)

    return step


def carries(chain):
    """Long carries with controllers drawn, and nothing else but the actions."""
    carried, state = chain.update("carried"), chain.state
    state.partition.adapted[0] = 30.0
    n_slots = int(state.partition.adapted[1])
    theta = updates.controllers_for(n_slots, state.counts.cluster, state.tables, state.rng)
    fit = updates._fit(state, updates.log_fits(theta, state.data))
    for _ in range(3):
        carried._try_scale(state, fit, n_slots)
    updates.behaviours_given(
        state.actions, state.labels, state.counts, state.data, theta, state.rng
    )
    updates._settle(state)
