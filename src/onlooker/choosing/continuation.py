"""How regions should go on to states that were not seen: chosen by what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.partitions import Continuation, PartitionPrior, Regions
from onlooker.partitions.regions.scales import TOLERANCE
from onlooker.prediction.predictor import Clusters, Predictor
from onlooker.problem import Problem
from onlooker.progress import make_progress
from onlooker.sampling import short_run

SHARPNESS = (0.25, 1.0, 4.0, 16.0)
NEAREST = (8, 32)
"""Instead of a sharpness."""
REACH = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0)
ALONE = (None, 1e-2, 1e-1, 1.0, 10.0, 100.0)
SHRINKAGE = (None, 3.0)
OVERALL = (False, True)
PLAIN = Continuation(local=True)
"""The model itself, but for distances that count by how far apart nodes lie."""
SHARING = [replace(PLAIN, sharpness=tau) for tau in SHARPNESS]
SHARING += [replace(PLAIN, nearest=k) for k in NEAREST]
SETTINGS = [
    replace(sharing, reach=reach, alone=alone, shrinkage=kappa, overall=overall)
    for sharing, reach, alone, kappa, overall in product(SHARING, REACH, ALONE, SHRINKAGE, OVERALL)
]
"""All that are compared."""

MANY_TRANSITIONS = 50_000
"""From which on sweeps are so dear that fewer must do."""
_LEAST = 5  # trajectories
_FOLDS, _CELLS = 5, 6
_FEW = 2  # folds and cells that are left out where there are landmarks
_CHAINS, _TUNE, _DRAWS = 4, 15, 8
"""As many chains as predict: a single one leans on what is done overall more than their mean."""
_ASKED = 1_000  # transitions at most that are predicted of each part that is left out


class Chosen(NamedTuple):
    """A continuation, and why."""

    continuation: Continuation
    note: str
    """One sentence; empty where the model's own is kept unseen."""


class Left(NamedTuple):
    """What is left out, and what remains."""

    transitions: Array
    """Those that are fitted."""
    nodes: Array
    """Those that are there."""
    asked: Array
    """The transitions that are predicted."""


