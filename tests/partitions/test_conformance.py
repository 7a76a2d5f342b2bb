"""What every prior offers, in every scheme: the protocol of `onlooker.partitions.base`."""

import itertools
import pickle
import warnings
from dataclasses import fields

import numpy as np
import pytest
from agreement import canonical
from chains import make_chain
from exact_parts import components, set_partitions
from small_runs import plane_problem

from onlooker import Problem
from onlooker.checks import ChoiceError
from onlooker.gibbs.arrays import count, make_tables
from onlooker.gibbs.state import State
from onlooker.hyper import Exponential, Gamma, LogUniform, Prior
from onlooker.partitions import PRIORS, GaussianDecay
from onlooker.partitions.base import Drawn, check_strategy
from onlooker.runs.codec import decode, encode

FIXED = {
    "static": {},
    "uniform": {"n_clusters": 3},
    "mixing": {"n_clusters": 3, "concentration": 1.5},
    "potts": {"n_clusters": 3, "beta": 0.7, "n_neighbors": 3},
    "crp": {"concentration": 1.5},
    "ddcrp": {"self_link": 0.4, "decay": GaussianDecay(1.0, 0.05)},
    "regions": {"self_link": 0.4, "decay": GaussianDecay(1.0), "sharing": 1.5},
}
INFERRED = {
    "mixing": {"n_clusters": 3, "concentration": Gamma(2, 1), "collapsed": False},
    "potts": {"n_clusters": 3, "beta": Exponential(1.0), "n_neighbors": 3},
    "crp": {"concentration": Gamma(2, 1)},
    "ddcrp": {
        "decay": GaussianDecay(LogUniform(0.5, 5.0), LogUniform(0.01, 0.1)),
        "reassign": 1,
    },
    "regions": {"decay": GaussianDecay(LogUniform(0.5, 5.0))},
}
CASES = [
    pytest.param(PRIORS[key], given, collapsed, id=f"{key}-{kind}-{scheme}")
    for kind, table in (("fixed", FIXED), ("inferred", INFERRED))
    for key, given in table.items()
    for scheme, collapsed in (("collapsed", True), ("ordinary", False))
    if collapsed or not PRIORS[key].collapsed_only
]
every_case = pytest.mark.parametrize(("kind", "given", "collapsed"), CASES)


def chain_of(kind, given, collapsed, seed=0):
    rng = np.random.default_rng(seed)
    return make_chain(plane_problem(), kind(**given), alpha=0.7, collapsed=collapsed, rng=rng)


def assert_in_order(state):
    """Counts are those of a recount, slots in use are those with nodes, tables are α's."""
    n_slots, n_actions = state.counts.cluster.shape
    recount = count(state.actions, state.labels, state.data.first, n_actions, n_slots)
    for name, mine, right in zip(recount._fields, state.counts, recount, strict=True):
        np.testing.assert_array_equal(mine, right, err_msg=name)
    used = state.slots.order[: state.slots.n[0]]
    assert set(state.labels.tolist()) <= set(used.tolist())
    np.testing.assert_array_equal(state.slots.order[state.slots.where], np.arange(n_slots))
    tables = make_tables(state.hyper["alpha"], n_actions, len(state.actions))
    np.testing.assert_array_equal(state.tables.action, tables.action)


def test_every_prior_is_tried_here():
    assert FIXED.keys() == PRIORS.keys()
    infer = {key for key, given in FIXED.items() if PRIORS[key](**given).hyper()}
    assert infer == INFERRED.keys()


@every_case
def test_counts_are_right_at_the_start_and_after_every_update(kind, given, collapsed):
    chain = chain_of(kind, given, collapsed)
    assert_in_order(chain.state)
    for _ in range(3):
        for update in chain.updates:
            info = update(chain.state)
            assert all(np.isfinite(value) for value in info.values())
            assert_in_order(chain.state)
            chain.bound.check(chain.state)


@every_case
def test_names_of_hyper_parameters_agree_and_each_has_words(kind, given, collapsed):
    chain = chain_of(kind, given, collapsed)
    hyper = kind(**given).hyper()
    assert kind.texts.keys() == hyper.keys()
    assert all(text.name and text.effect for text in kind.texts.values())
    drawn = chain.state.hyper.keys() - {"alpha"}
    assert drawn <= hyper.keys()
    assert {name for name, value in hyper.items() if isinstance(value, Prior)} <= drawn


@every_case
def test_a_state_goes_through_arrays_and_back_and_draws_the_same(kind, given, collapsed):
    chain = chain_of(kind, given, collapsed)
    chain.sweep()
    arrays, rest = chain.state.as_arrays()
    copies = {name: array.copy() for name, array in arrays.items()}
    state = State.from_arrays(copies, pickle.loads(pickle.dumps(rest)), kind.state)
    again = make_chain(
        chain.problem, chain.target.prior, alpha=0.7, collapsed=collapsed, state=state
    )
    for _ in range(2):
        chain.sweep()
        again.sweep()
    one, other = chain.draw(), again.draw()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@every_case
def test_reports_of_updates_have_the_same_names_in_every_sweep(kind, given, collapsed):
    chain = chain_of(kind, given, collapsed)
    names = set()
    for _ in range(4):
        chain.sweep()
        names.add(tuple(chain.info))
    assert len(names) == 1


