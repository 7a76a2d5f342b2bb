"""Trajectories of every kind for property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

quick = settings(deadline=None, max_examples=40, derandomize=True)

integer_trajectories = st.lists(
    hnp.arrays(np.int64, st.integers(2, 6), elements=st.integers(0, 5) | st.integers(0, 10**12)),
    min_size=1,
    max_size=5,
)


def _real_trajectories(n_dims):
    few = st.sampled_from([0.0, -0.0, 1.0])  # so that states come back
    element = few | st.floats(allow_nan=False, allow_infinity=False)
    one = st.integers(2, 5).flatmap(lambda n: hnp.arrays(np.float64, (n, n_dims), elements=element))
    return st.lists(one, min_size=1, max_size=4)


real_trajectories = st.integers(1, 3).flatmap(_real_trajectories)
any_trajectories = integer_trajectories | real_trajectories
