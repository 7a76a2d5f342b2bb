"""Longitude and latitude: displacements, destinations, distances and dynamics on the sphere."""

import doctest
import importlib
import math

import numpy as np
import pytest
from bare import bare_problem

from onlooker import Demonstrations, Posterior, sample
from onlooker import geography as geo
from onlooker.dynamics import GeographicDynamics
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.partitions.geometry import Geometry
from onlooker.warnings import ConvergenceWarning

KM = math.radians(1) * geo.EARTH_RADIUS  # one degree of a great circle


def anywhere(n, seed=0):
    """Places spread evenly over the sphere, poles and date line included."""
    rng = np.random.default_rng(seed)
    places = np.column_stack(
        [rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))]
    )
    places[:4] = [[180, 0], [-180, 10], [30, 90], [50, -90]]
    return places


def haversine(first, second):
    """The textbook formula."""
    (lon, lat), (lon2, lat2) = np.radians(first), np.radians(second)
    h = math.sin((lat2 - lat) / 2) ** 2
    h += math.cos(lat) * math.cos(lat2) * math.sin((lon2 - lon) / 2) ** 2
    return 2 * geo.EARTH_RADIUS * math.asin(min(1.0, math.sqrt(h)))


# -- the sphere ------------------------------------------------------------------------------------


def test_lengths_of_displacements_agree_with_the_haversine_formula():
    first, second = anywhere(200), anywhere(200, seed=1)
    expected = [haversine(a, b) for a, b in zip(first, second, strict=True)]
    moves = geo.displacements(first, second)
    np.testing.assert_allclose(np.linalg.norm(moves, axis=1), expected, rtol=1e-9)


def test_a_known_distance_and_bearing():
    # New York to London: 5570 km on a sphere, setting out at 51 degrees
    move = geo.displacements([[-73.97, 40.78]], [[-0.13, 51.51]])[0]
    assert np.hypot(*move) == pytest.approx(5566, abs=10)
    assert math.degrees(math.atan2(*move)) == pytest.approx(51.2, abs=0.3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 100.0, 5000.0])
def test_a_move_and_its_undoing_cancel_anywhere(scale):
    places = anywhere(300)
    moves = np.random.default_rng(2).normal(size=(300, 2)) * scale
    moves *= np.minimum(1, 0.99 * math.pi * geo.EARTH_RADIUS / np.hypot(*moves.T))[:, None]
    reached = geo.destinations(places, moves)
    assert (np.abs(reached[:, 1]) <= 90).all()
    assert (reached[:, 0] >= -180).all()
    assert (reached[:, 0] < 180).all()
    np.testing.assert_allclose(
        geo.displacements(places, reached), moves, rtol=1e-7, atol=1e-8 + 1e-10 * scale
    )


@pytest.mark.parametrize("lat", [0.0, 60.0, -80.0])
def test_the_date_line_is_no_seam(lat):
    over = geo.displacements([[179.9, lat]], [[-179.9, lat]])
    np.testing.assert_allclose(over, geo.displacements([[-0.1, lat]], [[0.1, lat]]), rtol=1e-9)
    assert over[0, 0] == pytest.approx(0.2 * KM * math.cos(math.radians(lat)), rel=1e-4)
    turned = geo.displacements([[179.9, lat]], [[180.1, lat]])  # the same place, said otherwise
    np.testing.assert_allclose(turned, over, rtol=1e-9)


def test_a_pole_can_be_crossed():
    reached = geo.destinations([[20.0, 89.0]], [[0.0, 2 * KM]])
    np.testing.assert_allclose(reached, [[-160.0, 89.0]], atol=1e-9)
    # from the pole itself, north is the way on along the meridian one stands on
    np.testing.assert_allclose(
        geo.destinations([[20.0, 90.0]], [[0.0, KM]]), [[-160.0, 89.0]], atol=1e-9
    )


def test_standing_still_is_no_displacement():
    places = anywhere(50)
    np.testing.assert_array_equal(geo.displacements(places, places), 0.0)


def test_small_steps_are_those_of_a_flat_map():
    lat = 50.0
    move = geo.displacements([[10.0, lat]], [[10.001, lat + 0.002]])[0]
    expected = [0.001 * KM * math.cos(math.radians(lat)), 0.002 * KM]
    np.testing.assert_allclose(move, expected, rtol=1e-4)


