"""BERT's own layers: from a question and a passage to one sequence, and back to the passage.

Ids are int32, (batch, tokens), 0 being padding at the end of either text.
"""

import tensorflow as tf

from .text import no_mask

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")


@_register
class BertSequence(tf.keras.layers.Layer):
    """A question and a passage as BERT reads them: [CLS] question [SEP] passage [SEP].

    Inputs: ids [question, context], int32 (batch, tokens), 0 being padding at their ends. Output:
    ids, segments and places, int32 (batch, question + context + 3). Padding stays where it is, with
    id 0; places count what is no padding.

    Args:
      cls_id: id of [CLS].
      sep_id: id of [SEP].
    """

    supports_masking, compute_mask = True, no_mask

    def __init__(self, cls_id, sep_id, **kwargs):
        super().__init__(**kwargs)
        self.cls_id, self.sep_id = cls_id, sep_id

    def call(self, inputs):
        question, context = inputs
        one = tf.ones_like(context[:, :1])
        sep = one * self.sep_id
        ids = tf.concat([one * self.cls_id, question, sep, context, sep], 1)
        questions, contexts = (
            tf.reduce_sum(tf.cast(x > 0, x.dtype), 1, keepdims=True) for x in inputs
        )
        of_question = 1 + tf.range(tf.shape(question)[1])[None] * one
        of_context = questions + 2 + tf.range(tf.shape(context)[1])[None] * one
        places = [0 * one, of_question, questions + 1, of_context, questions + contexts + 2]
        first, second = tf.concat(places[:3], 1), tf.concat(places[3:], 1)
        segments = tf.concat([tf.zeros_like(first), tf.ones_like(second)], 1)
        return ids, segments, tf.concat([first, second], 1) * tf.cast(ids > 0, ids.dtype)

    def get_config(self):
        return {**super().get_config(), "cls_id": self.cls_id, "sep_id": self.sep_id}


@_register
class ContextSlice(tf.keras.layers.Layer):
    """[x (batch, places, width), question, context] to the passage's part: (.., context, width).

    Question and context are the ids of which `BertSequence` made the places.
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        x, question, context = inputs
        first = tf.shape(question)[1] + 2
        return x[:, first : first + tf.shape(context)[1]]

    def compute_output_shape(self, input_shape):
        return (*input_shape[2], input_shape[0][-1])
