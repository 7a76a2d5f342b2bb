"""One partition that stands for many: against enumeration, slow twins and known properties."""

from __future__ import annotations

import subprocess
import sys

import naive_consensus as naive
import numpy as np
import pytest
from drawn_partitions import (
    LOSSES,
    Ints,
    distance,
    draw_sets,
    expected_loss,
    noisy_draws,
    restaurant_draws,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import adjusted_rand_score

from onlooker.consensus import (
    canonical,
    co_clustering,
    consensus,
    credible_ball,
    kernels,
    variation_of_information,
)

# The search against every partition there is


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("concentration", [0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("seed", range(15))
def test_the_search_finds_the_minimum_over_all_partitions(
    loss: str, concentration: float, seed: int
) -> None:
    n = 4 + seed % 3
    draws = restaurant_draws(5, n, concentration, seed)
    found = consensus(draws, loss, random_state=seed)
    assert found.expected_loss == pytest.approx(naive.least_loss(loss, draws.tolist()), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [7, 8])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_minimum_over_the_4140_partitions_of_eight_nodes(
    loss: str, n: int, seed: int
) -> None:
    draws = restaurant_draws(6, n, 1.5, 100 + seed)
    every = np.array(list(naive.set_partitions(n)))
    found = consensus(draws, loss, random_state=seed)
    least = min(expected_loss(loss, labels, draws) for labels in every)
    assert found.expected_loss == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("max_clusters", [2, 3])
def test_the_least_loss_within_a_bound_on_clusters_is_found_too(
    loss: str, max_clusters: int
) -> None:
    for seed in range(4):
        draws = restaurant_draws(6, 6, 2.0, 200 + seed)
        found = consensus(draws, loss, max_clusters=max_clusters, random_state=seed)
        least = naive.least_loss(loss, draws.tolist(), max_clusters)
        assert found.expected_loss == pytest.approx(least, abs=1e-9)
        assert found.n_clusters <= max_clusters


@pytest.mark.parametrize("loss", LOSSES)
def test_a_search_that_rebuilds_no_cluster_is_caught_missing_the_minimum(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: were any search to find the minimum, the tests above would prove little."""
    missed, search = 0, kernels.search
    for seed in range(40):
        draws = restaurant_draws(6, 8, 1.5, seed)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "search", lambda *args: search(*args[:3], False, args[4]))
            hasty = consensus(draws, loss, restarts=1, random_state=0)
        thorough = consensus(draws, loss, restarts=32, random_state=0)
        assert hasty.expected_loss >= thorough.expected_loss - 1e-12
        missed += hasty.expected_loss > thorough.expected_loss + 1e-9
    assert missed > 0


# Properties


@given(draw_sets, st.sampled_from(LOSSES), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_neither_the_order_of_draws_nor_their_labels_matter(
    draws: Ints, loss: str, random: object
) -> None:
    shuffled = draws.copy()
    random.shuffle(order := list(range(len(draws))))  # type: ignore[attr-defined]
    shuffled = draws[order]
    for row in shuffled:
        names = random.sample(range(10**12), 5)  # type: ignore[attr-defined]
        row[:] = np.array(names)[row]
    one = consensus(draws, loss, restarts=4, random_state=3)
    other = consensus(shuffled, loss, restarts=4, random_state=3)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.expected_loss == other.expected_loss


@given(draw_sets, st.sampled_from(LOSSES))
@settings(max_examples=40, deadline=None)
def test_no_draw_has_a_lower_loss_than_the_consensus(draws: Ints, loss: str) -> None:
    found = consensus(draws, loss, restarts=2, random_state=0)
    assert found.expected_loss <= min(expected_loss(loss, row, draws) for row in draws) + 1e-12
    again = expected_loss(loss, found.labels, draws)
    assert found.expected_loss == pytest.approx(again, abs=1e-12)
    np.testing.assert_array_equal(found.labels, canonical(found.labels))
    assert found.n_clusters == np.unique(found.labels).size
    assert ((found.membership >= 0) & (found.membership <= 1)).all()


@given(arrays(np.int64, (3, 7), elements=st.integers(0, 6)))
@settings(max_examples=60, deadline=None)
def test_both_distances_are_metrics_and_zero_only_between_equal_partitions(three: Ints) -> None:
    x, y, z = three
    assert variation_of_information(x, y) == distance("vi", x, y)
    for loss in LOSSES:
        assert distance(loss, x, x) == 0.0
        assert distance(loss, x, y) == pytest.approx(distance(loss, y, x), abs=1e-12)
        assert distance(loss, x, z) <= distance(loss, x, y) + distance(loss, y, z) + 1e-12
        assert (distance(loss, x, y) == 0.0) == np.array_equal(canonical(x), canonical(y))


@pytest.mark.parametrize("loss", LOSSES)
def test_identical_draws_give_that_partition_with_certainty(loss: str) -> None:
    truth = canonical(np.random.default_rng(0).integers(0, 7, 40))
    for draws in (truth[None, :], np.tile(truth + 5, (30, 1))):
        found = consensus(draws, loss, random_state=0)
        np.testing.assert_array_equal(found.labels, truth)
        assert found.expected_loss == 0.0
        np.testing.assert_allclose(found.membership, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [np.zeros(25, int), np.arange(25)], ids=["one", "singletons"])
def test_the_coarsest_and_the_finest_partition_are_found(loss: str, labels: Ints) -> None:
    found = consensus(np.tile(labels, (5, 1)), loss, random_state=0)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.membership, 1.0)


def test_a_single_node_is_a_single_cluster() -> None:
    found = consensus(np.zeros((3, 1), int), random_state=0)
    assert found.labels.tolist() == [0]
    assert found.expected_loss == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_clear_partition_is_recovered_from_noisy_draws(loss: str) -> None:
    truth, draws = noisy_draws(60, 300, 6, 0.1, 2)
    found = consensus(draws.reshape(4, 15, 300), loss, random_state=0)
    assert adjusted_rand_score(found.labels, truth) == 1.0
    sizes = np.bincount(found.labels)
    assert (np.diff(sizes) <= 0).all()


def test_a_hundred_noisy_clusters_are_recovered_at_least_as_well_as_the_truth() -> None:
    truth, draws = noisy_draws(100, 500, 100, 0.15, 3)
    found = consensus(draws, restarts=8, random_state=0)
    assert found.expected_loss <= expected_loss("vi", truth, draws) + 1e-12
    assert adjusted_rand_score(found.labels, truth) > 0.95


def test_the_same_seed_gives_the_same_result_and_a_generator_is_accepted() -> None:
    _, draws = noisy_draws(30, 50, 5, 0.4, 4)
    one, two = (consensus(draws, random_state=9) for _ in range(2))
    three = consensus(draws, random_state=np.random.default_rng(9))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.labels, three.labels)
    assert one.n_agreeing == two.n_agreeing == three.n_agreeing


# The credible ball


@given(draw_sets, st.floats(0.01, 1.0), st.sampled_from(LOSSES))
@settings(max_examples=60, deadline=None)
def test_the_ball_is_the_smallest_that_holds_its_level(
    draws: Ints, level: float, loss: str
) -> None:
    centre = draws[0]
    ball = credible_ball(centre, draws, level, loss)
    expected = [naive.DISTANCES[loss](centre.tolist(), row) for row in draws.tolist()]
    np.testing.assert_allclose(ball.distances, expected, atol=1e-11)
    assert (ball.distances <= ball.radius + 1e-12).mean() == pytest.approx(ball.probability)
    assert ball.probability >= level - 1e-9
    assert (ball.distances < ball.radius - 1e-9).mean() < level


@given(draw_sets, st.sampled_from(LOSSES))
@settings(max_examples=60, deadline=None)
def test_the_bounds_of_the_ball_are_its_farthest_draws(draws: Ints, loss: str) -> None:
    ball = credible_ball(draws[0], draws, 0.8, loss)
    inside = canonical(draws)[ball.distances <= ball.radius + 1e-9]
    n_clusters = inside.max(axis=1) + 1

    def farthest(among: Ints) -> set[tuple[int, ...]]:
        at = [distance(loss, draws[0], row) for row in among]
        return {tuple(r) for r, d in zip(among.tolist(), at, strict=True) if d > max(at) - 1e-9}

    def listed(bound: Ints) -> set[tuple[int, ...]]:
        assert len({tuple(r) for r in bound.tolist()}) == len(bound)
        return {tuple(r) for r in bound.tolist()}

    assert listed(ball.horizontal) == farthest(inside)
    assert listed(ball.upper) == farthest(inside[n_clusters == n_clusters.min()])
    assert listed(ball.lower) == farthest(inside[n_clusters == n_clusters.max()])


def test_a_ball_around_certain_draws_has_no_radius() -> None:
    draws = np.tile([0, 0, 1, 2], (20, 1))
    ball = credible_ball([5, 5, 1, 0], draws)
    assert ball.radius == 0.0
    assert ball.probability == 1.0
    for bound in (ball.horizontal, ball.upper, ball.lower):
        assert bound.tolist() == [[0, 0, 1, 2]]


def test_a_level_that_is_a_whole_number_of_draws_is_not_rounded_up() -> None:
    """0.07 * 100 is a little more than 7 in floating point."""
    rng = np.random.default_rng(0)
    draws = np.array([np.r_[np.zeros(60, int), rng.integers(1, 40, 40)] for _ in range(100)])
    assert credible_ball(np.zeros(100, int), draws, 0.07).probability == pytest.approx(0.07)


# Refusals


@pytest.mark.parametrize(
    ("draws", "error", "words"),
    [
        ([0, 1, 1], ValueError, r"draws must have shape .*draws\[None, :\]"),
        (np.zeros((1, 1, 1, 2), int), ValueError, "draws must have shape"),
        (np.zeros((0, 4), int), ValueError, "draws is empty .*at least one draw"),
        (np.zeros((4, 0), int), ValueError, "draws is empty"),
        ([[0.0, 1.0]], TypeError, r"draws must hold integers.*draws.astype\(int\)"),
        ([[True, False]], TypeError, "draws must hold integers"),
        ([[0, 1], [2, -3]], ValueError, r"draws\[1, 1\] is -3.*negative.*draws - draws.min\(\)"),
    ],
)
def test_bad_draws_are_refused_with_a_remedy(
    draws: object, error: type[Exception], words: str
) -> None:
    for function in (consensus, co_clustering):
        with pytest.raises(error, match=words):
            function(draws)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"loss": "rand"}, ValueError, "loss must be one of 'vi', 'binder'"),
        ({"restarts": 0}, ValueError, "restarts must be at least 1"),
        ({"restarts": 2.0}, TypeError, "restarts must be an integer"),
        ({"max_clusters": 0}, ValueError, "max_clusters must be at least 1"),
    ],
)
def test_bad_options_are_refused(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        consensus([[0, 1, 1]], **options)  # type: ignore[arg-type]


def test_labels_that_do_not_fit_the_draws_are_refused() -> None:
    draws = np.zeros((3, 4), int)
    with pytest.raises(ValueError, match="labels has 3 nodes but 4 are needed"):
        credible_ball([0, 1, 1], draws)
    with pytest.raises(ValueError, match="second has 2 nodes but 3 are needed"):
        variation_of_information([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="labels must be one partition"):
        credible_ball(draws, draws)
    with pytest.raises(ValueError, match="level must be above 0"):
        credible_ball(draws[0], draws, 0.0)
    with pytest.raises(TypeError, match="dtype must be float32 or float64"):
        co_clustering(draws, dtype=int)


def test_importing_consensus_does_not_import_scikit_learn() -> None:
    code = "import sys, onlooker.consensus; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
