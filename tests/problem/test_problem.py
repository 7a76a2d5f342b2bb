"""The one form: nodes, transitions, likelihoods; and what `sample` refuses to start with."""

import warnings

import numpy as np
import pytest
from bare import bare_problem
from hypothesis import given
from trajectories import any_trajectories, quick

from onlooker import Demonstrations, Problem, sample
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.hyper import Gamma
from onlooker.partitions import DistanceDependent, Mixing, Potts, Static
from onlooker.problem import problem as problem_module
from onlooker.problem.problem import _share_rows
from onlooker.warnings import UnidentifiableActionsWarning


class Flags:
    """Dynamics of any states whose likelihoods tell two actions apart."""

    n_actions = 2

    def log_likelihood(self, states, next_states):
        return np.tile([0.0, -1.0], (len(states), 1))

    def sample(self, states, actions, rng):
        return states


def walk(n_states=5):
    """A line of states: action 0 goes left, 1 goes right, both fail sometimes."""
    table = np.zeros((n_states, 2, n_states))
    for s in range(n_states):
        table[s, 0, max(s - 1, 0)] += 0.8
        table[s, 1, min(s + 1, n_states - 1)] += 0.8
        table[s, :, s] += 0.2
    return TabularDynamics(table)


# -- nodes -----------------------------------------------------------------------------------------


@quick
@given(any_trajectories)
def test_every_distinct_state_is_one_node_and_transitions_start_where_they_did(trajectories):
    demos = Demonstrations(trajectories)
    problem = bare_problem(demos, Flags())
    starts, _ = demos.transitions()
    np.testing.assert_array_equal(problem.states[problem.node_of], starts)
    distinct = {tuple(np.atleast_1d(s)) for s in demos.states}
    assert problem.n_nodes == len(distinct)
    assert {tuple(np.atleast_1d(s)) for s in problem.states} == distinct


def test_revisited_states_share_a_node_and_the_last_state_has_one():
    problem = bare_problem([[3, 1, 3, 2], [1, 4]], Flags())
    assert problem.states.tolist() == [3, 1, 2, 4]
    assert problem.node_of.tolist() == [0, 1, 0, 1]


def test_real_states_are_revisited_even_with_a_minus_before_the_zero():
    problem = bare_problem(
        [[[0.0, 0.0], [1.0, 0.0], [-0.0, 0.0], [5.0, 5.0]]], DisplacementDynamics.compass(4)
    )
    assert problem.n_nodes == 3
    assert problem.node_of.tolist() == [0, 1, 0]


def test_all_states_of_a_finite_space_can_be_nodes():
    problem = bare_problem([[3, 2]], walk(), nodes="all")
    assert problem.states.tolist() == [0, 1, 2, 3, 4]
    assert problem.node_of.tolist() == [3]


def test_extra_states_join_without_a_transition_and_once_only():
    problem = bare_problem([[3, 2]], walk(), nodes=[2, 4, 4, 0])
    assert problem.states.tolist() == [3, 2, 4, 0]
    dynamics = DisplacementDynamics([[1.0], [-1.0]], 0.5)
    problem = bare_problem([[0.0, 1.0]], dynamics, nodes=[[7.5], [1.0]])
    assert problem.states.tolist() == [[0.0], [1.0], [7.5]]
    problem = bare_problem([[0.0, 1.0]], dynamics, nodes=[7, 8])
    assert problem.states.tolist() == [[0.0], [1.0], [7.0], [8.0]]


@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [
        ("some", ValueError, "nodes must be 'visited', 'all' or an array, got 'some'"),
        (None, TypeError, "nodes must be"),
        ([5], ValueError, "nodes holds 5 at index 0; the dynamics have states 0 to 4"),
        ([1, -1], ValueError, "nodes holds the negative state -1 at index 1"),
        ([1.5], ValueError, r"nodes must be \(n,\) integers like the demonstrations"),
        ([[1, 2]], ValueError, r"nodes must be \(n,\) integers"),
        ([["a"]], TypeError, "nodes must be"),
        ([[1], [1, 2]], ValueError, "nodes is ragged"),
    ],
)
def test_bad_nodes_are_refused_by_name(nodes, error, message):
    with pytest.raises(error, match=message):
        bare_problem([[3, 2]], walk(), nodes=nodes)


