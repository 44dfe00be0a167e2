"""Layers for feature maps: pooling, stochastic depth, whitening, PyTorch's and ghost BN."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from . import broadcast
from .dropout import create_counter
from .registration import register
from .xla import compiled


@register
class PadChannels(tf.keras.layers.Layer):
    """Pads a map with channels of zeros, half of them in front (rounded down), half behind.

    Args:
      channels: number of channels of the output.
      axis: axis of the channels, 1 or -1.
    """

    def __init__(self, channels: int, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels, self.axis = channels, axis

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        missing = self.channels - inputs.shape[self.axis]
        paddings = [[0, 0]] * 4
        paddings[self.axis] = [missing // 2, missing - missing // 2]
        return getattr(tf.keras, "ops", tf).pad(inputs, paddings)  # of each backend of Keras 3


@register
class MaxPooling2D(tf.keras.layers.MaxPooling2D):
    """Keras's max pooling, whose gradient is faster on GPUs for windows of 2x2 side by side."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if not training or (*self.pool_size, *self.strides) != (2, 2, 2, 2):
            return super().call(inputs)
        height = 1 if self.data_format == "channels_last" else 2
        sides = inputs.shape[height : height + 2]
        rounded_up = self.padding == "same" and any(side is None or side % 2 for side in sides)
        if None in sides or rounded_up or not tf.config.list_logical_devices("GPU"):
            return super().call(inputs)
        return pool_pairs(inputs, height)


