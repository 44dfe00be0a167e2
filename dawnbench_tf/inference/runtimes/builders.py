"""Builders of the runtimes: each function, named as its row in `RUNTIMES`, returns a `Runtime`."""

import os

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.serving import Runtime, Served
from dawnbench_tf.models.layers import recurrent


def _device() -> str:
    """Returns where TensorFlow runs a network."""
    return "GPU" if tf.config.list_logical_devices("GPU") else "CPU"


def _model(served: Served, precision: str) -> tuple[tf.keras.Model, int]:
    """Returns the Keras model in a runtime's precision, and the size of its weights in bytes."""
    model = served.build("mixed_bfloat16" if precision == "bfloat16" else precision)
    return model, sum(int(np.prod(w.shape)) * tf.as_dtype(w.dtype).size for w in model.weights)


def keras(served: Served, precision: str, threads: int) -> Runtime:
    """`model.predict`, the reference for the others."""
    model, size = _model(served, precision)
    return Runtime(lambda example: model.predict(list(example), verbose=0), size, _device())


def function(served: Served, precision: str, threads: int) -> Runtime:
    """`tf.function` with weights frozen to constants, which TensorFlow folds."""
    model, size = _model(served, precision)
    recurrent.fuse(model)
    forward = exports.freeze(model, served)
    return Runtime(lambda example: forward(*map(tf.constant, example))[0].numpy(), size, _device())


def xla(served: Served, precision: str, threads: int) -> Runtime:
    """`tf.function` compiled by XLA."""
    model, size = _model(served, precision)
    forward = tf.function(lambda *inputs: model(list(inputs), training=False), jit_compile=True)
    return Runtime(lambda example: forward(*map(tf.constant, example)).numpy(), size, _device())


def litert(served: Served, precision: str, threads: int) -> Runtime:
    """LiteRT (TensorFlow Lite) with its XNNPACK kernels."""
    from ai_edge_litert.interpreter import Interpreter

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


def onnx(served: Served, precision: str, threads: int) -> Runtime:
    """ONNX Runtime, on a GPU where its package is the one for CUDA."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    content = exports.onnx(served, precision)
    usable = {"CUDAExecutionProvider": "GPU", "CPUExecutionProvider": "CPU"}
    providers = [name for name in usable if name in onnxruntime.get_available_providers()]
    session = onnxruntime.InferenceSession(content, options, providers=providers)
    names = exports.onnx_input_names(served)
    return Runtime(
        lambda example: session.run(None, dict(zip(names, example, strict=True)))[0],
        len(content),
        usable[session.get_providers()[0]],  # CUDA's is left out where its libraries are missing
    )


def openvino(served: Served, precision: str, threads: int) -> Runtime:
    """OpenVINO for the CPU, from the ONNX export."""
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
    request, output = compiled.create_infer_request(), compiled.output(0)
    names = exports.onnx_input_names(served)

    def call(example: Example) -> np.ndarray:
        request.infer(dict(zip(names, example, strict=True)), share_inputs=True)
        return request.get_tensor(output).data.copy()

    return Runtime(call, len(content))
