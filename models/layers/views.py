"""Test-time augmentation: a model that averages its logits over several views of each image.

Evaluation and inference use the model with its views, so latencies include them.
"""

from typing import Any

import tensorflow as tf

from .registration import register


@tf.autograph.experimental.do_not_convert  # as networks.build: half a second
def with_views(model: tf.keras.Model, views: str, data_format: str) -> tf.keras.Model:
    """Returns a classifier with the weights of `model`: mean logits of a recipe's `test_views`."""
    if views == "image":
        return model
    images = tf.keras.Input(model.input_shape[1:], name="images")
    shifts = views != "mirror"
    logits = model(Views(shifts, data_format, dtype="float32", name="views")(images))
    even = views == "mirror_and_even_shifts"
    mean = MeanOfViews(6 if shifts else 2, even, dtype="float32", name="mean")(logits)
    return tf.keras.Model(images, mean, name=model.name)


@register
class Views(tf.keras.layers.Layer):
    """Views of each image: the image and its horizontal flip, optionally both shifted by a pixel.

    Inputs: images (batch, height, width, channels). Output: (views x batch, height, width,
    channels), all images of the first view first. The shifts are those of Jordan 2024 (arXiv
    2404.00498, section 3.5): one pixel up and left, one pixel down and right; the image is
    reflected at its edges.

    Args:
      shifts: whether to add the shifted views: 6 views in place of 2.
      data_format: layout of the images, "NHWC" or "NCHW".
    """

    def __init__(self, shifts: bool, data_format: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shifts, self.data_format = shifts, data_format

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        rows = 1 if self.data_format == "NHWC" else 2
        views = [inputs]
        if self.shifts:
            margins = [[1, 1] if axis in (rows, rows + 1) else [0, 0] for axis in range(4)]
            padded = tf.pad(inputs, margins, "REFLECT")
            for first in (0, 2):  # crop at the top left, then at the bottom right
                kept = slice(first, first - 2 or None)
                slices = [kept if axis in (rows, rows + 1) else slice(None) for axis in range(4)]
                views.append(padded[tuple(slices)])
        return tf.concat([*views, *(tf.reverse(view, [rows + 1]) for view in views)], 0)


@register
class MeanOfViews(tf.keras.layers.Layer):
    """Weighted mean of the logits of `Views`: (views x batch, classes) to (batch, classes).

    Args:
      views: number of views, 2 or 6.
      even: whether all views have the same weight; if not, an unshifted view has the weight of its
        two shifts together.
    """

    def __init__(self, views: int, even: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.views, self.even = views, even

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        by_view = tf.reshape(inputs, [self.views, -1, inputs.shape[-1]])
        weights = [2, 1, 1, 2, 1, 1] if self.views == 6 and not self.even else [1] * self.views
        weights = tf.constant(weights, inputs.dtype) / sum(weights)
        return tf.tensordot(weights, by_view, 1)
