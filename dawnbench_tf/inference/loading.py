"""Loads the trained network of a run from the run's folder."""

from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from dawnbench_tf import run_folder
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
    """Builds the network of a run and loads its newest weights; see `runs.Run.model`.

    Args:
      recipe: the recipe of the run.
      folder: the run's folder.
      precision: Keras dtype policy.
      data_format: NHWC or NCHW.
      portable: whether to use only Keras's own layers instead of this package's faster ones.

    Raises:
      Refusal: the weights are missing, damaged or of another model.
    """
    return builder(recipe, folder, data_format, portable)(precision)


def builder(
    recipe: Recipe, folder: Path, data_format: str = "NHWC", portable: bool = False
) -> Callable[[str], tf.keras.Model]:
    """Reads the newest weights of a run, and returns a function: precision -> network.

    The weights are read once for all calls of the function. Arguments: see `load_model`.
    """
    arrays = run_folder.read_weights(folder)

    def build(precision: str) -> tf.keras.Model:
        placement = Placement(tf.distribute.get_strategy(), data_format)
        model = dataset.saved_network(recipe, folder, placement, precision, portable)
        variables = [v for v in model.weights if tf.as_dtype(v.dtype).is_floating]
        if [tuple(variable.shape) for variable in variables] != [a.shape for a in arrays]:
            raise Refusal(f"{folder}: its weights are of another model than its {recipe.model}")
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return dataset.from_splits(recipe, None, placement).with_views(model)

    return build
