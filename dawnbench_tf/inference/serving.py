"""Loads a run for inference: its network with weights, the examples of its task.

`Served` is the input of runtimes, `Runtime` their output.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import run_folder
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data, Example, Placement
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal

CALIBRATION = 100  # training examples that calibrate int8 ranges


class Served(NamedTuple):
    """A trained model and its examples, the input of a runtime."""

    build: Callable[[str], tf.keras.Model]  # precision -> model with its weights
    examples: Sequence[Example]  # test examples
    calibration: Sequence[Example]  # training examples, for the ranges of int8 values
    fixed_shape: bool  # whether all examples have the same shape
    fixed_batch: bool = True  # whether all examples have the same batch size


class Runtime(NamedTuple):
    """A model loaded in a runtime."""

    call: Callable[[Example], np.ndarray]  # example -> logits, a new array
    size: int  # bytes of the weights in the runtime's format
    device: str = "CPU"  # or GPU: where it answers


def in_graph(model: tf.keras.Model) -> Callable[[Any], tf.Tensor]:
    """Returns a function that calls a model in a graph, which is traced once for all sizes."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in model.inputs]

    # AutoGraph would take half a second: no layer has control flow that depends on tensors.
    @tf.function(autograph=False, input_signature=[specs if len(specs) > 1 else specs[0]])
    def forward(inputs: Any) -> tf.Tensor:
        return model(inputs, training=False)

    return forward


class Serving(NamedTuple):
    """A trained run loaded for inference: its data set, and the input of runtimes."""

    data: Data
    served: Served
    facts: Mapping[str, Any] = MappingProxyType({})  # further keys of an entry's misc


def builder(
    recipe: Recipe, folder: Path, data_format: str = "NHWC", portable: bool = False
) -> Callable[[str], tf.keras.Model]:
    """Reads the newest weights of a run, and returns a function: precision -> network."""
    # The weights are read once for all calls of the function. `portable`: with only Keras's own
    # layers, instead of this package's faster ones.
    arrays = run_folder.read_weights(folder)

    def build(precision: str) -> tf.keras.Model:
        placement = Placement(tf.distribute.get_strategy(), data_format)
        data = dataset.from_splits(recipe, None, placement)
        model = data.network(precision, portable, folder)
        variables = [v for v in model.weights if tf.as_dtype(v.dtype).is_floating]
        if [tuple(variable.shape) for variable in variables] != [a.shape for a in arrays]:
            text = f"its weights are of another model than its {recipe.model}"
            changed = "; has its function changed?" * (":" in recipe.model)
            raise Refusal(f"{folder}: {text}{changed}")
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return data.with_views(model)

    return build


def load(
    folder: str | os.PathLike[str], data_dir: str = "", task: str = "", examples: Any = None
) -> Serving:
    """Loads a run for inference: recipe, weights and word list, and the examples of its task."""
    # `examples` are those of a run that was trained with `data`.
    folder = Path(folder)
    recipe = run_folder.owner_of(folder).recipe
    if task and task != recipe.task_row.name:
        raise Refusal(f"--task={task}: {folder} holds a run of {recipe.task_row.name}")
    build = builder(recipe, folder)
    build("float32")  # raises for weights of another model before the data set is loaded
    data = dataset.open(recipe, data_dir, examples=examples)
    data.check_saved(folder)
    tf.keras.backend.clear_session()
    served = Served(
        build,
        data.examples(),
        data.training_as_test(CALIBRATION).examples(),
        data.fixed_shape,
        # The windows of a long text form the batch of its example.
        fixed_batch=not getattr(recipe.data, "sequence_length", 0),
    )
    return Serving(data, served)


def with_batches(served: Served, batch_size: int, max_batches: int) -> Served:
    """Returns a served model, of fixed shape, whose examples are batches."""
    # An incomplete last batch is dropped; fewer examples than a batch's are repeated to fill one.
    return served._replace(
        examples=_batches(served.examples, batch_size, max_batches),
        calibration=_batches(served.calibration, batch_size, len(served.calibration)),
    )


def _batches(examples: Sequence[Example], size: int, max_batches: int) -> list[Example]:
    count = min(max_batches, max(1, len(examples) // size))
    batches = np.arange(count * size).reshape(count, size) % len(examples)
    return [
        tuple(np.concatenate(arrays) for arrays in zip(*(examples[i] for i in batch), strict=True))
        for batch in batches.tolist()
    ]
