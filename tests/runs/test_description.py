"""What a store says of a run that differs from the one it holds."""

import pytest

from onlooker.hyper import Gamma
from onlooker.partitions import ChineseRestaurant, Mixing
from onlooker.runs.codec import encode
from onlooker.runs.header import difference


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        (Mixing(3), Mixing(4), "prior: n_clusters: 3 there, 4 here"),
        (
            Mixing(3, 1.00001),
            Mixing(3, 1.00002),
            "prior: concentration: 1.00001 there, 1.00002 here",
        ),
        (Mixing(3, 1.0), Mixing(3, Gamma(2.0, 4.0)), "1 there, Gamma(shape=2, rate=4) here"),
        (Mixing(3, 1.0), ChineseRestaurant(2.0), "prior: Mixing(n_clusters=3, concentration=1, "),
    ],
)
def test_what_differs_is_told_as_it_would_be_written(there, here, told):
    arrays = {}
    found = difference("prior", encode(there, "prior", arrays), encode(here, "prior", arrays))
    assert told in found
    assert "params" not in found
