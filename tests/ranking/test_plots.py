"""Plots of results."""

import re
from itertools import pairwise
from pathlib import Path

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from dawnbench_tf.ranking import plots, results
from dawnbench_tf.refusals import Refusal
from tests.submission.test_entry import example


def entry(values):
    return example(rows=tuple((i, i / 3600, value) for i, value in enumerate(values, 1)))


def test_results_are_drawn_a_row_of_two_for_each_data_set(tmp_path):
    plots.draw(results.dawnbench_results(), tmp_path / "all.png")
    image = matplotlib.image.imread(tmp_path / "all.png")
    assert image.shape[:2] == (1386, 1650) and image.std() > 0.05
    plots.draw([results.entry_result(entry((50.0, 99.0)))], tmp_path / "mine.svg")
    assert "no entry has a price" in (tmp_path / "mine.svg").read_text()


@pytest.mark.parametrize("hours", [(0.01, 0.02), (0.001, 1.0), (0.1, 900.0), (0.5, 0.5001)])
def test_labels_of_ticks_do_not_touch(hours):
    figure = Figure(figsize=(7.5, 4.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(hours, hours)
    axes.set_xscale("log")
    plots._set_ticks(axes.xaxis)
    figure.draw_without_rendering()
    labels = [label for label in axes.get_xticklabels(which="both") if label.get_text()]
    low, high = axes.get_xlim()
    boxes = [t.get_window_extent() for t in labels if low <= t.get_position()[0] <= high]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize(
    ("path", "values", "words"),
    [
        ("a.png", (9.0,), "--plot=a.png: needs a training entry that reached its threshold"),
        ("no/a.png", (99.0,), "no/a.png: can't be written"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(tmp_path, monkeypatch, path, values, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=re.escape(words)):
        plots.draw([results.entry_result(entry(values))], Path(path))
