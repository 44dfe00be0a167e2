"""Layers for feature maps that Keras has not, and batch normalization in PyTorch's manner."""

import numpy as np
import tensorflow as tf

from .dropout import stream

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")


@_register
class PadChannels(tf.keras.layers.Layer):
    """Zero-pads the channels, on `axis`, to `channels`: on both sides, the odd one behind."""

    def __init__(self, channels, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.channels, self.axis = channels, axis

    def call(self, inputs):
        missing = self.channels - inputs.shape[self.axis]
        paddings = [[0, 0]] * 4
        paddings[self.axis] = [missing // 2, missing - missing // 2]
        return tf.pad(inputs, paddings)

    def get_config(self):
        return {**super().get_config(), "channels": self.channels, "axis": self.axis}


@_register
class WithAuxiliary(tf.keras.layers.Layer):
    """`[logits, auxiliary]`, each (batch, classes): in training both, (batch, 2, classes).

    At inference the first alone: the auxiliary head is not calculated where a graph is compiled.
    """

    def call(self, inputs, training=False):
        return tf.stack(inputs, 1) if training else inputs[0]


@_register
class StochasticDepth(tf.keras.layers.Layer):
    """A residual unit, `[x, shortcut]` to shortcut + branch(x), whose branch is skipped at random.

    In training the branch runs with probability `survival`, one draw per mini-batch, divided by
    `survival`; else **its work is not done**, forward or backward. At inference it always runs,
    undivided. (Huang et al. 2016; inverted scaling as in DAWNBench's reference.) The stream of
    draws is a variable, so it travels with checkpoints, and every replica draws alike.

    Args:
      branch: a `tf.keras.Model` of one input and one output, of the shortcut's shape.
      survival: probability that the branch is kept, in (0, 1].

    Raises:
      ValueError: `survival` is not in (0, 1].
    """

    def __init__(self, branch, survival, **kwargs):
        super().__init__(**kwargs)
        if not 0 < survival <= 1:
            raise ValueError(f"`survival` should be in (0, 1]. Received: survival={survival}")
        self.branch, self.survival = branch, survival
        self.draws = stream()

    def call(self, inputs, training=False):
        x, shortcut = inputs
        if not training:
            return shortcut + self.branch(x, training=False)
        draw = tf.random.stateless_uniform([], seed=tf.stack([self.draws, 0]))
        self.draws.assign_add(1)

        def keep():
            residual = self.branch(x, training=True)
            return shortcut + residual / tf.cast(self.survival, residual.dtype)

        return tf.cond(draw < self.survival, keep, lambda: shortcut)

    def compute_output_shape(self, input_shape):
        return input_shape[1]

    def get_config(self):
        branch = tf.keras.layers.serialize(self.branch)
        return {**super().get_config(), "branch": branch, "survival": self.survival}

    @classmethod
    def from_config(cls, config):
        branch = tf.keras.layers.deserialize(config["branch"])
        return cls(**{**config, "branch": branch})


def _bessel(count):
    """count / (count - 1), which makes a variance unbiased; 1 for a single value."""
    count = tf.cast(count, tf.float32)
    return count / tf.maximum(count - 1, 1)


@_register
class BatchNormalization(tf.keras.layers.BatchNormalization):
    """Keras's, whose moving variance is that of unbiased variances, as in PyTorch, in every form.

    TensorFlow's fused operation has them; Keras 3, float64 and `synchronized` do without it. With
    `synchronized` the count is that of the global batch.
    """

    def call(self, inputs, training=False):
        if not (training and self.trainable) or getattr(self, "fused", False):
            return super().call(inputs, training=training)
        before = self.momentum * tf.convert_to_tensor(self.moving_variance)
        outputs = super().call(inputs, training=True)
        moved = tf.convert_to_tensor(self.moving_variance) - before
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync if self.synchronized and context else 1
        count = replicas * tf.size(inputs) / tf.size(before)
        self.moving_variance.assign(before + moved * tf.cast(_bessel(count), moved.dtype))
        return outputs


@_register
class GhostBatchNormalization(tf.keras.layers.BatchNormalization):
    """Batch normalisation whose statistics, in training, are of groups of `group` examples.

    (Hoffer et al. 2017, arXiv 1705.08741.) A batch of at most `group` examples is one group; a
    larger one is a multiple of it. The groups are small on any hardware, so there is nothing to
    synchronise: `synchronized` is accepted and changes nothing. The moving averages are those of
    the groups' means and unbiased variances.

    Raises:
      ValueError: a training batch is larger than `group`, and no multiple of it.
    """

    def __init__(self, group=32, synchronized=False, **kwargs):
        super().__init__(**kwargs)
        self.group = group

    def call(self, inputs, training=False):
        if not training:
            return super().call(inputs, training=False)
        static, dynamic = inputs.shape, tf.shape(inputs)
        sizes = [dynamic[axis] if static[axis] is None else static[axis] for axis in range(4)]
        grouped = tf.reshape(tf.cast(inputs, tf.float32), [-1, self._group(sizes[0]), *sizes[1:]])
        channels = 1 + (self.axis if isinstance(self.axis, int) else self.axis[0]) % 4
        axes = [axis for axis in range(1, 5) if axis != channels]
        mean, variance = tf.nn.moments(grouped, axes, keepdims=True)
        unbiased = variance * _bessel(tf.size(grouped) / tf.size(mean))
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, unbiased)):
            value = tf.reshape(tf.reduce_mean(value, 0), [-1])
            moving.assign_sub((moving - value) * (1 - self.momentum))
        shape = [-1 if axis == channels else 1 for axis in range(5)]
        beta = tf.reshape(self.beta, shape) if self.center else None
        gamma = tf.reshape(self.gamma, shape) if self.scale else None
        outputs = tf.nn.batch_normalization(grouped, mean, variance, beta, gamma, self.epsilon)
        return tf.cast(tf.reshape(outputs, sizes), inputs.dtype)

    def _group(self, batch):
        if not isinstance(batch, int):
            return tf.minimum(self.group, batch)
        if batch > self.group and batch % self.group:
            raise ValueError(
                f"the batch of one replica should be a multiple of `group`, or smaller. "
                f"Received: group={self.group}, and a batch of {batch}"
            )
        return min(self.group, batch)

    def get_config(self):
        config = super().get_config()
        config.pop("synchronized", None)
        return {**config, "group": self.group}


