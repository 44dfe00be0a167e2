"""Question answering with a trained reading model."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine, run_folder
from dawnbench_tf.data import dataset
from dawnbench_tf.data.questions import encoding, spans, vocabulary, windows
from dawnbench_tf.data.questions.windows import Merged
from dawnbench_tf.inference import serving
from dawnbench_tf.models.layers import recurrent
from dawnbench_tf.refusals import Refusal

__all__ = ["Reader", "Answer"]

WINDOWS_PER_BATCH = 16  # windows of a text in one call of the model, at most
MANY_TOKENS = 2_000  # windows of this many tokens or more have their memory estimated first
COPIES = 2  # copies of the largest array in memory: an operation's input and its output


class Answer(NamedTuple):
    """An answer of a reading model.

    Attributes:
      text: context[begin:end].
      begin: offset in the context, in characters.
      end: offset past it.
      probability: of this span, according to the model.
    """

    text: str
    begin: int
    end: int
    probability: float


class Reader:
    """A trained reading model: `Reader(run_folder)(context, question)`.

    It knows the words of its data set's training and test files. All other words are one unknown
    word, those with a word vector too.

    Args:
      folder: the `--output_dir` of a training run on a reading task. Only its weights, word list
        and recipe are read; no code in it is executed.

    Raises:
      Refusal: the folder holds no run of a reading task, or is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        folder = Path(folder)
        self._recipe = recipe = run_folder.owner_of(folder).recipe
        if recipe.task_row.inputs != "questions":
            text = f"is a run of {recipe.task_row.name}; should be one of a reading task"
            raise Refusal(f"{folder}: {text}")
        self._vocabulary = vocabulary.load(folder)
        self.model = serving.builder(recipe, folder)("float32")
        recurrent.fuse(self.model)
        self._forward = serving.in_graph(self.model)  # eager LSTMs step through a text in Python
        self._largest: dict[Any, int] = {}  # numbers in the largest array, by the inputs' shapes

    def __call__(self, context: str, question: str, most_words: int | None = None) -> Answer:
        """Returns the most probable answer to a question; arguments as for `answers`."""
        return self.answers(context, question, 1, most_words)[0]

    def answers(
        self, context: str, question: str, count: int, most_words: int | None = None
    ) -> list[Answer]:
        """Returns the most probable answers to a question that share no word, the best first.

        Args:
          context: the text to answer from.
          question: the question.
          count: number of answers, from 1; there are fewer if the text is short.
          most_words: most tokens (BERT: WordPieces) of an answer, from 1; None for the recipe's
            limit.

        Raises:
          ValueError: `count` or `most_words` is below 1.
          Refusal: a text holds no word, or needs more memory than is free.
        """
        for name, number in (("count", count), ("most_words", most_words)):
            if number is not None and number < 1:
                raise ValueError(f"`{name}` should be at least 1. Received: {name}={number}")
        form = self._recipe.data
        encoded = encoding.encode_question(context, question, self._vocabulary, form)
        split = encoded.test
        for name, texts in (("passage", split.contexts), ("question", split.questions)):
            if not len(texts.values):
                raise Refusal(f"the {name} is empty; should hold text")
        example = dataset.from_splits(self._recipe, encoded).examples()[0]
        self._check_memory([ids[:WINDOWS_PER_BATCH] for ids in example])
        own = windows.build(split, form)
        rows = np.arange(len(example[0]))
        blocks = np.array_split(rows, -(-len(rows) // WINDOWS_PER_BATCH))
        logits = np.concatenate(  # (windows, 2, context)
            [self._forward([tf.constant(ids[block]) for ids in example]) for block in blocks]
        )
        tokens = own.firsts[:, None] + np.arange(logits.shape[2])  # of the context

        def best(first: int, past: int) -> Merged:
            """Returns the best answer within a run of the context's tokens."""
            merged = Merged(own, most_words or form.most_answer_tokens)
            inside = (first <= tokens) & (tokens < past)
            merged.add(rows, logits, np.where(inside[:, None], logits, -np.inf))
            return merged

        whole, answers = (0, len(split.contexts.values)), list[Answer]()
        runs = {whole: best(*whole)}  # tokens of no answer yet
        while len(answers) < count and runs:
            run = max(runs, key=lambda run: runs[run].scores[0])
            merged = runs.pop(run)
            first, last = merged.spans[0].tolist()
            begin, end = int(split.offsets.values[first, 0]), int(split.offsets.values[last, 1])
            end = spans.past_marks(context, end)
            past = int(np.searchsorted(split.offsets.values[:, 0], end))  # first token after it
            if not answers or spans.past_marks(context, begin) == begin:  # else an accent alone
                probability = float(merged.probabilities[0])
                answers.append(Answer(context[begin:end], begin, end, probability))
            sides = (run[0], first), (past, run[1])
            runs |= {side: best(*side) for side in sides if side[0] < side[1]}
        return answers

    def _check_memory(self, arrays: list[np.ndarray]) -> None:
        """Raises Refusal if a window needs more memory than is free; (tokens, tokens) arrays do."""
        # Otherwise the kernel would kill the process without a message.
        tokens = arrays[0].shape[1]
        if tokens < MANY_TOKENS:
            return
        shapes = tuple(ids.shape for ids in arrays)
        if shapes not in self._largest:
            specs = [tf.TensorSpec(ids.shape, tf.as_dtype(ids.dtype)) for ids in arrays]
            forward = tf.function(lambda inputs: self.model(inputs, training=False))
            operations = forward.get_concrete_function(specs).graph.get_operations()
            outputs = [output for operation in operations for output in operation.outputs]
            self._largest[shapes] = max(output.shape.num_elements() or 0 for output in outputs)
        needed, free = COPIES * 4 * self._largest[shapes] / 2**30, machine.free_gib()
        if needed > free:
            most = int(tokens * (free / needed) ** 0.5)  # memory grows with the square of tokens
            raise Refusal(
                f"the passage has {tokens:,} tokens, which take {needed:,.1f} GiB of memory; "
                f"{free:,.1f} are free: cut it to {most:,} tokens"
            )