def test_arcs_and_chords_undo_each_other():
    arcs = np.linspace(0, math.pi * geo.EARTH_RADIUS, 50)
    np.testing.assert_allclose(geo.arc_of(geo.chord_of(arcs)), arcs, atol=1e-3)
    assert geo.chord_of(1e9) == pytest.approx(2 * geo.EARTH_RADIUS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geo.in_space([[0.0, 91.0]]), "latitude 91 at index 0; give longitude first"),
        (lambda: geo.in_space([[0.0, 1.0, 2.0]]), r"places must be \(n, 2\)"),
        (lambda: geo.displacements([[0.0, 0.0]], [[0.0, np.nan]]), "end holds nan"),
        (lambda: geo.destinations([[0.0, 0.0]], [[1.0]]), r"moves must be \(n, 2\)"),
    ],
)
def test_what_is_no_place_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- dynamics --------------------------------------------------------------------------------------


def test_a_step_north_is_as_long_anywhere_and_east_is_east():
    dynamics = GeographicDynamics.compass(4, step=100.0, sigma=1e-9)
    for places in (anywhere(40)[4:], np.array([[0.0, 0.0]])):
        for action in range(4):
            reached = dynamics.sample(
                places, np.full(len(places), action), np.random.default_rng(0)
            )
            lengths = np.linalg.norm(geo.displacements(places, reached), axis=1)
            np.testing.assert_allclose(lengths, 100.0, rtol=1e-7)
            assert (dynamics.log_likelihood(places, reached).argmax(axis=1) == action).all()
    np.testing.assert_allclose(dynamics.bearings, [90, 0, 270, 180], atol=1e-9)


def test_the_density_is_a_gaussian_per_square_km_of_the_tangent_plane():
    dynamics = GeographicDynamics([[100.0, 0.0], [0.0, 50.0]], [10.0, 20.0])
    places = np.array([[179.9, 55.0]])
    moves = np.array([[93.0, 4.0]])
    found = dynamics.log_likelihood(places, geo.destinations(places, moves))[0]
    for a, sigma in enumerate((10.0, 20.0)):
        apart = ((moves[0] - dynamics.steps[a]) ** 2).sum() / sigma**2
        assert found[a] == pytest.approx(-0.5 * apart - math.log(2 * math.pi * sigma**2), rel=1e-9)


def test_draws_keep_to_the_range_of_longitudes():
    dynamics = GeographicDynamics.compass(8, step=500.0, sigma=200.0)
    places = np.tile([[179.0, 0.0], [-179.5, 89.5]], (200, 1))
    drawn = dynamics.sample(places, np.arange(400) % 8, np.random.default_rng(0))
    assert (drawn[:, 0] >= -180).all()
    assert (drawn[:, 0] < 180).all()
    assert (np.abs(drawn[:, 1]) <= 90).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GeographicDynamics([[1.0]], 1.0), r"steps must be \(A, 2\), km to the east"),
        (
            lambda: GeographicDynamics.compass(4).log_likelihood([[10.0, 95.0]], [[10.0, 85.0]]),
            "states holds the latitude 95",
        ),
        (
            lambda: GeographicDynamics.from_demonstrations([[[0.0, 95.0], [0.0, 96.0]]]),
            "latitude 95",
        ),
    ],
)
def test_dynamics_refuse_what_is_no_place(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_actions_are_proposed_in_km_whatever_the_latitude():
    rng = np.random.default_rng(0)
    truth = GeographicDynamics.compass(4, step=120.0, sigma=12.0)
    tracks = []
    for start in ([170.0, 10.0], [-175.0, 65.0]):  # a degree of longitude is 2.4 times shorter
        track = [np.array(start)]
        for _ in range(300):
            track.append(truth.sample(track[-1][None], rng.integers(4, size=1), rng)[0])
        tracks.append(np.array(track))
    found = GeographicDynamics.from_demonstrations(tracks, n_directions=4)
    assert isinstance(found, GeographicDynamics)
    np.testing.assert_allclose(found.steps, truth.steps, atol=3)
    assert found.sigma[0] < 35  # bounded below, so that neighbours overlap
    assert found.coverage(tracks).share == 1.0


def test_a_stored_posterior_keeps_geographic_dynamics_and_noise(tmp_path):
    dynamics = GeographicDynamics([[100.0, 0.0], [0.0, 50.0]], [10.0, 20.0])
    demos = Demonstrations([[[0.0, 0.0], [0.9, 0.0], [0.9, 0.5], [1.8, 0.5]]])
    problem = bare_problem(demos, dynamics)
    prior = DistanceDependent(decay=GaussianDecay(300.0, 0.01), metric="haversine")
    with pytest.warns(ConvergenceWarning):
        posterior = sample(problem, prior, draws=4, tune=2, chains=1, progress=False)
    posterior.save(tmp_path / "p")
    loaded = Posterior.load(tmp_path / "p")
    assert isinstance(loaded.problem.dynamics, GeographicDynamics)
    np.testing.assert_array_equal(loaded.problem.dynamics.sigma, dynamics.sigma)
    np.testing.assert_array_equal(loaded.log_predictive(demos), posterior.log_predictive(demos))
    assert loaded.prior.metric == "haversine"


# -- the metric of the partition priors ------------------------------------------------------------


def by_hand(first, second):
    return np.array([[haversine(a, b) for b in second] for a in first])


def test_haversine_distances_are_those_of_the_formula():
    places, others = anywhere(40), anywhere(15, seed=3)
    geometry = Geometry(places, metric="haversine")
    expected = by_hand(places, places)
    np.testing.assert_allclose(geometry.distances(others), by_hand(others, places), rtol=1e-6)
    np.testing.assert_allclose(geometry.distances(places), expected, rtol=1e-6, atol=1e-4)
    np.fill_diagonal(expected, np.inf)
    np.testing.assert_allclose(
        geometry.nearest(5)[1], np.sort(expected, axis=1)[:, :5], rtol=1e-6, atol=1e-4
    )


@pytest.mark.parametrize("n_neighbors", [None, 6])
def test_the_similarity_graph_is_that_of_the_matrix_of_distances(n_neighbors):
    places, decay = anywhere(40), GaussianDecay(900.0, 0.02)
    matrix = by_hand(places, places)
    np.fill_diagonal(matrix, 0.0)
    found = Geometry(places, metric="haversine").similarity(decay, n_neighbors)
    expected = Geometry(places, metric=matrix).similarity(decay, n_neighbors)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-5, atol=1e-9)


