"""States that were not seen, drawn along with everything else, in a finite space."""

import itertools

import exact
import numpy as np
import pytest
from agreement import _action_numbers, _discrepancies, _Group, _label_numbers
from bare import bare_problem
from scipy.special import logsumexp
from unseen_states import ALPHA, MODELS, run

from onlooker import Demonstrations
from onlooker.dynamics import TabularDynamics
from onlooker.inference import unseen
from onlooker.missing import paths
from onlooker.partitions import Mixing

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")


def world(n_states=3, n_actions=2, seed=0):
    rng = np.random.default_rng(seed)
    return TabularDynamics(rng.dirichlet(np.full(n_states, 0.7), size=(n_states, n_actions)))


TABLE = world()

SEEN = [[0, -1, -1, 1], [2, -1, 0]]
"""Two gaps, of two states and of one: five transitions."""


# -- a finite space, enumerated -------------------------------------------------------------------


def completions(trajectories, n_states):
    """Every way to fill the unseen states in."""
    holes = [(k, i) for k, one in enumerate(trajectories) for i, s in enumerate(one) if s < 0]
    for values in itertools.product(range(n_states), repeat=len(holes)):
        whole = [list(one) for one in trajectories]
        for (k, i), value in zip(holes, values, strict=True):
            whole[k][i] = value
        yield values, whole


def enumerated(model, options, table=TABLE, seen=SEEN, alpha=ALPHA):
    """The posterior summed over all completions, and the probability of each."""
    dense, cases, values, n = table.toarray(), [], [], table.n_states
    for filled, whole in completions(seen, n):
        pairs = [pair for one in whole for pair in itertools.pairwise(one)]
        with np.errstate(divide="ignore"):
            loglik = np.log([dense[s, :, end] for s, end in pairs])
        cases.append(getattr(exact, model)([s for s, _ in pairs], loglik, n, alpha, **options))
        values.append(filled)
    mixed = exact.mix("path", np.arange(len(cases)), np.ones(len(cases)), cases)
    log_w = np.array([case.log_evidence for case in cases])
    return mixed, dict(zip(values, np.exp(log_w - logsumexp(log_w)), strict=True))


def discrepancies(draws, oracle, paths_of):
    """What draws get wrong about partitions, actions, policies and unseen states."""
    groups = [_label_numbers(draws.labels, oracle), _action_numbers(draws.actions, oracle)]
    policy, unseen = _Group(), _Group()
    for (i, j), p in np.ndenumerate(oracle.policy):
        sd = oracle.policy_sd[i, j]
        policy.add(f"policy({j} | {i})", draws.policy[..., i, j], p, sd)
    for values, p in paths_of.items():
        unseen.event(f"P(path {values})", (draws.unseen == values).all(axis=-1), p)
    groups += [policy, unseen]
    share = 1e-4 / sum(len(group.names) for group in groups)
    return [line for group in groups for line in _discrepancies(group, share)]


@pytest.mark.parametrize(
    ("name", "collapsed"),
    [
        ("mixing", True),
        ("mixing", False),
        ("crp", True),
        ("crp", False),
        ("ddcrp", True),
        ("ddcrp, reassigned", True),
    ],
)
def test_unseen_states_match_the_enumerated_posterior(name, collapsed):
    prior, model, options = MODELS[name]
    problem = bare_problem(Demonstrations(SEEN, missing="infer"), TABLE, nodes="all")
    draws = run(problem, prior, collapsed=collapsed)
    assert discrepancies(draws, *enumerated(model, options)) == []


def test_impossible_moves_are_never_imputed():
    table = np.array([[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]] * 3)
    table[:, 1] = [0.0, 0.3, 0.7]
    dynamics = TabularDynamics(TabularDynamics(table).matrices)
    problem = bare_problem(Demonstrations(SEEN, missing="infer"), dynamics, nodes="all")
    draws = run(problem, Mixing(2, 0.8), sweeps=3_000)
    _, model, options = MODELS["mixing"]
    assert discrepancies(draws, *enumerated(model, options, dynamics)) == []


def _any_policy(monkeypatch):
    """Any action, as if the policy were not known."""
    right = unseen.draw_paths

    def wrong(path, actions, move_of, transition, gaps, policy, moves, rng):
        flat = np.full_like(policy, 1.0 / policy.shape[1])
        return right(path, actions, move_of, transition, gaps, flat, moves, rng)

    monkeypatch.setattr(unseen, "draw_paths", wrong)


