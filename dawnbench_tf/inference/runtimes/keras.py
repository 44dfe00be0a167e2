"""Runtime `keras`: `model.predict`, the reference for the others."""

from dawnbench_tf.inference.serving import Runtime, Served, keras_precision, weight_bytes


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Builds the Keras model, on the CPUs of the process."""
    model = served.build(keras_precision(precision))
    return Runtime(lambda example: model.predict(list(example), verbose=0), weight_bytes(model))
