"""Floating-point operations: a network's, by its graph, and those that a device can do."""

import time

import tensorflow as tf

# The network, the gradients of its layers' inputs, those of its weights: MLPerf's convention. The
# images themselves get no gradient, so that a step does 0.1 to 2 % less (2.935 to 2.999).
STEP_TO_FORWARD = 3
SECONDS = 0.1  # for each measurement, at least
_MATRIX = ("Conv", "MatMul", "Einsum", "RNN", "LSTM", "GRU")  # what matrix units do; not the rest
_SIDES = {"CPU": (1024, 16), "GPU": (8192, 256)}  # of a matrix; images in a batch


def forward_flops(model: tf.keras.Model) -> int | None:
    """Operations of convolutions and matrix products for one example, 2 for a multiply-add.

    None where the graph does not say: an input without a fixed shape, or products in a loop.
    """
    shape = model.input_shape
    if not isinstance(shape, tuple) or not all(shape[1:]):
        return None
    images = tf.TensorSpec((1, *shape[1:]), tf.float32)
    function = tf.function(lambda batch: model(batch, training=False))
    graph = function.get_concrete_function(images).graph
    functions = graph.as_graph_def().library.function
    if any(_multiplies(node.op) for function in functions for node in function.node_def):
        return None  # in a loop, or called who knows how often
    builder = tf.compat.v1.profiler.ProfileOptionBuilder
    options = builder(builder.float_operation()).with_empty_output().build()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # else it tells people how to write programs for TensorFlow 2
    node = tf.compat.v1.profiler.profile(graph, options=options, cmd="op")
    logger.setLevel(level)
    total, counted = 0, node
    while counted.children:  # a chain of kinds of operations, each with all that come after it
        (counted,) = counted.children
        rest = sum(child.total_float_ops for child in counted.children)
        if _multiplies(counted.name):
            total += counted.total_float_ops - rest
    return total


def _multiplies(operation):
    return any(word in operation for word in _MATRIX)


def measure_peak(precision: str) -> tuple[float, str]:
    """The most operations a second that the first device does just now, and in what.

    On a machine that is busy besides, it is less than the device can do: measure at several times
    and keep the largest.

    Args:
      precision: of layers, as Keras calls it.

    Returns:
      The better of a matrix product and a 3x3 convolution, both large, and its name.
    """
    gpu = bool(tf.config.list_logical_devices("GPU"))
    dtype = tf.as_dtype(tf.keras.mixed_precision.Policy(precision).compute_dtype)
    side, images = _SIDES["GPU" if gpu else "CPU"]
    with tf.device("GPU:0" if gpu else "CPU:0"):
        matrix = tf.cast(tf.eye(side), dtype)
        batch = tf.ones([images, 32, 32, 128], dtype)
        kernel = tf.ones([3, 3, 128, 128], dtype)
        product = _rate(lambda: tf.matmul(matrix, matrix), 2 * side**3)
        flops = 2 * 9 * 128 * 128 * 32 * 32 * images
        convolution = _rate(lambda: tf.nn.conv2d(batch, kernel, 1, "SAME"), flops)
    return max((product, "a matrix product"), (convolution, "a convolution"))


def _rate(operation, flops):
    """Operations a second of the fastest of several calls, each until its result is there."""
    function = tf.function(lambda: tf.reduce_max(operation()))
    function().numpy()  # which compiles it
    begin, best = time.monotonic(), float("inf")
    while time.monotonic() - begin < SECONDS:
        moment = time.monotonic()
        function().numpy()
        best = min(best, time.monotonic() - moment)
    return flops / best
