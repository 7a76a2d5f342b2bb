"""What a store says of a run that differs from the one it holds."""

import pytest

from onlooker.hyper import Gamma
from onlooker.partitions import ChineseRestaurant, Mixing
from onlooker.runs.codec import encode
from onlooker.runs.header import difference


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        (Mixing(3), Mixing(4), "prior: n_clusters (stored: 3, asked: 4)"),
        (
            Mixing(3, 1.00001),
            Mixing(3, 1.00002),
            "prior: concentration (stored: 1.00001, asked: 1.00002)",
        ),
        (
            Mixing(3, 1.0),
            Mixing(3, Gamma(2.0, 4.0)),
            "stored: 1, asked: Gamma with shape 2, rate 4",
        ),
        (
            Mixing(3, 1.0),
            ChineseRestaurant(2.0),
            "prior (stored: Mixing with n_clusters 3, concentration 1, ",
        ),
    ],
)
def test_what_differs_is_told_as_it_would_be_written(there, here, told):
    arrays = {}
    found = difference("prior", encode(there, "prior", arrays), encode(here, "prior", arrays))
    assert told in found
    assert "params" not in found
