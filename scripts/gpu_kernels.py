"""Lists the operations of training and evaluation steps that TensorFlow can't run on a GPU.

.venv/bin/python scripts/gpu_kernels.py [RECIPE ...]    # default: all of CIFAR-10 and digits

TensorFlow's package for Linux on x86 has the registry of its CUDA kernels, without a GPU too. An
operation without a kernel for its types runs on the host, and its inputs are copied there.
Operations on integers that live in host memory (shapes, int32 indices) are expected.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.images import synthetic
from dawnbench_tf.data.images.splits import Splits, in_memory
from dawnbench_tf.training import evaluation, fitting

STRUCTURE = {"NoOp", "Placeholder", "_Arg", "_Retval"}  # run nothing


@cache
def _kernels(operation: str) -> tuple[Any, ...]:
    """Returns the kernels of an operation for GPUs, or for any device that is not a CPU."""
    registered = kernels.get_registered_kernels_for_op(operation).kernel
    return tuple(kernel for kernel in registered if kernel.device_type in ("GPU", "DEFAULT"))


def has_kernel(node: Any) -> bool:
    """Whether a GPU kernel takes the types of a graph's node."""
    return any(
        all(
            _types(node.attr[item.name]) <= set(item.allowed_values.list.type)
            for item in kernel.constraint
        )
        for kernel in _kernels(node.op)
    )


def _types(attribute: Any) -> set[int]:
    return set(attribute.list.type) if attribute.HasField("list") else {attribute.type}


def nodes(graph: tf.Graph) -> Iterator[Any]:
    """Yields the nodes of a graph and of the functions that it calls."""
    definition = graph.as_graph_def()
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def missing(graph: tf.Graph) -> Counter[str]:
    """Counts the operations without a GPU kernel, by name and types."""
    counts: Counter[str] = Counter()
    for node in nodes(graph):
        if node.op not in STRUCTURE and not has_kernel(node):
            types = {key: _types(value) for key, value in node.attr.items()}
            names = sorted({tf.as_dtype(t).name for kinds in types.values() for t in kinds if t})
            counts[f"{node.op} ({', '.join(names)})"] += 1
    return counts


def training_step(recipe: Any, data_format: str = "NHWC") -> tf.Graph:
    """Returns the graph of a recipe's training step, from a batch of indices to new weights."""
    data = opened(recipe, data_format)
    model = fitting.build(data)
    step = tf.function(lambda batch: model.train_step(batch))
    return step.get_concrete_function(data.training_batches().element_spec).graph


def evaluation_step(recipe: Any, data_format: str = "NHWC") -> tf.Graph:
    """Returns the graph of an evaluation step, from a batch of test examples to logits."""
    data = opened(recipe, data_format)
    network = data.with_views(data.network())
    step = tf.function(lambda batch: network(data.prepare(batch), training=False))
    return step.get_concrete_function(data.test_batches(evaluation.BATCH).element_spec).graph


def opened(recipe: Any, data_format: str) -> dataset.Data:
    """Returns generated examples for a recipe: few, as XLA holds what a step captures."""
    placement = dataset.Placement(tf.distribute.get_strategy(), data_format)
    if recipe.task_row.jpegs:
        recipe = recipe.with_values(synthetic="jpeg")
        return dataset.from_splits(recipe, synthetic.load(recipe, pool=2), placement)
    if models.get(recipe.model).inputs != "images":
        return dataset.open(recipe.with_values(synthetic="decoded"), placement=placement)
    side = recipe.task_row.image_size
    shape = (recipe.batch_size, side, side, 3)
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    split = in_memory(images, np.zeros(recipe.batch_size, np.int64))
    return dataset.from_splits(recipe, Splits(split, split), placement)


if __name__ == "__main__":
    for name in sys.argv[1:] or [n for n in recipes.rows() if n.startswith(("cifar10", "digits"))]:
        for step in (training_step, evaluation_step):
            print(name, step.__name__, dict(missing(step(recipes.get(name)))), flush=True)
            tf.keras.backend.clear_session()
