"""A trained reader: a context and a question in, the answer out."""

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from dawnbench_tf import runs
from dawnbench_tf.data.questions import inputs, spans, tokens, vocabulary
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import checkpoints, optimizers


class Answer(NamedTuple):
    """An answer, text[begin:end] of the context, and the model's probability of just this span."""

    text: str
    begin: int
    end: int
    probability: float


class Reader:
    """A trained reading model: `Reader(run_folder)(context, question)`.

    Args:
      folder: of a run of `dawnbench_tf.train` on a reading task. Only its weights, word list and
        recipe are read; nothing in it is run as code.

    Raises:
      Refusal: it is no such folder, or is damaged.
    """

    def __init__(self, folder: Path):
        recipe = runs.recipe_of(folder)
        if recipe.task_row.inputs != "questions":
            raise Refusal(f"{folder}: is a run of {recipe.task}; should be one of squad or qa_mini")
        self._vocabulary = vocabulary.load(folder)
        self.model = inputs.network(recipe, self._vocabulary)
        self.model.compile(optimizers.build(recipe, steps_per_epoch=1, model=self.model))
        checkpoints.load_weights(folder, recipe, self.model)
        # Eagerly, each LSTM would step through the text in Python.
        self._forward = tf.function(
            lambda inputs: self.model(inputs, training=False), reduce_retracing=True
        )

    def __call__(self, context: str, question: str, most_words: int | None = None) -> Answer:
        """Answers a question.

        Args:
          context: the text to answer from.
          question: what is asked.
          most_words: words of the answer, at most.

        Raises:
          Refusal: a text holds no word.
        """
        offsets = [tokens.offsets(text) for text in (context, question)]
        for name, of_text in zip(("passage", "question"), offsets, strict=True):
            if not of_text:
                raise Refusal(f"the {name} is empty; should hold text")
        batch = []
        for text, of_text in zip((context, question), offsets, strict=True):
            ids, character_ids = self._vocabulary.ids([text[a:b] for a, b in of_text])
            batch += [tf.constant(ids[None]), tf.constant(character_ids[None])]
        logits = self._forward(batch).numpy()  # (1, 2, context)
        best = spans.best(logits, most_words)
        first, last = best[0]
        begin, end = offsets[0][first][0], offsets[0][last][1]
        return Answer(context[begin:end], begin, end, float(spans.probability(logits, best)[0]))
