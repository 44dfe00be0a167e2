"""Inference runtimes: a function each in `builders`, and a row of `RUNTIMES`.

    runtime = runtimes.build("litert", served, precision="float32", threads=2)
    logits = runtime.call(example)

The runtime affects latency more than the model does (docs/inference.md). Models are rebuilt from a
recipe and a run's weights; no code of a run is executed. The three TensorFlow runtimes use the CPUs
that the process may use, set before TensorFlow is imported; the others use `threads`.

The table does not import TensorFlow, as flags are made from it.

May import: models, inference, data, the shared modules. Never: training, submission, ranking.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from dawnbench_tf import machine, terminal
from dawnbench_tf.refusals import one_line, refuse

if TYPE_CHECKING:
    from dawnbench_tf.inference.serving import Runtime, Served


class RuntimeRow(NamedTuple):
    """Properties of a runtime, known before it is imported."""

    description: str
    precisions: tuple[str, ...]
    packages: tuple[str, ...] = ("tensorflow",)  # that it needs; the first one runs the model
    no_free_length: str = ""  # why it can't run texts of any length; "" if it can


PRECISIONS = ("float32", "bfloat16", "int8")
_TENSORFLOW = ("float32", "bfloat16")
RUNTIMES = {  # name of the function in `builders` -> row
    "keras": RuntimeRow("`model.predict`", _TENSORFLOW),
    "function": RuntimeRow("TensorFlow's graph with frozen weights", _TENSORFLOW),
    "xla": RuntimeRow(
        "TensorFlow's graph, compiled by XLA",
        _TENSORFLOW,
        no_free_length="XLA compiles anew for each length of text",
    ),
    "litert": RuntimeRow(
        "LiteRT (TensorFlow Lite) with XNNPACK kernels",
        ("float32", "int8"),
        ("ai_edge_litert",),
        no_free_length="its converter fixes the length of text",
    ),
    "onnx": RuntimeRow("ONNX Runtime", ("float32", "int8"), ("onnxruntime", "tf2onnx", "onnx")),
    "openvino": RuntimeRow(
        "OpenVINO, converted from ONNX", ("float32", "bfloat16"), ("openvino", "tf2onnx", "onnx")
    ),
}


def build(name: str, served: "Served", precision: str, threads: int) -> "Runtime":
    """Loads a model in a runtime and calls it once; keras, function and xla ignore `threads`."""
    row = RUNTIMES[name]
    if precision not in row.precisions:
        refuse("precision", precision, f"{name} has only {', '.join(row.precisions)}")
    if row.no_free_length and not served.fixed_shape:
        refuse("runtime", name, f"{row.no_free_length}; try function, onnx, openvino")
    absent = [package for package in row.packages if find_spec(package) is None]
    if absent:
        hint = f"{machine.install_command('runtimes')} has all"
        refuse("runtime", name, f"{', '.join(absent)} is not installed; {hint}")
    example = served.examples[0]  # outside of `try`: one that can't be read is no runtime's failure
    try:
        with terminal.silent():
            builders = import_module(f"{__name__}.builders")
            runtime = getattr(builders, name)(served, precision, threads)
            runtime.call(example)  # some runtimes compile at the first call
    except Exception as error:  # installations, converters and compilers may raise anything
        refuse("runtime", name, describe_failure(error))
    return runtime


def describe_failure(error: Exception) -> str:
    """Returns the message for an error that a runtime raised, in one line."""
    return f"can't run the model ({type(error).__name__}: {one_line(error, 80)})"
