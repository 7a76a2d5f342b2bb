"""Split–merge moves: against the twin, against all partitions, and broken on purpose."""

from dataclasses import replace
from types import SimpleNamespace

import exact
import naive
import naive_split_merge as twins
import numpy as np
import pytest
import scipy.stats
import test_against_exact as enumerated
from naive_split_merge import NaiveSplitMerge
from test_twins import assert_same_state, make_chain, sweep_twin, twin_of

from onlooker.hyper import Gamma
from onlooker.inference.split_merge import SCANS
from onlooker.partitions import (
    ChineseRestaurant,
    GaussianDecay,
    Mixing,
    Potts,
    Uniform,
    indicator_samplers,
)

# -- the twin -----------------------------------------------------------------------------------

MOVES = 4
PRIORS = {
    "uniform": Uniform(9, split_merge=MOVES),
    "mixing": Mixing(7, 0.8, split_merge=MOVES),
    "mixing-q": Mixing(7, 0.8, collapsed=False, split_merge=MOVES),
    "potts": Potts(9, beta=1.5, n_neighbors=4, split_merge=MOVES),
    "potts-offset": Potts(
        12, beta=0.3, decay=GaussianDecay(0.7, 0.2), n_neighbors=None, split_merge=MOVES
    ),
    "crp": ChineseRestaurant(2.5, split_merge=MOVES),
}


def priors_of(chain):
    """The twin's ln p(z_i = k | z_-i), ln p(z) and γ, mixing weights integrated out."""
    prior = chain.prior
    if isinstance(prior, ChineseRestaurant):
        return naive.crp_prior, twins.crp_labels(prior.concentration), prior.concentration
    if isinstance(prior, Potts):
        weights = chain.partition.graph.toarray().tolist()
        return naive.potts_prior(prior.beta, weights), twins.potts_labels(prior.beta, weights), 0.0
    if isinstance(prior, Uniform):
        return naive.uniform_prior, twins.uniform_labels, 0.0
    share = (prior.concentration, prior.n_clusters)
    return naive.mixing_prior(*share), twins.mixing_labels(*share), 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("name", PRIORS)
def test_moves_equal_their_twin(name, collapsed, seed):
    chain = make_chain(PRIORS[name], collapsed, False, seed)
    numbers = set()
    for _ in range(12):
        twin = twin_of(chain, NaiveSplitMerge)
        sweep_twin(twin, chain, collapsed, False)
        for _ in range(MOVES):
            log_prior, log_labels, gamma = priors_of(chain)
            twin.split_merge(SCANS, log_prior, log_labels, gamma, not collapsed)
        chain.sweep()
        assert_same_state(chain, twin)
        numbers.add(chain.n_controllers)
        if not collapsed:
            for i, k in enumerate(chain.state.labels):
                theta = chain.state.arrays["controllers"][k]
                np.testing.assert_allclose(theta, twin.controllers[twin.labels[i]], rtol=1e-12)
    assert len(numbers) > 1  # else no move was ever accepted


# -- all partitions -----------------------------------------------------------------------------


def potts_weights(scale, offset=0.0):
    return exact.weights_potts(enumerated.DISTANCES, exact.gaussian_decay(scale, offset))


MODELS = {
    "uniform": (Uniform(3, split_merge=3), lambda: enumerated._exact("uniform", n_clusters=3)),
    "uniform-full": (Uniform(6, split_merge=3), lambda: enumerated._exact("uniform", n_clusters=6)),
    "mixing": (
        Mixing(4, 0.8, split_merge=3),
        lambda: enumerated._exact("mixing", n_clusters=4, gamma=0.8),
    ),
    "mixing-q": (
        Mixing(4, 0.8, collapsed=False, split_merge=3),
        lambda: enumerated._exact("mixing", n_clusters=4, gamma=0.8),
    ),
    "potts": (
        Potts(4, beta=0.9, decay=GaussianDecay(1.2), n_neighbors=None, split_merge=3),
        lambda: enumerated._exact("potts", n_clusters=4, beta=0.9, weights=potts_weights(1.2)),
    ),
    "potts-offset": (
        Potts(3, beta=0.9, decay=GaussianDecay(0.6, 0.3), n_neighbors=None, split_merge=3),
        lambda: enumerated._exact("potts", n_clusters=3, beta=0.9, weights=potts_weights(0.6, 0.3)),
    ),
    "crp": (ChineseRestaurant(1.3, split_merge=3), lambda: enumerated._exact("crp", gamma=1.3)),
}


@pytest.fixture
def alone(monkeypatch):
    """Let nothing but splits and merges change the partition."""
    monkeypatch.setattr(
        indicator_samplers, "update_indicators", lambda start, labels, *rest: len(labels)
    )


SWEEPS = 4_000


@pytest.mark.parametrize("model", MODELS)
def test_moves_alone_match_the_enumerated_posterior(model, alone):
    prior, oracle = MODELS[model]
    draws = enumerated.run(prior, collapsed=True, blocked=False, sweeps=SWEEPS)
    assert exact.compare(draws, oracle(), alpha=enumerated.ALPHA) == []


