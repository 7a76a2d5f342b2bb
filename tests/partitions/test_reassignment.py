"""Parts of clusters that change sides with their actions: twin, all partitions, broken."""

from dataclasses import replace
from functools import partial

import enumerated
import exact
import link_twins as twins
import numpy as np
import pytest
import scipy.stats
from agreement import canonical
from chains import make_chain
from naive_reassignment import NaiveReassignment
from numba import njit
from small_runs import assert_same_draws, plane_problem, quick

from onlooker import Demonstrations, Problem
from onlooker.fitting.building import make_prior
from onlooker.fitting.model_file import Model
from onlooker.gibbs.actions import ordinary_actions
from onlooker.gibbs.dirichlet import dirichlet
from onlooker.gibbs.summed import log_fits, update_controllers
from onlooker.hyper import Exponential
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.partitions.links.kernels import Shortcuts
from onlooker.partitions.links.summed import link_parts
from onlooker.worlds import CircularMotion

# -- the kernel and its twin --------------------------------------------------------------------


def twin_of(chain):
    links = twins.link_twin(chain)
    state = chain.state.copy()
    first = state.data.first
    owned = [slice(first[i], first[i + 1]) for i in range(chain.problem.n_nodes)]
    twin = NaiveReassignment(
        links.links,
        links.near,
        links.offset,
        twins.ALPHA,
        state.rng,
        [state.data.likelihood[state.data.row[rows]].tolist() for rows in owned],
        [state.actions[rows].tolist() for rows in owned],
    )
    twin.list_in_links()
    return twin


@pytest.mark.parametrize("offset", [0.1, 0.0], ids=["offset", "no-offset"])
@pytest.mark.parametrize("start", ["self", "nearest"])
@pytest.mark.parametrize("seed", range(4))
def test_a_pass_equals_its_twin(seed, start, offset):
    chain = twins.link_chain(seed, start, decay=GaussianDecay(0.8, offset))
    twin = twin_of(chain)
    moved = 0
    for _ in range(4):
        twin.update_links(0.3)
        chain.update("links")(chain.state)
        before = canonical(twin.labels())
        twin.reassign()
        chain.update("summed")(chain.state)
        moved += canonical(twin.labels()) != before
        assert chain.state.partition.link.tolist() == twin.links
        assert canonical(chain.state.labels) == canonical(twin.labels())
        assert chain.state.actions.tolist() == [a for rows in twin.actions for a in rows]
        assert chain.state.counts.node.tolist() == twin.phi
        for members in twin.clusters:
            k = chain.state.labels[members[0]]
            assert chain.state.counts.cluster[k].tolist() == twin.counts(members)
    assert moved


def test_the_number_of_clusters_stays():
    chain = twins.link_chain(1, "nearest", decay=GaussianDecay(0.8, 0.1))
    n = chain.n_controllers
    assert n > 1
    for _ in range(20):
        chain.update("summed")(chain.state)
        assert chain.n_controllers == n


def test_a_resumed_run_equals_an_unbroken_one(tmp_path):
    problem, prior = plane_problem(), DistanceDependent.inferred()
    assert prior.reassign == 1
    quick(problem, prior, draws=4, store=tmp_path)
    more = quick(problem, prior, draws=9, store=tmp_path, resume=True)
    assert_same_draws(more, quick(problem, prior, draws=9))


def test_with_more_clusters_than_are_summed_over_nothing_is_done():
    chain = twins.link_chain(1, "nearest", decay=GaussianDecay(0.8, 0.1))
    few = chain.n_controllers - 1
    summed = chain.update("summed")
    summed.shortcuts = summed.shortcuts._replace(max_exact=few)
    before = chain.state.copy()
    assert summed(chain.state) == {"done": 0.0}
    assert (chain.state.actions == before.actions).all()
    assert chain.state.rng.random() == before.rng.random()


# -- against the enumerated posterior -----------------------------------------------------------


def draws_of(prior, alpha=enumerated.ALPHA, passes=2, **more):
    prior = replace(prior, reassign=passes)
    return enumerated.run(prior, alpha=alpha, **({"sweeps": 6_000} | more))


@pytest.mark.parametrize("model", enumerated.DISTANCE_DEPENDENT)
def test_draws_match_the_enumerated_posterior(model):
    prior, oracle = enumerated.DISTANCE_DEPENDENT[model]
    assert exact.compare(draws_of(prior), oracle(), alpha=enumerated.ALPHA) == []


def test_inferred_decays_match_the_enumerated_posterior():
    prior, oracle = enumerated.INFERRED_DECAYS["both"]
    assert exact.compare(draws_of(prior), oracle(), alpha=enumerated.ALPHA) == []


def test_an_inferred_concentration_matches_the_enumerated_posterior():
    prior, oracle = enumerated.INFERRED["ddcrp, nu"]
    draws = draws_of(prior, alpha=Exponential(0.8))
    assert exact.compare(draws, oracle(alpha=scipy.stats.expon(scale=0.8))) == []


@pytest.mark.parametrize("longest", [1, 2])
def test_walks_that_are_given_up_match_the_enumerated_posterior(longest):
    prior, oracle = enumerated.DISTANCE_DEPENDENT["all-pairs"]
    draws = draws_of(prior, shortcuts=Shortcuts(100, 1, longest))
    assert exact.compare(draws, oracle(), alpha=enumerated.ALPHA) == []