def test_bad_nodes_of_real_states_are_refused_by_name():
    demos, dynamics = Demonstrations([np.eye(2)]), DisplacementDynamics.compass(4)
    with pytest.raises(ValueError, match=r"nodes must be \(n, 2\) floats"):
        bare_problem(demos, dynamics, nodes=[[0.0, 1.0, 2.0]])
    with pytest.raises(ValueError, match=r"nodes holds \[nan, 0.0\] at index 0"):
        bare_problem(demos, dynamics, nodes=[[np.nan, 0.0]])
    with pytest.raises(ValueError, match="nodes='all' needs a finite state space; give"):
        bare_problem(demos, dynamics, nodes="all")


# -- transitions and their likelihoods -------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::onlooker.warnings.UnidentifiableActionsWarning")
def test_likelihoods_are_those_of_the_dynamics():
    demos = Demonstrations([[3, 2, 2], [0, 1]])
    problem = bare_problem(demos, walk())
    np.testing.assert_allclose(np.exp(problem.loglik), [[0.8, 0], [0.2, 0.2], [0, 0.8]], atol=1e-12)
    assert problem.dynamics is not None
    assert (problem.n_transitions, problem.n_actions) == (3, 2)
    assert repr(problem) == "Problem(4 nodes, 3 transitions, 2 actions)"


def test_a_transition_that_no_action_can_explain_is_refused_by_its_number():
    with pytest.raises(ValueError, match=r"transition 2 \(1 in all\) cannot be explained.*noise"):
        bare_problem([[0, 1], [1, 0, 3]], walk())


def test_states_out_of_range_and_of_the_wrong_kind_are_refused():
    with pytest.raises(ValueError, match=r"next_states holds 5 at index 0; .*states 0 to 4"):
        bare_problem([[4, 5]], walk())
    with pytest.raises(TypeError, match="tabular dynamics need integer states"):
        bare_problem([[0.0, 1.0]], walk())
    with pytest.raises(ValueError, match=r"states must be \(n, 2\)"):
        bare_problem([[0, 1]], DisplacementDynamics.compass(4))
    with pytest.raises(ValueError, match=r"states must be \(n, 2\)"):
        bare_problem([np.ones((2, 3))], DisplacementDynamics.compass(4))


@pytest.mark.parametrize("dynamics", [None, TabularDynamics, np.eye(3)])
def test_what_is_no_model_of_the_world_is_refused(dynamics):
    with pytest.raises(TypeError, match="dynamics must be a model with n_actions, log_likelihood"):
        bare_problem([[0, 1]], dynamics)


def test_dynamics_that_answer_in_the_wrong_shape_are_refused():
    class Wrong(Flags):
        n_actions = 3

    with pytest.raises(ValueError, match=r"log_likelihood gave shape \(1, 2\) for 1 .* 3 actions"):
        bare_problem([[0, 1]], Wrong())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0, 1], [[0.0, np.nan], [0.0, 1.0]]), ValueError, r"loglik\[0, 1\] is nan"),
        (([0, 1], [[0.0, 1.0], [np.inf, 0.0]]), ValueError, r"loglik\[1, 0\] is inf"),
        (([0, 1], [[0.0, 1.0]]), ValueError, r"loglik must be \(M, A\) with M = 2 .*\(1, 2\)"),
        (([0], [0.0]), ValueError, r"loglik must be \(M, A\)"),
        (([0], np.zeros((1, 0))), ValueError, r"loglik must be \(M, A\)"),
        (([0, 1], [[0.0], [1.0, 2.0]]), ValueError, "loglik is ragged"),
        (([0], [["a"]]), TypeError, "loglik must hold numbers"),
        (([0, 1], [[0.0, 1.0], [-np.inf] * 2]), ValueError, r"transition 1 \(1 in all\) cannot"),
        (([0.0], [[0.0]]), ValueError, r"node_of must be \(M,\) integers.*float64"),
        (([[0]], [[0.0]]), ValueError, r"node_of must be \(M,\) integers.*\(1, 1\)"),
        (([], np.zeros((0, 2))), ValueError, r"node_of must be \(M,\) integers with M > 0"),
        (([-1], [[0.0]]), ValueError, "node_of holds -1 at index 0"),
        (([0, 2], [[0.0], [0.0]], [7, 8]), ValueError, "node_of holds 2 at index 1; there are 2"),
        (([0], [[0.0]], [1, 2, 1]), ValueError, "states holds the same state at 0 and 2"),
        (([0], [[0.0]], [[0.0], [-0.0]]), ValueError, "states holds the same state at 0 and 1"),
        (([0], [[0.0]], [[np.nan]]), ValueError, "states holds .*nan.* at index 0"),
        (([0], [[0.0]], ["a"]), TypeError, "states must be"),
        (([0], [[0.0]], np.zeros((1, 0))), TypeError, r"states must be .*\(1, 0\)"),
    ],
)
def test_a_bad_bare_form_is_refused_by_name_place_and_remedy(arguments, error, message):
    with pytest.raises(error, match=message):
        Problem(*arguments)