@pytest.mark.parametrize("model", ["mixing-q", "potts", "crp"])
def test_moves_alone_match_while_controllers_are_drawn(model, alone):
    prior, oracle = MODELS[model]
    draws = enumerated.run(prior, collapsed=False, blocked=False, sweeps=SWEEPS)
    assert exact.compare(draws, oracle(), alpha=enumerated.ALPHA) == []


@pytest.mark.parametrize(
    ("model", "scheme"),
    [("mixing-q", "ordinary"), ("potts", "blocked"), ("crp", "blocked-ordinary")],
)
def test_moves_between_gibbs_sweeps_match_the_enumerated_posterior(model, scheme):
    prior, oracle = MODELS[model]
    draws = enumerated.run(prior, sweeps=SWEEPS, **enumerated.SCHEMES[scheme])
    assert exact.compare(draws, oracle(), alpha=enumerated.ALPHA) == []


def test_moves_go_with_an_inferred_concentration(alone):
    prior = ChineseRestaurant(Gamma(2.0, 2.0), split_merge=3)
    draws = enumerated.run(prior, collapsed=True, blocked=False, sweeps=SWEEPS)
    oracle = enumerated._exact("crp", gamma=scipy.stats.gamma(2, scale=0.5))
    assert exact.compare(draws, oracle, alpha=enumerated.ALPHA) == []


@pytest.mark.parametrize("prior", [Mixing(7, 0.8), ChineseRestaurant(2.5)], ids=repr)
def test_without_moves_their_kernel_is_not_called(prior, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("compiled for nothing")

    monkeypatch.setattr(indicator_samplers, "split_merge", refuse)
    make_chain(prior, True, False, 0).sweep()
    with pytest.raises(AssertionError, match="compiled for nothing"):
        make_chain(replace(prior, split_merge=1), True, False, 0).sweep()


def test_one_node_cannot_be_split_or_merged():
    chain = make_chain(Uniform(1, split_merge=5), True, False, 0)
    chain.sweep()
    assert chain.n_controllers == 1


# -- broken on purpose --------------------------------------------------------------------------


class AnchorsForgotten(NaiveSplitMerge):
    def log_anchors(self, n_first, n_both):
        return 0.0


class EmptyLabelsForgotten(NaiveSplitMerge):
    def log_labels_to_choose(self, n_empty):
        return 0.0


class ScanForgotten(NaiveSplitMerge):
    def log_scan(self, log_probability):
        return 0.0


class EmptyLabelsOfTheWrongState(NaiveSplitMerge):
    def log_labels_to_choose(self, n_empty):
        return super().log_labels_to_choose(n_empty + 1)


class ControllersKept(NaiveSplitMerge):
    """The controllers are those of the clusters before the move."""

    def finish(self, a, b, accepted, before, after, gamma, ordinary):
        super().finish(a, b, accepted, before, after, gamma, False)


N_CLUSTERS, SHARE = 4, 0.8


def twin_draws(kind, ordinary=False, sweeps=6_000):
    """Draws of a mixture in plain Python, moved by splits and merges alone."""
    likelihood = np.exp(enumerated.LOGLIK)
    order = np.argsort(enumerated.NODE_OF, kind="stable")
    owned = [np.flatnonzero(enumerated.NODE_OF[order] == i) for i in range(enumerated.N)]
    labels, actions = [], []
    log_prior = naive.mixing_prior(SHARE, N_CLUSTERS)
    log_labels = twins.mixing_labels(SHARE, N_CLUSTERS)
    for stream in np.random.SeedSequence(0).spawn(2):
        rng = np.random.default_rng(stream)
        chain = kind(
            likelihood[order],
            owned,
            np.zeros(len(order)),
            np.zeros(enumerated.N),
            enumerated.ALPHA,
            rng,
            range(N_CLUSTERS),
        )
        chain.draw_controllers()
        for _ in range(sweeps):
            if ordinary:
                chain.ordinary_actions()
            else:
                chain.collapsed_actions()
            chain.split_merge(0, log_prior, log_labels, ordinary=ordinary)
            labels.append(list(chain.labels))
            actions.append(np.array(chain.actions)[np.argsort(order)])
    return SimpleNamespace(
        labels=np.array(labels).reshape(2, sweeps, -1),
        actions=np.array(actions).reshape(2, sweeps, -1),
        hyper={},
    )


def twin_problems(kind, **options):
    oracle = enumerated._exact("mixing", n_clusters=N_CLUSTERS, gamma=SHARE)
    return exact.compare(twin_draws(kind, **options), oracle, alpha=enumerated.ALPHA)


@pytest.mark.parametrize("ordinary", [False, True], ids=["collapsed", "ordinary"])
def test_the_right_moves_pass(ordinary):
    assert twin_problems(NaiveSplitMerge, ordinary=ordinary) == []


@pytest.mark.parametrize(
    "broken", [AnchorsForgotten, EmptyLabelsForgotten, ScanForgotten, EmptyLabelsOfTheWrongState]
)
def test_a_wrong_acceptance_ratio_is_caught(broken):
    assert twin_problems(broken)


def test_controllers_that_are_not_drawn_again_are_caught():
    assert twin_problems(ControllersKept, ordinary=True)
