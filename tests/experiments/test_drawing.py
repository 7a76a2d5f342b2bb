"""What the figures of the experiments have in common: means with bands, sizes, legends, files."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from onlooker.experiments import drawing

# two runs of "ours" at each size, one of them with two errors; one run of "theirs"
TABLE = pd.DataFrame(
    [("ours", 10, 0, 1.0), ("ours", 10, 0, 3.0), ("ours", 10, 1, 4.0), ("ours", 1000, 0, 0.5),
     ("ours", 1000, 1, 0.5), ("theirs", 10, 0, 5.0), ("theirs", 1000, 0, 6.0)],
    columns=["method", "trajectories", "run", "error"],
)  # fmt: skip


@pytest.fixture
def figure():
    return drawing.new_figure(4, 3)


def test_a_curve_is_the_mean_over_runs_with_a_band_of_one_standard_deviation(figure):
    ax = figure.subplots()
    names = ["ours", "nobody's", "theirs"]
    drawing.curves(ax, TABLE, x="trajectories", by="method", names=names)
    ours, theirs = ax.lines
    np.testing.assert_array_equal(ours.get_xydata(), [[10, 3.0], [1000, 0.5]])
    np.testing.assert_array_equal(theirs.get_xydata(), [[10, 5.0], [1000, 6.0]])
    band, line = (collection.get_paths()[0].vertices for collection in ax.collections)
    assert {tuple(row) for row in band} == {
        *((10, 3.0 - 2**0.5), (10, 3.0 + 2**0.5), (1000, 0.5)),
    }
    np.testing.assert_array_equal(np.unique(line[:, 1]), [5.0, 6.0])  # of one run: no spread
    assert to_hex(ours.get_color()).upper() == drawing.COLOURS[0]
    assert to_hex(theirs.get_color()).upper() == drawing.COLOURS[2]
    assert ours.get_marker() == drawing.MARKERS[0] != theirs.get_marker()


def test_more_curves_than_colours_begin_again_and_markers_may_be_left_out(figure):
    ax = figure.subplots()
    n = len(drawing.COLOURS)
    names = [*(f"method {i}" for i in range(n)), "ours"]
    table = pd.concat(TABLE.replace("ours", name) for name in names)
    drawing.curves(ax, table, x="trajectories", by="method", names=names, markers=False)
    assert len(ax.lines) == n + 1
    assert ax.lines[n].get_color() == ax.lines[0].get_color() != ax.lines[1].get_color()
    assert {line.get_marker() for line in ax.lines} == {"None"}


def test_errors_stand_over_sizes_on_a_logarithmic_axis_from_zero_beside_the_uniform_policy(figure):
    drawing.size_axes(
        figure, TABLE, ["ours", "theirs"], uniform=7.0, ylabel="error", title="of all"
    )
    (ax,) = figure.axes
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10", "1,000"]
    assert ax.get_xticks().tolist() == [10, 1000]
    assert ax.get_xticks(minor=True).tolist() == []
    assert ax.get_ylim()[0] == 0
    assert np.unique(ax.lines[-1].get_ydata()).tolist() == [7.0]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "theirs", "uniform policy"]
    assert legend._ncols == 3


def test_the_legend_below_covers_nothing(figure):
    ax = figure.subplots()
    for name in "abcd":
        ax.plot([0, 1], label=name)
    drawing.legend_below(ax)
    figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0
    assert ax.get_legend()._ncols == 3


def test_a_figure_is_written_as_pixels_and_as_lines_the_same_each_time(figure, tmp_path):
    figure.subplots().plot([0, 1])
    path = drawing.save(figure, tmp_path, "curves")
    assert path == tmp_path / "curves.png"
    assert imread(path).shape[:2] == (450, 600)
    first = (tmp_path / "curves.svg").read_bytes()
    drawing.save(figure, tmp_path, "curves")
    assert (tmp_path / "curves.svg").read_bytes() == first
