"""Predicts the memory that training takes on a device, from the graph of its step."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.client import device_lib
from tensorflow.python.ops.handle_data_util import get_handle_data

from dawnbench_tf import machine, models, tensorflow_env
from dawnbench_tf.data.dataset import Data

__all__ = ["predict", "limit", "Need"]

# Operations that give their input's buffer, or that make none in a step.
_ALIASES = {
    *("Const", "ExpandDims", "Identity", "IdentityN", "Placeholder", "PreventGradient"),
    *("ReadVariableOp", "Reshape", "Snapshot", "Squeeze", "StopGradient"),
}
# Operations that write into an input's buffer if nothing else reads it.
_IN_PLACE = {
    *("Abs", "Add", "AddN", "AddV2", "BiasAdd", "DivNoNan", "Elu", "EluGrad", "Erf", "Erfc", "Exp"),
    *("LeakyRelu", "LeakyReluGrad", "Log", "Maximum", "Minimum", "Mul", "Neg", "Pow", "RealDiv"),
    *("Relu", "ReluGrad", "Rsqrt", "RsqrtGrad", "SelectV2", "Sigmoid", "SigmoidGrad", "Sqrt"),
    *("SqrtGrad", "Square", "Sub", "Tanh", "TanhGrad"),
}
MARGIN = 0.2  # by which a step may need more than is predicted
_BODIES = ("f", "then_branch", "else_branch", "body")  # attributes that name functions


class Need(NamedTuple):
    """Memory of training on one device, in bytes.

    Attributes:
      variables: weights, the optimizer's and moving averages' variables, images on the device.
      step: tensors of one training step, at their peak; proportional to the batch.
      batch: examples of the step.
    """

    variables: int
    step: int
    batch: int

    @property
    def total(self) -> int:
        """Bytes of variables and step."""
        return self.variables + self.step

    def largest_batch(self, available: float) -> int:
        """Returns the largest batch that fits; 0: none. A fifth of the memory is kept free.

        Args:
          available: bytes that training may take.
        """
        room = available - self.variables
        return max(0, int(room / (1 + MARGIN) / self.step * self.batch))

    def text(self, available: float) -> str:
        """Returns a line for people.

        Args:
          available: bytes that training may take.
        """
        most, room = self.largest_batch(available), available / 2**30
        return (
            f"{self.variables / 2**30:.2f} GiB of variables and {self.step / 2**30:.2f} GiB for a "
            f"step of {self.batch:,} by prediction; batches of {most:,} fit into {room:.1f} GiB"
        )


def predict(model: tf.keras.Model, data: Data) -> Need | None:
    """Predicts the memory of training a recipe on one device.

    It follows the operations in the order in which TensorFlow runs them: each as soon as its inputs
    are there. It is within `MARGIN` of what TensorFlow allocates on a CPU
    (scripts/benchmark_memory.py), without the libraries' working memory, such as cuDNN's. Of blocks
    that a step may skip, none is skipped.

    Args:
      model: as `fitting.build` returns it.
      data: the recipe's data set; of its batch and image sizes those count that need most.

    Returns:
      None for a reader, whose texts have any length; for several devices, for a TPU, and with XLA,
      which makes other buffers.
    """
    strategy = data.placement.strategy
    alone = strategy.num_replicas_in_sync == 1 and not isinstance(
        strategy, tf.distribute.TPUStrategy
    )
    if models.get(data.recipe.model).inputs != "images" or not alone or model.jit_compile:
        return None
    phases = [data.in_epoch(phase.start) for phase in data.recipe.phases()]
    data = max(phases, key=lambda part: part.recipe.batch_size * part.recipe.sizes[-1] ** 2)
    side = max(data.recipe.sizes)  # of JPEGs, whose size changes from phase to phase
    spec = tf.nest.map_structure(
        lambda part: tf.TensorSpec([side if n is None else n for n in part.shape], part.dtype),
        data.training_batches().element_spec,
    )
    step = tf.function(lambda batch: strategy.run(model.train_step, (batch,)), autograph=False)
    concrete = step.get_concrete_function(spec)
    kept = [tensor for tensor in concrete.captured_inputs if tensor.dtype == tf.resource]
    return Need(sum(map(_kept, kept)), _peak(concrete.graph), data.recipe.batch_size)


def limit() -> float:
    """Returns the bytes that training may take: of the GPU with least memory, else free memory."""
    if not tf.config.list_logical_devices("GPU"):
        return machine.free_gib() * 2**30
    with tensorflow_env.silent():  # it logs each GPU, at every level
        devices = device_lib.list_local_devices()
    return float(min(device.memory_limit for device in devices if device.device_type == "GPU"))


def _peak(graph: tf.Graph) -> int:
    """Returns the bytes of a graph's tensors that exist at the same time, at their most."""
    owners = _owners(graph)
    readers = Counter(owners[id(tensor)] for tensor in graph.outputs)
    for operation in graph.get_operations():
        readers.update({owners[id(tensor)] for tensor in operation.inputs})
    sizes: dict[int, int] = {}  # of the buffers that exist, by owner
    present = peak = 0
    for operation in _in_order(graph):
        peak = max(peak, present + max(map(_peak, _bodies(operation)), default=0))
        read = {owners[id(tensor)] for tensor in operation.inputs}
        written = () if operation.type in _ALIASES else operation.outputs
        for tensor in written:
            size = _bytes(tensor)
            for buffer in read if operation.type in _IN_PLACE else ():
                if readers[buffer] == 1 and sizes.get(buffer) == size:
                    present -= sizes.pop(buffer)
                    break
            sizes[id(tensor)] = size
            present += size
        peak = max(peak, present)
        readers.subtract(read)
        for buffer in {*read, *map(id, written)}:
            if not readers[buffer]:
                present -= sizes.pop(buffer, 0)
    return peak


