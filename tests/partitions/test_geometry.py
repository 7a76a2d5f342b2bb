"""Distances, decays and the graph of similarities, against brute force."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from small_runs import quick

from onlooker import Posterior, Problem, checks
from onlooker.partitions import (
    ExponentialDecay,
    GaussianDecay,
    LogisticDecay,
    Regions,
    ScaledAxes,
    WindowDecay,
)
from onlooker.partitions import geometry as geometry_module
from onlooker.partitions.geometry import Geometry, Similarity, symmetrised
from onlooker.worlds import CircularMotion

DECAYS = [
    GaussianDecay(0.7),
    GaussianDecay(0.7, 0.01),
    ExponentialDecay(0.4, 0.1),
    WindowDecay(0.9),
    LogisticDecay(0.8, 0.05, width=0.1),
]
METRICS = ["euclidean", "cityblock", "manhattan", "chebyshev", "cosine", "canberra", "sqeuclidean"]


def warped(u, v):
    return float(np.abs(u - v).sum() ** 0.5)


def places(n=40, seed=0, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def distances_by_hand(points, metric):
    if isinstance(metric, str):
        return cdist(points, points, "cityblock" if metric == "manhattan" else metric)
    return np.array([[metric(u, v) for v in points] for u in points])


def all_pairs(distance, decay):
    dense = decay(distance)
    np.fill_diagonal(dense, 0.0)
    return dense


def nearest_only(distance, decay, k):
    dense = np.zeros_like(distance)
    for i, row in enumerate(distance):
        others = [j for j in np.argsort(row, kind="stable") if j != i][:k]
        dense[i, others] = decay(row[others])
    return dense


# -- decays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", DECAYS)
def test_similarity_falls_from_one_to_the_offset(decay):
    distance = np.linspace(0, 50, 2001)
    found = decay(distance)
    assert found[0] == pytest.approx(1.0)
    assert (np.diff(found) <= 0).all()
    assert found[-1] == pytest.approx(decay.offset, abs=1e-12)
    np.testing.assert_allclose(
        found, (1 - decay.offset) * decay.g(distance) + decay.offset, rtol=1e-14
    )


def test_decays_are_the_formulas_of_their_docstrings():
    d = np.linspace(0, 5, 11)
    np.testing.assert_allclose(GaussianDecay(2.0).g(d), np.exp(-(d**2) / 4))  # no factor 2
    np.testing.assert_allclose(ExponentialDecay(2.0).g(d), np.exp(-d / 2))
    np.testing.assert_array_equal(WindowDecay(2.0).g(d), d <= 2)
    assert LogisticDecay(2.0, width=0.1).g(np.array(2.0)) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-12])
def test_beyond_the_radius_nothing_exceeds_the_tolerance(decay, tolerance):
    radius = decay.radius(tolerance)
    assert decay.g(np.array(radius * (1 + 1e-6))) <= tolerance
    assert decay.g(np.array(radius * (1 - 1e-6))) >= tolerance


@pytest.mark.parametrize("decay", [GaussianDecay, ExponentialDecay, WindowDecay, LogisticDecay])
def test_extreme_scales_give_zeros_and_ones_not_nan(decay):
    far = np.array([0.0, 1e-300, 1.0, 1e300])
    for scale in (1e-300, 1.0, 1e300):
        found = decay(scale)(far)
        assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GaussianDecay(0.0), ValueError, "scale must be finite and above 0"),
        (lambda: GaussianDecay(-1.0), ValueError, "scale must be"),
        (lambda: GaussianDecay(np.nan), ValueError, "scale must be"),
        (lambda: GaussianDecay("wide"), TypeError, "scale must be a number"),
        (lambda: GaussianDecay(1.0, 1.0), ValueError, "offset must be below 1"),
        (lambda: GaussianDecay(1.0, -0.1), ValueError, "offset must be finite and at least 0"),
        (lambda: LogisticDecay(1.0, width=0.0), ValueError, "width must be"),
        (lambda: GaussianDecay().set_params(width=1.0), ValueError, "no parameter 'width'; it has"),
    ],
)
def test_bad_decays_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("step", [1.0, 0.1, 1 / 3])
def test_a_window_of_one_step_reaches_the_four_neighbours_on_any_grid(step):
    """Rounding must not decide who is a neighbour."""
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2)
    expected = cdist(grid, grid) == 1
    found = Geometry(grid * step).similarity(WindowDecay(step)).toarray()
    np.testing.assert_array_equal(found, expected)


# -- the graph of similarities ---------------------------------------------------------------------


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("metric", [*METRICS, warped])
def test_all_pairs_equal_brute_force(metric, decay):
    points = places()
    graph = Geometry(points, metric=metric).similarity(decay)
    expected = all_pairs(distances_by_hand(points, metric), decay)
    np.testing.assert_allclose(graph.toarray(), expected, atol=1e-14)
    np.testing.assert_allclose(graph.row_sums, expected.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("metric", [*METRICS, warped])
@pytest.mark.parametrize("k", [1, 5, 39, 1000])
def test_nearest_neighbours_equal_brute_force(metric, k):
    points, decay = places(), GaussianDecay(0.7, 0.05)
    graph = Geometry(points, metric=metric).similarity(decay, k)
    expected = nearest_only(distances_by_hand(points, metric), decay, k)
    np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-12)
    assert graph.offset == 0.0  # beyond the neighbours there is nothing
    assert (np.diff(graph.indptr) == min(k, 39)).all()


@pytest.mark.parametrize("n_neighbors", [None, 6])
def test_blocks_of_rows_do_not_change_the_graph(monkeypatch, n_neighbors):
    points, decay = places(50), GaussianDecay(0.7, 0.02)
    for metric in ("euclidean", "canberra"):
        whole = Geometry(points, metric=metric).similarity(decay, n_neighbors)
        with monkeypatch.context() as patch:
            patch.setattr(geometry_module, "_CHUNK", 350)
            patch.setattr(geometry_module, "_ROWS", 7)
            pieces = Geometry(points, metric=metric).similarity(decay, n_neighbors)
        np.testing.assert_array_equal(pieces.indptr, whole.indptr)
        np.testing.assert_array_equal(pieces.indices, whole.indices)
        np.testing.assert_allclose(pieces.weights, whole.weights, rtol=1e-14)


def test_a_reach_across_all_nodes_is_taken_in_small_blocks(monkeypatch):
    geometry, decay = Geometry(places(50)), GaussianDecay(100.0, 0.02)
    whole = geometry.similarity(decay).row_sums
    monkeypatch.setattr(geometry_module, "_CHUNK", 200)
    blocks = list(geometry._near(decay.radius(1e-9), 12))
    assert max(len(row) for row, _, _ in blocks) <= 200
    assert sum(len(row) for row, _, _ in blocks) == 50 * 49
    np.testing.assert_array_equal(geometry.similarity(decay).row_sums, whole)


@pytest.mark.parametrize("metric", ["euclidean", "canberra"])
def test_more_pairs_than_fit_into_memory_are_refused_with_their_number(metric, monkeypatch):
    monkeypatch.setattr(geometry_module, "_SURE", 0)
    monkeypatch.setattr(checks, "machine_memory", lambda: 2 * 12 * 2400)
    geometry = Geometry(places(50), metric=metric)
    with pytest.raises(
        ValueError, match=r"100 % of the 50 nodes.* 2\.5e\+03 pairs.*n_neighbors=100"
    ):
        geometry.similarity(GaussianDecay(100.0))
    with pytest.raises(ValueError, match="links to the 49 nearest states would take"):
        geometry.similarity(GaussianDecay(100.0), 49)
    with pytest.raises(ValueError, match="pairs would take"):  # at many scales, a pair takes more
        geometry.near_distances(100.0)
    assert geometry.similarity(GaussianDecay(100.0), 4).n_nodes == 50
    assert geometry.similarity(GaussianDecay(0.01)).n_nodes == 50
    monkeypatch.setattr(checks, "machine_memory", lambda: 2 * 12 * 2500)
    assert geometry.similarity(GaussianDecay(100.0)).n_nodes == 50


@pytest.mark.parametrize("n_neighbors", [None, 4])
@pytest.mark.parametrize("metric", ["euclidean", "canberra"])
def test_rows_are_sorted_and_never_hold_the_node_itself(metric, n_neighbors):
    graph = Geometry(places(), metric=metric).similarity(GaussianDecay(0.7), n_neighbors)
    assert graph.indices.dtype == np.int32
    assert graph.indptr.dtype == np.int64
    for i in range(graph.n_nodes):
        row = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        assert (np.diff(row) > 0).all()
        assert i not in row


def test_a_larger_tolerance_drops_small_similarities_only():
    points, decay = places(), GaussianDecay(0.5, 0.01)
    full = Geometry(points).similarity(decay)
    cut = Geometry(points).similarity(decay, tolerance=0.01)
    assert 0 < len(cut.weights) < len(full.weights)
    difference = full.toarray() - cut.toarray()
    assert difference.max() <= 0.01
    assert difference.min() == 0


def test_nodes_in_one_place_are_neighbours_of_each_other_not_of_themselves():
    coordinates = np.zeros((6, 2))
    coordinates[5] = [3.0, 0.0]
    for metric in ("euclidean", "canberra"):
        geometry = Geometry(np.arange(6), coordinates, metric)
        index, distance = geometry.nearest(2)
        assert index.shape == (6, 2)
        assert (index != np.arange(6)[:, None]).all()
        assert (distance[:5] == 0).all()
        assert all(len(set(row)) == 2 for row in index.tolist())


def test_a_single_node_has_no_neighbours():
    geometry = Geometry(np.zeros((1, 2)))
    for n_neighbors in (None, 3):
        graph = geometry.similarity(GaussianDecay(1.0, 0.1), n_neighbors)
        assert graph.toarray().tolist() == [[0.0]]
        assert graph.row_sums.tolist() == [0.0]


def test_row_sums_mind_empty_rows():
    graph = Similarity(
        np.array([0, 0, 2, 2, 3, 3]), np.array([0, 3, 1]), np.array([1.0, 2, 4]), 0.5
    )
    np.testing.assert_allclose(graph.row_sums, graph.toarray().sum(axis=1))


def test_symmetrised_weights_are_those_of_the_model():
    distance, decay = distances_by_hand(places(), "euclidean"), GaussianDecay(0.7, 0.03)
    one_sided = nearest_only(distance, decay, 4)
    assert not np.allclose(one_sided, one_sided.T)
    found = symmetrised(Geometry(places()).similarity(decay, 4)).toarray()
    member = one_sided > 0
    expected = 0.5 * decay(distance) * (member.astype(float) + member.T)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


# -- where states lie ------------------------------------------------------------------------------


def test_integer_states_lie_on_a_line_or_at_their_coordinates():
    states = np.array([4, 0, 2])
    on_a_line = Geometry(states)
    np.testing.assert_allclose(on_a_line.distances(states), np.abs(states[:, None] - states))
    coordinates = places(6)
    placed = Geometry(states, coordinates)
    np.testing.assert_allclose(placed.distances(states), cdist(*[coordinates[states]] * 2))
    np.testing.assert_allclose(
        placed.distances(np.array([5])), cdist(coordinates[[5]], coordinates[states])
    )


def test_a_flat_list_of_coordinates_is_one_dimension():
    assert Geometry(np.arange(2), [0.0, 3.0]).distances(np.array([0]))[0].tolist() == [0.0, 3.0]


@pytest.mark.parametrize("n_neighbors", [None, 3])
def test_a_matrix_between_states_gives_what_its_metric_gives(n_neighbors):
    coordinates = places(12)
    states = np.array([7, 2, 11, 0, 5])
    matrix = cdist(coordinates, coordinates)
    decay = GaussianDecay(0.8, 0.01)
    by_name = Geometry(states, coordinates).similarity(decay, n_neighbors)
    by_matrix = Geometry(states, metric=matrix).similarity(decay, n_neighbors)
    np.testing.assert_allclose(by_matrix.toarray(), by_name.toarray(), atol=1e-14)
    np.testing.assert_allclose(
        Geometry(states, metric=matrix).distances(np.array([3])), matrix[[3]][:, states]
    )


@pytest.mark.parametrize("n_neighbors", [None, 3])
def test_a_matrix_between_nodes_gives_what_its_metric_gives(n_neighbors):
    decay = GaussianDecay(0.8, 0.01)
    points = places(9)
    matrix = cdist(points, points)
    expected = Geometry(points).similarity(decay, n_neighbors).toarray()
    for states in (points, np.arange(9) + 100):
        found = Geometry(states, metric=matrix).similarity(decay, n_neighbors)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)


def test_a_matrix_that_could_be_either_is_read_by_state():
    matrix = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 3.0], [5.0, 3.0, 0.0]])
    geometry = Geometry(np.array([2, 0, 1]), metric=matrix)
    assert geometry.distances(np.array([0]))[0].tolist() == [5.0, 0.0, 1.0]


def test_a_matrix_between_nodes_cannot_place_other_states():
    geometry = Geometry(places(3), metric=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="cannot place other states; make them nodes"):
        geometry.distances(np.zeros((1, 2)))


def asymmetric(u, v):
    return max(0.0, u[0] - v[0])


NOT_SQUARE, NEGATIVE, LOPSIDED = np.zeros((2, 3)), np.zeros((3, 3)), np.zeros((3, 3))
NEGATIVE[1, 2] = NEGATIVE[2, 1] = -1
LOPSIDED[0, 2] = 1


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        ("nearly", ValueError, "metric 'nearly' fails on these states: Unknown Distance Metric"),
        ("seuclidean", ValueError, "metric 'seuclidean' changes with the data; scale the coord"),
        ("Mahalanobis", ValueError, "metric 'Mahalanobis' changes with the data"),
        (asymmetric, ValueError, "metric gives .* from node 0 to node 1, but .* back"),
        (lambda u, v: np.nan, ValueError, "metric gives nan from .*finite and not negative"),
        (lambda u, v: -1.0, ValueError, "metric gives -1.0 from"),
        (lambda u, v: np.inf, ValueError, "metric gives inf from"),
        (lambda u, v: u - v, ValueError, "metric <lambda> fails on these states"),
        (lambda u: 1.0, ValueError, "metric <lambda> fails on these states"),
        (NOT_SQUARE, ValueError, r"metric must be a square matrix of distances, got \(2, 3\)"),
        (NEGATIVE, ValueError, r"metric\[1, 2\] is negative"),
        (LOPSIDED, ValueError, r"metric\[0, 2\] differs from metric\[2, 0\]"),
        (np.eye(3), ValueError, r"metric\[0, 0\] is 1; .*not similarities"),
        (np.full((3, 3), np.nan), ValueError, r"metric holds nan at index \(0, 0\)"),
        (np.zeros((2, 2)), ValueError, r"metric is a \(2, 2\) matrix; .* the 3 nodes"),
        (np.zeros((0, 0)), ValueError, r"metric is a \(0, 0\) matrix"),
        ([[0], [1, 2]], ValueError, "metric is ragged"),
        (None, TypeError, "metric must hold numbers"),
        (5, ValueError, "metric must have 2 dimension"),
    ],
)
def test_what_is_no_metric_is_refused_by_name_and_place(metric, error, message):
    with pytest.raises(error, match=message):
        Geometry(places(3), metric=metric)


def test_a_metric_that_fails_on_a_far_pair_only_is_refused_when_it_is_met():
    points = np.vstack([places(10), [[0.0, 0.0]]])  # no angle at the origin
    with pytest.raises(ValueError, match=r"metric gives nan from .* to \[0. 0.\]"):
        Geometry(points, metric="cosine").similarity(GaussianDecay(1.0))


@pytest.mark.parametrize(
    ("coordinates", "error", "message"),
    [
        ([[0.0], [np.nan], [1.0]], ValueError, r"coordinates holds nan at index \(1, 0\)"),
        ([[0.0], [1.0]], ValueError, r"state 2 at index 1 has no row in coordinates \(2 rows\)"),
        (np.zeros((3, 2, 2)), ValueError, "coordinates must have 2 dimension"),
        ([[0.0], [1.0, 2.0], [3.0]], ValueError, "coordinates is ragged"),
        ([["a"], ["b"], ["c"]], TypeError, "coordinates must hold numbers"),
        ([[0.0], [1e200], [1.0]], ValueError, r"coordinates holds \[1e\+200\] at index 1.*rescale"),
    ],
)
def test_bad_coordinates_are_refused_by_name_and_place(coordinates, error, message):
    with pytest.raises(error, match=message):
        Geometry(np.array([0, 2, 1]), coordinates)


def test_coordinates_of_vectors_are_refused():
    with pytest.raises(ValueError, match="coordinates are for integer states"):
        Geometry(places(3), np.zeros((3, 2)))


@pytest.mark.parametrize("n_neighbors", [None, 2])
def test_states_too_far_for_a_float_are_refused_rather_than_misread(n_neighbors):
    with pytest.raises(ValueError, match=r"states holds .* at index 0, so far away .*rescale"):
        Geometry(places(5) * 1e200).similarity(GaussianDecay(1.0), n_neighbors)
    with pytest.raises(ValueError, match=r"states holds .* at index 0, so far away"):
        Geometry(places(5)).distances(np.array([[1e200, 0.0]]))


def test_states_without_coordinates_are_refused_when_asked_for():
    with pytest.raises(ValueError, match="state 9 at index 0 has no row in coordinates"):
        Geometry(np.arange(3), places(3)).distances(np.array([9]))
    with pytest.raises(ValueError, match="state 9 at index 0 has no row in the distance matrix"):
        Geometry(np.arange(3), metric=np.zeros((3, 3))).distances(np.array([9]))


# -- coordinates that count differently ------------------------------------------------------------


def test_scaled_coordinates_are_those_of_scaled_states():
    points, others = places(), places(7, seed=1)
    scaled, plain = Geometry(points, metric=ScaledAxes((2.0, 0.25))), Geometry(points * [2.0, 0.25])
    np.testing.assert_array_equal(scaled.rows(slice(None)), plain.rows(slice(None)))
    np.testing.assert_array_equal(scaled.nearest(5)[0], plain.nearest(5)[0])
    for mine, expected in zip(
        scaled.nearest_nodes(others, 3),
        plain.nearest_nodes(others * [2.0, 0.25], 3),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, expected)
    decay = GaussianDecay(0.7)
    np.testing.assert_array_equal(
        scaled.similarity(decay).toarray(), plain.similarity(decay).toarray()
    )


def test_factors_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"factors\[1\] must be"):
        ScaledAxes((1.0, -1.0))
    with pytest.raises(ValueError, match="metric has 3 factors; states have 2"):
        Geometry(places(), metric=ScaledAxes((1.0, 1.0, 1.0)))
    for factor in (1e200, 1e308):
        with pytest.raises(ValueError, match=r"metric, with its factors, .* overflow"):
            Geometry(places(), metric=ScaledAxes((factor, 1.0)))


def test_a_run_with_scaled_coordinates_is_the_same_when_read_again(tmp_path):
    demos, _ = CircularMotion(n_actions=8).rollout(3, 12, random_state=0)
    prior = Regions.inferred(1.0, metric=ScaledAxes((1.0, 0.25)))
    problem = Problem.from_demonstrations(demos, CircularMotion(n_actions=8).dynamics)
    made = quick(problem, prior, draws=5, tune=5, chains=1)
    made.save(tmp_path / "run.npz")
    read = Posterior.load(tmp_path / "run.npz")
    assert read.prior.metric == ScaledAxes((1.0, 0.25))
    where = places(6, seed=2)
    np.testing.assert_array_equal(read.policy(where), made.policy(where))
    other = quick(problem, Regions.inferred(1.0), draws=5, tune=5, chains=1)
    assert (other.labels != made.labels).any()
