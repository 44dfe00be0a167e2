"""Recurrent layers of readers: bidirectional LSTM and SRU."""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import tensorflow as tf

from . import broadcast
from .dropout import Dropout
from .registration import register
from .text import Unmasked


@register
class LSTM(tf.keras.layers.LSTM):
    """Keras's LSTM, which `fuse` makes run as one TensorFlow operation per text at inference."""

    fused = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not tf.config.list_logical_devices("GPU"):
            # tf-keras traces each LSTM twice: for cuDNN and without. Without a GPU the second is
            # enough. BiDAF, with ten LSTMs, is built in 2 s instead of 12. Outputs are bit-equal.
            self._could_use_gpu_kernel = False

    def call(
        self, sequences: tf.Tensor, *args: Any, mask: tf.Tensor | None = None, **kwargs: Any
    ) -> tf.Tensor:
        if not self.fused or mask is None or sequences.dtype != tf.float32:
            return super().call(sequences, *args, mask=mask, **kwargs)
        # It runs over padding too: that comes after the tokens, and does not change their states. A
        # backward layer reverses the tokens of each text and leaves its padding at the end; like
        # Keras's, it returns its outputs from the last token to the first.
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        x = tf.reverse_sequence(sequences, lengths, 1) if self.go_backwards else sequences
        weights = tf.concat([self.cell.kernel, self.cell.recurrent_kernel], 0)
        h = _lstm(tf.transpose(x, [1, 0, 2]), weights, tf.convert_to_tensor(self.cell.bias))
        h = tf.transpose(h, [1, 0, 2])
        return tf.reverse(tf.reverse_sequence(h, lengths, 1), [1]) if self.go_backwards else h


@tf.custom_gradient
def _lstm(x: tf.Tensor, weights: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """LSTM as in Keras over x (tokens, batch, width): (tokens, batch, hidden). No gradient."""
    hidden = bias.shape[0] // 4
    state, unused = tf.zeros([tf.shape(x)[1], hidden]), tf.zeros([hidden])
    outputs = tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.cast(tf.shape(x)[0], tf.int64),
        x=x,
        cs_prev=state,
        h_prev=state,
        w=weights,
        wci=unused,
        wcf=unused,
        wco=unused,
        b=bias,
        cell_clip=0.0,
        use_peephole=False,
    )

    def gradient(upstream: tf.Tensor) -> NoReturn:
        # TensorFlow's gradient assumes another order of the gates: it would be silently wrong.
        raise NotImplementedError("fused LSTMs are for inference; build the model anew to train it")

    return outputs.h, gradient


def fuse(model: tf.keras.Model) -> None:
    """Makes a model's LSTMs run as one TensorFlow operation each; call it before the model runs.

    For inference on CPUs in float32: about ten times as fast on one text, with equal outputs. XLA
    and exports to other formats do not support the operation. If there is any other device, the
    model is not changed.
    """
    if all(device.device_type == "CPU" for device in tf.config.list_logical_devices()):
        for layer in model.layers:
            if isinstance(layer, tf.keras.layers.Bidirectional):
                layer.forward_layer.fused = layer.backward_layer.fused = True


def bilstm(
    hidden: int, initializers: tuple[Any, Any, Any], dtype: str | None, name: str | None = None
) -> tf.keras.layers.Layer:
    """Returns a bidirectional LSTM: (batch, tokens, width) to (batch, tokens, 2 hidden)."""
    # It meets the requirements of Keras's cuDNN kernel; on CPUs see `fuse`.
    kernel, recurrent, bias = initializers
    lstm = LSTM(
        hidden,
        return_sequences=True,
        kernel_initializer=kernel,
        recurrent_initializer=recurrent,
        bias_initializer=bias,
        unit_forget_bias=bias == "zeros",  # the forget gate's bias is then initialized to 1
        dtype=dtype,
    )
    return tf.keras.layers.Bidirectional(lstm, dtype=dtype, name=name)