# -- clusters out of reach ----------------------------------------------------------------------


def two_groups(decay, n=60, per=100, **options):
    """A chain whose left group would be far better off in the right one, which it cannot reach."""
    half = n // 2
    places = np.r_[np.arange(n), 10_000 + np.arange(n)].astype(float)[:, None]
    plays = np.r_[np.zeros(half, dtype=int), np.ones(n + half, dtype=int)]
    node_of = np.repeat(np.arange(2 * n), per)
    loglik = np.full((len(node_of), 2), np.log(0.05))
    loglik[np.arange(len(node_of)), plays[node_of]] = np.log(0.95)
    problem = Problem(node_of, loglik, places)
    links = np.maximum(np.arange(2 * n) - 1, 0)
    links[n] = n
    prior = DistanceDependent(0.1, decay, reassign=1, **options)
    chain = make_chain(problem, prior, rng=np.random.default_rng(0))
    layout = chain.bound.layout
    chain.place_links(layout.place[links[layout.nodes]], plays[node_of][layout.data.order])
    return chain


@pytest.mark.parametrize("n_neighbors", [4, None])
def test_a_cluster_out_of_reach_is_never_joined_however_well_it_fits(n_neighbors):
    offset = 0.0 if n_neighbors is None else 0.01
    chain = two_groups(GaussianDecay(2.0, offset), n_neighbors=n_neighbors)
    for _ in range(3):
        chain.update("summed")(chain.state)
        assert np.isfinite(chain.log_joint())
        assert chain.state.partition.link.min() >= 0
        assert chain.n_controllers == 2
        assert (chain.labels[:60] != chain.labels[60:]).all()


@pytest.mark.filterwarnings("ignore::onlooker.warnings.GeometryWarning")
def test_a_link_that_lost_its_weight_stays_if_no_other_has_any():
    chain = two_groups(GaussianDecay(1e-3))  # no node has a neighbour at all
    links = chain.links.copy()
    chain.update("summed")(chain.state)
    assert (chain.links == links).all()


# -- broken on purpose --------------------------------------------------------------------------


FAULTS = ["none", "old actions", "other controllers", "twice", "alone"]


@njit
def broken_pass(fault, labels, actions, forest, slots, counts, tables, data, graph, shortcuts, rng):
    """The kernel with one mistake, by its number: all are compiled at once."""
    forget, stale, twice, alone = fault == 1, fault == 2, fault == 3, fault == 4
    if slots.n[0] < 2:
        return False
    controllers = np.empty(counts.cluster.shape)
    for p in range(slots.n[0]):
        k = slots.order[p]
        dirichlet(controllers[k], counts.cluster[k], tables.alpha, tables.share, rng)
    update_controllers(
        controllers,
        slots,
        forest.pool,
        forest.start,
        counts.size,
        tables.alpha * tables.share,
        data,
        rng,
    )
    fits = log_fits(controllers, slots, data)
    if twice:
        fits *= 2.0
    if alone:  # as if the part were of nodes that nothing is known about
        fits[:] = 0.0
    link_parts(labels, forest, slots, counts, fits, graph, shortcuts, rng)
    if stale:
        for p in range(slots.n[0]):
            k = slots.order[p]
            dirichlet(controllers[k], counts.cluster[k], tables.alpha, tables.share, rng)
    if not forget:
        ordinary_actions(actions, labels, counts, data, controllers, rng)
    return True


def compared(monkeypatch, fault, alpha=0.1):
    """Disagreement with the enumerated posterior where much hangs on the pass.

    Actions are hard to tell apart and α is small, so that actions follow their clusters.
    """
    wrong = partial(broken_pass, FAULTS.index(fault))
    monkeypatch.setattr("onlooker.partitions.ddcrp.bound.summed_pass", wrong)
    problem = Problem(enumerated.NODE_OF, 0.3 * enumerated.LOGLIK, enumerated.COORDINATES)
    weights = enumerated.decayed(0.8, 0.1)
    oracle = exact.ddcrp(problem.node_of, problem.loglik, enumerated.N, alpha, 1.5, weights)
    prior = DistanceDependent(1.5, GaussianDecay(0.8, 0.1))
    sweeps = 25_000 if fault == "old actions" else 8_000  # the next sweep nearly mends that one
    draws = draws_of(prior, alpha=alpha, passes=8, problem=problem, sweeps=sweeps)
    return exact.compare(draws, oracle, alpha=alpha)


@pytest.mark.parametrize("fault", FAULTS[1:])
def test_a_wrong_pass_is_caught(fault, monkeypatch):
    assert compared(monkeypatch, fault)


def test_the_same_kernel_without_a_mistake_is_not(monkeypatch):
    assert compared(monkeypatch, "none") == []


# -- options ------------------------------------------------------------------------------------


def test_a_negative_number_of_passes_is_refused():
    with pytest.raises(ValueError, match="reassign must be at least 0"):
        DistanceDependent(reassign=-1)


def test_fit_reassigns_unless_told_otherwise():
    demos, dynamics = Demonstrations([np.arange(12.0).reshape(6, 2)]), CircularMotion().dynamics
    ddcrp = {"kind": "ddcrp"}
    assert make_prior(demos, dynamics, Model(prior=ddcrp)).reassign == 1
    assert make_prior(demos, dynamics, Model(prior={**ddcrp, "reassign": 3})).reassign == 3