def _owners(graph: tf.Graph) -> dict[int, int]:
    """Maps each tensor to the one that made its buffer, by identity."""
    owners: dict[int, int] = {}
    for operation in graph.get_operations():
        for index, tensor in enumerate(operation.outputs):
            shares = operation.type in _ALIASES and operation.inputs
            owners[id(tensor)] = owners[id(operation.inputs[index])] if shares else id(tensor)
    return owners


def _in_order(graph: tf.Graph) -> Iterator[Any]:
    """Yields operations as TensorFlow runs them: first ready, first run."""
    waiting: dict[Any, int] = {}
    followers: dict[Any, list[Any]] = {}
    for operation in graph.get_operations():
        before = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        waiting[operation] = len(before)
        for each in before:
            followers.setdefault(each, []).append(operation)
    ready = deque(operation for operation, count in waiting.items() if not count)
    while ready:
        operation = ready.popleft()
        yield operation
        for each in followers.get(operation, ()):
            waiting[each] -= 1
            if not waiting[each]:
                ready.append(each)


def _bodies(operation: Any) -> list[tf.Graph]:
    """Returns the graphs of the functions that an operation calls."""
    definition = operation.node_def.attr
    names = [definition[name].func.name for name in _BODIES if name in definition]
    names += [function.name for function in definition["branches"].list.func]
    return [operation.graph._get_function(name).graph for name in names]


def _bytes(tensor: Any) -> int:
    """Returns the bytes of a tensor; of an optional one, which `tf.cond` keeps for its gradient."""
    if tensor.dtype != tf.variant:
        return tensor.dtype.size * int(np.prod(tensor.shape)) if tensor.shape.rank else 0
    kept = [body.outputs[tensor.value_index].op for body in _bodies(tensor.op)]
    return max((sum(map(_bytes, operation.inputs)) for operation in kept), default=0)


def _kept(handle: Any) -> int:
    """Returns the bytes of the variable that a handle stands for."""
    (value,) = get_handle_data(handle).shape_and_type
    return tf.as_dtype(value.dtype).size * tf.TensorShape(value.shape).num_elements()
