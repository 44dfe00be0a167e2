"""The network's inputs for windows: ids of tokens and characters, match features, tags."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit, Ragged
from dawnbench_tf.data.questions.windows import Windows
from dawnbench_tf.models import networks, texts
from dawnbench_tf.recipe import Recipe


def input_names(recipe: Recipe) -> tuple[str, ...]:
    """Returns the names of the inputs of the recipe's network, in order."""
    return networks.family_of(models.get(recipe.model)).reads


def make_inputs(
    names: Sequence[str],
    encoded: Encoded,
    split: EncodedSplit,
    selected: Windows,
    lengths: Mapping[str, int],
) -> tuple[np.ndarray, ...]:
    """Returns the network's inputs for windows: (windows, tokens, ...) each, 0 in padding.

    Args:
      names: names of the inputs, as in `models.texts`.
      encoded: data set with the tables of ids.
      split: split of the windows.
      selected: the windows.
      lengths: padded numbers of tokens of "context" and "question".
    """
    contexts, rows = split.context_of_question[selected.questions], selected.questions
    part = (selected.firsts, selected.pasts)
    whole = (0 * rows, split.questions.lengths()[rows])
    types = {
        "context": _types(split.contexts, contexts, lengths["context"], part),
        "question": _types(split.questions, rows, lengths["question"], whole),
    }
    inputs = []
    for name in names:
        text, _, kind = name.partition("_")
        type_ids, inside = types[text]
        if kind == "matches":
            lemmas = (
                split.context_lemmas.padded(contexts, lengths["context"], part),
                split.question_lemmas.padded(rows, lengths["question"]),
            )
            inputs.append(_matches(encoded.lower_ids, types, lemmas))
        elif kind == "tags":
            inputs.append(split.context_tags.padded(contexts, lengths["context"], part))
        else:
            ids = encoded.character_ids if kind == "characters" else encoded.token_ids
            values = ids[type_ids]
            inputs.append(values * inside.reshape(inside.shape + (1,) * (values.ndim - 2)))
    return tuple(inputs)


def _matches(
    lower_ids: np.ndarray,
    types: Mapping[str, tuple[np.ndarray, np.ndarray]],
    lemmas: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Returns the match features of `models.texts`, float32 (rows, context, 4).

    For each token of the context: whether the question has the token; has it apart from case; has
    its lemma; and the token's frequency in the context.

    Args:
      lower_ids: lower-case id by type id.
      types: for "context" and "question", type ids and the mask of tokens, each (rows, length).
      lemmas: lemma ids of contexts and questions, each (rows, length).
    """
    (contexts, are_tokens), (questions, are_asked) = types["context"], types["question"]
    matches = np.zeros((*contexts.shape, 4), np.float32)
    for row, features in enumerate(matches):
        c, q = contexts[row][are_tokens[row]], questions[row][are_asked[row]]
        lower, length = lower_ids[c], len(c)
        features[:length, 0] = np.isin(c, q)
        features[:length, 1] = np.isin(lower, lower_ids[q])
        features[:length, 2] = np.isin(lemmas[0][row][:length], lemmas[1][row][: len(q)])
        _, distinct, counts = np.unique(lower, return_inverse=True, return_counts=True)
        features[:length, 3] = counts[distinct] / length
    return matches


def _types(
    source: Ragged, rows: np.ndarray, length: int, part: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns type ids of parts of texts, and the mask of tokens; each (rows, length)."""
    inside = np.arange(length) < (part[1] - part[0])[:, None]
    return source.padded(rows, length, part), inside


def signature(
    names: Sequence[str], batch: int | None = None, lengths: Mapping[str, int | None] | None = None
) -> tuple[tf.TensorSpec, ...]:
    """Returns the inputs' specs; `batch`, and `lengths` by text, are None where they vary."""
    lengths = lengths or {"context": None, "question": None}
    return tuple(
        tf.TensorSpec(
            (batch, lengths[name.partition("_")[0]], *texts.INPUTS[name].axes),
            texts.INPUTS[name].dtype,
        )
        for name in names
    )