def pool_pairs(x: tf.Tensor, height: int) -> tf.Tensor:
    """Max pooling by windows of 2x2, which notes each maximum's corner for its gradient.

    cuDNN's gradient, which finds them anew, takes 3 of the 13 ms of a step of airbench94_muon on an
    H200. On CPUs oneDNN's takes half as long as this one. The gradient goes to the first of equal
    pixels. `height` is the axis of the height, before the width's.
    """
    sides = x.shape[height], x.shape[height + 1]

    @tf.custom_gradient
    def pool(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        maxima, corners = _pool_forward(x, height)
        return maxima, lambda upstream: _pool_backward(corners, upstream, sides, height)

    return pool(x)


@compiled
def _pool_forward(x: tf.Tensor, height: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the maxima of windows of 2x2, and their corners, 0 to 3 row by row."""
    # `height` is the axis of the height, before the width's. An odd side's last pixel is left out.
    before, after = x.shape[1:height], x.shape[height + 2 :]
    rows, columns = (side // 2 for side in x.shape[height : height + 2])
    index = [slice(None)] * height + [slice(2 * rows), slice(2 * columns)]
    windows = tf.reshape(broadcast.widen(x[index]), [-1, *before, rows, 2, columns, 2, *after])
    above, below = tf.unstack(windows, axis=height + 1)
    (a, b), (c, d) = tf.unstack(above, axis=height + 2), tf.unstack(below, axis=height + 2)
    above, below = tf.maximum(a, b), tf.maximum(c, d)
    corners = tf.where(below > above, tf.where(d > c, 3, 2), tf.where(b > a, 1, 0))
    return tf.cast(tf.maximum(above, below), x.dtype), tf.cast(corners, tf.int8)


@compiled
def _pool_backward(
    corners: tf.Tensor, upstream: tf.Tensor, sides: tuple[int, int], height: int
) -> tf.Tensor:
    """Returns the gradient of a map with these sides, of `_pool_forward`'s corners."""
    before, after = corners.shape[1:height], corners.shape[height + 2 :]
    rows, columns = corners.shape[height : height + 2]

    def repeated(values: tf.Tensor) -> tf.Tensor:  # for the pixels of a window
        return tf.expand_dims(tf.expand_dims(values, height + 2), height + 1)

    own = tf.reshape(tf.constant([0, 1, 2, 3], tf.int8), [2, 1, 2, *[1] * len(after)])
    wide = repeated(broadcast.widen(upstream))
    windows = tf.where(repeated(corners) == own, wide, tf.zeros([], wide.dtype))
    pixels = tf.reshape(windows, [-1, *before, 2 * rows, 2 * columns, *after])
    lost = [[0, sides[0] - 2 * rows], [0, sides[1] - 2 * columns]]
    paddings = [[0, 0]] * height + lost + [[0, 0]] * len(after)
    return tf.cast(tf.pad(pixels, paddings), upstream.dtype)


@register
class WithAuxiliary(tf.keras.layers.Layer):
    """Adds an auxiliary head's logits to the output in training.

    Inputs: [logits, auxiliary logits], each (batch, classes). Output: (batch, 2, classes) in
    training; the logits alone at inference, so that compiled graphs omit the auxiliary head.
    """

    def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
        return tf.stack(inputs, 1) if training else inputs[0]


@register
class StochasticDepth(tf.keras.layers.Layer):
    """Residual unit shortcut + branch(x) whose branch is skipped at random in training.

    Inputs: [x, shortcut].
    In training the branch runs with probability `survival`, drawn once per batch, and its output is
    divided by `survival`. A skipped branch costs no time, forward or backward. At inference the
    branch always runs, undivided. (Huang et al. 2016; scaled in training as in DAWNBench's
    reference.) The random state is saved in checkpoints; every replica draws the same.

    Args:
      branch: `tf.keras.Model` with one input and one output; the output has the shortcut's shape.
      survival: probability that the branch runs, in (0, 1].

    Raises:
      ValueError: `survival` is not in (0, 1].
    """

    def __init__(self, branch: tf.keras.Model, survival: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 < survival <= 1:
            raise ValueError(f"`survival` should be in (0, 1]. Received: survival={survival}")
        if tf.keras.backend.backend() != "tensorflow":
            raise RuntimeError("stochastic depth is TensorFlow's")  # `build` names the network
        self.branch, self.survival = branch, survival
        self.draws = create_counter()

    def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
        x, shortcut = inputs
        if not training:
            return shortcut + self.branch(x, training=False)
        # Of whole numbers: XLA makes floats of other bits. These are the floats of TensorFlow's.
        bits = tf.random.stateless_uniform([], tf.stack([self.draws, 0]), None, None, tf.uint32)
        draw = tf.cast(bits & (2**23 - 1), tf.float32) / 2**23
        self.draws.assign_add(1)

        def keep() -> tf.Tensor:
            residual = self.branch(x, training=True)
            return shortcut + residual / tf.cast(self.survival, residual.dtype)

        return tf.cond(draw < self.survival, keep, lambda: shortcut)

    def get_config(self) -> dict[str, Any]:
        branch = tf.keras.layers.serialize(self.branch)
        return {**super().get_config(), "branch": branch, "survival": self.survival}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "branch": tf.keras.layers.deserialize(config["branch"])})


def _bessel(count: tf.Tensor) -> tf.Tensor:
    """Bessel's correction, count / (count - 1), makes a variance unbiased; 1 if count is 1."""
    count = tf.cast(count, tf.float32)
    return count / tf.maximum(count - 1, 1)


@register
class BatchNormalization(tf.keras.layers.BatchNormalization):
    """Batch normalization whose moving variance averages unbiased variances, as in PyTorch.

    Keras's layer does so only where it uses TensorFlow's fused operation. Keras 3, float64 and
    `synchronized` do not use it; here Bessel's correction is applied to them. With `synchronized`
    N is the number of values in the global batch.

    Raises:
      ValueError: inputs with a mask in training, which the statistics would not follow.
    """

    def call(self, inputs: tf.Tensor, training: bool = False, mask: Any = None) -> tf.Tensor:
        if mask is not None and training and self.trainable:
            raise ValueError("`mask` should be None; Keras's BatchNormalization takes one")
        if not (training and self.trainable):
            return super().call(inputs, training=training)
        if getattr(self, "fused", False):
            return self._call_fused(inputs)
        # Keras sets moving variance = momentum x old + (1 - momentum) x biased variance. The
        # second term alone is corrected.
        kept = self.momentum * tf.convert_to_tensor(self.moving_variance)
        outputs = super().call(inputs, training=True)
        added = tf.convert_to_tensor(self.moving_variance) - kept
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync if self.synchronized and context else 1
        count = replicas * tf.size(inputs) / tf.size(kept)  # values per channel
        self.moving_variance.assign(kept + added * tf.cast(_bessel(count), added.dtype))
        return outputs

    def _call_fused(self, inputs: tf.Tensor) -> tf.Tensor:
        by_xla = GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
        if not by_xla or inputs.shape.rank != 4:
            return super().call(inputs, training=True)
        # XLA's variance, E[x²] - E[x]², cancels where the mean is large. A pixel of each channel is
        # near the mean, and what is subtracted from a whole channel changes no output.
        wide = broadcast.widen(inputs)
        pixel = tf.stop_gradient(wide[:1, :1, :1] if self.axis == [3] else wide[:1, :, :1, :1])
        outputs = self._fused_batch_norm(wide - pixel, None, training=True)  # `call` would round
        self.moving_mean.assign_add((1 - self.momentum) * tf.reshape(pixel, [-1]))
        return tf.cast(outputs, inputs.dtype)


@register
class GhostBatchNormalization(tf.keras.layers.BatchNormalization):
    """Ghost batch normalization: training statistics are those of groups of `group` examples.

    (Hoffer et al. 2017, arXiv 1705.08741.) A batch of at most `group` examples is one group. The
    moving averages follow the mean over all groups of their means and unbiased variances.

    Args:
      group: examples per group; a larger batch is a multiple of it.
      **kwargs: arguments of Keras's BatchNormalization; `synchronized` has no effect.

    Raises:
      ValueError: a training batch of known size is larger than `group` and not a multiple of it. In
        `fit`, which knows no sizes, TensorFlow's InvalidArgumentError: drop the last batch of an
        epoch if it has another size.
    """

    def __init__(self, group: int = 32, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.group = group

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if not (training and self.trainable):  # a frozen layer infers, as Keras's does
            return super().call(inputs, training=False)
        static, dynamic = inputs.shape, tf.shape(inputs)
        sizes = [dynamic[axis] if static[axis] is None else static[axis] for axis in range(4)]
        # (groups, group, ...): statistics are taken over all axes but the groups and the channels.
        batch = sizes[0]
        if isinstance(batch, int) and batch > self.group and batch % self.group:
            text = "the batch of one replica should be a multiple of `group`, or smaller"
            raise ValueError(f"{text}. Received: group={self.group}, and a batch of {batch}")
        # A batch's size may be unknown until the graph runs.
        group = min(self.group, batch) if isinstance(batch, int) else tf.minimum(self.group, batch)
        grouped = tf.cast(inputs, self.moving_mean.dtype)  # float32, or float64
        grouped = tf.reshape(grouped, [-1, group, *sizes[1:]])
        channels = 1 + (self.axis if isinstance(self.axis, int) else self.axis[0]) % 4
        axes = [axis for axis in range(1, 5) if axis != channels]
        mean, variance = tf.nn.moments(grouped, axes, keepdims=True)
        unbiased = variance * tf.cast(_bessel(tf.size(grouped) / tf.size(mean)), variance.dtype)
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, unbiased)):
            value = tf.reshape(tf.reduce_mean(value, 0), [-1])
            moving.assign_sub((moving - value) * (1 - self.momentum))
        shape = [-1 if axis == channels else 1 for axis in range(5)]
        beta = tf.reshape(self.beta, shape) if self.center else None
        gamma = tf.reshape(self.gamma, shape) if self.scale else None
        outputs = tf.nn.batch_normalization(grouped, mean, variance, beta, gamma, self.epsilon)
        return tf.cast(tf.reshape(outputs, sizes), inputs.dtype)


