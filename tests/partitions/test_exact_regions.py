"""Regions that share controllers against all link graphs and sharings, enumerated."""

import itertools
import math

import exact
import numpy as np
import pytest
import scipy.stats
from agreement import canonical
from chains import make_chain
from enumerated_regions import (
    NU,
    SCALE,
    SHARING,
    Case,
    carries,
    differing_neighbours,
    far_groups,
    many_visits,
    mostly_idle,
    only,
)
from exact_regions import regions, similarities

SWEEPS = 2_500
SMALL, SHARP = exact.small_problem(seed=3, n_nodes=5), exact.sharp_problem()
EVERY = ("alpha", "nu", "gamma", "scale")

# -- the oracle is right ------------------------------------------------------------------------


def link_weights(distances, scale):
    weights = similarities(distances, scale)
    np.fill_diagonal(weights, NU)
    return weights


def test_the_oracle_is_a_direct_sum_over_links_sharings_and_actions():
    """Controllers one region after the other, actions one by one: no formula is shared."""
    node_of, likelihood = [0, 2, 2], np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.6]])
    distances = exact.pairwise_distances([[0.0], [0.5], [1.1]])
    shapes = 0.3 * np.array([1.4, 0.6])
    weights = link_weights(distances, SCALE)
    pairs, links, actions = {}, np.zeros((3, 3)), np.zeros((3, 2))
    for graph in itertools.product(range(3), repeat=3):
        p_links = math.prod(weights[i, j] / weights[i].sum() for i, j in enumerate(graph))
        parts = exact.components(graph)
        for controllers in exact.set_partitions(len(set(parts))):
            p = p_links
            for r, k in enumerate(controllers):
                before = controllers[:r].count(k)
                p *= (before or SHARING) / (r + SHARING)
            labels = canonical(controllers[r] for r in parts)
            for played in itertools.product(range(2), repeat=3):
                urns = {k: shapes.copy() for k in labels}
                weight = p
                for t, a in enumerate(played):
                    urn = urns[labels[node_of[t]]]
                    weight *= likelihood[t, a] * urn[a] / urn.sum()
                    urn[a] += 1
                pairs[parts, labels] = pairs.get((parts, labels), 0.0) + weight
                links[np.arange(3), graph] += weight
                actions[np.arange(3), played] += weight
    total = sum(pairs.values())
    found = regions(
        node_of, np.log(likelihood), 3, 0.3, NU, SHARING, distances, SCALE, share=[1.4, 0.6]
    )
    assert found.log_evidence == pytest.approx(math.log(total))
    assert found.pairs == pytest.approx({pair: p / total for pair, p in pairs.items()})
    np.testing.assert_allclose(found.links, links / total, rtol=1e-9)
    np.testing.assert_allclose(found.actions, actions / total, rtol=1e-9)


def test_controllers_that_are_never_shared_make_the_ddcrp_without_offset():
    node_of, loglik, n, coordinates = SMALL
    distances = exact.pairwise_distances(coordinates)
    nu = scipy.stats.expon(scale=0.5)
    found = regions(node_of, loglik, n, 0.4, nu, 1e7, distances, SCALE)
    ddcrp = exact.ddcrp(node_of, loglik, n, 0.4, nu, similarities(distances, SCALE))
    np.testing.assert_allclose(found.policy, ddcrp.policy, rtol=1e-5)
    np.testing.assert_allclose(found.policy_sd, ddcrp.policy_sd, rtol=1e-5)
    np.testing.assert_allclose(found.actions, ddcrp.actions, rtol=1e-5)
    assert found.regions.partitions == pytest.approx(ddcrp.partitions, rel=1e-5)
    assert found.hyper["nu"] == pytest.approx(ddcrp.hyper["nu"], rel=1e-5)


def test_many_transitions_are_summed_as_few_are():
    """Actions by their counts, against all sequences."""
    node_of, loglik, n, coordinates = SMALL
    alpha = scipy.stats.expon(scale=1 / 3)
    far = exact.pairwise_distances(100 * coordinates)
    found = regions(node_of, loglik, n, alpha, 1.0, SHARING, far, SCALE)
    crp = exact.crp(node_of, loglik, n, alpha, SHARING)  # every node is a region by itself
    np.testing.assert_allclose(found.policy, crp.policy, rtol=1e-9)
    np.testing.assert_allclose(found.actions, crp.actions, rtol=1e-9)
    assert found.partitions == pytest.approx(crp.partitions, rel=1e-9)
    for key, moments in crp.hyper_by_size.items():
        assert found.hyper_by_size[key] == pytest.approx(moments, rel=1e-9)


