"""Test-time views: a network that takes the mean logits over several forms of each image.

The network with its views is what is evaluated, and what answers at inference: their cost is in
its latency.
"""

import tensorflow as tf

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")


def with_views(model: tf.keras.Model, views: str, data_format: str) -> tf.keras.Model:
    """The network behind its views; it shares the model's weights.

    Args:
      model: from images to logits.
      views: a recipe's `test_views`; "image" is the model itself.
      data_format: of the images, "NHWC" or "NCHW".
    """
    if views == "image":
        return model
    images = tf.keras.Input(model.input_shape[1:], name="images")
    shifts = views == "mirror_and_shifts"
    logits = model(Views(shifts, data_format, dtype="float32", name="views")(images))
    mean = MeanOfViews(6 if shifts else 2, dtype="float32", name="mean")(logits)
    return tf.keras.Model(images, mean, name=model.name)


@_register
class Views(tf.keras.layers.Layer):
    """Each image and its mirror; with `shifts`, four more: (b, h, w, c) to (views, b, h, w, c).

    The shifts are those of Jordan 2024 (arXiv 2404.00498, section 3.5): by a pixel up and left,
    and by one down and right, the image reflected at its edges. The first two axes are returned as
    one.

    Args:
      shifts: whether there are.
      data_format: "NHWC" or "NCHW".
    """

    def __init__(self, shifts, data_format, **kwargs):
        super().__init__(**kwargs)
        self.shifts, self.data_format = shifts, data_format

    def call(self, inputs):
        rows = 1 if self.data_format == "NHWC" else 2
        views = [inputs]
        if self.shifts:
            margins = [[1, 1] if axis in (rows, rows + 1) else [0, 0] for axis in range(4)]
            padded = tf.pad(inputs, margins, "REFLECT")
            for first in (0, 2):
                kept = slice(first, first - 2 or None)
                places = [kept if axis in (rows, rows + 1) else slice(None) for axis in range(4)]
                views.append(padded[tuple(places)])
        return tf.concat([*views, *(tf.reverse(view, [rows + 1]) for view in views)], 0)

    def get_config(self):
        return {**super().get_config(), "shifts": self.shifts, "data_format": self.data_format}


@_register
class MeanOfViews(tf.keras.layers.Layer):
    """Logits of `Views`, (views x b, classes), to their mean (b, classes).

    The image counts as much as its two shifts together.
    """

    def __init__(self, views, **kwargs):
        super().__init__(**kwargs)
        self.views = views

    def call(self, inputs):
        by_view = tf.reshape(inputs, [self.views, -1, inputs.shape[-1]])
        weights = {2: [1, 1], 6: [2, 1, 1, 2, 1, 1]}[self.views]
        weights = tf.constant(weights, inputs.dtype) / sum(weights)
        return tf.tensordot(weights, by_view, 1)

    def get_config(self):
        return {**super().get_config(), "views": self.views}
