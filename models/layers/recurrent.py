"""Recurrent layers of the readers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from .dropout import Dropout
from .text import no_mask

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")


@_register
class LSTM(tf.keras.layers.LSTM):
    """Keras's LSTM; `fuse` lets it go through a whole text in one of TensorFlow's operations."""

    fused = False

    def call(self, sequences, *args, mask=None, **kwargs):
        if self.fused and mask is not None and sequences.dtype == tf.float32:
            return self._in_one_operation(sequences, mask)
        return super().call(sequences, *args, mask=mask, **kwargs)

    def _in_one_operation(self, x, mask):
        """(batch, tokens, width) to (batch, tokens, hidden): padding, at the end, is gone over too.

        A backward layer, which is to return its outputs from the last token to the first, reads
        each text turned round by itself, so that padding still comes last.
        """
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        if self.go_backwards:
            x = tf.reverse_sequence(x, lengths, 1)
        weights = tf.concat([self.cell.kernel, self.cell.recurrent_kernel], 0)
        h = _lstm(tf.transpose(x, [1, 0, 2]), weights, tf.convert_to_tensor(self.cell.bias))
        h = tf.transpose(h, [1, 0, 2])
        return tf.reverse(tf.reverse_sequence(h, lengths, 1), [1]) if self.go_backwards else h


@tf.custom_gradient
def _lstm(x, weights, bias):
    """Keras's LSTM over x (tokens, batch, width): (tokens, batch, hidden)."""
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

    def gradient(upstream):  # TensorFlow's own takes the gates in another order: wrong, untold
        raise NotImplementedError("fused LSTMs are for inference; build the model anew to train it")

    return outputs.h, gradient


def fuse(model: tf.keras.Model) -> None:
    """Lets a model's LSTMs run as one operation each, before it is called: on CPUs, in float32.

    For inference: it is ten times as fast on one text, and what it computes is the same. XLA and
    exports to other formats do not know it; with any other device a model stays as it is.
    """
    if all(device.device_type == "CPU" for device in tf.config.list_logical_devices()):
        for layer in model.layers:
            if isinstance(layer, tf.keras.layers.Bidirectional):
                layer.forward_layer.fused = layer.backward_layer.fused = True


def bilstm(
    hidden: int,
    starts: tuple[Any, Any, Any],
    dtype: str | None,
    name: str | None = None,
) -> tf.keras.layers.Layer:
    """An LSTM both ways: (batch, tokens, width) to (batch, tokens, 2 hidden).

    Keras's own, in the form that cuDNN takes; on CPUs see `fuse`.

    Args:
      hidden: width of each direction.
      starts: initializers of inputs' weights, of states', of biases; with "zeros" those of the
        forget gate start at 1.
      dtype: precision.
      name: of the layer.
    """
    of_inputs, of_states, of_biases = starts
    lstm = LSTM(
        hidden,
        return_sequences=True,
        kernel_initializer=of_inputs,
        recurrent_initializer=of_states,
        bias_initializer=of_biases,
        unit_forget_bias=of_biases == "zeros",
        dtype=dtype,
    )
    return tf.keras.layers.Bidirectional(lstm, dtype=dtype, name=name)


@tf.custom_gradient
def linear_recurrence(decays: tf.Tensor, inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """c[t] = decays[t] c[t - 1] + inputs[t], c[-1] = 0: (tokens, ...) both, and the result.

    Its gradient is such a recurrence too, from the last token to the first, so that nothing but the
    result is kept for it.
    """
    outputs = _scan(decays, inputs)

    def gradient(upstream):
        later = tf.concat([decays[1:], tf.zeros_like(decays[:1])], 0)
        of_inputs = tf.reverse(_scan(tf.reverse(later, [0]), tf.reverse(upstream, [0])), [0])
        before = tf.concat([tf.zeros_like(outputs[:1]), outputs[:-1]], 0)
        return of_inputs * before, of_inputs

    return outputs, gradient


def _scan(decays, inputs):
    def step(state, of_token):
        decay, entering = of_token
        return decay * state + entering

    return tf.scan(step, (decays, inputs), tf.zeros_like(inputs[0]))


@_register
class SRU(tf.keras.layers.Layer):
    """Simple recurrent units both ways (Lei et al. 2017, arXiv 1709.02755v1, equations 3 to 7).

        c[t] = f[t] c[t - 1] + (1 - f[t]) (W x[t]),   f, r = sigmoid(W' x + b), sigmoid(W'' x + b')
        h[t] = r[t] tanh(c[t]) + (1 - r[t]) x[t]

    so that all products are of the whole text at once. Where x is not as wide as the output, the
    x[t] in h is a fourth projection of it. Inputs: [x (batch, tokens, width), mask]. Output:
    (batch, tokens, 2 hidden), forward, then backward; padding is passed over.

    Args:
      hidden: width of each direction.
      dropout: share of x's channels, as W reads them, and of tanh(c)'s, dropped in training, the
        same for all tokens of a text.
    """

    supports_masking, compute_mask = True, no_mask

    def __init__(self, hidden, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden, self.dropout = hidden, dropout
        drop = partial(Dropout, dropout, shared=(1,), dtype=kwargs.get("dtype"))
        self.drop_inputs, self.drop_states = drop(), drop()

    def build(self, input_shape):
        """Makes the projections, all in one matrix, and the gates' biases."""
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

    def call(self, inputs, training=None):
        x, mask = inputs
        size = [*tf.unstack(tf.shape(mask)), 2, self.hidden]  # (batch, tokens, directions, hidden)
        x_dropped = self.drop_inputs(x, training=training)
        projected = tf.tensordot(x_dropped, tf.cast(self.kernel, x.dtype), 1)
        parts = tf.split(projected, self.projections, -1)
        candidate, f, r, *carried = (tf.reshape(part, size) for part in parts)
        biases = tf.cast(self.bias, x.dtype)
        f, r = tf.sigmoid(f + biases[0]), tf.sigmoid(r + biases[1])
        c = tf.cast(self._states(candidate, f, mask), x.dtype)
        flat = [size[0], size[1], 2 * self.hidden]
        states = self.drop_states(tf.reshape(tf.tanh(c), flat), training=training)
        r = tf.reshape(r, flat)
        return r * states + (1 - r) * (tf.reshape(carried[0], flat) if carried else x)

    def _states(self, candidate, f, mask):
        """c, both ways, (batch, tokens, 2, hidden) as its arguments; padding changes nothing."""
        is_word = mask[:, :, None, None]
        f, candidate = tf.cast(f, tf.float32), tf.cast(candidate, tf.float32)
        decays = tf.where(is_word, f, 1.0)
        entering = tf.where(is_word, (1 - f) * candidate, 0.0)
        back_and_forth = [_both_ways(tf.transpose(x, [1, 0, 2, 3])) for x in (decays, entering)]
        states = _both_ways(linear_recurrence(*back_and_forth))
        return tf.transpose(states, [1, 0, 2, 3])

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], 2 * self.hidden)

    def get_config(self):
        return {**super().get_config(), "hidden": self.hidden, "dropout": self.dropout}


def _both_ways(x):
    """(tokens, batch, directions, hidden) with the backward direction's tokens turned round."""
    forward, backward = tf.unstack(x, axis=2)
    return tf.stack([forward, tf.reverse(backward, [0])], 2)
