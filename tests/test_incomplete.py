"""States that were not seen, or seen through noise, drawn along with everything else."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from scipy.special import logsumexp

import exact
from agreement import _action_numbers, _discrepancies, _Group, _label_numbers
from onlooker import Demonstrations, PolicyRecognizer, Posterior, Problem
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics, TabularDynamics
from onlooker.hyper import LogUniform
from onlooker.incomplete import IncompleteDemonstrations
from onlooker.inference import imputation, paths
from onlooker.inference.chain import Chain
from onlooker.inference.positions import draw_positions
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing
from small_runs import assert_same_draws, quick, ring_dynamics

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.diagnostics.ConvergenceWarning")

ALPHA = 0.7
COORDINATES = np.array([[0.0, 0.0], [0.7, 0.3], [1.5, -0.2]])


def world(n_states=3, n_actions=2, seed=0):
    rng = np.random.default_rng(seed)
    return TabularDynamics(rng.dirichlet(np.full(n_states, 0.7), size=(n_states, n_actions)))


TABLE = world()

SEEN = [[0, -1, -1, 1], [2, -1, 0]]
"""Two gaps, of two states and of one: five transitions."""


def run(
    problem, prior, *, collapsed=True, blocked=False, sweeps=3_000, alpha=ALPHA, step=Chain.sweep
):
    """Draws of a few chains, policies and unseen states included."""
    sampler = prior.sampler(problem)
    kept = {"labels": [], "actions": [], "policy": [], "unseen": [], "hyper": []}
    for stream in np.random.SeedSequence(0).spawn(2):
        rng = np.random.default_rng(stream)
        chain = Chain(problem, sampler, alpha=alpha, collapsed=collapsed, blocked=blocked, rng=rng)
        for _ in range(20):
            step(chain)
        for _ in range(sweeps):
            step(chain)
            kept["labels"].append(chain.labels)
            kept["actions"].append(chain.actions)
            kept["policy"].append(_mean_policy(chain))
            kept["unseen"].append(np.zeros(0) if chain.imputed is None else chain.imputed.copy())
            kept["hyper"].append([chain.state.hyper[k] for k in sorted(chain.state.hyper)])
    names = sorted(chain.state.hyper)
    arrays = {k: np.array(v).reshape(2, sweeps, *np.shape(v[0])) for k, v in kept.items()}
    hyper = {name: arrays["hyper"][..., k] for k, name in enumerate(names)}
    return SimpleNamespace(**(arrays | {"hyper": hyper}))


def _mean_policy(chain):
    cluster = chain.state.counts.cluster[chain.labels] + chain.alpha
    return cluster / cluster.sum(axis=1, keepdims=True)


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


WEIGHTS = exact.gaussian_decay(0.8, 0.1)(exact.pairwise_distances(COORDINATES))
MODELS = {
    "mixing": (Mixing(2, 0.8), "mixing", {"n_clusters": 2, "gamma": 0.8}),
    "crp": (ChineseRestaurant(1.3), "crp", {"gamma": 1.3}),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), coordinates=COORDINATES),
        "ddcrp",
        {"nu": 0.4, "weights": WEIGHTS},
    ),
}


@pytest.mark.parametrize(
    ("name", "collapsed", "blocked"),
    [
        ("mixing", True, False),
        ("mixing", False, False),
        ("mixing", True, True),
        ("crp", True, False),
        ("crp", False, True),
        ("ddcrp", True, False),
    ],
)
def test_unseen_states_match_the_enumerated_posterior(name, collapsed, blocked):
    prior, model, options = MODELS[name]
    problem = Problem.from_demonstrations(IncompleteDemonstrations(SEEN), TABLE, nodes="all")
    draws = run(problem, prior, collapsed=collapsed, blocked=blocked)
    assert discrepancies(draws, *enumerated(model, options)) == []


def test_impossible_moves_are_never_imputed():
    table = np.array([[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]] * 3)
    table[:, 1] = [0.0, 0.3, 0.7]
    dynamics = TabularDynamics(TabularDynamics(table).matrices)
    problem = Problem.from_demonstrations(IncompleteDemonstrations(SEEN), dynamics, nodes="all")
    draws = run(problem, Mixing(2, 0.8), sweeps=3_000)
    _, model, options = MODELS["mixing"]
    assert discrepancies(draws, *enumerated(model, options, dynamics)) == []


def _any_policy(monkeypatch):
    """Any action, as if the policy were not known."""
    right = imputation.draw_paths

    def wrong(path, actions, move_of, transition, gaps, policy, moves, rng):
        flat = np.full_like(policy, 1.0 / policy.shape[1])
        return right(path, actions, move_of, transition, gaps, flat, moves, rng)

    monkeypatch.setattr(imputation, "draw_paths", wrong)


def _mean_instead_of_draw(monkeypatch):
    """The mean of the controllers instead of a draw: gaps are not independent given it."""

    def wrong(controllers, counts, alpha, rng):
        controllers[:] = counts + alpha
        controllers /= controllers.sum(axis=1, keepdims=True)

    monkeypatch.setattr(imputation, "draw_controllers", wrong)


STAY_OR_SWAP = TabularDynamics(
    np.array([[[0.95, 0.05], [0.05, 0.95]], [[0.05, 0.95], [0.95, 0.05]]])
)
LOOPS = [[0, -1, 0]] * 4
"""Each stays twice or swaps twice, most likely; one controller makes them alike."""


def _impute(chain):
    chain.imputer.update(chain)


def loops():
    """What imputation gets wrong by itself: with one cluster it draws all there is to draw."""
    demos = IncompleteDemonstrations(LOOPS)
    problem = Problem.from_demonstrations(demos, STAY_OR_SWAP, nodes="all")
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
        Problem.from_demonstrations(
            IncompleteDemonstrations([[0, 0], [1, -1, 2]]), stay, nodes="all"
        )


# -- positions ------------------------------------------------------------------------------------

STEPS = np.array([[0.9], [-0.4]])
SIGMA = 0.5


def dense_positions(observed, drift, sigma, noise):
    """Mean and covariance of one trajectory's positions in one dimension, from all terms."""
    n = len(observed)
    precision, shift = np.zeros((n, n)), np.zeros(n)
    for i in range(n - 1):
        difference = np.zeros(n)
        difference[[i, i + 1]] = -1.0, 1.0
        precision += np.outer(difference, difference) / sigma**2
        shift += difference * drift[i] / sigma**2
    for i in np.flatnonzero(~np.isnan(observed)):
        precision[i, i] += 1 / noise**2
        shift[i] += observed[i] / noise**2
    covariance = np.linalg.inv(precision)
    return covariance @ shift, covariance


