"""Floating-point operations: of a network, from its graph; and a device's measured peak."""

import time
from collections.abc import Callable

import tensorflow as tf

from dawnbench_tf.training import computation

SECONDS = 0.1  # a measurement ends after this time without a faster call
MOST_SECONDS = 1.0
_MATRIX = ("Conv", "MatMul", "Einsum", "RNN", "LSTM", "GRU")  # operations that are counted
_SIDES = {"CPU": (1024, 16), "GPU": (8192, 256)}  # side of the matrix, images in the batch


def forward_flops(model: tf.keras.Model, side: int = 0) -> int | None:
    """Returns the operations of convolutions and matrix products for one example.

    A multiply-add counts as 2. None if the graph does not tell: the input has no fixed shape, or
    the products are in a loop.

    Args:
      model: the network.
      side: height and width of the images, for a network that takes images of any size.
    """
    shape = model.input_shape
    if isinstance(shape, tuple) and side:
        shape = tuple(length or side for length in shape)
    if not isinstance(shape, tuple) or not all(shape[1:]):
        return None
    images = tf.TensorSpec((1, *shape[1:]), tf.float32)
    function = tf.function(lambda batch: model(batch, training=False), autograph=False)
    graph = function.get_concrete_function(images).graph
    functions = graph.as_graph_def().library.function
    if any(_multiplies(node.op) for function in functions for node in function.node_def):
        return None  # inside a loop or a function, with an unknown number of calls
    builder = tf.compat.v1.profiler.ProfileOptionBuilder
    options = builder(builder.float_operation()).with_empty_output().build()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # hides advice on migrating to TensorFlow 2
    node = tf.compat.v1.profiler.profile(graph, options=options, cmd="op")
    logger.setLevel(level)
    # The profile is a chain of operation types; a node's total includes its descendants' totals.
    total, counted = 0, node
    while counted.children:
        (counted,) = counted.children
        rest = sum(child.total_float_ops for child in counted.children)
        if _multiplies(counted.name):
            total += counted.total_float_ops - rest
    return total


def step_flops(model: tf.keras.Model, batch_size: int, side: int = 0) -> int | None:
    """Returns the operations of a training step for each example of its batch; None: unknown.

    Args:
      model: the network that is trained, and its `proxy` or `hardest`, if it has one.
      batch_size: examples of the batch.
      side: as in `forward_flops`.
    """
    forward, proxy = forward_flops(model, side), getattr(model, "proxy", None)
    if forward is None or not proxy:
        hardest = getattr(model, "hardest", None)
        share = computation.trained_share(hardest.count if hardest else 0, batch_size)
        return forward and computation.step_flops(forward, share=share)
    own = forward_flops(proxy.network, side)
    return own and computation.step_flops(forward, own, proxy.share, proxy.every)


def _multiplies(operation: str) -> bool:
    return any(word in operation for word in _MATRIX)


def measure_peak(precision: str) -> tuple[float, str]:
    """Measures the peak of the first device: operations a second of a large product.

    On a busy machine the result is below the device's peak; measure several times and keep the
    largest.

    Args:
      precision: Keras's dtype policy, e.g. "mixed_bfloat16".

    Returns:
      (operations a second, name of the operation): the faster of a matrix product and a 3x3
      convolution.
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


def _rate(operation: Callable[[], tf.Tensor], flops: int) -> float:
    """Returns operations a second in the fastest of several calls, each until its result."""
    function = tf.function(lambda: tf.reduce_max(operation()), autograph=False)
    function().numpy()  # traces and compiles
    begin = latest = now = time.monotonic()
    best = float("inf")
    # An idle GPU raises its clock during the first calls, by 6 % of the peak.
    while now < min(latest + SECONDS, begin + MOST_SECONDS):
        function().numpy()
        before, now = now, time.monotonic()
        if now - before < 0.99 * best:
            latest = now
        best = min(best, now - before)
    return flops / best
