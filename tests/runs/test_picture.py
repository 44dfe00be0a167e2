"""The picture of a run: its curve, and the first row at the threshold."""

import matplotlib.image
import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.runs import Run, picture


def run(values, **changes):
    rows = [
        {"epoch": i, "hours": i / 3600, "top1Accuracy": value} for i, value in enumerate(values, 1)
    ]
    return Run(recipes.get("digits/resnet8", **changes), rows, {})


@pytest.mark.parametrize("values", [(50.0, 99.0), (50.0, 60.0), (10.0,)])
def test_a_picture_is_drawn_with_and_without_a_hit(tmp_path, values):
    picture.draw(run(values), "2 CPU", tmp_path / "accuracy.png")
    image = matplotlib.image.imread(tmp_path / "accuracy.png")
    assert image.shape[:2] == (480, 840) and image.std() > 0.01
    red = (image[..., 0] > 0.7) & (image[..., 1] < 0.4) & (image[..., 2] < 0.3)
    assert red.any() == (max(values) >= 98)


def test_a_price_gives_an_axis_of_dollars_and_mistakes_are_drawn_in_rows_of_five(tmp_path):
    picture.draw(run((50.0, 99.0)), "2 CPU", tmp_path / "a.svg", cost_per_hour=0.9)
    assert "<!-- USD, at 0.9 an hour -->" in (tmp_path / "a.svg").read_text()
    images = np.zeros((6, 8, 8, 3), np.uint8)
    picture.draw_mistakes(images, ["a $5 note"] * 6, tmp_path / "mistakes.png")
    assert matplotlib.image.imread(tmp_path / "mistakes.png").shape[:2] == (540, 1100)


def test_the_threshold_drawn_is_the_run_s_own(tmp_path):
    picture.draw(run((50.0, 91.5), threshold=90.0), "2 CPU", tmp_path / "accuracy.svg")
    drawn = (tmp_path / "accuracy.svg").read_text()
    assert "threshold 90" in drawn and "91.5 after 2.0 s on the clock" in drawn


def test_where_it_cannot_be_written_that_is_said(tmp_path):
    with pytest.raises(Refusal, match="can't be written"):
        picture.draw(run((1.0,)), "2 CPU", tmp_path / "nowhere" / "accuracy.png")
