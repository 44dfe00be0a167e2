"""Compares each 16-bit operation of a training step with itself in float64.

The step is traced as it trains: forward, backward, update. Beside each operation with a 16-bit
input or output the graph gets the same operation in float64, of the same 16-bit inputs. Their
difference is the error of the operation's own sum and of one rounding: 0.2 % in bfloat16, 0.03 % in
float16. No rounding of a term is in it.

The kernels that run are a CPU's; INEXACT has what is known of GPUs. For recipes:
tests/conformance/test_sixteen_bits.py. Run as a program, it prints the errors of TensorFlow's own
sums of random numbers: .venv/bin/python scripts/sixteen_bits.py
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dawnbench_tf import machine

with machine.importing():
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    from dawnbench_tf.data.dataset import Data
    from dawnbench_tf.training import averages, fitting

BOTH = {"bfloat16", "float16"}
# Operations that sum terms of these dtypes in 16 bits, on CPUs or on GPUs. What GPUs do is in the
# names of the kernels in TensorFlow 2.20's library: float16's Sum is
# ColumnReduceKernel<half*, half*, Sum<half>>; bfloat16's, and both Means, convert to float first.
INEXACT = {
    "BiasAddGrad": BOTH,  # GPUs: between blocks. CPUs: bfloat16
    "Cumprod": BOTH,
    "Cumsum": BOTH,
    "DepthwiseConv2dNativeBackpropFilter": BOTH,  # GPUs: atomic additions
    "EuclideanNorm": BOTH,
    "L2Loss": BOTH,
    "ResourceScatterAdd": BOTH,
    "ScatterNd": BOTH,
    "SegmentSum": BOTH,
    "SparseSegmentSum": BOTH,
    "Sum": {"float16"},
    "TensorScatterAdd": BOTH,
    "UnsortedSegmentSum": BOTH,
}
FEW = 64  # terms, whose sum can be left to 16 bits: at most 64 / 2^11 = 3 % off, in the worst case
Step = Callable[[], Iterable[tuple[tf.Tensor, tf.Variable]]]  # returns gradients and weights


def _inexact(graph: tf.Graph) -> Counter[str]:
    """Counts the operations of a graph, and of what it calls, that `audit` returns."""
    counts: Counter[str] = Counter()
    graphs = [graph]
    for graph in graphs:  # grows
        for op in _needed(graph):
            graphs += [called for called in _functions(graph, op) if called not in graphs]
            dtypes = {x.dtype.name for x in op.inputs} & BOTH
            if not op.type.endswith("While"):
                dtypes &= INEXACT.get(op.type, set())
            if dtypes and _terms(op) > FEW:
                counts[f"{op.type} {', '.join(dtypes)}"] += 1
    return counts


def _needed(graph: tf.Graph) -> list[tf.Operation]:
    """Returns the operations of a graph; of a function only those that its outputs need."""
    needed = [*graph.control_outputs, *(tensor.op for tensor in graph.outputs)]
    reached = {*needed}
    for op in needed:  # grows
        inputs = {*(tensor.op for tensor in op.inputs), *op.control_inputs} - reached
        needed += inputs
        reached |= inputs
    return needed or graph.get_operations()  # a graph that is being built has no outputs


def _functions(graph: tf.Graph, op: tf.Operation) -> Iterator[tf.Graph]:
    """Yields the graphs of the functions that an operation calls."""
    for value in op.node_def.attr.values():
        for name in filter(None, [value.func.name, *(each.name for each in value.list.func)]):
            yield graph._get_function(name).graph


def _terms(op: tf.Operation) -> float:
    """Returns the number of terms of each sum, if the shapes are known, else infinity."""
    sizes = [tensor.shape.num_elements() for tensor in (op.inputs[0], op.outputs[0])]
    return sizes[0] / sizes[1] if op.type == "Sum" and all(sizes) else float("inf")


def _has_kernel(operation: str, dtype: tf.DType) -> bool:
    return any(
        kernel.device_type == "CPU"
        and all(
            dtype.as_datatype_enum in item.allowed_values.list.type
            for item in kernel.constraint
            if item.name == "T"
        )
        for kernel in kernels.get_registered_kernels_for_op(operation).kernel
    )


def _in_float64(graph: tf.Graph, op: tf.Operation) -> tf.Operation:
    """Adds an operation in float64 to its graph; in float32 if TensorFlow has no other kernel."""
    wide = tf.float64 if _has_kernel(op.type, tf.float64) else tf.float32
    narrow = {dtype.as_datatype_enum for dtype in (tf.bfloat16, tf.float16, tf.float32)}
    # Attribute U is the dtype of a batch normalization's statistics. It stays float32.
    fixed = {item.type_attr for item in op.op_def.input_arg} & {"U"}
    attributes = {name: value for name, value in op.node_def.attr.items() if name[0] != "_"}
    for name, value in attributes.items():
        if value.type in narrow and name not in fixed:
            attributes[name] = type(value)(type=wide.as_datatype_enum)
    # A list of inputs, AddN's for example, has one entry in the operation's definition.
    arguments = [*op.op_def.input_arg, *[op.op_def.input_arg[-1]] * len(op.inputs)]
    inputs = [
        tf.cast(x, wide)
        if x.dtype.as_datatype_enum in narrow and argument.type_attr not in fixed
        else x
        for x, argument in zip(op.inputs, arguments, strict=False)
    ]
    return graph._create_op_internal(op.type, inputs, attrs=attributes)


COPIES = ("Cast", "Identity", "IdentityN", "Reshape")
SKIPPED = (*COPIES, "Const", "Placeholder", "ReadVariableOp")
CALLS = ("PartitionedCall", "While", "If", "Case")  # with and without Stateful, Stateless


def audit(step: Step) -> tuple[dict[str, float], Counter[str]]:
    """Runs a step once, each of its 16-bit operations also in float64.

    Returns:
      Relative errors by operation, "TYPE shape name"; and by weight, "gradient INDEX, of NAME": the
        difference from the same terms, summed in float64. Operations within loops, conditions and
        compiled functions have none.
      Number of the operations, within these too, that sum more than FEW terms in 16 bits. A loop
        with a 16-bit variable is one: it rounds the variable in each iteration.
    """
    counts: Counter[str] = Counter()

    @tf.function(autograph=False)
    def run() -> dict[str, tf.Tensor]:
        gradients = step()
        graph = tf.compat.v1.get_default_graph()
        counts.update(_inexact(graph))
        exact: dict[Any, tf.Tensor] = {}  # by tensor
        errors: dict[str, tf.Tensor] = {}
        for op in graph.get_operations():
            dtypes = {tensor.dtype.name for tensor in (*op.inputs, *op.outputs)}
            # A variant is a list of tensors, with which loops keep what they read and return.
            if not dtypes & BOTH or "variant" in dtypes:
                continue
            if op.type in SKIPPED or op.type.endswith(CALLS):
                continue
            double = _in_float64(graph, op)
            # Further outputs of a batch normalization are for its gradient's kernel.
            for output, other in list(zip(op.outputs, double.outputs, strict=True))[:3]:
                if output.dtype.is_floating:
                    exact[output.ref()] = tf.cast(other, tf.float64)
                    key = f"{op.type} {output.shape} {op.name}"
                    errors[key] = _difference(output, exact[output.ref()])
        for index, (gradient, weight) in enumerate(gradients):
            total = _exact(tf.convert_to_tensor(gradient), exact)
            errors[f"gradient {index}, of {weight.name}"] = _difference(gradient, total)
        return errors

    return {name: float(error) for name, error in run().items()}, counts


def _exact(tensor: tf.Tensor, exact: dict[Any, tf.Tensor]) -> tf.Tensor:
    """Returns a gradient in float64: of the operations that end in it, each in float64."""
    op = tensor.op
    if op.type == "Mul" and op.inputs[1].shape.rank == 0:  # by a constant
        return _exact(op.inputs[0], exact) * tf.cast(op.inputs[1], tf.float64)
    if tensor.ref() in exact:
        return exact[tensor.ref()]
    if op.type in COPIES:
        source = op.inputs[op.outputs.index(tensor) if op.type == "IdentityN" else 0]
        return tf.reshape(_exact(source, exact), tf.shape(tensor))
    if op.type in ("AddN", "AddV2"):  # of a weight that is used more than once, or that decays
        return tf.add_n([_exact(term, exact) for term in op.inputs])
    return tf.cast(tensor, tf.float64)


def _difference(value: tf.Tensor, exact: tf.Tensor) -> tf.Tensor:
    """Returns |value - exact| / |exact|, in norm; 0 if the two are equal."""
    error = tf.norm(tf.cast(value, tf.float64) - exact)
    return tf.where(error > 0, error / tf.norm(exact), 0)


def training_step(data: Data) -> Step:
    """Returns the training step of a recipe on a batch of its data.

    The weights are moved from their initial values, among which zeros hide gradients.
    """
    model = fitting.build(data)
    if data.recipe.precision == "mixed_float16":
        # Training halves the first scale, 32,768, until no gradient overflows.
        model.optimizer._loss_scale._current_loss_scale.assign(128)
    for weight in model.trainable_variables:
        weight.assign_add(0.05 * tf.random.stateless_normal(weight.shape, [1, 2]))
    optimizer, recorded = averages.inner_optimizer(model), []
    compute = optimizer.compute_gradients

    def compute_gradients(*args: Any, **kwargs: Any) -> Any:
        recorded[:] = compute(*args, **kwargs)  # with loss scaling in float16
        return recorded

    optimizer.compute_gradients = compute_gradients
    batch = next(iter(data.training_batches()))

    def step() -> Any:
        model.train_step(batch)
        return recorded

    return step


def _sums() -> Iterator[tuple[str, tuple[int, ...], Callable[[tf.Tensor], tf.Tensor]]]:
    """Yields name, shape of the terms and the sum of TensorFlow's that docs/training.md lists."""
    maps, tokens = (512, 31, 31, 24), (12_672, 768)
    for shape in (maps, tokens, (128, 768)):
        axes = list(range(len(shape) - 1))
        yield "BiasAddGrad", shape, lambda terms: tf.raw_ops.BiasAddGrad(out_backprop=terms)
        yield "Sum", shape, lambda terms, axes=axes: tf.reduce_sum(terms, axes)
    ids = tf.range(tokens[0]) % 2
    yield "UnsortedSegmentSum", tokens, lambda terms: tf.math.unsorted_segment_sum(terms, ids, 2)
    ones = tf.ones([1, tokens[0]])
    yield "MatMul", tokens, lambda terms: tf.matmul(tf.cast(ones, terms.dtype), terms)
    yield "Mean", (64, 56, 56, 64), lambda terms: tf.reduce_mean(terms, [1, 2])


if __name__ == "__main__":
    for name, shape, total in _sums():
        for dtype in (tf.bfloat16, tf.float16):
            terms = tf.cast(tf.random.stateless_normal(shape, [1, 2]), dtype)
            error = _difference(total(terms), total(tf.cast(terms, tf.float64)))
            print(f"{name:20} {shape!s:20} {dtype.name:10} {error:8.2%}")