def test_without_data_unknowns_have_their_prior():
    case = Case(
        (np.zeros(0, dtype=int), np.zeros((0, 2)), 3, np.array([[0], [0.5], [1.1]])), *EVERY
    )
    found = case.oracle()
    assert found.log_evidence == pytest.approx(0.0, abs=1e-9)
    assert found.hyper["nu"] == pytest.approx((0.5, 0.5), rel=1e-6)
    assert found.hyper["gamma"] == pytest.approx((1.0, 1.0), rel=1e-6)
    assert found.hyper["alpha"] == pytest.approx((0.5, 0.5), rel=1e-6)
    assert found.hyper["scale"][0] == pytest.approx(1.2 / math.log(4), rel=0.01)


# -- the sampler --------------------------------------------------------------------------------

REGIMES = {
    "plain": Case(SMALL),
    "sharp": Case(SHARP, alpha=0.1),
    "tiny mass": Case(SMALL, alpha=0.02),
    "many visits": Case(many_visits(), alpha=0.1),
    "neighbours": Case(SMALL, n_neighbors=2),
    "far groups": Case(far_groups()),
    "base": Case(SMALL, share=(1.8, 0.9, 0.3)),
    "mostly idle": Case(mostly_idle()),
}
INFERRED = {
    "plain": Case(SMALL, *EVERY),
    "sharp": Case(SHARP, *EVERY),
    "many visits": Case(many_visits(), *EVERY),
    "neighbours": Case(SMALL, *EVERY, n_neighbors=2),
    "far groups": Case(far_groups(), *EVERY),
    "mostly idle": Case(mostly_idle(), *EVERY),
    "differing neighbours": Case(differing_neighbours(), *EVERY),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_the_sampler_matches_the_enumerated_posterior(regime):
    assert REGIMES[regime].errors(SWEEPS) == []


@pytest.mark.parametrize("name", EVERY)
def test_one_unknown_matches_the_enumerated_posterior(name):
    assert Case(SMALL, name).errors(SWEEPS) == []


@pytest.mark.parametrize(
    "regime",
    [
        "plain",
        *(pytest.param(name, marks=pytest.mark.slow) for name in INFERRED if name != "plain"),
    ],
)
def test_all_unknowns_together_match_the_enumerated_posterior(regime):
    assert INFERRED[regime].errors(SWEEPS) == []


def test_far_groups_share_controllers_and_never_a_region():
    found = REGIMES["far groups"].oracle()
    assert 0.3 < found.co_clustering[0, 2] < 0.95
    assert found.regions.co_clustering[0, 2] == 0.0


# -- parts of a sweep by themselves -------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [("actions", "links", "scale", "sharing", "gamma"), ("carried", "gamma")],
    ids=["collapsed", "carried"],
)
def test_either_half_of_a_sweep_has_the_whole_target(names):
    assert Case(SHARP, "nu", "gamma", "scale", alpha=0.1).errors(SWEEPS, step=only(*names)) == []


def test_carries_alone_have_the_whole_target():
    assert Case(differing_neighbours(), "scale", alpha=0.3).errors(SWEEPS, step=carries) == []


def test_with_links_given_everything_else_has_its_conditional():
    links = [1, 1, 3, 2, 4]
    case = Case(SMALL, *EVERY)

    def step(chain):
        if not (chain.links == links).all():
            chain.place_regions(links, [0, 1, 2])
        only("actions", "alpha", "scale", "sharing", "gamma")(chain)

    assert case.errors(SWEEPS, given=links, step=step) == []


def test_where_controllers_run_out_the_summed_half_is_left_out():
    """Two slots: chains with more controllers wait for the collapsed half."""

    def step(chain):
        chain.state.partition.adapted[1] = 2
        chain.sweep()

    case = Case(SHARP, alpha=0.1)
    assert case.oracle().n_clusters[3] > 0.05
    assert case.errors(SWEEPS, step=step) == []


@pytest.mark.filterwarnings("ignore::onlooker.warnings.UnidentifiableActionsWarning")
def test_without_data_every_carry_is_accepted():
    """Only the masses of nodes survive in the ratio, and they cancel with the normalisers."""
    node_of, loglik, n, coordinates = SMALL
    case = Case((node_of, np.zeros_like(loglik), n, coordinates), "scale")
    chain = make_chain(case.problem, case.prior, rng=np.random.default_rng(0))
    carries = [chain.sweep()["carried"] for _ in range(400)]
    chances = [carry["accepted"] for carry in carries if carry["tried"]]
    assert len(chances) == 400
    assert set(np.round(chances, 9)) == {0.0, 1.0}  # 0: a scale out of bounds
    assert np.mean(chances) > 0.5
