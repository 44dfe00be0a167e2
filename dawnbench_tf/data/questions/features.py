"""The network's inputs for windows: ids of tokens and characters, match features, tags."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
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
    """Returns the network's inputs for windows: (windows, tokens, ...) each, 0 in padding."""
    # `names` are those of `models.texts`, `lengths` the padded numbers of tokens of "context" and
    # "question".
    contexts, rows = split.context_of_question[selected.questions], selected.questions
    part = (selected.firsts, selected.pasts)
    inputs = []
    for name in names:
        text, _, kind = name.partition("_")
        if kind == "matches":
            inputs.append(_matches(encoded.lower_ids, split, selected, lengths["context"]))
        elif kind == "tags":
            inputs.append(split.context_tags.padded(contexts, lengths[text], part))
        else:
            ids = encoded.character_ids if kind == "characters" else encoded.token_ids
            if text == "context":
                inputs.append(split.contexts.padded(contexts, lengths[text], part, ids))
            else:
                inputs.append(split.questions.padded(rows, lengths[text], table=ids))
    return tuple(inputs)


def _matches(
    lower_ids: np.ndarray, split: EncodedSplit, selected: Windows, length: int
) -> np.ndarray:
    """Returns the match features of `models.texts`, float32 (windows, length, 4)."""
    # For each token of the context: whether the question has the token; has it apart from case; has
    # its lemma; and the token's frequency in the context.
    matches = np.zeros((len(selected.questions), length, 4), np.float32)
    for features, question, first, past in zip(matches, *selected, strict=True):
        context, words = split.context_of_question[question], split.questions.row(question)
        types = split.contexts.row(context)[first:past]
        lemmas, lower = split.context_lemmas.row(context)[first:past], lower_ids[types]
        _, distinct, counts = np.unique(lower, return_inverse=True, return_counts=True)
        features[: len(types)] = np.stack(
            [
                np.isin(types, words),
                np.isin(lower, lower_ids[words]),
                np.isin(lemmas, split.question_lemmas.row(question)),
                counts[distinct] / len(types),
            ],
            axis=1,
        )
    return matches


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
