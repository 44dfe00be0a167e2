"""Runtime `litert`: LiteRT (TensorFlow Lite) with its XNNPACK kernels."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.serving import Runtime, Served


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Loads the model in LiteRT's interpreter."""
    content = exports.flatbuffer(served, precision)
    interpreter = Interpreter(model_content=content, num_threads=threads)
    interpreter.allocate_tensors()
    (entry,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    into, out = entry["index"], result["index"]

    def call(example: Example) -> np.ndarray:
        interpreter.set_tensor(into, example[0])
        interpreter.invoke()
        return interpreter.get_tensor(out)

    return Runtime(call, len(content))
