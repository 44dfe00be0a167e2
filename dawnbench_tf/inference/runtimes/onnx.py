"""Runtime `onnx`: ONNX Runtime."""

import numpy as np
import onnxruntime

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.serving import Runtime, Served


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Loads the model in a session of ONNX Runtime, on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    content = exports.onnx(served, precision)
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = exports.onnx_input_names(served)

    def call(example: Example) -> np.ndarray:
        return session.run(None, dict(zip(names, example, strict=True)))[0]

    return Runtime(call, len(content))
