"""BERT's input sequence: joins question and passage, and slices the passage out again.

Token ids are int32, (batch, tokens); id 0 is padding, at the end of either text.
"""

from typing import Any

import tensorflow as tf

from .registration import register
from .text import Unmasked


@register
class BertSequence(Unmasked):
    """BERT's input for a question and a passage: [CLS] question [SEP] passage [SEP].

    Inputs: ids [question, context], int32 (batch, tokens); id 0 is padding, at the end of each.
    Output: (ids, segments, positions), int32 (batch, question + context + 3). Padding stays within
    the sequence, with id 0 and position 0; positions count the other tokens.

    Args:
      cls_id: token id of [CLS].
      sep_id: token id of [SEP].
    """

    def __init__(self, cls_id: int, sep_id: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cls_id, self.sep_id = cls_id, sep_id

    def call(self, inputs: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        question, context = inputs
        one = tf.ones([tf.shape(context)[0], 1], context.dtype)
        sep = one * self.sep_id
        ids = tf.concat([one * self.cls_id, question, sep, context, sep], 1)
        # Lengths without padding, (batch, 1).
        question_length, context_length = (
            tf.reduce_sum(tf.cast(x > 0, x.dtype), 1, keepdims=True) for x in inputs
        )
        # A token's position is its index in [CLS] question [SEP] passage [SEP] without padding.
        question_positions = 1 + tf.range(tf.shape(question)[1])[None] * one
        context_positions = question_length + 2 + tf.range(tf.shape(context)[1])[None] * one
        last = question_length + context_length + 2
        first = tf.concat([0 * one, question_positions, question_length + 1], 1)
        second = tf.concat([context_positions, last], 1)
        segments = tf.concat([tf.zeros_like(first), tf.ones_like(second)], 1)
        return ids, segments, tf.concat([first, second], 1) * tf.cast(ids > 0, ids.dtype)


@register
class ContextSlice(Unmasked):
    """Slices the passage's tokens out of a sequence of `BertSequence`.

    Inputs: [x (batch, question + context + 3, width), question ids, context ids]; the ids are the
    inputs of `BertSequence`. Output: (batch, context, width).
    """

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        x, question, context = inputs
        first = tf.shape(question)[1] + 2
        return x[:, first : first + tf.shape(context)[1]]
