"""Exports trained models to the formats of other runtimes: frozen graph, LiteRT, ONNX."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from dawnbench_tf.inference.serving import Served
from dawnbench_tf.refusals import Refusal

OPSET = 18  # ONNX operator set; the newest that tf2onnx 1.17 writes


def trace(model: tf.keras.Model, served: Served) -> Any:
    """Traces the forward pass for the shapes of the served examples. Returns a ConcreteFunction."""
    batch = len(served.examples[0][0]) if served.fixed_batch else None
    signature = [
        tf.TensorSpec(
            array.shape if served.fixed_shape else (batch, None, *array.shape[2:]),
            array.dtype,
            f"input_{number}",  # by which every format (re)orders them
        )
        for number, array in enumerate(served.examples[0])
    ]
    forward = tf.function(
        lambda *inputs: model(list(inputs), training=False), input_signature=signature
    )
    return forward.get_concrete_function()


def onnx_input_names(served: Served) -> list[str]:
    """Returns the input names of the exported ONNX model, in the order of an example's arrays."""
    return [f"input_{number}:0" for number in range(len(served.examples[0]))]


def freeze(model: tf.keras.Model, served: Served) -> Any:
    """Traces the model with its weights as constants, which TensorFlow can fold."""
    return convert_variables_to_constants_v2(trace(model, served), lower_control_flow=False)


def flatbuffer(served: Served, precision: str) -> bytes:
    """Converts a model of fixed shape to LiteRT's format; returns the content of a .tflite file."""
    # int8: weights and activations, calibrated on training examples; inputs, outputs: float32.
    if not served.fixed_shape:
        raise Refusal("LiteRT's converter fixes the length of text; exports.onnx takes any length")
    model = served.build("float32")
    # Given the Keras model, TensorFlow also saves each layer's functions: 5 s instead of 1.
    weights = tf.Module()
    weights.all = model.weights
    converter = tf.lite.TFLiteConverter.from_concrete_functions([trace(model, served)], weights)
    if precision == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: map(list, served.calibration)
    return converter.convert()


def onnx(served: Served, precision: str) -> bytes:
    """Converts the model to ONNX with tf2onnx; returns the content of an .onnx file."""
    # int8: quantized by ONNX Runtime, calibrated on training examples.
    import tf2onnx  # an extra

    graph = freeze(served.build("float32"), served)
    model, _ = tf2onnx.convert.from_graph_def(
        graph.graph.as_graph_def(),
        input_names=[tensor.name for tensor in graph.inputs],
        output_names=[tensor.name for tensor in graph.outputs],
        opset=OPSET,
        custom_op_handlers={"Erfc": (_erfc, [])},  # used by TensorFlow's GELU
    )
    content = model.SerializeToString()
    return _quantize(content, served) if precision == "int8" else content


def _erfc(graph: Any, node: Any, name: str, _: Any) -> None:
    """Replaces erfc(x), which ONNX lacks, by 1 - erf(x); a tf2onnx operator handler."""
    facts = {
        "shapes": [graph.get_shape(node.output[0])],
        "dtypes": [graph.get_dtype(node.output[0])],
    }
    graph.remove_node(node.name)
    one = graph.make_const(f"{name}_one", np.ones((), np.float32))
    erf = graph.make_node("Erf", node.input, **facts)
    inputs = [one.output[0], erf.output[0]]
    graph.make_node("Sub", inputs, outputs=node.output, name=node.name, **facts)


def _quantize(content: bytes, served: Served) -> bytes:
    """Quantizes an ONNX model to int8 weights and activations, calibrated on training data."""
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference

    class CalibrationReader(quantization.CalibrationDataReader):
        """Yields training examples one by one."""

        def __init__(self, names: list[str]) -> None:
            self.rows = (dict(zip(names, row, strict=True)) for row in served.calibration)

        def get_next(self) -> dict[str, np.ndarray] | None:
            """Returns the next example; None after the last."""
            return next(self.rows, None)

    reader = CalibrationReader(onnx_input_names(served))
    with tempfile.TemporaryDirectory() as folder:
        whole, ready, small = (Path(folder, name) for name in ("whole", "ready", "small"))
        whole.write_bytes(content)
        # All shapes are known, so symbolic shape inference, which needs sympy, can be skipped.
        shape_inference.quant_pre_process(str(whole), str(ready), skip_symbolic_shape=True)
        quantization.quantize_static(str(ready), str(small), reader, per_channel=True)
        return small.read_bytes()
