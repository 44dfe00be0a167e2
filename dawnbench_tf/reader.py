"""A trained reader: a passage and a question in, the answer out."""

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from dawnbench_tf import checkpoints, models, optimizers, spans, tasks
from dawnbench_tf.data import tokens, vocabulary
from dawnbench_tf.settings import Refusal


def build(recipe, known: vocabulary.Vocabulary, precision: str = ""):
    """The recipe's model for a vocabulary, its weights not trained yet; by default as trained."""
    return models.build(
        recipe.model,
        trained_words=2 + len(known.trained),
        fixed_words=len(known.fixed),
        characters=2 + len(known.characters),
        dtype=precision or recipe.precision,
    )


class Answer(NamedTuple):
    """An answer, text[begin:end] of the passage, and the model's probability of just this span."""

    text: str
    begin: int
    end: int
    probability: float


class Reader:
    """A trained reading model: `Reader(run_folder)(passage, question)`.

    Args:
      folder: of a run of `dawnbench_tf.train` on a reading task. Only its weights, word list and
        recipe are read; nothing in it is run as code.

    Raises:
      Refusal: it is no such folder, or is damaged.
    """

    def __init__(self, folder: Path):
        recipe = checkpoints.recipe_of(folder)
        if tasks.TASKS[recipe.task].kind != "questions":
            raise Refusal(f"{folder}: is a run of {recipe.task}; should be one of squad or qa_mini")
        self._known = known = vocabulary.load(folder)
        self.model = build(recipe, known)
        self.model.compile(optimizers.build(recipe, steps_per_epoch=1))
        checkpoints.load_weights(folder, self.model)
        # Eagerly, each LSTM would step through the text in Python.
        self._forward = tf.function(
            lambda inputs: self.model(inputs, training=False), reduce_retracing=True
        )

    def __call__(self, passage: str, question: str, most_words: int | None = None) -> Answer:
        """The answer, of `most_words` at most. Raises Refusal if a text holds no word."""
        places = [tokens.places(text) for text in (passage, question)]
        for name, found in zip(("passage", "question"), places, strict=True):
            if not found:
                raise Refusal(f"the {name} is empty; should hold text")
        inputs = []
        for text, found in zip((passage, question), places, strict=True):
            words, letters = self._known.numbers([text[a:b] for a, b in found])
            inputs += [words[None], letters[None]]
        logits = self._forward([tf.constant(values) for values in inputs]).numpy()
        ends = spans.best(logits, most_words)
        begin, end = places[0][ends[0, 0]][0], places[0][ends[0, 1]][1]
        likely = float(spans.probability(logits, ends)[0])
        return Answer(passage[begin:end], begin, end, likely)