def test_integer_states_may_have_places_as_coordinates():
    places = anywhere(10)
    geometry = Geometry(np.array([7, 2]), coordinates=places, metric="haversine")
    np.testing.assert_allclose(
        geometry.distances(np.array([0])), by_hand(places[[0]], places[[7, 2]]), rtol=1e-6
    )


def test_chords_join_further_columns_at_right_angles():
    states = np.column_stack([anywhere(20), np.random.default_rng(1).normal(size=(20, 2)) * 500])
    geometry = Geometry(states, metric="chord")
    chord = geo.chord_of(by_hand(states[:, :2], states[:, :2]))
    extra = np.linalg.norm(states[:, None, 2:] - states[None, :, 2:], axis=2)
    np.testing.assert_allclose(geometry.distances(states), np.hypot(chord, extra), atol=1e-3)


def test_new_states_are_placed_by_the_great_circle():
    """Prediction uses a tree of its own: it must agree with a matrix of distances."""
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(170, 190, 30), rng.uniform(60, 80, 30)])
    dynamics = GeographicDynamics.compass(4, step=300.0, sigma=300.0)
    demos = Demonstrations([places])
    with pytest.warns(ConvergenceWarning):
        posterior = sample(
            bare_problem(demos, dynamics),
            DistanceDependent(decay=GaussianDecay(400.0, 0.01), metric="haversine"),
            draws=5,
            tune=5,
            chains=1,
            progress=False,
            random_state=0,
        )
    query = np.array([[-175.0, 70.0], [185.0, 70.0]])  # one place
    for how in ("local", "average", "map"):
        found = posterior.policy(query, extrapolate=how)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    g = np.exp(-((by_hand(query[:1], places)[0] / 400.0) ** 2))
    expected = g @ posterior.policy() / g.sum()
    np.testing.assert_allclose(posterior.policy(query, extrapolate="local")[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("states", "metric", "message"),
    [
        ([[0.0, 95.0]], "haversine", "latitude 95 at index 0"),
        ([[0.0, 5.0, 1.0]], "haversine", "3 column.*further columns need metric='chord'"),
        ([[0.0]], "chord", "is for longitude and latitude"),
    ],
)
def test_a_metric_of_the_earth_refuses_other_states(states, metric, message):
    with pytest.raises(ValueError, match=message):
        Geometry(np.array(states), metric=metric)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(importlib.import_module("onlooker.dynamics.geographic")).failed == 0
