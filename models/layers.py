"""Our own layers: registered, so that saved models load with `safe_mode=True` once imported."""

import numpy as np
import tensorflow as tf

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
        self.draws = tf.Variable(
            lambda: tf.random.uniform([], maxval=2**31, dtype=tf.int64),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="draws",
        )

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


@_register
class GhostBatchNormalization(tf.keras.layers.BatchNormalization):
    """Batch normalisation whose statistics, in training, are of groups of `group` examples.

    (Hoffer et al. 2017, arXiv 1705.08741.) A batch of at most `group` examples is one group; a
    larger one is a multiple of it. The groups are small on any hardware, so there is nothing to
    synchronise: `synchronized` is accepted and changes nothing. The moving averages are those of
    the groups' means and variances.

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
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
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
      patch: side of the patches, in pixels, odd.
      epsilon: added to the eigenvalues.
      axis: of the channels.

    Raises:
      ValueError: it is called in training before `adapt`.
    """

    def __init__(self, patch=3, epsilon=1e-2, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.patch, self.epsilon, self.axis = patch, epsilon, axis

    def build(self, input_shape):
        """Makes the filters, each of which picks out one value of the patch."""
        size = self.patch**2 * input_shape[self.axis]
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.patch, self.patch, input_shape[self.axis], size),
            initializer=lambda shape, dtype=None, **_: tf.reshape(tf.eye(size, dtype=dtype), shape),
            trainable=False,
        )
        self.built = True

    def adapt(self, images: np.ndarray) -> None:
        """Takes the patches' statistics from images, (batch, height, width, channels) or as `axis`
        says, standardised as in training."""
        covariance, count = 0.0, 0
        for part in np.array_split(np.asarray(images), max(1, len(images) // 100)):
            part = np.moveaxis(part, self.axis, -1).astype("float64")
            windows = np.lib.stride_tricks.sliding_window_view(part, [self.patch] * 2, (1, 2))
            patches = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.kernel.shape[-1])
            covariance, count = covariance + patches.T @ patches, count + len(patches)
        values, vectors = np.linalg.eigh(covariance / (count - 1))
        filters = vectors / np.sqrt(values + self.epsilon)
        self.kernel.assign(filters.reshape(self.kernel.shape))

    def _check_adapted(self):
        """Refuses filters that are still those of `build`; looked at once, when `fit` traces."""
        with tf.init_scope():
            kernel = tf.convert_to_tensor(self.kernel)
            size = kernel.shape[-1]
            if tf.reduce_all(tf.reshape(kernel, [size, size]) == tf.eye(size, dtype=kernel.dtype)):
                raise ValueError(
                    f"`{self.name}` should have the training images' statistics before training; "
                    "call adapt(images). Received: filters as they were built"
                )

    def call(self, inputs, training=False):
        if training:
            self._check_adapted()
        layout = "NHWC" if self.axis == -1 else "NCHW"
        kernel = tf.cast(self.kernel, inputs.dtype)
        return tf.nn.conv2d(inputs, kernel, 1, "SAME", data_format=layout)

    def get_config(self):
        own = {"patch": self.patch, "epsilon": self.epsilon, "axis": self.axis}
        return {**super().get_config(), **own}


@_register
class CELU(tf.keras.layers.Layer):
    """Continuously differentiable ELU: x, and alpha (exp(x / alpha) - 1) below 0 (Barron 2017)."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        return tf.nn.elu(inputs / self.alpha) * self.alpha

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha}
