"""Kervolution: a convolution whose inner products are replaced by a kernel function of them."""

from typing import Any

import tensorflow as tf

from .broadcast import widen


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class PolynomialKernel(tf.keras.layers.Layer):
    """Polynomial kernel (x + balance) ** power, element by element; the balance is trained.

    Behind a convolution it makes a polynomial kervolution (Wang et al. 2019, arXiv 1904.03955,
    section 3.3). One balance serves all channels. float16 and bfloat16 inputs are computed in
    float32, as the power multiplies their rounding errors.

    Args:
      power: the exponent, a whole number of at least 1.
      balance: initial balance.

    Raises:
      ValueError: `power` is not a whole number of at least 1.
    """

    def __init__(self, power: int = 3, balance: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if power != int(power) or power < 1:
            raise ValueError(f"`power` should be a whole number from 1 on. Received: power={power}")
        self.power, self.initial_balance = int(power), float(balance)

    def build(self, input_shape: Any) -> None:
        """Creates the balance, a scalar."""
        initializer = tf.keras.initializers.Constant(self.initial_balance)
        self.balance = self.add_weight(name="balance", shape=(), initializer=initializer)
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        wide = widen(inputs)
        base = wide + tf.cast(self.balance, wide.dtype)
        outputs = base
        for _ in range(self.power - 1):  # tf.pow's gradient also takes a logarithm
            outputs *= base
        return tf.cast(outputs, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        config = {"power": self.power, "balance": self.initial_balance}
        return {**super().get_config(), **config}
