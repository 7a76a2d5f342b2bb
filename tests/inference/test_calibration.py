"""Simulation-based calibration: the truth's rank among posterior draws is uniform."""

from unittest import mock

import pytest
from calibration import MODELS, p_values, ranks

from onlooker.hyper import Gamma
from onlooker.partitions.regions import bound as regions

REPLICATES = 48


@pytest.mark.parametrize("name", ["crp", "ddcrp"])
def test_ranks_of_the_truth_are_uniform(name):
    found = [ranks(name, seed) for seed in range(REPLICATES)]
    assert min(p_values(found, n_bins=4).values()) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_ranks_of_the_truth_are_uniform_with_every_prior(name):
    found = [ranks(name, seed) for seed in range(3 * REPLICATES)]
    assert min(p_values(found).values()) > 1e-4


def test_a_sampler_with_another_prior_is_caught():
    found = [ranks("mixing", seed, alpha=Gamma(20.0, 4.0)) for seed in range(REPLICATES)]
    assert p_values(found, n_bins=4)["alpha"] < 1e-6


@pytest.mark.slow
def test_links_without_their_normaliser_are_caught():
    with mock.patch.object(regions, "log_link_normaliser", return_value=0.0):
        found = [ranks("regions", seed) for seed in range(REPLICATES // 2)]
    assert p_values(found, n_bins=4)["scale"] < 1e-6
