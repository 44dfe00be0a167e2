"""Lists what keeps training and evaluation steps from running wholly on a GPU or a TPU.

.venv/bin/python scripts/device_kernels.py [RECIPE ...]    # default: all of CIFAR-10 and digits

TensorFlow's package for Linux on x86 has the registry of its CUDA kernels, without a GPU too, and
of what XLA compiles for one; tensorflow-tpu has that for TPUs. Two things are listed:

- operations without a kernel for their types: they run on the host;
- tensors that a GPU kernel writes to its memory and another reads from host memory, as kernels of
  int32 arithmetic do: each such copy makes the host wait for the GPU.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from dawnbench_tf import machine, models, recipes

with machine.importing():
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry

    from dawnbench_tf.data import dataset
    from dawnbench_tf.data.images import synthetic
    from dawnbench_tf.training import evaluation, fitting

STRUCTURE = {"NoOp", "Placeholder", "_Arg", "_Retval"}  # run nothing
CALLS = ("PartitionedCall", "While", "If", "Case")  # with and without Stateful, Stateless
ON_HOST = {tf.int32.as_datatype_enum, tf.resource.as_datatype_enum}  # as arguments of functions
PLATFORMS = {  # device types of kernels
    "GPU": ("GPU", "DEFAULT"),
    "XLA on a GPU": ("XLA_GPU_JIT",),
    "XLA on a TPU": ("XLA_TPU_JIT",),
}


@cache
def _kernels(operation: str, platform: str) -> tuple[Any, ...]:
    registered = kernels.get_registered_kernels_for_op(operation).kernel
    return tuple(kernel for kernel in registered if kernel.device_type in PLATFORMS[platform])


@cache
def platforms() -> list[str]:
    """Returns the platforms whose kernels this package of TensorFlow has."""
    lowered = tf.function(lambda x: x + 1, jit_compile=True)
    lower = lowered.experimental_get_compiler_ir(tf.constant(1.0))
    for platform in ("GPU", "TPU"):  # the first call registers XLA's kernels
        with suppress(ValueError):
            lower(platform_name=platform)
    return [platform for platform in PLATFORMS if _kernels("Conv2D", platform)]


def _kernel(node: Any, platform: str) -> Any:
    """Returns a platform's kernel for the types of a graph's node, or None."""
    for kernel in _kernels(node.op, platform):
        if all(
            _types(node.attr[item.name]) <= set(item.allowed_values.list.type)
            for item in kernel.constraint
        ):
            return kernel
    return None


def _types(attribute: Any) -> set[int]:
    return set(attribute.list.type) if attribute.HasField("list") else {attribute.type}


def bodies(graph: tf.Graph, called: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yields the nodes of a graph, and of each function in it, with the function's arguments.

    Args:
      called: whether to leave out functions that nothing calls. On a GPU TensorFlow calls some of
        them in place of others: cuDNN's LSTM.
    """
    definition = graph.as_graph_def()
    functions = {function.signature.name: function for function in definition.library.function}
    yield definition.node, ()
    reached = [*_calls(definition.node)]
    for name in reached:  # grows
        reached += [new for new in _calls(functions[name].node_def) if new not in reached]
    for name in reached if called else functions:
        yield functions[name].node_def, functions[name].signature.input_arg


def _calls(nodes: Any) -> dict[str, None]:
    """Returns the names of the functions that nodes call, each once."""
    values = [value for node in nodes for value in node.attr.values()]
    called = [value.func.name for value in values if value.HasField("func")]
    called += [each.name for value in values for each in value.list.func]
    return dict.fromkeys(called)


def missing(graph: tf.Graph, platform: str = "GPU") -> Counter[str]:
    """Counts the operations without a kernel, by name and types."""
    counts: Counter[str] = Counter()
    for nodes, _ in bodies(graph, called=platform != "GPU"):
        for node in nodes:
            if node.op not in STRUCTURE and not _kernel(node, platform):
                types = {key: _types(value) for key, value in node.attr.items()}
                names = sorted(
                    {tf.as_dtype(t).name for kinds in types.values() for t in kinds if t}
                )
                counts[f"{node.op} ({', '.join(names)})"] += 1
    return counts


