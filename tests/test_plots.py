import matplotlib.image
import pytest

from dawnbench_tf import entries, plots, tasks
from dawnbench_tf.settings import Refusal


def entry(values):
    rows = [{"epoch": i, "hours": i / 3600, "top1Accuracy": v} for i, v in enumerate(values, 1)]
    misc = {"recipe": {"synthetic": False}}
    fields = {"model": "resnet8", "hardware": "2 CPU", "misc": misc}
    return entries.TrainingEntry(tasks.TASKS["digits"], "name", 98.0, fields, rows)


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
