"""Pictures show the numbers that they were given."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from onlooker import plot

ANGLES = np.array([0.0, 0.5, 1.0, 1.5]) * np.pi


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture
def polar():
    return Figure().add_subplot(projection="polar")


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


def test_importing_plot_imports_no_matplotlib():
    run("import onlooker.plot, sys; assert 'matplotlib' not in sys.modules")


def test_drawing_into_given_axes_never_imports_pyplot():
    run(
        "import sys; from matplotlib.figure import Figure; from onlooker import plot\n"
        "plot.n_controllers([1, 2], Figure().add_subplot())\n"
        "plot.trajectories([[[0.0, 0.0], [1.0, 1.0]]], Figure().add_subplot())\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )


def test_missing_matplotlib_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"onlooker\[plot\]"):
        plot.n_controllers([1, 2])


def test_without_axes_a_new_figure_is_made():
    import matplotlib.pyplot as plt

    ax = plot.n_controllers([1, 2, 2])
    try:
        assert ax.figure.number in plt.get_fignums()
    finally:
        plt.close(ax.figure)


def test_trajectories_are_drawn_one_line_each_with_their_starts(ax):
    paths = [np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[5.0, 5.0], [6.0, 6.0], [7.0, 5.0]])]
    assert plot.trajectories(paths, ax) is ax
    *lines, starts = ax.lines
    for line, path in zip(lines, paths, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), path)
    np.testing.assert_array_equal(starts.get_xydata(), [[0.0, 1.0], [5.0, 5.0]])
    assert ax.get_legend_handles_labels()[1] == ["trajectory", "start"]


def test_the_plane_keeps_its_proportions_and_names_its_axes(ax):
    plot.trajectories([[[0.0, 0.0], [1.0, 1.0]]], ax)
    assert ax.get_aspect() == 1.0
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")


def test_integer_states_cannot_be_drawn_without_coordinates(ax):
    with pytest.raises(ValueError, match=r"demos must be \(n, 2\).*coordinates"):
        plot.trajectories([[0, 1, 2]], ax)


def test_regions_have_the_colour_of_their_cluster_and_pale_far_from_data(ax):
    def left_or_right(states):
        return np.where(np.abs(states[:, 1]) > 0.9, -1, (states[:, 0] > 0).astype(int))

    plot.regions(
        left_or_right, (-2, 2, -1, 1), ax, colours=["red", "blue"], near=[[1.0, 0.0]],
        resolution=41,
    )  # fmt: skip
    image = ax.images[0].get_array()
    middle = 20
    np.testing.assert_allclose(image[middle, 5, :3], to_rgb("red"))
    np.testing.assert_allclose(image[middle, 30, :3], to_rgb("blue"))
    np.testing.assert_allclose(image[0, 30, :3], to_rgb("white"))
    paler = image[middle, :, 3] < image[middle, 30, 3]
    np.testing.assert_array_equal(paler, np.linspace(-2, 2, 41) < -1e-9)  # farther than 1
    assert 0 < image[middle, 5, 3] < 0.3 < image[middle, 30, 3] < 0.7  # the grid shines through


def test_rows_of_the_shaded_plane_go_upwards(ax):
    plot.regions(lambda s: (s[:, 1] > 0).astype(int), (-1, 1, -1, 1), ax, colours=["red", "blue"])
    image = ax.images[0]
    top = 0 if image.origin == "upper" else -1
    np.testing.assert_allclose(image.get_array()[top, 0, :3], to_rgb("blue"))


def test_partition_draws_every_state_once_in_its_clusters_colour(ax):
    states = np.arange(10.0).reshape(5, 2)
    labels = np.array([2, 0, 2, 2, 0])
    plot.partition(states, labels, ax, colours=["red", "green", "blue"])
    shown = {to_rgb(line.get_color()): line.get_xydata() for line in ax.lines}
    assert set(shown) == {to_rgb("red"), to_rgb("blue")}
    np.testing.assert_array_equal(shown[to_rgb("blue")], states[labels == 2])
    assert ax.get_legend_handles_labels()[1] == ["3 states", "2 states"]


def test_partition_names_only_as_many_clusters_as_a_legend_holds(ax):
    plot.partition(np.random.default_rng(0).random((30, 2)), np.arange(30), ax)
    assert len(ax.lines) == 30
    assert len(ax.get_legend_handles_labels()[1]) == 8


def test_partition_refuses_labels_that_do_not_fit(ax):
    with pytest.raises(ValueError, match=r"labels must be \(3,\)"):
        plot.partition(np.zeros((3, 2)), [0, 1], ax)
    with pytest.raises(ValueError, match="colours holds 1 colours for 2"):
        plot.partition(np.zeros((2, 2)), [0, 1], ax, colours=["red"])


@pytest.mark.parametrize("unit", [0.001, 1.0, 5000.0])
def test_arrows_are_as_long_as_suits_the_extent(ax, unit):
    points = unit * np.array([[0.0, 0.0], [40.0, 10.0]])
    plot.policy_field(points, np.eye(4)[:2], ANGLES, ax)
    (arrows,) = ax.collections
    assert 1 / arrows.scale == pytest.approx(2 * unit)
    plot.policy_field(points[:1], np.eye(4)[:1], ANGLES, ax)  # a single one has no extent
    assert 1 / ax.collections[-1].scale == 1


def test_arrows_are_mean_steps(ax):
    policy = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0, 0.5, 0.0, 0.5]])
    reference = np.array([[0.0, 1.0, 0.0, 0.0]] * 3)
    plot.policy_field(np.zeros((3, 2)), policy, ANGLES, ax, reference=reference)
    expert, recognised = ax.collections
    np.testing.assert_allclose(
        np.c_[recognised.U, recognised.V], [[1, 0], [0, 0], [0, 0]], atol=1e-12
    )
    np.testing.assert_allclose(np.c_[expert.U, expert.V], [[0, 1]] * 3, atol=1e-12)
    assert ax.get_legend_handles_labels()[1] == ["expert", "recognised"]


def test_policy_field_refuses_a_policy_of_another_shape(ax):
    with pytest.raises(ValueError, match=r"policy must be \(2, 4\)"):
        plot.policy_field(np.zeros((2, 2)), np.ones((3, 4)) / 4, ANGLES, ax)
    with pytest.raises(ValueError, match="reference must be"):
        plot.policy_field(
            np.zeros((2, 2)), np.ones((2, 4)) / 4, ANGLES, ax, reference=np.ones((2, 3)) / 3
        )


def test_bars_are_the_shares_of_draws(ax):
    plot.n_controllers(np.array([[3, 3, 4], [3, 5, 3]]), ax, truth=4)
    heights = {round(bar.get_center()[0]): bar.get_height() for bar in ax.patches}
    assert heights == pytest.approx({3: 4 / 6, 4: 1 / 6, 5: 1 / 6})
    assert ax.lines[0].get_xdata()[0] == 4
    assert [text.get_text() for text in ax.texts] == ["67 %", "17 %", "17 %"]
    assert ax.get_xlim() == (1.5, 6.5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of controllers", "probability")
    assert ax.yaxis.get_major_formatter()(0.5) == "50 %"
    assert all(tick == round(tick) for tick in ax.get_xticks())
    assert ax.get_ylim()[1] > 1.1 * 4 / 6  # room for the numbers


@pytest.mark.parametrize(("truth", "limits"), [(1, (-0.5, 5.5)), (9, (1.5, 10.5))])
def test_the_right_number_is_in_sight_wherever_it_is(ax, truth, limits):
    plot.n_controllers([3, 3, 4], ax, truth=truth)
    assert ax.get_xlim() == (limits[0], limits[1] if truth == 9 else 5.5)


def test_a_number_that_was_hardly_drawn_has_no_label(ax):
    plot.n_controllers(np.repeat([2, 3, 4], [990, 6, 4]), ax)
    assert [text.get_text() for text in ax.texts] == ["99 %", "1 %", ""]


def test_n_controllers_takes_a_posterior_too(ax):
    class Drawn:
        n_controllers = np.array([[2, 2], [2, 3]])

    plot.n_controllers(Drawn(), ax)
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0.75, 0.25])


def test_n_controllers_refuses_what_is_no_count(ax):
    with pytest.raises(ValueError, match="counts must be"):
        plot.n_controllers([0.5, 1.5], ax)


def test_errors_stand_where_their_states_are_in_whatever_order(ax):
    x, y = np.meshgrid([0.0, 1.0, 2.0], [5.0, 6.0], indexing="ij")
    states = np.column_stack([x.ravel(), y.ravel()])
    errors = 10 * states[:, 0] + states[:, 1]
    shuffled = np.random.default_rng(1).permutation(6)
    plot.policy_error(states[shuffled], errors[shuffled], ax)
    np.testing.assert_array_equal(ax.collections[0].get_array(), [[5, 15, 25], [6, 16, 26]])


def test_the_colour_bar_stands_beside_the_errors_as_tall_as_they_are(ax):
    x, y = np.meshgrid(np.arange(4.0), np.arange(4.0))
    plot.policy_error(np.column_stack([x.ravel(), y.ravel()]), x.ravel(), ax)
    bar = ax.figure.axes[1]
    ax.figure.canvas.draw()
    beside, drawn = bar.get_window_extent(), ax.get_window_extent()
    assert beside.x0 > drawn.x1
    assert beside.width < drawn.width / 10
    assert beside.height == pytest.approx(drawn.height, rel=0.05)
    assert ax.collections[0].get_clim() == (0, 3)


def test_errors_of_states_that_are_no_grid_are_refused(ax):
    with pytest.raises(ValueError, match="full grid"):
        plot.policy_error([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0], ax)


def test_a_rose_has_one_petal_an_action(polar):
    policy = np.array([0.1, 0.2, 0.3, 0.4])
    plot.rose(policy, ANGLES, polar, low=policy / 2, high=policy * 1.5, reference=[0, 0, 0, 1])
    heights = [bar.get_height() for bar in polar.patches]
    assert heights == pytest.approx([0.1, 0.2, 0.3, 0.4, 1.0])
    middles = [bar.get_x() + bar.get_width() / 2 for bar in polar.patches]
    np.testing.assert_allclose(middles, [*ANGLES, ANGLES[3]], atol=1e-12)
    assert sum(bar.get_width() for bar in polar.patches[:4]) < 2 * np.pi  # none over its neighbour
    assert polar.patches[4].get_width() == pytest.approx(2 * np.pi / 4)
    ends = [segment[:, 1] for segment in polar.collections[0].get_segments()]
    np.testing.assert_allclose(ends, np.c_[policy / 2, policy * 1.5])
    assert polar.yaxis.get_major_formatter()(0.25) == "25 %"
    assert len(polar.get_yticks()) <= 5


@pytest.mark.parametrize("action", range(4))
def test_labels_of_a_rose_stand_where_no_petal_is(polar, action):
    plot.rose(np.eye(4)[action] * 0.97 + 0.01, ANGLES, polar)
    at = np.deg2rad(polar.get_rlabel_position())
    assert np.cos(at - ANGLES[action]) < 0.1
    plot.rose(np.full(4, 0.25), ANGLES, polar)  # intervals, and a reference, are left out if none
    assert not polar.collections


def test_a_rose_refuses_angles_that_do_not_match(polar):
    with pytest.raises(ValueError, match="3 angles"):
        plot.rose([0.5, 0.5], [0.0, 1.0, 2.0], polar)


def test_cluster_colours_never_repeat_soon():
    colours = plot.cluster_colours(24)
    assert len(np.unique(colours.round(3), axis=0)) == 24
    many = plot.cluster_colours(45)
    n = next(n for n in range(1, 45) if np.allclose(many[n], 0.6 * many[0]))
    np.testing.assert_allclose(many[n:], 0.6 * many[: 45 - n])  # the same again, darker
    assert (many >= 0).all()


def test_states_with_a_missing_value_are_refused(ax):
    with pytest.raises(ValueError, match=r"states holds nan at index \(1, 0\)"):
        plot.partition([[0.0, 0.0], [np.nan, 1.0]], [0, 1], ax)