@pytest.mark.parametrize("noise", [0.3, 0.0])
def test_positions_have_the_mean_and_covariance_of_the_gaussian(noise):
    y = np.array([[np.nan], [0.3], [1.1], [np.nan], [np.nan], [0.4], [np.nan]])
    drift = np.random.default_rng(0).normal(size=(7, 1))
    mean, covariance = dense_positions(y[:, 0], drift[:, 0], 0.7, noise or 1e-5)
    rng, x, offsets = np.random.default_rng(1), np.zeros((7, 1)), np.array([0, 7])
    drawn = np.empty((40_000, 7))
    for draw in drawn:
        draw_positions(x, y, offsets, drift, 0.7, noise, rng)
        draw[:] = x[:, 0]
    error = np.sqrt(np.diag(covariance) / len(drawn)) + 1e-4
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * error).all()
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert (np.abs(np.cov(drawn.T) - covariance) < 0.03 * spread + 1e-4).all()
    if noise == 0.0:
        np.testing.assert_array_equal(drawn[:, [1, 2, 5]], np.tile([0.3, 1.1, 0.4], (40_000, 1)))


def test_the_kernel_of_positions_is_its_twin():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(9, 2))
    y[rng.random((9, 2)) < 0.4] = np.nan
    y[[1, 6]] = 0.5
    drift, offsets = rng.normal(size=(9, 2)), np.array([0, 4, 9])
    x = np.zeros((9, 2))
    draw_positions(x, y, offsets, drift, 0.7, 0.2, np.random.default_rng(3))
    normals = iter(np.random.default_rng(3).standard_normal(18))
    for start, stop in itertools.pairwise(offsets):
        for d in range(2):
            # backwards in time: each position given the next one and all that was seen before it
            for i in range(stop - 1, start - 1, -1):
                seen = np.where(np.arange(start, i + 1) <= i, y[start : i + 1, d], np.nan)
                following = () if i == stop - 1 else (x[i + 1, d] - drift[i, d],)
                m, v = given_past(seen, drift[start:i, d], following, 0.7, 0.2)
                assert x[i, d] == pytest.approx(m + np.sqrt(v) * next(normals))