def test_the_bare_form_is_a_copy_that_cannot_be_changed():
    node_of, loglik, states = np.array([0]), np.log([[0.5, 0.2]]), np.array([4])
    problem = Problem(node_of, loglik, states)
    node_of[0], loglik[:], states[0] = 9, 9.0, 9
    assert problem.node_of[0] == 0
    assert problem.states[0] == 4
    np.testing.assert_allclose(problem.loglik, np.log([[0.5, 0.2]]))
    for array in (problem.node_of, problem.loglik, problem.states):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_without_states_the_nodes_are_numbers():
    assert Problem([0, 4], np.log([[0.5, 0.2]] * 2)).states.tolist() == [0, 1, 2, 3, 4]


# -- the layout ------------------------------------------------------------------------------------


def test_likelihoods_of_the_layout_are_scaled_so_that_no_row_vanishes():
    loglik = np.array([[-1e6, -1e6 - 1], [-1e300, -1e300], [700.0, -np.inf], [-5e4, -6e4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnidentifiableActionsWarning)
        problem = Problem([1, 0, 1, 2], loglik)
    data = problem.layout.data
    assert (data.likelihood.max(axis=1) == 1).all()
    expected = [[1, 1], [1, np.exp(-1)], [1, 0], [1, 0]]
    np.testing.assert_allclose(data.likelihood[data.row], expected, atol=1e-300)
    np.testing.assert_array_equal(problem.loglik, loglik)  # the layout is a copy
    assert data.log_scale.tolist() == [-1e300, -1e6, 700.0, -5e4]


def test_the_layout_sorts_transitions_by_node_and_keeps_their_order():
    problem = Problem([2, 0, 2, 0, 3], np.log(np.full((5, 1), 0.5)))
    assert problem.layout.data.order.tolist() == [1, 3, 0, 2, 4]
    assert problem.layout.data.first.tolist() == [0, 2, 2, 4, 5]
    turned = problem.layout_by(np.array([3, 2, 1, 0]))
    assert turned.data.order.tolist() == [4, 0, 2, 1, 3]
    assert turned.data.first.tolist() == [0, 1, 3, 3, 5]


# -- honest warnings -------------------------------------------------------------------------------


def test_the_share_of_transitions_that_tell_nothing_is_warned_of_where_the_user_stands():
    with pytest.warns(UnidentifiableActionsWarning, match=r"25.0 % of the transitions") as caught:
        problem = bare_problem([[3, 3, 2, 1, 0]], walk())
    assert problem.unidentifiable_share == 0.25
    assert caught[0].filename == __file__
    with pytest.warns(UnidentifiableActionsWarning, match=r"50.0 %") as caught:
        Problem([0, 1], [[0.0, 0.0], [0.0, 1.0]])
    assert caught[0].filename == __file__


def test_noise_that_drowns_the_steps_is_warned_of():
    dynamics = DisplacementDynamics.compass(8, sigma=1e9)
    with pytest.warns(UnidentifiableActionsWarning, match=r"100.0 % .* check the noise"):
        bare_problem([[[0.0, 0.0], [1.0, 0.0]]], dynamics)


def test_identifiable_actions_and_single_actions_are_not_warned_of():
    problem = bare_problem([[3, 2, 1]], walk())  # warnings are errors here
    assert problem.unidentifiable_share == 0.0
    assert Problem([0], [[0.3]]).unidentifiable_share == 0.0
    assert Problem([0], [[-1.0, -1.0, -np.inf]]).unidentifiable_share == 0.0


# -- what sampling refuses to start with -----------------------------------------------------------


@pytest.fixture
def no_sweeps(monkeypatch):
    """Fail if anything is sampled after all."""

    def refuse(*args, **kwargs):
        raise AssertionError("a chain was started")

    monkeypatch.setattr("onlooker.inference.runner.Chain", refuse)


@pytest.mark.usefixtures("no_sweeps")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"concentration": -1.0}, ValueError, "concentration must be finite and above 0, got -1.0"),
        ({"concentration": 0}, ValueError, "concentration must be finite and above 0"),
        ({"concentration": np.nan}, ValueError, "concentration must be finite"),
        ({"concentration": "high"}, TypeError, "concentration must be a number or a prior"),
        ({"concentration": Gamma}, TypeError, "concentration must be a number or a prior"),
        ({"draws": 0}, ValueError, "draws must be at least 1, got 0"),
        ({"draws": 1.5}, TypeError, "draws must be an integer"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"thin": 0}, ValueError, "thin must be at least 1"),
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"chains": True}, TypeError, "chains must be an integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be at least 1"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"random_state": "seed"}, TypeError, "random_state must be an integer"),
        ({"problem": [[0, 1]]}, TypeError, "problem must be a Problem, got list; make one by"),
        ({"prior": "ddcrp"}, TypeError, "prior must be a partition prior such as"),
        ({"prior": Static}, TypeError, "prior must be a partition prior"),
        (
            {"prior": DistanceDependent(), "collapsed": False},
            ValueError,
            "DistanceDependent has no ordinary Gibbs sampler.*use collapsed=True",
        ),
        ({"resume": True}, ValueError, "resume=True needs a store"),
        ({"prior": Potts(2, metric="nope")}, ValueError, "metric 'nope' fails"),
        ({"prior": Potts(2, metric=np.zeros((2, 2)))}, ValueError, r"metric is a \(2, 2\) matrix"),
        ({"prior": Potts(2, coordinates=[[0.0]])}, ValueError, "state 3 at .* in coordinates"),
    ],
)
def test_sample_refuses_before_any_sampling(changes, error, message):
    problem = bare_problem([[3, 2, 1]], walk())
    arguments = {"problem": problem, "prior": Mixing(2), "draws": 1, "tune": 0, "progress": False}
    with pytest.raises(error, match=message):
        sample(**(arguments | changes))


