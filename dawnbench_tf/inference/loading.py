"""The trained network of a run, from its folder alone."""

from pathlib import Path

import tensorflow as tf

from dawnbench_tf import weights
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal


def load_model(
    recipe: Recipe,
    folder: Path,
    precision: str = "float32",
    data_format: str = "NHWC",
    portable: bool = False,
) -> tf.keras.Model:
    """Builds the network of a run, with its newest weights; `runs.Run.model` documents it.

    If not `portable`, with faster layers of ours in place of Keras's.
    """
    arrays = weights.read(folder)
    placement = Placement(tf.distribute.get_strategy(), data_format)
    model = dataset.saved_network(recipe, folder, placement, precision, portable)
    ours = [variable for variable in model.weights if variable.dtype.is_floating]
    if [tuple(variable.shape) for variable in ours] != [array.shape for array in arrays]:
        raise Refusal(f"{folder}: its weights are of another model than its {recipe.model}")
    for variable, array in zip(ours, arrays, strict=True):
        variable.assign(array)
    return dataset.of(recipe, None, placement).with_views(model)