def _mean_instead_of_draw(monkeypatch):
    """The mean of the controllers instead of a draw: gaps are not independent given it."""

    def wrong(state):
        controllers = state.counts.cluster + state.hyper["alpha"]
        return controllers / controllers.sum(axis=1, keepdims=True)

    monkeypatch.setattr(unseen, "controllers_given_counts", wrong)


STAY_OR_SWAP = TabularDynamics(
    np.array([[[0.95, 0.05], [0.05, 0.95]], [[0.05, 0.95], [0.95, 0.05]]])
)
LOOPS = [[0, -1, 0]] * 4
"""Each stays twice or swaps twice, most likely; one controller makes them alike."""


def _impute(chain):
    chain.update("unseen")(chain.state)


def loops():
    """What imputation gets wrong by itself: with one cluster it draws all there is to draw."""
    demos = Demonstrations(LOOPS, missing="infer")
    problem = bare_problem(demos, STAY_OR_SWAP, nodes="all")
    draws = run(problem, Mixing(1, 1.0), alpha=8.0, sweeps=5_000, step=_impute)
    options = {"n_clusters": 1, "gamma": 1.0}
    return discrepancies(draws, *enumerated("mixing", options, STAY_OR_SWAP, LOOPS, alpha=8.0))


@pytest.mark.parametrize("break_it", [_any_policy, _mean_instead_of_draw])
def test_broken_imputations_are_caught(break_it, monkeypatch):
    break_it(monkeypatch)
    assert loops() != []


def test_right_imputations_pass_the_same_check():
    assert loops() == []


# -- the kernel and its twin ----------------------------------------------------------------------


def naive_paths(observed, policy, table, uniforms):
    """Fill gaps in, in the kernel's order: groups with one end, those with long gaps first."""
    observed = list(observed)
    mixed = np.einsum("sj,sje->se", policy, table)
    uniforms = iter(uniforms)

    def pick(weights):
        target = next(uniforms) * weights.sum()
        for k in np.flatnonzero(weights > 0):
            target -= weights[k]
            if target < 0:
                break
        return int(k)

    gaps = []
    for i, s in enumerate(observed):
        if s < 0 <= observed[i - 1]:
            end = next(k for k in range(i, len(observed)) if observed[k] >= 0)
            gaps.append((observed[end], i - 1, end))
    actions = {}
    longest = {state: max(e - b for s, b, e in gaps if s == state) for state, _, _ in gaps}
    for state, before, end in sorted(gaps, key=lambda gap: (-longest[gap[0]], *gap)):
        for i in range(before, end):
            here = observed[i]
            if i + 1 < end:
                reach = np.linalg.matrix_power(mixed, end - i - 1)[:, state]
                observed[i + 1] = pick(mixed[here] * reach)
            actions[i] = pick(policy[here] * table[here, :, observed[i + 1]])
    return observed, actions


def test_paths_are_those_of_the_twin():
    rng = np.random.default_rng(0)
    table = world(6, 3, seed=1)
    policy = rng.dirichlet(np.ones(3), size=6)
    observed = np.where(rng.random(200) < 0.5, -1, rng.integers(6, size=200))
    observed[[0, -1]] = 2
    moves, gaps = paths.make_moves(table), paths.make_gaps(observed, np.flatnonzero(observed < 0))
    path, actions = observed.copy(), np.full(199, -1, dtype=np.int32)
    found = paths.draw_paths(
        path,
        actions,
        np.zeros(199, dtype=np.int64),
        np.append(np.arange(199), -1),
        gaps,
        policy,
        moves,
        np.random.default_rng(5),
    )
    assert found == -1
    uniforms = np.random.default_rng(5).random(2_000)
    expected, expected_actions = naive_paths(observed, policy, table.toarray(), uniforms)
    np.testing.assert_array_equal(path, expected)
    assert {i: a for i, a in enumerate(actions) if a >= 0} == expected_actions


def test_a_gap_that_no_action_bridges_is_named():
    stay = TabularDynamics(np.eye(3)[:, None, :].repeat(2, axis=1))
    with pytest.raises(ValueError, match="from state 1 to 2 in 2 steps"):
        bare_problem(Demonstrations([[0, 0], [1, -1, 2]], missing="infer"), stay, nodes="all")
