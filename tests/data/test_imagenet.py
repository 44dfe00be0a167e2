"""ImageNet's classes and labels, against those that TensorFlow Datasets brings; its refusals."""

from importlib import resources

import numpy as np
import pytest

from dawnbench_tf.data import imagenet, imagenette
from dawnbench_tf.refusals import Refusal

PUBLISHED = resources.files("tensorflow_datasets") / "datasets" / "imagenet2012"


def test_classes_are_the_published_ones():
    assert imagenet.classes() == (PUBLISHED / "labels.txt").read_text().split()
    assert set(imagenette.CLASSES) < set(imagenet.classes())


def test_a_validation_in_order_has_the_published_labels(tmp_path):
    labels = np.array(imagenet._labels_in_order(tmp_path))
    assert (np.bincount(labels) == 50).all() and len(labels) == 50_000
    names = (PUBLISHED / "validation_labels.txt").read_text().split()
    assert [imagenet.classes()[label] for label in labels] == names


def test_labels_beside_the_data_come_first(tmp_path):
    (tmp_path / imagenet.LABELS).write_text("n01443537\nn01440764\n")
    assert imagenet._labels_in_order(tmp_path) == [1, 0]
    (tmp_path / imagenet.LABELS).write_text("n01443537\nn00000000\n")
    with pytest.raises(Refusal, match="'n00000000' is no class of ImageNet's"):
        imagenet._labels_in_order(tmp_path)


def test_imagenet_can_t_be_downloaded():
    with pytest.raises(Refusal, match="--download=true: ImageNet is given out at https"):
        imagenet.load("anywhere", download=True)


@pytest.mark.parametrize("load", [imagenet.load, imagenette.load])
def test_no_folder_is_refused_in_a_line(load):
    with pytest.raises(Refusal, match="--data_dir=: .* needs the folder of the data"):
        load("")