@tf.custom_gradient
def linear_recurrence(decays: tf.Tensor, inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """Computes c[t] = decays[t] c[t - 1] + inputs[t] with c[-1] = 0; all are (tokens, ...)."""
    outputs = _scan(decays, inputs)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Let g[t] be the loss's gradient with respect to c[t] through all later steps:
        #   g[t] = upstream[t] + decays[t + 1] g[t + 1],
        # the same recurrence from the last token to the first. Then inputs[t] has gradient g[t],
        # and decays[t] has g[t] c[t - 1]: only c has to be kept from the forward pass.
        next_decays = tf.concat([decays[1:], tf.zeros_like(decays[:1])], 0)
        g = tf.reverse(_scan(tf.reverse(next_decays, [0]), tf.reverse(upstream, [0])), [0])
        previous = tf.concat([tf.zeros_like(outputs[:1]), outputs[:-1]], 0)
        return g * previous, g

    return outputs, gradient


def _scan(decays: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
    """The recurrence itself, token by token."""

    def step(state: tf.Tensor, token: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        decay, value = token
        return decay * state + value

    return tf.scan(step, (decays, inputs), tf.zeros_like(inputs[0]))


@register
class SRU(Unmasked):
    """Bidirectional simple recurrent unit (Lei et al. 2017, arXiv 1709.02755v1, equations 3 to 7).

        f, r = sigmoid(W' x + b), sigmoid(W'' x + b')
        c[t] = f[t] c[t - 1] + (1 - f[t]) (W x[t])
        h[t] = r[t] tanh(c[t]) + (1 - r[t]) x[t]

    No matrix product depends on c, so each is computed for the whole text at once. If width is not
    2 hidden, a fourth projection of x replaces x[t] in h[t].

    Inputs: [x (batch, tokens, width), mask]. Output: h, (batch, tokens, 2 hidden), the forward
    direction's channels first. Padding does not change c.

    Args:
      hidden: width of each direction.
      dropout: share of the channels of x (before the projections) and of tanh(c) that training
        drops, in [0, 1); a channel is dropped in all tokens of a text.
    """

    def __init__(self, hidden: int, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden, self.dropout = hidden, dropout
        drop = partial(Dropout, dropout, shared=(1,), dtype=kwargs.get("dtype"))
        self.drop_inputs, self.drop_states = drop(), drop()

    def build(self, input_shape: Any) -> None:
        width = input_shape[0][-1]
        self.projections = 3 if width == 2 * self.hidden else 4
        limit = (3 / width) ** 0.5
        self.kernel = self.add_weight(
            name="kernel",
            shape=(width, 2 * self.hidden * self.projections),
            initializer=tf.keras.initializers.RandomUniform(-limit, limit),
        )
        self.bias = self.add_weight(name="bias", shape=(2, 2, self.hidden), initializer="zeros")
        self.built = True

    def call(self, inputs: list[tf.Tensor], training: bool | None = None) -> tf.Tensor:
        x, mask = inputs
        size = [*tf.unstack(tf.shape(mask)), 2, self.hidden]  # (batch, tokens, directions, hidden)
        x_dropped = self.drop_inputs(x, training=training)
        projected = tf.tensordot(x_dropped, tf.cast(self.kernel, x.dtype), 1)
        parts = tf.split(projected, self.projections, -1)
        # W x, the gates before their sigmoids, and the fourth projection if there is one.
        candidate, f, r, *carried = (tf.reshape(part, size) for part in parts)
        f_bias, r_bias = tf.unstack(self.bias)
        f, r = tf.sigmoid(broadcast.add(f, f_bias)), tf.sigmoid(broadcast.add(r, r_bias))
        # At padding c[t] = 1 x c[t - 1] + 0: the state passes through, in either direction.
        is_token, wide = mask[:, :, None, None], broadcast.widen(f)
        decays = tf.where(is_token, wide, 1.0)
        added = tf.where(is_token, (1 - wide) * broadcast.widen(candidate), 0.0)
        # One scan over time serves both directions: the backward one's tokens are reversed first.
        in_time = [_reverse_backward(tf.transpose(part, [1, 0, 2, 3])) for part in (decays, added)]
        c = tf.transpose(_reverse_backward(linear_recurrence(*in_time)), [1, 0, 2, 3])
        c = tf.cast(c, x.dtype)
        flat = [size[0], size[1], 2 * self.hidden]
        states = self.drop_states(tf.reshape(tf.tanh(c), flat), training=training)
        r = tf.reshape(r, flat)
        return r * states + (1 - r) * (tf.reshape(carried[0], flat) if carried else x)


def _reverse_backward(x: tf.Tensor) -> tf.Tensor:
    """Reverses the tokens of the backward direction of x (tokens, batch, directions, hidden)."""
    forward, backward = tf.unstack(x, axis=2)
    return tf.stack([forward, tf.reverse(backward, [0])], 2)