@pytest.mark.parametrize(
    ("kind", "given"),
    [(PRIORS[key], given) for table in (FIXED, INFERRED) for key, given in table.items()],
)
def test_a_prior_survives_storing_pickling_and_its_own_parameters(kind, given):
    prior = kind(**given)
    arrays = {}
    stored = decode(encode(prior, "prior", arrays), arrays)
    for copied in (stored, pickle.loads(pickle.dumps(prior)), kind(**prior.get_params(deep=False))):
        assert type(copied) is kind
        for item in fields(kind):
            assert repr(getattr(copied, item.name)) == repr(getattr(prior, item.name))


@pytest.mark.parametrize("key", FIXED)
def test_weights_are_those_of_the_table(key):
    """Two draws of four nodes, one with clusters {0, 1, 2} and {3}, one with {0} and {1, 2, 3}."""
    prior = PRIORS[key](**FIXED[key])
    labels = np.array([[0, 0, 0, 1], [0, 1, 1, 1]])
    size, first = np.array([3, 1, 0, 1, 3, 0]), np.array([0, 3, 6])
    n_regions = np.array([2, 1, 0, 1, 2, 0])
    hyper = prior.hyper()
    near = np.array([0.9, 0.5, 0.0, 0.2])  # g of the four nodes
    neighbours = 3 if key == "potts" else None
    drawn = Drawn(first, size, n_regions, lambda name: np.full(2, float(hyper[name])), neighbours)
    weights = prior.weights(drawn, check_strategy(prior, "average"))
    for b in range(2):
        score = [
            sum(weights.factor[b] * g + weights.plus[b] for g in near[labels[b] == k])
            + weights.mass[first[b] + k]
            for k in range(2)
        ]
        new = weights.new[b]
        if len(weights.beta):
            score, new = np.exp(weights.beta[b] * np.array(score)), weights.n_slots - 2
        expected = exact_weights(key, prior, labels[b], near)
        got = np.array([*score, new])
        np.testing.assert_allclose(got / got.sum(), expected / expected.sum())


def exact_weights(key, prior, labels, near):
    """With which weight a new state joins either cluster, or a new one, from the definitions."""
    size = np.bincount(labels, minlength=2)
    if key == "static":
        return np.array([0.0, 0.0, 1.0])
    if key == "uniform":
        return np.ones(3)
    if key == "mixing":
        return np.array([*size, 0]) + prior.concentration / 3
    if key == "crp":
        return np.array([*size, prior.concentration])
    if key == "regions":
        shared = prior.self_link * np.array([*np.where(size > 1, 2, 1), prior.sharing])
        return np.bincount(labels, near, minlength=3) + shared / (3 + prior.sharing)
    f = (1 - prior.decay.offset) * near + prior.decay.offset
    similarity = np.bincount(labels, f, minlength=2)
    if key == "ddcrp":
        return np.array([*similarity, prior.self_link])
    return np.exp(prior.beta * np.array([*similarity, 0.0]))


def tiny(given_states):
    """A problem of these nodes, each with one transition."""
    n = len(given_states)
    return Problem(np.arange(n), np.zeros((n, 2)), given_states)


def log_priors(prior, n=4):
    """``ln p`` of every labeling, or of links and what shares a controller, by the bound prior."""
    states = np.array([[0.0, 0.0], [0.6, 0.1], [1.5, 0.4], [0.2, 1.3]])[:n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = make_chain(tiny(states), prior, rng=np.random.default_rng(0))
    state, found = chain.state, {}
    if "regions" in chain.draw():
        for links in itertools.product(range(n), repeat=n):
            for controllers in set_partitions(len(set(components(links)))):
                chain.place_regions(links, controllers)
                found[links, controllers] = chain.bound.log_prior(state)
        return found
    if "links" in chain.draw():
        for links in itertools.product(range(n), repeat=n):
            chain.place_links(np.array(links), state.actions)
            found[links] = chain.bound.log_prior(state)
        return found
    while state.slots.n[0] < len(state.slots.order) < n:  # clusters come and go
        state.grow()
    for labels in itertools.product(range(len(state.counts.size)), repeat=n):
        state.labels = np.array(labels, dtype=np.int32)
        n_slots, n_actions = state.counts.cluster.shape
        state.counts = count(state.actions, state.labels, state.data.first, n_actions, n_slots)
        found[labels] = chain.bound.log_prior(state)
    return found


@pytest.mark.parametrize("key", ["uniform", "mixing", "crp", "ddcrp", "regions"])
def test_the_prior_of_all_labelings_partitions_or_links_sums_to_one(key):
    found = log_priors(PRIORS[key](**FIXED[key]))
    if key == "crp":  # labels are names: one labeling stands for each partition
        found = {z: p for z, p in found.items() if list(z) == list(canonical(z))}
    assert np.exp(list(found.values())).sum() == pytest.approx(1.0, rel=1e-9)


def test_the_potts_prior_is_that_of_its_energy():
    prior = PRIORS["potts"](3, beta=0.7, n_neighbors=None)
    states = np.array([[0.0, 0.0], [0.6, 0.1], [1.5, 0.4], [0.2, 1.3]])
    weights = prior.decay(np.linalg.norm(states[:, None] - states[None], axis=2))
    for labels, value in log_priors(prior).items():
        z = np.array(labels)
        same = np.triu(z[:, None] == z[None], 1)
        assert value == pytest.approx(0.7 * weights[same].sum())


@pytest.mark.parametrize("key", FIXED)
def test_a_default_strategy_is_one_of_those_that_are_offered_and_others_are_refused(key):
    prior = PRIORS[key](**FIXED[key])
    assert check_strategy(prior, None) in prior.strategies
    with pytest.raises(ChoiceError, match="extrapolate must be one of"):
        check_strategy(prior, "nearest")
    assert ("local" in prior.strategies) == (prior.reach is not None)
