"""Ways to run a trained model on single examples: one function each, all of one signature.

    runtime = build("litert", served, numerics="float32", threads=2)
    logits = runtime.call(example)

Which one is picked matters more than which model. All run code of ours or of a package, never what
comes with a model: they are built from the recipe's network and a run's weights. TensorFlow's own
three use the CPUs that the process may use, settled before its import; the others take `threads`.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import exports
from dawnbench_tf.settings import refuse

Example = tuple[np.ndarray, ...]  # the model's inputs, each with a batch axis


class Served(NamedTuple):
    """A trained model, ready for a runtime."""

    build: Callable[[str], tf.keras.Model]  # the model with its weights, in a precision
    examples: list[Example]  # of the test, all batches of one size
    calibration: list[Example]  # of the training data, for integers
    static: bool  # whether all examples have one shape


class Runtime(NamedTuple):
    """A model in a runtime."""

    call: Callable[[Example], np.ndarray]
    size: int  # bytes of the weights as this runtime has them


def keras(served: Served, numerics: str, threads: int) -> Runtime:
    """`model.predict`, what many write first."""
    model = served.build(_precision(numerics))
    return Runtime(lambda example: model.predict(list(example), verbose=0), _bytes(model))


def function(served: Served, numerics: str, threads: int) -> Runtime:
    """`tf.function`, weights frozen to constants, so that TensorFlow folds what it can."""
    model = served.build(_precision(numerics))
    forward = exports.frozen(model, served)

    def call(example):
        return forward(*map(tf.constant, example))[0].numpy()

    return Runtime(call, _bytes(model))


def xla(served: Served, numerics: str, threads: int) -> Runtime:
    """`tf.function` compiled by XLA."""
    _static("xla", served, "XLA compiles anew for each length of text")
    model = served.build(_precision(numerics))
    forward = tf.function(lambda *inputs: model(list(inputs), training=False), jit_compile=True)
    return Runtime(lambda example: forward(*map(tf.constant, example)).numpy(), _bytes(model))


def litert(served: Served, numerics: str, threads: int) -> Runtime:
    """LiteRT (TensorFlow Lite) with its XNNPACK kernels."""
    _static("litert", served, "its converter fixes the length of text")
    from ai_edge_litert.interpreter import Interpreter

    content = exports.flatbuffer(served, numerics)
    with exports.silent():
        interpreter = Interpreter(model_content=content, num_threads=threads)
        interpreter.allocate_tensors()
    (entry,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    into, out = entry["index"], result["index"]

    def call(example):
        interpreter.set_tensor(into, example[0])
        interpreter.invoke()
        return interpreter.get_tensor(out)

    return Runtime(call, len(content))


def onnx(served: Served, numerics: str, threads: int) -> Runtime:
    """ONNX Runtime."""
    _needs("onnx", "onnxruntime", "tf2onnx", "onnx")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    content = exports.onnx(served, numerics)
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]

    def call(example):
        return session.run(None, dict(zip(names, example, strict=True)))[0]

    return Runtime(call, len(content))


def openvino(served: Served, numerics: str, threads: int) -> Runtime:
    """OpenVINO, from the ONNX export."""
    _needs("openvino", "openvino", "tf2onnx", "onnx")
    os.environ.setdefault("OPENVINO_TELEMETRY", "0")
    import openvino

    content = exports.onnx(served, "float32")
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "bf16" if numerics == "bfloat16" else "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(content), "CPU", settings)
    request = compiled.create_infer_request()
    output = compiled.output(0)

    def call(example):
        request.infer(list(example), share_inputs=True)
        return request.get_tensor(output).data.copy()

    return Runtime(call, len(content))


class Kind(NamedTuple):
    """A runtime's function, and the precisions it has."""

    build: Callable[[Served, str, int], Runtime]
    numerics: tuple[str, ...]


NUMERICS = ("float32", "bfloat16", "int8")
RUNTIMES = {
    "keras": Kind(keras, ("float32", "bfloat16")),
    "function": Kind(function, ("float32", "bfloat16")),
    "xla": Kind(xla, ("float32", "bfloat16")),
    "litert": Kind(litert, ("float32", "int8")),
    "onnx": Kind(onnx, ("float32", "int8")),
    "openvino": Kind(openvino, ("float32", "bfloat16")),
}


def build(name: str, served: Served, numerics: str, threads: int) -> Runtime:
    """A model in the runtime of that name.

    Raises Refusal if the runtime is not installed, has no such precision, or can't run the model.
    """
    kind = RUNTIMES[name]
    if numerics not in kind.numerics:
        refuse("numerics", numerics, f"{name} has only {', '.join(kind.numerics)}")
    return kind.build(served, numerics, threads)


def _precision(numerics):
    return "mixed_bfloat16" if numerics == "bfloat16" else numerics


def _static(runtime, served, why):
    if not served.static:
        refuse("runtime", runtime, f"{why}; try function, onnx, openvino")


def _needs(runtime, *packages):
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        hint = 'pip install "dawnbench_tf[runtimes]" has all'
        refuse("runtime", runtime, f"{', '.join(absent)} is not installed; {hint}")


def _bytes(model):
    return sum(int(np.prod(w.shape)) * tf.as_dtype(w.dtype).size for w in model.weights)
