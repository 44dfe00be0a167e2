import datetime
import re
from pathlib import Path

import matplotlib.image
import pytest

from dawnbench_tf import plots, results
from dawnbench_tf.entry import Entry
from dawnbench_tf.settings import Refusal


def entry(values):
    return Entry(
        dataset="digits",
        kind="train",
        name="name",
        author="",
        author_email="",
        framework="",
        model="resnet8",
        hardware="2 CPU",
        timestamp=datetime.date(2026, 1, 1),
        rows=tuple((i, i / 3600, value) for i, value in enumerate(values, 1)),
        misc={"recipe": {"synthetic": False}},
    )


@pytest.mark.parametrize("values", [(50.0, 99.0), (50.0, 60.0), (10.0,)])
def test_a_picture_is_drawn_with_and_without_a_hit(tmp_path, values):
    plots.accuracy_over_time(entry(values), tmp_path / "accuracy.png")
    image = matplotlib.image.imread(tmp_path / "accuracy.png")
    assert image.shape[:2] == (480, 840) and image.std() > 0.01
    red = (image[..., 0] > 0.7) & (image[..., 1] < 0.4) & (image[..., 2] < 0.3)
    assert red.any() == (max(values) >= 98)


def test_where_it_cannot_be_written_that_is_said(tmp_path):
    with pytest.raises(Refusal, match="can't be written"):
        plots.accuracy_over_time(entry((1.0,)), tmp_path / "nowhere" / "accuracy.png")


def test_results_are_drawn_a_row_of_two_for_each_data_set(tmp_path):
    plots.results(results.published(), tmp_path / "all.png")
    image = matplotlib.image.imread(tmp_path / "all.png")
    assert image.shape[:2] == (1386, 1650) and image.std() > 0.05
    plots.results([results.of(entry((50.0, 99.0)))], tmp_path / "mine.svg")
    assert "no entry has a price" in (tmp_path / "mine.svg").read_text()


@pytest.mark.parametrize(
    ("path", "values", "words"),
    [
        ("a.jpeg2", (99.0,), "--plot=a.jpeg2: should end in one of .png"),
        ("a.png", (9.0,), "--plot=a.png: needs a training entry that reached its threshold"),
        ("no/a.png", (99.0,), "no/a.png: can't be written"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(tmp_path, monkeypatch, path, values, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=re.escape(words)):
        plots.results([results.of(entry(values))], Path(path))
