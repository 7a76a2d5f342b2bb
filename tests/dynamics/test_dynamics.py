"""How the world moves: tables, and models that are wrong on purpose."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from bare import bare_problem

from onlooker import Demonstrations
from onlooker.dynamics import (
    DisplacementDynamics,
    Dynamics,
    PerturbedDynamics,
    TabularDynamics,
)


def random_table(n_states=6, n_actions=3, seed=0, zeros=0.4):
    """A table (S, A, S) with some impossible transitions."""
    rng = np.random.default_rng(seed)
    table = rng.gamma(1.0, size=(n_states, n_actions, n_states))
    table *= rng.random(table.shape) > zeros
    table[..., 0] += 0.1
    return table / table.sum(axis=2, keepdims=True)


def as_sparse(table):
    return [sp.csr_array(table[:, a]) for a in range(table.shape[1])]


def every_transition(n_states):
    states, next_states = np.divmod(np.arange(n_states**2), n_states)
    return states, next_states


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_log_likelihoods_are_the_logs_of_the_table(form):
    table = random_table()
    states, next_states = every_transition(6)
    found = TabularDynamics(form(table)).log_likelihood(states, next_states)
    np.testing.assert_allclose(np.exp(found), table[states, :, next_states], rtol=1e-14)
    assert (found[table[states, :, next_states] == 0] == -np.inf).all()


@pytest.mark.parametrize(
    "convert",
    [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array],
)
def test_any_sparse_format_and_a_tuple_will_do(convert):
    table = random_table()
    dynamics = TabularDynamics(tuple(convert(table[:, a]) for a in range(3)))
    np.testing.assert_allclose(dynamics.toarray(), table, rtol=1e-15)
    assert dynamics.is_sparse
    assert (dynamics.n_states, dynamics.n_actions) == (6, 3)


def test_dense_and_sparse_tables_agree_in_everything():
    table = random_table()
    dense, sparse = TabularDynamics(table), TabularDynamics(as_sparse(table))
    states = np.array([0, 5, 2, 2])
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=4)
    mixed = dense.next_state_probabilities(states, policy)
    np.testing.assert_allclose(mixed, np.einsum("nas,na->ns", table[states], policy), rtol=1e-13)
    np.testing.assert_allclose(sparse.next_state_probabilities(states, policy), mixed, rtol=1e-13)
    many, actions = np.tile(np.arange(6), 50), np.tile(np.arange(3), 100)
    drawn = [d.sample(many, actions, np.random.default_rng(3)) for d in (dense, sparse)]
    np.testing.assert_array_equal(*drawn)
    assert isinstance(dense, Dynamics)


def test_rounding_is_taken_out_of_the_rows():
    table = random_table() * (1 + 4e-7)
    for form in (table, as_sparse(table)):
        np.testing.assert_allclose(TabularDynamics(form).toarray().sum(axis=2), 1, rtol=1e-14)


def test_a_table_is_a_copy_that_cannot_be_changed():
    table = random_table()
    dynamics = TabularDynamics(table)
    before = dynamics.toarray().copy()
    table[:] = 7
    np.testing.assert_array_equal(dynamics.toarray(), before)
    with pytest.raises(ValueError, match="read-only"):
        dynamics.toarray()[0, 0, 0] = 1
    matrices = as_sparse(random_table())
    dynamics = TabularDynamics(matrices)
    matrices[0].data[:] = 7
    np.testing.assert_allclose(dynamics.toarray(), before)


def chi_square_of_draws(dynamics, table, n=40_000, seed=5):
    """p-value of sampled next states against the table, all rows at once."""
    n_states, n_actions, _ = table.shape
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    drawn = dynamics.sample(states, actions, rng)
    counts = np.zeros_like(table)
    np.add.at(counts, (states, actions, drawn), 1)
    expected = table * counts.sum(axis=2, keepdims=True)
    assert (counts[table == 0] == 0).all()
    possible = table > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    return scipy.stats.chi2.sf(statistic, possible.sum() - n_states * n_actions)


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_draws_follow_the_table(form):
    table = random_table()
    assert chi_square_of_draws(TabularDynamics(form(table)), table) > 1e-3


def test_draws_from_another_table_are_told_apart():
    table = random_table()
    wrong = table[:, [1, 2, 0]] * (table > 0) + 1e-9 * (table > 0)
    wrong /= wrong.sum(axis=2, keepdims=True)
    assert chi_square_of_draws(TabularDynamics(wrong), table) < 1e-10


def test_draws_never_land_on_a_zero_even_at_the_end_of_a_row():
    table = np.zeros((3, 1, 3))
    table[:, 0, 0], table[:, 0, 1] = 1 - 1e-12, 1e-12

    class Extreme:
        def __init__(self, value):
            self.value = value

        def random(self, n):
            return np.full(n, self.value)

    for value in (0.0, np.nextafter(1.0, 0.0)):
        drawn = TabularDynamics(table).sample([0, 1, 2], [0, 0, 0], Extreme(value))
        assert set(drawn.tolist()) <= {0, 1}


def spoiled(where, value):
    table = random_table()
    table[where] = value
    return table


@pytest.mark.parametrize(
    ("transitions", "error", "message"),
    [
        (spoiled((1, 2, 0), np.nan), ValueError, r"transitions\[1, 2, 0\] is nan"),
        (spoiled((1, 2, 0), -0.5), ValueError, r"transitions\[1, 2, 0\] is -0.5; probabilities"),
        (spoiled((4, 1), 0.5), ValueError, r"transitions\[4, 1\] sums to 3; .*normalise it"),
        (as_sparse(spoiled((1, 2, 0), np.nan)), ValueError, r"transitions\[2\]\[1, 0\] is nan"),
        (as_sparse(spoiled((1, 2, 0), -1)), ValueError, r"transitions\[2\]\[1, 0\] is -1.0"),
        (as_sparse(spoiled((4, 1), 0.5)), ValueError, r"row 4 of transitions\[1\] sums to 3"),
        (as_sparse(spoiled((4, 1), 0.0)), ValueError, r"row 4 of transitions\[1\] sums to 0"),
        (np.eye(3), ValueError, r"transitions must be \(S, A, S\).*\(3, 3\)"),
        (np.full((2, 2, 3), 1 / 3), ValueError, r"transitions must be \(S, A, S\).*\(2, 2, 3\)"),
        (np.zeros((3, 0, 3)), ValueError, r"transitions must be \(S, A, S\)"),
        ([], ValueError, r"transitions must be \(S, A, S\)"),
        ([["a"]], TypeError, "transitions must be a dense .* got dtype <U1"),
        (random_table() * 1j, TypeError, "transitions must be .* complex128"),
        ([[1, 2], [3]], ValueError, "transitions is ragged"),
        (None, TypeError, "transitions must be"),
        (sp.eye_array(3), TypeError, "transitions must be one sparse matrix per action"),
        ([sp.eye_array(2), np.eye(2)], TypeError, r"transitions\[1\] is not sparse"),
        ([sp.eye_array(2), sp.eye_array(3)], ValueError, r"transitions\[1\] has shape \(3, 3\)"),
        ([sp.csr_array((2, 3))], ValueError, r"transitions\[0\] has shape \(2, 3\).*square"),
        ([sp.csr_array((0, 0))], ValueError, r"transitions\[0\] has shape \(0, 0\)"),
        ([sp.eye_array(2) * 1j], TypeError, r"transitions\[0\] must hold numbers.*complex"),
    ],
)
def test_bad_tables_are_refused_by_name_place_and_remedy(transitions, error, message):
    with pytest.raises(error, match=message):
        TabularDynamics(transitions)


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda d: d.log_likelihood([0, 6], [0, 0]),
            ValueError,
            "states holds 6 at index 1; .*0 to 5",
        ),
        (
            lambda d: d.log_likelihood([0, 1], [0, -1]),
            ValueError,
            "next_states holds -1 at index 1",
        ),
        (lambda d: d.log_likelihood([0, 1], [0]), ValueError, "2 states but 1 next_states"),
        (lambda d: d.log_likelihood([0.0], [1.0]), TypeError, "states must be .* integer states"),
        (lambda d: d.log_likelihood([[0]], [[1]]), TypeError, r"states must be .*\(1, 1\)"),
        (lambda d: d.sample([0], [3], np.random.default_rng()), ValueError, "actions holds 3 at"),
        (lambda d: d.sample([0], [-1], np.random.default_rng()), ValueError, "actions holds -1 at"),
        (lambda d: d.sample([0], [0.0], np.random.default_rng()), ValueError, "actions must be 1"),
        (lambda d: d.sample([0, 1], [0], np.random.default_rng()), ValueError, "actions must be 2"),
        (
            lambda d: d.next_state_probabilities([0, 1], [[1, 0, 0]]),
            ValueError,
            r"policy must be \(n",
        ),
        (
            lambda d: d.next_state_probabilities([0], [[1, np.nan, 0]]),
            ValueError,
            "policy holds nan",
        ),
    ],
)
def test_states_and_actions_out_of_range_are_refused(form, call, error, message):
    with pytest.raises(error, match=message):
        call(TabularDynamics(form(random_table())))


def test_no_transitions_give_no_rows():
    nothing = np.empty(0, dtype=np.int64)
    for form in (random_table(), as_sparse(random_table())):
        assert TabularDynamics(form).log_likelihood(nothing, nothing).shape == (0, 3)


def test_ten_thousand_sparse_states_never_become_a_dense_cube():
    n_states, n_successors, n_actions = 10_000, 10, 4
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n_states), n_successors)
    matrices = []
    for _ in range(n_actions):
        start = rng.integers(n_states, size=(n_states, 1))
        columns = (start + np.arange(n_successors)) % n_states
        weights = rng.dirichlet(np.ones(n_successors), size=n_states)
        triplets = (weights.ravel(), (rows, columns.ravel()))
        matrices.append(sp.csr_array(triplets, shape=(n_states, n_states)))
    tracemalloc.start()
    try:
        dynamics = PerturbedDynamics(TabularDynamics(matrices), 0.3, random_state=0)
        states = np.arange(n_states)
        drawn = dynamics.sample(states, rng.integers(n_actions, size=n_states), rng)
        demos = Demonstrations(np.column_stack([states, drawn]).tolist())
        problem = bare_problem(demos, dynamics, nodes="all")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.n_nodes == n_states
    assert peak < 60e6  # one action as a dense matrix would take 800 MB


# -- wrong on purpose ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_perturbed_rows_sum_to_one_and_keep_their_zeros(form):
    table = random_table()
    perturbed = PerturbedDynamics(TabularDynamics(form(table)), 0.9, random_state=1)
    np.testing.assert_allclose(perturbed.toarray().sum(axis=2), 1, rtol=1e-14)
    np.testing.assert_array_equal(perturbed.toarray() > 0, table > 0)
    assert not np.allclose(perturbed.toarray(), table)
    assert perturbed.is_sparse == (form is as_sparse)
    assert repr(perturbed).startswith("PerturbedDynamics(6 states")


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_no_perturbation_leaves_the_table_as_it_is(form):
    table = random_table()
    perturbed = PerturbedDynamics(TabularDynamics(form(table)), 0.0, random_state=1)
    np.testing.assert_allclose(perturbed.toarray(), table, rtol=1e-14)


def perturbed_odds(form, eta, n=4000):
    """Ratios of the two factors in a row of two equal probabilities: f1 / f2."""
    table = np.zeros((n, 1, n))
    table[:, 0, 0] = table[:, 0, 1] = 0.5
    odds = PerturbedDynamics(TabularDynamics(form(table)), eta, random_state=2).toarray()
    return odds[:, 0, 0] / odds[:, 0, 1]


@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_errors_are_tangents_of_uniform_angles(form):
    eta = 0.6
    rng = np.random.default_rng(9)
    factors = np.tan(np.pi / 4 * (rng.uniform(-eta, eta, size=(2, 200_000)) + 1))
    found = perturbed_odds(form, eta, n=600)
    assert scipy.stats.ks_2samp(found, factors[0] / factors[1]).pvalue > 1e-3
    assert found.max() < np.tan(np.pi / 4 * 1.6) / np.tan(np.pi / 4 * 0.4)


def test_the_check_of_the_errors_knows_another_strength():
    rng = np.random.default_rng(9)
    factors = np.tan(np.pi / 4 * (rng.uniform(-0.4, 0.4, size=(2, 200_000)) + 1))
    found = perturbed_odds(np.asarray, 0.6, n=600)
    assert scipy.stats.ks_2samp(found, factors[0] / factors[1]).pvalue < 1e-5


def test_the_same_seed_perturbs_the_same_way():
    dynamics = TabularDynamics(random_table())
    first, again, other = (PerturbedDynamics(dynamics, 0.5, seed).toarray() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    np.testing.assert_allclose(dynamics.toarray(), random_table(), rtol=1e-15)  # left alone


@pytest.mark.parametrize(
    ("dynamics", "eta", "error", "message"),
    [
        (TabularDynamics(random_table()), 1.0, ValueError, "eta must be below 1"),
        (TabularDynamics(random_table()), -0.1, ValueError, "eta must be finite and at least 0"),
        (TabularDynamics(random_table()), np.nan, ValueError, "eta must be finite"),
        (TabularDynamics(random_table()), "much", TypeError, "eta must be a number"),
        (DisplacementDynamics.compass(4), 0.5, TypeError, "dynamics must be TabularDynamics"),
        (random_table(), 0.5, TypeError, "dynamics must be TabularDynamics, got ndarray"),
    ],
)
def test_bad_perturbations_are_refused_by_name(dynamics, eta, error, message):
    with pytest.raises(error, match=message):
        PerturbedDynamics(dynamics, eta)