def test_likelihoods_are_refused_where_states_are_unseen_and_the_first_guess_is_named_so():
    demos = Demonstrations([[[0.0, 0.0], [np.nan, np.nan], [2.0, 0.0]]], missing="infer")
    problem = bare_problem(demos, DisplacementDynamics.compass(4))
    with pytest.raises(ValueError, match=r"not seen.*problem\.first_guess"):
        problem.loglik  # noqa: B018
    assert problem.first_guess.shape == (2, 4)
    with pytest.raises(ValueError, match="not seen"):
        problem.unidentifiable_share  # noqa: B018


def test_equal_likelihoods_at_one_node_share_a_row_and_others_do_not():
    loglik = np.log([[0.5, 0.1], [0.5, 0.1], [0.1, 0.5], [0.5, 0.1], [0.5, 0.1]])
    data = Problem([0, 0, 0, 1, 1], loglik).layout.data
    assert len(data.likelihood) == 3
    assert data.row[0] == data.row[1] != data.row[2]
    assert data.row[3] == data.row[4]
    assert len(set(data.row[[0, 2, 3]])) == 3
    expected = np.exp(loglik - loglik.max(axis=1, keepdims=True))[data.order]
    np.testing.assert_allclose(data.likelihood[data.row], expected)


# -- rows that are shared --------------------------------------------------------------------------


def test_equal_likelihoods_at_one_place_are_kept_once_if_there_are_many():
    rng = np.random.default_rng(0)
    rows = rng.random((6, 5))
    rows[1] = rows[0][::-1]  # the same numbers elsewhere
    kind, place = rng.integers(6, size=80), rng.integers(3, size=80)
    kept, row = _share_rows(rows[kind], place)
    np.testing.assert_array_equal(kept[row], rows[kind])
    assert len(kept) == len(set(zip(kind, place, strict=True))) == 18
    of_row = {(r, p) for r, p in zip(row, place, strict=True)}
    assert len(of_row) == len(kept)  # none is of two places


def test_rows_of_one_key_that_differ_are_kept_apart(monkeypatch):
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    monkeypatch.setattr(problem_module.np, "sqrt", np.zeros_like)  # then all have one key
    kept, row = _share_rows(rows, np.zeros(4, dtype=np.int64))
    np.testing.assert_array_equal(kept[row], rows)


@pytest.mark.parametrize(("n_equal", "shared"), [(24, False), (25, True)])
def test_where_less_than_a_quarter_would_be_saved_all_rows_are_kept(n_equal, shared):
    rows = np.random.default_rng(1).random((100, 3))
    rows[:n_equal] = rows[50 : 50 + n_equal]
    kept, row = _share_rows(rows, np.zeros(100, dtype=np.int64))
    assert len(kept) == (100 - n_equal if shared else 100)
    np.testing.assert_array_equal(kept[row], rows)
