"""Published weights: `load` loads a file into a model; `resnets`, `berts` match its tensors.

`files` and `pickles` read the formats, `downloads` fetches a file by its name.

May import: nothing of dawnbench_tf.
"""

from functools import partial
from pathlib import Path

import tensorflow as tf

from . import berts, files, resnets


def load(model: tf.keras.Model, file: str | Path, new_head: bool = False) -> bool:
    """Loads published weights into a ResNet or a BERT; see `models.load_published`."""
    is_bert = any(layer.name == "layer_0_query" for layer in model.layers)
    match_values = partial((berts if is_bert else resnets).values, new_head=new_head)
    index = Path(f"{str(file).removesuffix('.index')}.index")  # of a TensorFlow checkpoint
    with open(index if index.is_file() else file, "rb") as stream:
        try:
            with files.open_tensors(stream) as tensors:
                values = list(match_values(model, tensors))
        except Exception as error:  # damaged files cause errors of many types
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"`file` should contain published weights of {model.name}: {reason}. "
                f"Received: file={file}"
            ) from None
    # The model changes only after every value was read.
    for variable, value in values:
        variable.assign(value)
    ends = [layer for layer in model.layers if isinstance(layer, tf.keras.layers.Dense)]
    heads = [layer for layer in ends if not layer.name.startswith("layer_")][-1:]
    return any(variable is head.kernel for variable, _ in values for head in heads)
