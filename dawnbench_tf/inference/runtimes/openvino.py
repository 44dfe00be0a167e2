"""Runtime `openvino`: OpenVINO, from the ONNX export."""

import os

import numpy as np

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.serving import Runtime, Served


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Compiles the model with OpenVINO for the CPU."""
    os.environ.setdefault("OPENVINO_TELEMETRY", "0")  # read when openvino is imported
    import openvino

    content = exports.onnx(served, "float32")
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bfloat16" else "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(content), "CPU", settings)
    request = compiled.create_infer_request()
    output = compiled.output(0)
    names = exports.onnx_input_names(served)

    def call(example: Example) -> np.ndarray:
        request.infer(dict(zip(names, example, strict=True)), share_inputs=True)
        return request.get_tensor(output).data.copy()

    return Runtime(call, len(content))
