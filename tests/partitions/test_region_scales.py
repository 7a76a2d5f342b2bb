"""Similarities at every scale that regions try."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from onlooker.partitions import GaussianDecay
from onlooker.partitions.geometry import Geometry
from onlooker.partitions.regions.scales import TOLERANCE, Scales


@pytest.mark.parametrize("scale", [0.05, 0.5, 3.0])
def test_sums_are_those_of_all_similarities_within_reach(scale):
    places = np.random.default_rng(0).normal(size=(40, 2))
    decay = GaussianDecay(scale)
    scales = Scales(Geometry(places), decay, None)
    similarity = np.where((g := decay.g(cdist(places, places))) >= TOLERANCE, g, 0.0)
    np.fill_diagonal(similarity, 0.0)
    np.testing.assert_allclose(scales.sums(0), similarity.sum(axis=1), rtol=1e-9, atol=1e-12)
    assert scales.total(0) == pytest.approx(max(similarity.sum(), TOLERANCE))
