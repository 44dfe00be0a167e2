"""Trained models in the formats of other runtimes: frozen, folded, for examples of one shape."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from dawnbench_tf.inference.served import Served

OPSET = 18  # of ONNX; the newest that tf2onnx 1.17 writes


def concrete(model: tf.keras.Model, served: Served) -> Any:
    """The model's forward pass as a graph (a ConcreteFunction) for examples like those served."""
    batch = len(served.examples[0][0]) if served.fixed_batch else None
    signature = [
        tf.TensorSpec(
            array.shape if served.fixed_shape else (batch, None, *array.shape[2:]),
            array.dtype,
            name,
        )
        for array, name in zip(served.examples[0], input_names(served), strict=True)
    ]
    forward = tf.function(
        lambda *inputs: model(list(inputs), training=False), input_signature=signature
    )
    return forward.get_concrete_function()


def input_names(served: Served) -> list[str]:
    """Names of the model's inputs in every format: a format may list them in another order."""
    return [f"input_{number}" for number in range(len(served.examples[0]))]


def onnx_input_names(served: Served) -> list[str]:
    """Names of the inputs of `onnx`'s model, in the order of an example's arrays."""
    return [f"{name}:0" for name in input_names(served)]


def frozen(model: tf.keras.Model, served: Served) -> Any:
    """The model's graph (a ConcreteFunction) with its weights as constants, for folding."""
    return convert_variables_to_constants_v2(concrete(model, served), lower_control_flow=False)


def flatbuffer(served: Served, precision: str) -> bytes:
    """The model as LiteRT has it; in int8 all but its inputs and outputs are integers."""
    model = served.build("float32")
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete(model, served)], model)
    if precision == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: map(list, served.calibration)
    return converter.convert()


def onnx(served: Served, precision: str) -> bytes:
    """The model as ONNX has it, through tf2onnx; int8 by ONNX Runtime's own calibration."""
    import tf2onnx  # an extra

    graph = frozen(served.build("float32"), served)
    model, _ = tf2onnx.convert.from_graph_def(
        graph.graph.as_graph_def(),
        input_names=[tensor.name for tensor in graph.inputs],
        output_names=[tensor.name for tensor in graph.outputs],
        opset=OPSET,
        custom_op_handlers={"Erfc": (_erfc, [])},  # of TensorFlow's GELU
    )
    content = model.SerializeToString()
    return _of_integers(content, served) if precision == "int8" else content


def _erfc(graph, node, name, _):
    """Makes 1 - erf(x) of erfc(x), which tf2onnx hands on and ONNX lacks."""
    facts = {
        "shapes": [graph.get_shape(node.output[0])],
        "dtypes": [graph.get_dtype(node.output[0])],
    }
    graph.remove_node(node.name)
    one = graph.make_const(f"{name}_one", np.ones((), np.float32))
    erf = graph.make_node("Erf", node.input, **facts)
    inputs = [one.output[0], erf.output[0]]
    graph.make_node("Sub", inputs, outputs=node.output, name=node.name, **facts)


def _of_integers(content, served):
    """An ONNX model with int8 weights and activations, calibrated on training data."""
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference

    class Reader(quantization.CalibrationDataReader):
        """Training examples, one after the other."""

        def __init__(self, names):
            self.rows = (dict(zip(names, row, strict=True)) for row in served.calibration)

        def get_next(self):
            """The next one; None after the last."""
            return next(self.rows, None)

    reader = Reader(onnx_input_names(served))
    with tempfile.TemporaryDirectory() as folder:
        whole, ready, small = (Path(folder, name) for name in ("whole", "ready", "small"))
        whole.write_bytes(content)
        # All shapes are known; the symbolic inference left out would need sympy besides.
        shape_inference.quant_pre_process(str(whole), str(ready), skip_symbolic_shape=True)
        quantization.quantize_static(str(ready), str(small), reader, per_channel=True)
        return small.read_bytes()