def copies_to_host(graph: tf.Graph) -> Counter[str]:
    """Counts the tensors that one GPU kernel writes to its memory, another reads from the host's.

    They are named "operation -> operation.argument". Constants are in both memories; arguments and
    results of functions are in host memory if they are int32, as TensorFlow has it.
    """
    counts: Counter[str] = Counter()
    for nodes, arguments in bodies(graph):
        sources = {argument.name: [("", argument.type in ON_HOST)] for argument in arguments}
        sources |= {node.name: [*_outputs(node)] for node in nodes}
        operations = {node.name: node.op for node in nodes}
        for node in nodes:
            inputs = [name for name in node.input if not name.startswith("^")]
            for name, (argument, on_host) in zip(inputs, _inputs(node), strict=False):
                source = name.partition(":")[0]
                if on_host and not _is_on_host(name, sources):
                    counts[f"{operations.get(source, source)} -> {node.op}.{argument}"] += 1
    return counts


def _is_on_host(name: str, sources: Mapping[str, list[tuple[str, bool]]]) -> bool:
    """Whether a tensor, "node", "node:1" or "node:output:1", is in host memory."""
    node, *output, index = name.split(":") if ":" in name else (name, "0")
    labelled = [host for label, host in sources[node] if not label or output in ([], [label])]
    return labelled[int(index)]


def _outputs(node: Any) -> Iterator[tuple[str, bool]]:
    """Yields the name of each tensor that a node gives, and whether it is in host memory."""
    if node.op in ("Const", "Placeholder", "_Arg"):
        yield "", node.op == "Const" or node.attr["dtype"].type in ON_HOST
        return
    types = node.attr["Tout" if "Tout" in node.attr else "T"].list.type
    arguments = _places(node, op_def_registry.get(node.op).output_arg)
    for index, (name, on_host) in enumerate(arguments):
        yield name, types[index] in ON_HOST if node.op.endswith(CALLS) else on_host


def _inputs(node: Any) -> Iterator[tuple[str, bool]]:
    """Yields the name of each input of a node, and whether its kernel reads host memory."""
    return _places(node, op_def_registry.get(node.op).input_arg if node.op != "_Retval" else ())


def _places(node: Any, arguments: Any) -> Iterator[tuple[str, bool]]:
    kernel = _kernel(node, "GPU")
    for argument in arguments:
        count = 1
        if argument.number_attr:
            count = node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            count = len(node.attr[argument.type_list_attr].list.type)
        on_host = bool(kernel) and argument.name in kernel.host_memory_arg
        yield from [(argument.name, on_host)] * count


def training_step(recipe: Any, data_format: str = "NHWC", jit_compile: bool = False) -> tf.Graph:
    """Returns the graph of a recipe's training step, from a batch of indices to new weights."""
    data = opened(recipe, data_format)
    model = fitting.build(data)
    step = tf.function(lambda batch: model.train_step(batch), jit_compile=jit_compile)
    return step.get_concrete_function(data.training_batches().element_spec).graph


def evaluation_step(recipe: Any, data_format: str = "NHWC", jit_compile: bool = False) -> tf.Graph:
    """Returns the graph of an evaluation step, from a batch of test examples to logits."""
    data = opened(recipe, data_format)
    network = data.with_views(data.network())
    step = tf.function(
        lambda batch: network(data.prepare(batch), training=False), jit_compile=jit_compile
    )
    return step.get_concrete_function(data.test_batches(evaluation.BATCH).element_spec).graph


def opened(recipe: Any, data_format: str) -> dataset.Data:
    """Returns generated examples for a recipe: few images, as XLA holds what a step captures."""
    placement = dataset.Placement(tf.distribute.get_strategy(), data_format)
    recipe = recipe.with_values(synthetic="jpeg" if recipe.jpegs else "decoded")
    if models.get(recipe.model).inputs != "images":
        return dataset.open(recipe, placement=placement)
    return dataset.from_splits(recipe, synthetic.load(recipe, pool=2), placement)


if __name__ == "__main__":
    for name in sys.argv[1:] or [n for n in recipes.rows() if n.startswith(("cifar10", "digits"))]:
        for step in (training_step, evaluation_step):
            for platform in platforms():
                graph = step(recipes.get(name), jit_compile=platform != "GPU")
                print(f"{name} {step.__name__}, {platform}:", dict(missing(graph, platform)))
                if platform == "GPU":
                    print("  copies to the host:", dict(copies_to_host(graph)))
                tf.keras.backend.clear_session()