def given_past(seen, drift, following, sigma, noise):
    """Mean and variance of the last position, given what was seen until then, and the next."""
    if np.isnan(seen).all():
        return following[0], sigma**2
    mean, covariance = dense_positions(seen, drift, sigma, noise)
    precision, shift = 1 / covariance[-1, -1], mean[-1] / covariance[-1, -1]
    for value in following:
        precision, shift = precision + 1 / sigma**2, shift + value / sigma**2
    return shift / precision, 1 / precision


def gaussian_oracle(node_of, moves_of, covariance, name, options):
    """Partitions and actions where the moves are Gaussian given the actions, jointly."""
    n_nodes = max(node_of) + 2
    flat = getattr(exact, name)(node_of, np.zeros((len(node_of), 2)), n_nodes, ALPHA, **options)
    table = flat.table
    density = scipy.stats.multivariate_normal(np.zeros(len(moves_of)), covariance)
    log_l = np.array([density.logpdf(moves_of - STEPS[a, 0]) for a in table.sequences])
    joint = table.joint[0] * np.exp(log_l - log_l.max())
    joint /= joint.sum()
    same = np.array([np.equal.outer(p, p) for p in map(np.array, table.partitions)])
    p_partition, p_sequence = joint.sum(axis=1), joint.sum(axis=0)
    return SimpleNamespace(
        co_clustering=np.einsum("p,pij->ij", p_partition, same),
        n_clusters=exact._n_clusters(dict(zip(table.partitions, p_partition, strict=True))),
        partitions=dict(zip(table.partitions, p_partition, strict=True)),
        actions=np.stack([p_sequence @ (table.sequences == j) for j in range(2)], axis=-1),
        p_sequence=dict(zip(map(tuple, table.sequences), p_sequence, strict=True)),
    )


def gaussian_discrepancies(draws, oracle, more=()):
    groups = [_label_numbers(draws.labels, oracle), _action_numbers(draws.actions, oracle), *more]
    share = 1e-4 / sum(len(group.names) for group in groups)
    return [line for group in groups for line in _discrepancies(group, share)]


def noise_covariance(n, noise):
    """Of moves between positions that were seen with noise."""
    difference = np.diff(np.eye(n + 1), axis=0)
    return SIGMA**2 * np.eye(n) + noise**2 * difference @ difference.T


@pytest.mark.parametrize("noise", [0.4, 1.0])
def test_noisily_seen_positions_match_the_enumerated_posterior(noise):
    track = np.array([[0.0], [1.2], [0.7], [1.8], [1.1]])
    dynamics = DisplacementDynamics(STEPS, SIGMA)
    problem = Problem.from_demonstrations([track], dynamics, observation_noise=noise)
    draws = run(problem, Mixing(2, 0.8))
    oracle = gaussian_oracle(
        [0, 1, 2, 3],
        np.diff(track[:, 0]),
        noise_covariance(4, noise),
        "mixing",
        {"n_clusters": 2, "gamma": 0.8},
    )
    assert gaussian_discrepancies(draws, oracle) == []


