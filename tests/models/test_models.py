"""Names: the nearest is suggested, arguments replace the variant's."""

import pytest

from dawnbench_tf import models


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'resnet56_tf'. Received: name='resnet56tf'"):
        models.build("resnet56tf")


def test_the_start_of_several_names_is_answered_with_these():
    with pytest.raises(
        ValueError, match="mean 'resnet50_cifar' or 'resnet50_v1' or 'resnet50_v1_5'"
    ):
        models.get("resnet50")


def test_names_are_found_by_a_pattern():
    names = models.names("resnet50*")
    assert "resnet50_v1" in names and all(name.startswith("resnet50") for name in names)
    assert models.names("*") == models.names() and models.names("nothing*") == []


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"weights": "imagenet"}, r"load_published\(model, file\)"),
        ({"include_top": False}, r'get_layer\("features"\)'),
        ({"classes": 5}, "num_classes is the length"),
    ],
)
def test_arguments_of_keras_applications_are_answered_with_ours(argument, words):
    with pytest.raises(ValueError, match=words) as error:
        models.build("resnet8_v1_pad", **argument)
    assert "\n" not in str(error.value)


def test_layouts_have_keras_s_names_too():
    model = models.build("resnet8_v1_pad", data_format="channels_first")
    assert model.input_shape == (None, 3, 32, 32)
    assert models.build("resnet8_v1_pad", data_format="channels_last").input_shape[-1] == 3


def test_another_head_and_name_are_taken():
    model = models.build("resnet8_v1_pad", num_classes=7, name="mine")
    assert model.output_shape == (None, 7) and model.name == "mine"


@pytest.mark.parametrize("classes", [0, -1])
def test_a_head_without_classes_is_refused(classes):
    with pytest.raises(
        ValueError, match=f"`num_classes` should be at least 1. Received: {classes}"
    ):
        models.build("resnet8_v1_pad", num_classes=classes)
