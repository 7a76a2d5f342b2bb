"""Actions between unknown positions, drawn with the positions integrated out."""

import itertools
from types import SimpleNamespace

import exact
import numpy as np
import pytest
from agreement import _action_numbers, _discrepancies, _Group, _label_numbers
from bare import bare_problem
from naive_positions import NaiveWalk, log_seen
from unseen_states import ALPHA, MODELS, run

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.gibbs.arrays import count
from onlooker.inference import unseen
from onlooker.missing import actions as kernels

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")

COMPASS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
LINE = np.array([[0.9], [-0.4]])
NAN = [np.nan, np.nan]

# -- the kernel and its twin ----------------------------------------------------------------------


def compass(n):
    angle = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def walked(steps, n, sigma, noise, hidden, rng):
    """A trajectory with some coordinates hidden; its ends are seen."""
    moves = steps[rng.integers(len(steps), size=n)] + sigma * rng.normal(size=(n, steps.shape[1]))
    track = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(moves, axis=0)])
    track += noise * rng.normal(size=track.shape)
    track[1:-1][rng.random(n - 1) < hidden] = np.nan
    return track


def both(tracks, steps, sigma, noise, collapsed, seed):
    """The actions that the kernel draws in one sweep, and those of the twin."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum([len(track) for track in tracks])])
    observed = np.concatenate(tracks)
    starts = np.delete(np.arange(len(observed)), offsets[1:] - 1)
    n, n_actions = len(starts), len(steps)
    labels, actions = rng.integers(2, size=n), rng.integers(n_actions, size=n).astype(np.int32)
    counts = count(actions, labels, np.arange(n + 1), n_actions, 2)
    theta = rng.dirichlet(np.ones(n_actions), size=2)
    walk = kernels.Walk(
        actions.copy(),
        np.arange(n),
        labels,
        counts,
        np.full(n_actions, ALPHA),
        np.empty((0, n_actions)) if collapsed else theta,
    )
    kernels.draw_actions(
        walk,
        kernels.make_steps(steps),
        kernels.make_runs(observed, starts, offsets),
        observed,
        sigma,
        noise,
        np.random.default_rng(seed),
    )
    assert all(map(np.array_equal, counts, recounted(walk, n_actions)))
    shared, expected = np.random.default_rng(seed), actions.tolist()
    first = 0
    for track in tracks:
        mine = slice(first, first + len(track) - 1)
        others = np.zeros((2, n_actions))
        rest = np.delete(np.arange(n), np.arange(n)[mine])
        np.add.at(others, (labels[rest], np.array(expected)[rest]), 1)
        twin = NaiveWalk(
            track,
            steps,
            sigma,
            noise,
            labels[mine].tolist(),
            expected[mine],
            ALPHA,
            None if collapsed else theta,
            others,
            shared,
        )
        twin.sweep()
        expected[mine] = twin.actions
        first = mine.stop
    return walk.actions.tolist(), expected


def recounted(walk, n_actions):
    return count(walk.actions, walk.labels, np.arange(len(walk.actions) + 1), n_actions, 2)


@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_actions_are_those_of_the_twin(sigma, noise, collapsed):
    rng = np.random.default_rng(0)
    for seed in range(4):
        steps = compass(4 + seed % 2)
        tracks = [walked(steps, 9, sigma, noise, hidden, rng) for hidden in (0.6, 0.2)]
        tracks[1][3, 0] = tracks[1][0, 1] = tracks[1][-1, 0] = np.nan  # one coordinate alone
        drawn, expected = both(tracks, steps, sigma, noise, collapsed, seed)
        assert drawn == expected


def test_actions_on_the_line_and_in_space_are_those_of_the_twin():
    rng = np.random.default_rng(1)
    for steps in (LINE, np.concatenate([np.eye(3), -np.eye(3)])[[0, 1, 2, 4]]):
        track = walked(steps, 7, 0.1, 0.1, 0.5, rng)
        drawn, expected = both([track], steps, 0.1, 0.1, True, 3)
        assert drawn == expected


def test_three_actions_that_explain_nothing_stay():
    """Far from what any three lead to, nothing is drawn: what could be must not depend on them."""
    track = np.array([[0.0, 0.0], NAN, NAN, [9.0, 9.0]])
    left = track[3] - 3 * COMPASS[0]
    counts = count(np.zeros(3, int), np.zeros(3, int), np.arange(4), 4, 1)
    walk = kernels.Walk(
        np.zeros(3, np.int32), np.arange(3), np.zeros(3, int), counts, np.ones(4), np.empty((0, 4))
    )
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    steps = kernels.make_steps(COMPASS)
    kernels._draw_three(0, 1, 2, left, np.full(2, 0.01), steps, walk, rng)
    assert walk.actions.tolist() == [0, 0, 0]
    assert rng.bit_generator.state == before


# -- enumerated -----------------------------------------------------------------------------------


def oracle(tracks, steps, sigma, noise, model):
    """Partitions and actions; every sequence weighed by the density of all that was seen."""
    ends = np.cumsum([len(track) for track in tracks])
    node_of = np.delete(np.arange(ends[-1]), ends - 1)
    n = len(node_of)  # nodes; the last state of a trajectory says nothing
    _, name, options = MODELS[model]
    flat = getattr(exact, name)(np.arange(n), np.zeros((n, len(steps))), n, ALPHA, **options).table
    log_l, at = np.zeros(len(flat.sequences)), 0
    for track in tracks:
        part = flat.sequences[:, at : at + len(track) - 1]
        log_l += log_seen(track, steps[part], sigma, noise)
        at += len(track) - 1
    joint = flat.joint[0] * np.exp(log_l - log_l.max())
    joint /= joint.sum()
    same = np.array([np.equal.outer(p, p) for p in map(np.array, flat.partitions)])
    p_partition, p_sequence = joint.sum(axis=1), joint.sum(axis=0)
    partitions = dict(zip(flat.partitions, p_partition, strict=True))
    return SimpleNamespace(
        node_of=node_of,
        co_clustering=np.einsum("p,pij->ij", p_partition, same),
        n_clusters=exact.n_of_size(partitions),
        partitions=partitions,
        actions=np.stack([p_sequence @ (flat.sequences == j) for j in range(len(steps))], axis=-1),
        p_sequence=dict(zip(map(tuple, flat.sequences.tolist()), p_sequence, strict=True)),
    )


def discrepancies(draws, truth):
    """What draws get wrong about partitions, single actions, and likely sequences."""
    sequences = _Group()
    for sequence, p in truth.p_sequence.items():
        if p > 0.01:
            sequences.event(f"P(a = {sequence})", (draws.actions == sequence).all(axis=-1), p)
    groups = [
        _label_numbers(draws.labels[..., truth.node_of], truth),
        _action_numbers(draws.actions, truth),
        sequences,
    ]
    share = 1e-4 / sum(len(group.names) for group in groups)
    return [line for group in groups for line in _discrepancies(group, share)]


TRACKS = {
    "gap of one": ([[[0, 0], NAN, [1, 1]], [[0, 0], NAN, [0.1, 0]]], COMPASS, 0.0),
    "gap of two": ([[[0, 0], NAN, NAN, [1.1, -0.1]], [[0, 0], [1, 0]]], COMPASS, 0.0),
    "gap of three": ([[[0, 0], NAN, NAN, NAN, [1, 1]]], COMPASS, 0.0),
    "gap of five on the line": ([[[0], *[[np.nan]] * 5, [1.5]]], LINE, 0.0),
    "noise": ([[[0], [0.6], [0.8], [0.7], [1.1], [1.0]]], LINE, 0.4),
    "noise in the plane": ([[[0, 0], [0.6, 0.5], [1.1, 0.9], [1.5, 1.6]]], COMPASS, 0.5),
    "holes in a noisy track": (
        [[[0], [np.nan], [0.6], [np.nan], [np.nan], [np.nan], [0.9], [0.7]]],
        LINE,
        0.3,
    ),
    "a coordinate alone": ([[[0, np.nan], [np.nan, 0.1], [1.2, np.nan], [1, 1]]], COMPASS, 0.0),
}


def drawn(name, sigma, model="mixing", **options):
    trajectories, steps, noise = TRACKS[name]
    tracks = [np.array(track, dtype=float) for track in trajectories]
    problem = bare_problem(
        Demonstrations([track + 10 * k for k, track in enumerate(tracks)], missing="infer"),
        DisplacementDynamics(steps, sigma),
        observation_noise=noise or None,
    )
    draws = run(problem, MODELS[model][0], **options)
    return draws, oracle(tracks, steps, sigma, noise, model)


@pytest.mark.parametrize(
    ("name", "sigma", "collapsed"),
    [
        *itertools.product(TRACKS, [0.05], [True]),
        *itertools.product(TRACKS, [0.1], [False]),
        *itertools.product(["noise", "holes in a noisy track"], [0.5], [True, False]),
    ],
)
def test_actions_match_the_enumerated_posterior(name, sigma, collapsed):
    assert discrepancies(*drawn(name, sigma, collapsed=collapsed)) == []


@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize("name", ["gap of two", "noise"])
def test_actions_match_where_clusters_come_and_go(name, collapsed):
    assert discrepancies(*drawn(name, 0.1, "crp", collapsed=collapsed)) == []


# -- broken ---------------------------------------------------------------------------------------


def _in_python(monkeypatch):
    """Let the kernel call what it calls by name, so that parts of it can be replaced."""
    for name in ("_draw_one", "_draw_two", "_draw_three", "_swap", "_draw_run"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    monkeypatch.setattr(unseen, "draw_actions", kernels.draw_actions.py_func)


def _count_left_in(monkeypatch):
    right = kernels._weigh

    def wrong(t, walk, out):
        right(t, walk, out)
        out[walk.actions[t]] += 1

    monkeypatch.setattr(kernels, "_weigh", wrong)


def _missing_one(monkeypatch):
    """Actions of one move do not see each other."""
    monkeypatch.setattr(kernels, "_together", lambda s, t, walk: 0.0)


def _short_variance(monkeypatch):
    """Of two unknown steps the noise of one is forgotten."""
    right = kernels._draw_two

    def wrong(s, t, pair, one, walk, rng):
        right(s, t, pair._replace(spread=pair.spread - 0.5 * pair.spread.min()), one, walk, rng)

    monkeypatch.setattr(kernels, "_draw_two", wrong)


def _stale_positions(monkeypatch):
    """Positions are those of the first guess for ever."""
    monkeypatch.setattr(unseen, "draw_positions", lambda *_: None)


@pytest.mark.parametrize(
    ("break_it", "name"),
    [
        (_count_left_in, "noise"),
        (_missing_one, "gap of two"),
        (_short_variance, "noise"),
        (_stale_positions, "noise"),
    ],
)
def test_a_broken_sampler_is_caught(break_it, name, monkeypatch):
    _in_python(monkeypatch)
    break_it(monkeypatch)
    assert discrepancies(*drawn(name, 0.1)) != []


@pytest.mark.parametrize("name", ["gap of two", "noise"])
def test_the_right_one_passes_the_same_checks(name, monkeypatch):
    _in_python(monkeypatch)
    assert discrepancies(*drawn(name, 0.1)) == []
