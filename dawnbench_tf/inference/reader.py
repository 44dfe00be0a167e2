"""A trained reader: a context and a question in, the answer out."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine, runs
from dawnbench_tf.data.questions import encoding, pipeline, vocabulary, windows
from dawnbench_tf.data.questions.windows import Merged
from dawnbench_tf.inference import loading
from dawnbench_tf.models.layers import recurrent
from dawnbench_tf.refusals import Refusal

AT_ONCE = 16  # windows of a text
MANY_TOKENS = 2_000  # in a window, from which on memory is estimated before it is taken
COPIES = 2  # of the largest array in memory at once: an operation's input and its output


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
        self._recipe = recipe = runs.recipe_of(folder)
        if recipe.task_row.inputs != "questions":
            raise Refusal(f"{folder}: is a run of {recipe.task}; should be one of squad or qa_mini")
        self._vocabulary = vocabulary.load(folder)
        self.model = loading.load_model(recipe, folder, recipe.precision)
        recurrent.fuse(self.model)
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
          Refusal: a text holds no word, or takes more memory than is free.
        """
        form = self._recipe.data
        encoded = encoding.encode_question(context, question, self._vocabulary, form)
        split = encoded.test
        for name, texts in (("passage", split.contexts), ("question", split.questions)):
            if not len(texts.values):
                raise Refusal(f"the {name} is empty; should hold text")
        example = pipeline.SingleQuestions(encoded, self._recipe)[0]
        self._check_memory([ids[:AT_ONCE] for ids in example])
        merged = Merged(windows.build(split, form), most_words or form.most_answer_tokens)
        for rows in np.array_split(np.arange(len(example[0])), -(-len(example[0]) // AT_ONCE)):
            logits = self._forward([tf.constant(ids[rows]) for ids in example])
            merged.add(rows, logits.numpy())  # (windows, 2, context)
        offsets = split.offsets.values[merged.spans[0]]  # of its first token, and of its last
        begin, end = int(offsets[0, 0]), int(offsets[1, 1])
        return Answer(context[begin:end], begin, end, float(merged.probabilities[0]))

    def _check_memory(self, arrays):
        """Refuses a window that would take more memory than is free; (tokens, tokens) often does.

        The kernel would kill the process, without a word.
        """
        tokens = arrays[0].shape[1]
        if tokens < MANY_TOKENS:
            return
        specs = [tf.TensorSpec(ids.shape, tf.as_dtype(ids.dtype)) for ids in arrays]
        forward = tf.function(lambda inputs: self.model(inputs, training=False))
        operations = forward.get_concrete_function(specs).graph.get_operations()
        outputs = [output for operation in operations for output in operation.outputs]
        sizes = [output.shape.num_elements() or 0 for output in outputs]
        needed, free = COPIES * 4 * max(sizes) / 2**30, machine.free_gib()
        if needed > free:
            most = int(tokens * (free / needed) ** 0.5)  # memory grows with the square of tokens
            raise Refusal(
                f"the passage has {tokens:,} tokens, which take {needed:,.1f} GiB of memory; "
                f"{free:,.1f} are free: cut it to {most:,} tokens"
            )
