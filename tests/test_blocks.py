"""Blocks of rows: all rows, in order, none too large."""

import pytest

from onlooker.blocks import slices_of


@pytest.mark.parametrize(
    ("n", "width", "blocks"),
    [
        (10, 3, [range(4), range(4, 8), range(8, 10)]),
        (8, 3, [range(4), range(4, 8)]),
        (3, 100, [range(1), range(1, 2), range(2, 3)]),  # a row is never cut
        (2, 1, [range(2)]),
        (0, 5, []),
    ],
)
def test_blocks_hold_every_row_once_and_no_more_numbers_than_they_may(n, width, blocks):
    rows = range(n)
    assert [rows[part] for part in slices_of(n, width, 12)] == blocks