def test_noise_that_is_ignored_is_caught():
    track = np.array([[0.0], [1.2], [0.7], [1.8], [1.1]])
    problem = Problem.from_demonstrations([track], DisplacementDynamics(STEPS, SIGMA))
    draws = run(problem, Mixing(2, 0.8), sweeps=3_000)
    options = {"n_clusters": 2, "gamma": 0.8}
    oracle = gaussian_oracle(
        [0, 1, 2, 3], np.diff(track[:, 0]), noise_covariance(4, 0.4), "mixing", options
    )
    assert gaussian_discrepancies(draws, oracle) != []


def gap_oracle(grid, track, node_of, name, options, sigma=SIGMA):
    """One unseen position, integrated on a grid."""
    cases = []
    for x in grid:
        whole = np.where(np.isnan(track[:, 0]), x, track[:, 0])
        loglik = scipy.stats.norm(STEPS[:, 0], sigma).logpdf(np.diff(whole)[:, None])
        cases.append(getattr(exact, name)(node_of, loglik, len(track), ALPHA, **options))
    return exact.mix("x", grid, np.ones(len(grid)), cases)


@pytest.mark.parametrize("name", ["mixing", "ddcrp"])
def test_an_unseen_position_matches_the_enumerated_posterior(name):
    track = np.array([[0.0], [1.1], [np.nan], [1.6], [1.0]])
    demos = IncompleteDemonstrations([track])
    problem = Problem.from_demonstrations(demos, DisplacementDynamics(STEPS, SIGMA))
    prior, _, options = MODELS[name]
    if name == "ddcrp":  # nodes lie on the straight line between those seen
        prior = DistanceDependent(0.4, GaussianDecay(0.8, 0.1))
        places = np.array([[0.0], [1.1], [1.35], [1.6], [1.0]])
        weights = exact.gaussian_decay(0.8, 0.1)(exact.pairwise_distances(places))
        options = {"nu": 0.4, "weights": weights}
    draws = run(problem, prior)
    draws.hyper = {"x": draws.unseen[..., 0, 0]}
    oracle = gap_oracle(np.linspace(-2.0, 4.5, 60), track, [0, 1, 2, 3], name, options)
    assert exact.compare(draws, oracle, alpha=ALPHA) == []


def test_unknown_noise_of_steps_and_of_sight_match_the_enumerated_posterior():
    """σ and the observation noise on a grid, positions integrated out."""
    track = np.array([[0.0], [1.2], [0.7], [1.9]])
    step, sight = LogUniform(0.2, 1.0), LogUniform(0.1, 1.0)
    dynamics = DisplacementDynamics(STEPS, step)
    problem = Problem.from_demonstrations([track], dynamics, observation_noise=sight)
    draws = run(problem, Mixing(2, 0.8), sweeps=8_000)
    x, w = np.polynomial.legendre.leggauss(16)

    def points(prior):
        middle, half = np.log(prior.low * prior.high) / 2, np.log(prior.high / prior.low) / 2
        return np.exp(middle + half * x)

    flat = exact.mixing([0, 1, 2], np.zeros((3, 2)), 4, ALPHA, 2, 0.8).table
    prior = flat.joint[0].sum(axis=0)  # of action sequences
    difference = np.diff(np.eye(4), axis=0)
    moves, total, sums = np.diff(track[:, 0]), 0.0, np.zeros(4)
    for (sigma, ws), (noise, wn) in itertools.product(
        zip(points(step), w, strict=True), zip(points(sight), w, strict=True)
    ):
        covariance = sigma**2 * np.eye(3) + noise**2 * difference @ difference.T
        density = scipy.stats.multivariate_normal(np.zeros(3), covariance)
        weight = ws * wn * (prior @ [density.pdf(moves - STEPS[a, 0]) for a in flat.sequences])
        total += weight
        sums += weight * np.array([sigma, noise, sigma**2, noise**2])
    mean, square = sums[:2] / total, sums[2:] / total
    group = _Group()
    for k, name in enumerate(("sigma", "observation_noise")):
        sd = float(np.sqrt(square[k] - mean[k] ** 2))
        group.add(f"E[{name}]", draws.hyper[name], mean[k], sd, scale=2 * sd)
    assert _discrepancies(group, 1e-4) == []