def choose_continuation(
    problem: Problem,
    prior: PartitionPrior[Any],
    concentration: Any,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Chosen:
    """The continuation with the best log score of trajectories and of cells that are left out.

    Trajectories alone would choose a region of its own too rarely, since their states are always
    near others; cells of the state space, each left out whole, count as much among the settings
    that lose nothing on trajectories. Short chains do. With fewer than five trajectories, or a
    prior other than `Regions`, nothing is chosen.

    Parameters
    ----------
    problem
        Made from demonstrations.
    prior, concentration
        As in `sample`.
    seed, n_jobs
        Of the short chains, and of what they leave out.
    progress
        Whether to show how far it is.
    """
    kept = Continuation() if not isinstance(prior, Regions) else prior.continuation
    tracks = _tracks(problem)
    if not isinstance(prior, Regions) or tracks is None or tracks.max() + 1 < _LEAST:
        return Chosen(kept, "")
    rng = np.random.default_rng([seed, len(tracks)])
    plain = replace(prior, continuation=PLAIN)
    schedule = Schedule(draws=_DRAWS, tune=_TUNE, chains=_CHAINS, seed=seed)

    def scores(parts: list[Left]) -> list[Array]:
        found = []
        for left in parts:
            target = Target(_part(problem, left), plain, concentration)
            found.append(score_settings(problem, left, target, schedule, n_jobs))
            shown.advance(1)
        return found

    folds = list(_without_tracks(problem, tracks, rng))
    n_fits = _few(problem, _FOLDS) + _few(problem, _CELLS)
    with make_progress(
        progress, n_fits, "choosing how regions extend", "fits", brief=True
    ) as shown:
        by_tracks, by_cells = scores(folds), scores(list(_without_cells(problem, plain, rng)))
        shown.update(n_fits)
    if not by_tracks or not by_cells:
        return Chosen(kept, "")
    of_transition = tracks[_trajectory_of(problem)]
    track = of_transition[np.concatenate([left.asked for left in folds])]
    seen, unseen = np.concatenate(by_tracks, axis=1), np.concatenate(by_cells, axis=1)
    chosen = best_setting(seen, track, unseen)
    return Chosen(SETTINGS[chosen], _words(SETTINGS[chosen]))


def best_setting(by_tracks: Array, track: Array, by_cells: Array) -> int:
    """The setting with the best sum of both scores, of those that lose nothing on trajectories.

    These are no farther than a standard error, by trajectory, from the best one there.

    Parameters
    ----------
    by_tracks, by_cells
        ``(settings, asked)``: log scores of what was left out.
    track
        The trajectory of each transition of the former.
    """
    mean = by_tracks.mean(axis=1)
    behind = by_tracks[mean.argmax()] - by_tracks
    number = np.unique(track, return_inverse=True)[1]
    size = np.bincount(number)
    onto = np.equal.outer(number, np.arange(len(size)))
    apart = behind @ onto - behind.mean(axis=1)[:, None] * size
    n = len(size)
    error = np.sqrt(np.square(apart).sum(axis=1) * n / max(n - 1, 1)) / size.sum()
    fine = behind.mean(axis=1) <= error
    return int(np.where(fine, mean + by_cells.mean(axis=1), -np.inf).argmax())


def score_settings(
    problem: Problem, left: Left, target: Target, schedule: Schedule, n_jobs: int | None = None
) -> Array:
    """``(settings, asked)``: log predictive of the transitions that are left out."""
    predictor = short_run(target, schedule, n_jobs).predictor
    place = np.full(problem.n_nodes, -1)
    place[left.nodes] = np.arange(len(left.nodes))
    node = place[problem.node_of[left.asked]]
    loglik = problem.first_guess[left.asked]
    shift = loglik.max(axis=1)
    likelihood = np.exp(loglik - shift[:, None])
    states = problem.states[problem.node_of[left.asked]]
    sizes = [len(each) for each in (SHARING, REACH, ALONE, SHRINKAGE, OVERALL)]
    density: Array = np.zeros((*sizes, len(node)))
    known = node >= 0
    here, there = (node[known], likelihood[known]), (states[~known], likelihood[~known])
    n_draws = len(predictor.draws)
    for clusters in predictor.blocks():
        for row in range(len(clusters.index)):
            one = clusters.take(np.array([row]))
            density[..., known] += _at_nodes(predictor, one, *here)[:, None]
            if not known.all():
                density[..., ~known] += _elsewhere(predictor, one, *there)
    return np.log(density / n_draws).reshape(len(SETTINGS), -1) + shift


def _at_nodes(predictor: Predictor, one: Clusters, node: Array, likelihood: Array) -> Array:
    """Densities at nodes, by shrinkage, in one draw."""
    stand = predictor.standing(int(predictor.sightings(one)[0][0]))[node]
    controller = (likelihood * one.policy[one.labels[0, stand]]).sum(axis=1)
    counts = predictor.own_counts(one)[stand]
    own = np.asarray(counts.multiply(likelihood).sum(axis=1)).ravel()
    n = np.asarray(counts.sum(axis=1)).ravel()
    return np.stack(
        [controller if k is None else (own + k * controller) / (n + k) for k in SHRINKAGE]
    )


def _elsewhere(predictor: Predictor, one: Clusters, states: Array, likelihood: Array) -> Array:
    """Densities by all settings at states that are no nodes, in one draw."""
    chain, scale = (values[0] for values in predictor.sightings(one))
    prior = predictor.prior
    search, reach = predictor.search(int(chain)), prior.reach
    assert reach is not None
    decay = replace(reach.decay, scale=float(scale))
    u, node = search.apart(states, decay, reach.n_neighbors)
    by_cluster = likelihood @ one.policy.T  # (n, K + 1), the new one last
    gamma, nu = (float(predictor.hyper_of(one, name)[0]) for name in ("gamma", "nu"))
    shared = np.column_stack([one.n_regions, one.size]).astype(np.float64)
    shared[-1] = gamma
    alone = (by_cluster @ (shared / shared.sum(axis=0))).T  # of regions, and of states
    least = u.min(axis=1, keepdims=True)
    above = u - least
    densities = _of_nodes(predictor, one, search.nodes, by_cluster, likelihood)
    if node is not None:
        densities = [np.take_along_axis(each, node, axis=1) for each in densities]
    power, totals, mixtures = np.exp(-min(REACH) * above), [], []

    def mix(weight: Array) -> None:
        weight = np.where(weight >= TOLERANCE, weight, 0.0)
        total = weight.sum(axis=1)
        mixtures.append([np.einsum("nj,nj->n", weight, each) / total for each in densities])

    exponent = min(REACH)
    while exponent <= max(SHARPNESS):  # each is the fourth power of the one before
        if exponent in REACH:
            seen = power * np.exp(-exponent * least)
            totals.append(np.where(seen >= TOLERANCE, seen, 0.0).sum(axis=1))
        if exponent in SHARPNESS:
            mix(power)
        power = np.square(np.square(power))
        exponent *= 4
    for sharing in SHARING[len(SHARPNESS) :]:
        mix(np.exp(-above * sharing.sharpness_at(above)))
    near: Array = np.array(mixtures)[:, None, None, :, None]  # (sharing, 1, 1, shrinkage, 1, n)
    total = np.array(totals)[:, None]
    stars = np.array([nu if star is None else star for star in ALONE])[:, None]
    f = (stars / (stars + total))[None, :, :, None, None]
    return np.asarray((1 - f) * near + f * alone)


def _of_nodes(
    predictor: Predictor, one: Clusters, nodes: Array, by_cluster: Array, likelihood: Array
) -> list[Array]:
    """``(n, nodes)`` by shrinkage: densities of steps if they began at a node, in one draw."""
    controller = by_cluster[:, one.labels[0, nodes]]
    counts = predictor.own_counts(one)[nodes]
    own = np.asarray(counts @ likelihood.T).T
    n_own = np.asarray(counts.sum(axis=1)).ravel()
    return [controller if k is None else (own + k * controller) / (n_own + k) for k in SHRINKAGE]


# -- what is left out ------------------------------------------------------------------------------


def _tracks(problem: Problem) -> Array | None:
    """``(T,)``: the number of each trajectory; pieces of one name share it."""
    if problem.paths is None or problem.incomplete is not None:
        return None
    n, names = len(problem.paths.offsets) - 1, problem.paths.names
    return np.arange(n) if names is None else np.unique(names, return_inverse=True)[1]


def _trajectory_of(problem: Problem) -> Array:
    """``(M,)``: the trajectory of each transition."""
    assert problem.paths is not None
    lengths = np.diff(problem.paths.offsets)
    return np.repeat(np.arange(len(lengths)), np.maximum(lengths - 1, 0))


def _few(problem: Problem, n: int) -> int:
    """Few where there are landmarks, and one where there are many transitions besides."""
    if problem.landmarks is None:
        return n
    return _FEW if problem.n_transitions < MANY_TRANSITIONS else 1


def _some(transitions: Array, rng: np.random.Generator) -> Array:
    few = rng.choice(transitions, min(_ASKED, len(transitions)), replace=False)
    return np.sort(few)


def _without_tracks(problem: Problem, tracks: Array, rng: np.random.Generator) -> Iterator[Left]:
    """Whole trajectories left out, in folds."""
    paths = problem.paths
    assert paths is not None
    fold_of = rng.permutation(tracks.max() + 1) % _FOLDS
    of_state = np.repeat(fold_of[tracks], np.diff(paths.offsets))
    of_transition = fold_of[tracks][_trajectory_of(problem)]
    for fold in range(_few(problem, _FOLDS)):
        inside = np.flatnonzero(of_transition != fold)
        asked = np.flatnonzero(of_transition == fold)
        if len(inside) and len(asked):
            yield Left(inside, np.unique(paths.nodes[of_state != fold]), _some(asked, rng))


def _without_cells(problem: Problem, prior: Regions, rng: np.random.Generator) -> Iterator[Left]:
    """Cells of the state space left out."""
    cell_of = _cells(problem, prior, rng)
    for cell in rng.permutation(cell_of.max() + 1)[: _few(problem, _CELLS)]:
        inside = cell_of[problem.node_of] != cell
        if inside.any() and not inside.all():
            asked = _some(np.flatnonzero(~inside), rng)
            yield Left(np.flatnonzero(inside), np.flatnonzero(cell_of != cell), asked)


def _cells(problem: Problem, prior: Regions, rng: np.random.Generator) -> Array:
    """``(N,)``: k-means cells; where only distances are known, cells around random nodes."""
    geometry, n = prior.geometry(problem), problem.n_nodes
    if geometry.norm is None:
        centres = rng.choice(n, min(_CELLS, n), replace=False)
        return np.asarray(geometry.distances(problem.states)[:, centres].argmin(axis=1))
    from scipy.cluster.vq import kmeans2

    places = geometry.coordinates(problem.states)
    label = kmeans2(places, min(_CELLS, n), minit="++", rng=rng, missing="warn")[1]
    return np.unique(label, return_inverse=True)[1]


def _part(problem: Problem, left: Left) -> Problem:
    return problem.part(left.transitions, left.nodes)


def _words(chosen: Continuation) -> str:
    """What was chosen, in a sentence."""
    named: dict[str, float | None] = {"sharpness": chosen.sharpness}
    if chosen.nearest is not None:
        named = {"nearest": chosen.nearest}
    named |= {"reach": chosen.reach, "alone": chosen.alone, "shrinkage": chosen.shrinkage}
    parts = [f"{name} {value:.2g}" for name, value in named.items() if value is not None]
    parts += ["overall"] if chosen.overall else []
    return (
        "Prediction at unseen states is set by what predicted left-out trajectories and left-out "
        f"parts of the state space best ({', '.join(parts)})."
    )