@_register
class Whitening(tf.keras.layers.Layer):
    """A frozen convolution that decorrelates the pixels of each patch and scales them to 1.

    Its filters are the eigenvectors of the covariance of the patches of `adapt`'s images, each
    divided by the root of its eigenvalue + `epsilon` (Page 2019). Before `adapt`, or the weights
    of a model that was adapted, they pick out the patch's pixels as they are: training refuses to
    begin with these.

    Args:
      patch: side of the patches, in pixels; where it is even, the map loses `patch` - 1 a side.
      epsilon: added to the eigenvalues.
      axis: of the channels.
      negated: whether each filter comes a second time with its sign changed (Jordan 2024).
      use_bias: whether a bias, which is trained, is added.
      examples: training images whose statistics the network's authors took.

    Raises:
      ValueError: it is called in training before `adapt`.
    """

    def __init__(
        self,
        patch=3,
        epsilon=1e-2,
        axis=-1,
        negated=False,
        use_bias=False,
        examples=10_000,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.patch, self.epsilon, self.axis = patch, epsilon, axis
        self.negated, self.use_bias, self.examples = negated, use_bias, examples

    def build(self, input_shape):
        """Makes the filters, each of which picks out one value of the patch."""
        filters = self._unadapted(input_shape[self.axis])
        self.kernel = self.add_weight(
            name="kernel",
            shape=filters.shape,
            initializer=lambda shape, dtype=None, **_: tf.constant(filters, dtype),
            trainable=False,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=filters.shape[-1:], initializer="zeros")
        self.built = True

    def _unadapted(self, channels):
        return self._filters(np.eye(self.patch**2 * channels), channels)

    def _filters(self, columns, channels):
        columns = np.concatenate([columns, -columns], 1) if self.negated else columns
        return columns.reshape(self.patch, self.patch, channels, -1)

    def adapt(self, images: np.ndarray) -> None:
        """Takes the patches' statistics from images, (batch, height, width, channels) or as `axis`
        says, standardised as in training."""
        channels = self.kernel.shape[2]
        covariance, count = 0.0, 0
        for part in np.array_split(np.asarray(images), max(1, len(images) // 100)):
            part = np.moveaxis(part, self.axis, -1).astype("float64")
            windows = np.lib.stride_tricks.sliding_window_view(part, [self.patch] * 2, (1, 2))
            patches = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.patch**2 * channels)
            covariance, count = covariance + patches.T @ patches, count + len(patches)
        values, vectors = np.linalg.eigh(covariance / (count - 1))
        self.kernel.assign(self._filters(vectors / np.sqrt(values + self.epsilon), channels))

    def _check_adapted(self):
        """Refuses filters that are still those of `build`; looked at once, when `fit` traces."""
        with tf.init_scope():
            kernel = tf.convert_to_tensor(self.kernel)
            if tf.reduce_all(kernel == self._unadapted(kernel.shape[2]).astype(kernel.dtype.name)):
                raise ValueError(
                    f"`{self.name}` should have the training images' statistics before training; "
                    "call adapt(images). Received: filters as they were built"
                )

    def call(self, inputs, training=False):
        if training:
            self._check_adapted()
        layout = "NHWC" if self.axis == -1 else "NCHW"
        kernel = tf.cast(self.kernel, inputs.dtype)
        padding = "SAME" if self.patch % 2 else "VALID"
        outputs = tf.nn.conv2d(inputs, kernel, 1, padding, data_format=layout)
        if self.bias is None:
            return outputs
        return tf.nn.bias_add(outputs, tf.cast(self.bias, inputs.dtype), layout)

    def get_config(self):
        names = ("patch", "epsilon", "axis", "negated", "use_bias", "examples")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
