"""Damaged files of a published BERT, vocabulary and weights, in the form of `mutations`."""

from pathlib import Path

import numpy as np

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.questions import wordpieces
from dawnbench_tf.data.questions.encoding import Encoded
from tests.faults.mutations import Kind, kind_of_files
from tests.models.weights import test_berts as published


def berts(home: Path) -> Kind:
    """A vocabulary, safetensors, and a TensorFlow checkpoint's two files."""
    folder = home / "bert"
    folder.mkdir()
    pieces = wordpieces.from_words([f"w{n}" for n in range(30)])
    vocab, weights = folder / wordpieces.VOCABULARY, folder / "model.safetensors"
    vocab.write_text("\n".join(["[PAD]", "[unused0]", *pieces.trained]) + "\n")
    published.write(weights, published.hugging_face())
    published.checkpoint(folder / "bert_model.ckpt", published.google(published.hugging_face()))
    index = folder / "bert_model.ckpt.index"
    numbers = folder / "bert_model.ckpt.data-00000-of-00001"
    model = models.build("bert_tiny_span", **published.SMALL)
    recipe = recipes.get("squad/bert_tiny")
    shapes = [w.shape for w in model.get_weights()]

    def look(path):
        if path is vocab:
            read = wordpieces.read(vocab, cased=False)
            return "" if len(set(read.trained)) == len(read.trained) else "pieces twice"
        none = np.zeros(0)
        encoded = Encoded(*[none] * 3, pieces, *[none] * 5, form=None, pretrained=None)
        file = weights if path is weights else index
        dataset.from_splits(recipe, encoded._replace(pretrained=file)).adapt(model)
        return "" if [w.shape for w in model.get_weights()] == shapes else "other weights"

    return kind_of_files("published BERTs", [vocab, weights, index, numbers], look)