@register
class Whitening(tf.keras.layers.Layer):
    """Frozen convolution that whitens image patches: decorrelates them and scales them to 1.

    Its filters are the eigenvectors of the patches' covariance, each divided by
    sqrt(eigenvalue + `epsilon`) (Page 2019). Call `adapt(images)` before training, or load the
    weights of a model that was adapted; until then each filter copies one value of the patch.

    Args:
      patch: height and width of the patches, in pixels. Maps keep their size if it is odd, and
        lose `patch` - 1 rows and columns if it is even.
      epsilon: added to the eigenvalues.
      axis: axis of the channels, 1 or -1.
      negated: whether each filter is repeated with its sign changed (Jordan 2024).
      use_bias: whether a trained bias is added.
      random_bias: whether the bias is initialized in +-1 / sqrt(values of a patch), PyTorch's
        default, in place of 0.
      examples: number of training images that the network's authors gave `adapt`.

    Raises:
      ValueError: the layer is called in training before `adapt`.
    """

    def __init__(
        self,
        patch: int = 3,
        epsilon: float = 1e-2,
        axis: int = -1,
        negated: bool = False,
        use_bias: bool = False,
        random_bias: bool = False,
        examples: int = 10_000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.patch, self.epsilon, self.axis = patch, epsilon, axis
        self.negated, self.use_bias, self.random_bias = negated, use_bias, random_bias
        self.examples = examples

    def build(self, input_shape: Any) -> None:
        filters = self._unadapted(input_shape[self.axis])
        self.kernel = self.add_weight(
            name="kernel",
            shape=filters.shape,
            initializer=lambda shape, dtype=None, **_: tf.constant(filters, dtype),
            trainable=False,
        )
        self.bias = None
        if self.use_bias:
            limit = np.prod(filters.shape[:3]) ** -0.5 if self.random_bias else 0.0
            initializer = tf.keras.initializers.RandomUniform(-limit, limit) if limit else "zeros"
            self.bias = self.add_weight(
                name="bias", shape=filters.shape[-1:], initializer=initializer
            )
        self.built = True

    def _unadapted(self, channels: int) -> np.ndarray:
        """Returns the filters before `adapt`."""
        return self._filters(np.eye(self.patch**2 * channels), channels)

    def _filters(self, columns: np.ndarray, channels: int) -> np.ndarray:
        """Returns a kernel (patch, patch, channels, filters) whose filters are `columns`."""
        columns = np.concatenate([columns, -columns], 1) if self.negated else columns
        return columns.reshape(self.patch, self.patch, channels, -1)

    def adapt(self, images: np.ndarray) -> None:
        """Sets the filters from the statistics of training images.

        Args:
          images: (batch, height, width, channels), or (batch, channels, height, width) if `axis`
            is 1; standardized as in training.

        Raises:
          ValueError: there are no images, or of another shape, or some are not finite.
        """
        images, channels = np.asarray(images), self.kernel.shape[2]
        if images.ndim != 4 or not len(images) or images.shape[self.axis] != channels:
            text = f"`images` should be 4-D, with {channels} channels on axis {self.axis}"
            raise ValueError(f"{text}. Received: images of shape {images.shape}")
        covariance, count = 0.0, 0
        # Chunks of about 100 images bound the memory that the float64 patches take.
        for chunk in np.array_split(images, max(1, len(images) // 100)):
            chunk = np.moveaxis(chunk, self.axis, -1).astype("float64")
            windows = np.lib.stride_tricks.sliding_window_view(chunk, [self.patch] * 2, (1, 2))
            # (batch, rows, columns, channels, patch, patch) to the kernel's order of values.
            patches = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.patch**2 * channels)
            covariance, count = covariance + patches.T @ patches, count + len(patches)
        if not np.all(np.isfinite(covariance)):
            raise ValueError("`images` should be finite. Received: images with NaN or infinity")
        # No mean is subtracted: standardized images have mean 0.
        values, vectors = np.linalg.eigh(covariance / (count - 1))
        self.kernel.assign(self._filters(vectors / np.sqrt(values + self.epsilon), channels))

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            with tf.init_scope():  # runs once, when `fit` traces the step
                filters = tf.convert_to_tensor(self.kernel).numpy()
            if np.array_equal(filters, self._unadapted(filters.shape[2])):
                text = "should have the training images' statistics before training"
                hint = "call adapt(images). Received: filters as they were built"
                raise ValueError(f"`{self.name}` {text}; {hint}")
        layout = "NHWC" if self.axis == -1 else "NCHW"
        kernel = tf.cast(self.kernel, inputs.dtype)
        padding = "SAME" if self.patch % 2 else "VALID"
        outputs = tf.nn.conv2d(inputs, kernel, 1, padding, data_format=layout)
        if self.bias is None:
            return outputs
        return broadcast.add(outputs, self.bias, self.axis)