# -- in and out -----------------------------------------------------------------------------------


def ring_demos(share=0.4, n=8, seed=0):
    rng = np.random.default_rng(seed)
    walks = [(rng.integers(6) + rng.integers(-1, 2, size=9).cumsum()) % 6 for _ in range(n)]
    return IncompleteDemonstrations.hiding(Demonstrations(walks), share, seed)


def plane_demos(share=0.3, n=5, seed=0):
    rng = np.random.default_rng(seed)
    tracks = [rng.normal(0, 1, (8, 2)).cumsum(axis=0) for _ in range(n)]
    return IncompleteDemonstrations.hiding(Demonstrations(tracks), share, seed)


def problems():
    compass = DisplacementDynamics.compass(4, step=LogUniform(0.3, 3.0), sigma=LogUniform(0.1, 2.0))
    return {
        "ring": Problem.from_demonstrations(ring_demos(), ring_dynamics(6), nodes="all"),
        "plane": Problem.from_demonstrations(
            plane_demos(), compass, observation_noise=LogUniform(0.01, 0.3)
        ),
    }


@pytest.mark.parametrize("name", ["ring", "plane"])
def test_a_stopped_run_goes_on_with_the_same_bits(name, tmp_path):
    problem = problems()[name]
    prior = DistanceDependent(
        coordinates=np.random.default_rng(0).normal(size=(6, 2)) if name == "ring" else None
    )
    whole = quick(problem, prior, draws=12)
    quick(problem, prior, draws=5, store=tmp_path / "run")
    parts = quick(problem, prior, draws=12, store=tmp_path / "run", resume=True)
    assert_same_draws(whole, parts)
    np.testing.assert_array_equal(whole.imputed, parts.imputed)
    loaded = Posterior.load(tmp_path / "run")
    np.testing.assert_array_equal(whole.imputed, loaded.imputed)
    np.testing.assert_array_equal(whole.policy(), loaded.policy())
    assert loaded.problem.incomplete.noise == problem.incomplete.noise
    whole.save(tmp_path / "file.npz")
    np.testing.assert_array_equal(Posterior.load(tmp_path / "file.npz").imputed, whole.imputed)


def test_policies_count_actions_where_they_were_imputed():
    problem = problems()["ring"]
    posterior = quick(problem, Mixing(2))
    expected = np.zeros((6, 3))
    seen = problem.incomplete
    for chain, draw in np.ndindex(2, 8):
        path = np.array(seen.observed)
        path[seen.hidden] = posterior.imputed[chain, draw]
        labels = posterior.labels[chain, draw]
        counts = np.zeros((labels.max() + 1, 3))
        np.add.at(counts, (labels[path[seen.starts]], posterior.actions[chain, draw]), 1)
        policy = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
        expected += policy[labels] / 16
    np.testing.assert_allclose(posterior.policy(), expected)


def test_with_nothing_hidden_the_posterior_is_that_of_complete_data():
    demos = ring_demos(0.0)
    whole = quick(
        Problem.from_demonstrations(demos.split(), ring_dynamics(6), nodes="all"),
        Mixing(2),
        draws=300,
    )
    filled = quick(
        Problem.from_demonstrations(demos, ring_dynamics(6), nodes="all"), Mixing(2), draws=300
    )
    assert filled.imputed is None
    assert np.abs(filled.policy() - whole.policy()).max() < 0.1


def test_the_log_joint_is_that_of_the_completed_problem():
    problem = problems()["ring"]
    rng = np.random.default_rng(0)
    prior = Mixing(2)
    chain = Chain(problem, prior.sampler(problem), alpha=1.0, collapsed=True, rng=rng)
    for _ in range(3):
        chain.sweep()
    path = chain.state.arrays["path"]
    offsets = problem.incomplete.offsets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = Problem.from_demonstrations(
            np.split(path, offsets[1:-1]), ring_dynamics(6), nodes="all"
        )
    loglik = whole.loglik[np.arange(whole.n_transitions), chain.actions].sum()
    assert chain.imputer.log_likelihood(chain) == pytest.approx(loglik)
    counts = np.zeros((6, 3), dtype=int)
    np.add.at(counts, (whole.node_of, chain.actions), 1)
    np.testing.assert_array_equal(chain.state.counts.node, counts)


