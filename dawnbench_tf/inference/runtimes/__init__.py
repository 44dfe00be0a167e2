"""Ways to run a trained model on single examples: a module each, and a row of `RUNTIMES`.

    runtime = runtimes.build("litert", served, precision="float32", threads=2)
    logits = runtime.call(example)

The choice changes latency more than the model does (docs/inference.md). Models are rebuilt from a
recipe and a run's weights; no file of theirs is executed. TensorFlow's own three use the CPUs that
the process may use, settled before its import; the others take `threads`.

A module's `build(served, precision, threads)` returns a `served.Runtime`. The table needs no
TensorFlow: flags are made of it.

May import: models, inference, data, the shared modules. Never: training, submission, ranking.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from dawnbench_tf import tensorflow_env
from dawnbench_tf.refusals import one_line, refuse

if TYPE_CHECKING:
    from dawnbench_tf.inference.served import Runtime, Served


class RuntimeRow(NamedTuple):
    """What is known of a runtime before it is imported."""

    what: str
    precisions: tuple[str, ...]
    packages: tuple[str, ...] = ()  # that have to be installed besides ours
    no_free_length: str = ""  # why texts of any length can't be run, if so


PRECISIONS = ("float32", "bfloat16", "int8")
_TENSORFLOW = ("float32", "bfloat16")
RUNTIMES = {  # by the name of the module in this folder
    "keras": RuntimeRow("`model.predict`", _TENSORFLOW),
    "function": RuntimeRow("TensorFlow's graph, weights frozen", _TENSORFLOW),
    "xla": RuntimeRow(
        "that graph compiled by XLA",
        _TENSORFLOW,
        no_free_length="XLA compiles anew for each length of text",
    ),
    "litert": RuntimeRow(
        "LiteRT (TensorFlow Lite) with XNNPACK",
        ("float32", "int8"),
        no_free_length="its converter fixes the length of text",
    ),
    "onnx": RuntimeRow("ONNX Runtime", ("float32", "int8"), ("onnxruntime", "tf2onnx", "onnx")),
    "openvino": RuntimeRow(
        "OpenVINO, from the ONNX export", ("float32", "bfloat16"), ("openvino", "tf2onnx", "onnx")
    ),
}


def build(name: str, served: "Served", precision: str, threads: int) -> "Runtime":
    """A model in a runtime, called once.

    Args:
      name: of the runtime, a key of `RUNTIMES`.
      served: the trained model.
      precision: one of the runtime's.
      threads: to run on.

    Raises:
      Refusal: the runtime is not installed, has no such precision, or can't run the model.
    """
    row = RUNTIMES[name]
    if precision not in row.precisions:
        refuse("precision", precision, f"{name} has only {', '.join(row.precisions)}")
    if row.no_free_length and not served.fixed_shape:
        refuse("runtime", name, f"{row.no_free_length}; try function, onnx, openvino")
    absent = [package for package in row.packages if find_spec(package) is None]
    if absent:
        hint = 'pip install "dawnbench_tf[runtimes]" has all'
        refuse("runtime", name, f"{', '.join(absent)} is not installed; {hint}")
    try:
        with tensorflow_env.silent():
            runtime = import_module(f"{__name__}.{name}").build(served, precision, threads)
            runtime.call(served.examples[0])  # some compile only now
    except Exception as error:  # of an installation, a converter or a compiler: any
        refuse("runtime", name, failure(error))
    return runtime


def failure(error: Exception) -> str:
    """What a message says of a runtime that raised an error."""
    return f"can't run the model ({type(error).__name__}: {one_line(error, 80)})"
