import pytest

from dawnbench_tf import models


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'resnet56_tf'. Received: name='resnet56tf'"):
        models.build("resnet56tf")


def test_a_variant_is_importable_by_its_name():
    from dawnbench_tf.models import resnet8_v1_pad

    assert resnet8_v1_pad(num_classes=7).output_shape == (None, 7)
    with pytest.raises(AttributeError, match="no attribute 'resnet21'"):
        models.resnet21  # noqa: B018