def test_the_recognizer_takes_incomplete_and_noisy_demonstrations():
    options = {"draws": 4, "tune": 2, "chains": 1, "random_state": 0}
    rec = PolicyRecognizer(ring_dynamics(6), Mixing(2), nodes="all", **options)
    assert rec.fit(ring_demos()).predict_proba([0, 5]).shape == (2, 3)
    compass = DisplacementDynamics.compass(4)
    rec = PolicyRecognizer(compass, Mixing(2), observation_noise=LogUniform(0.01, 0.3), **options)
    assert "observation_noise" in rec.fit(plane_demos().split()).posterior_.hyper


# -- what was seen --------------------------------------------------------------------------------


def test_ends_that_were_not_seen_are_cut_off_and_lone_states_left_out():
    demos = IncompleteDemonstrations([[-1, 0, -1, 2, -1], [-1, 3, -1], [4, 5]])
    assert [list(one) for one in demos] == [[0, -1, 2], [4, 5]]
    assert demos.hidden.tolist() == [False, True, False, False, False]
    assert [list(one) for one in demos.split()] == [[4, 5]]
    assert "20.0% not seen" in repr(demos)


def test_splitting_keeps_what_was_seen_in_a_row():
    demos = IncompleteDemonstrations([[[0.0], [1.0], [np.nan], [3.0], [4.0], [5.0], [np.nan]]])
    assert [one.ravel().tolist() for one in demos.split()] == [[0.0, 1.0], [3.0, 4.0, 5.0]]
    np.testing.assert_allclose(demos.filled().ravel(), [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: IncompleteDemonstrations([[0, -2, 1]]), ValueError, "-2 at index 1"),
        (lambda: IncompleteDemonstrations([[0.0, np.inf, 1.0]]), ValueError, "at index 1"),
        (lambda: IncompleteDemonstrations([[-1, 1, -1]]), ValueError, "no trajectory has two"),
        (lambda: IncompleteDemonstrations([["a", "b"]]), TypeError, "trajectory 0"),
        (lambda: IncompleteDemonstrations([[0, 1], [[0.0, 1.0]] * 2]), ValueError, "kind of state"),
        (lambda: IncompleteDemonstrations([[0, -1, -1, 1]]).split(), ValueError, "no two states"),
        (
            lambda: IncompleteDemonstrations([[[0.0, np.nan]] * 3]).filled(),
            ValueError,
            "coordinate 1 was never seen",
        ),
        (lambda: _problem(ring_demos(), ring_dynamics(6)), ValueError, "nodes='all'"),
        (lambda: _problem(ring_demos(), ring_dynamics(4), nodes="all"), ValueError, "0 to 3"),
        (
            lambda: _problem(ring_demos(), SlipperyDynamics(ring_dynamics(6)), nodes="all"),
            ValueError,
            "fix 'success'",
        ),
        (
            lambda: _problem(ring_demos(), ring_dynamics(6), nodes="all", observation_noise=0.1),
            ValueError,
            "observation_noise is for positions",
        ),
        (
            lambda: _problem(plane_demos(), ring_dynamics(6)),
            TypeError,
            "need DisplacementDynamics",
        ),
        (
            lambda: _problem(plane_demos(), DisplacementDynamics.compass(4), observation_noise=-1),
            ValueError,
            "observation_noise must be",
        ),
        (
            lambda: IncompleteDemonstrations.hiding(ring_demos(0.0).split(), 1.0),
            ValueError,
            "share",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def _problem(demos, dynamics, **options):
    return Problem.from_demonstrations(demos, dynamics, **options)


def test_a_posterior_with_unseen_states_cannot_be_extended_yet():
    posterior = quick(problems()["ring"], Mixing(2))
    with pytest.raises(ValueError, match="cannot be extended yet"):
        posterior.extend([[0, 1]])
