"""Loading runs for inference, whatever precision they were trained in."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes, run_folder
from dawnbench_tf.data import dataset
from dawnbench_tf.data.questions import encoding
from dawnbench_tf.inference import serving
from dawnbench_tf.inference.reader import Reader
from dawnbench_tf.machine import Machine
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import checkpoints, fitting
from dawnbench_tf.tta import TimeToAccuracy

MACHINE = Machine("2 CPU", "2cpu", {"python": "3.11"})
DIGITS = replace(recipes.get("digits/resnet8"), synthetic="decoded")


def save(folder, recipe):
    """Writes a run's folder with a checkpoint of an untrained model; returns the model."""
    claim = run_folder.claim(folder, recipe)
    model = fitting.build(dataset.open(recipe))
    timer = TimeToAccuracy(0.98)
    timer.restore({"rows": [], "step": 1, "epochs": 1})
    checkpoints.Saver(claim, model, timer, MACHINE).on_epoch_end(0)
    return model


def test_a_run_of_a_gpu_s_float16_is_served_on_a_cpu(tmp_path):
    trained = save(tmp_path, replace(DIGITS, precision="mixed_float16"))
    loaded = serving.load(tmp_path)
    assert loaded.data.recipe.precision == "mixed_float16"
    served = loaded.served.build("float32")
    for ours, theirs in zip(served.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert served(loaded.served.examples[0][0]).dtype == tf.float32


def test_batches_hold_the_examples_in_order_and_repeat_them_where_they_are_few(tmp_path):
    save(tmp_path, DIGITS)
    served = serving.load(tmp_path).served
    batches = serving.with_batches(served, 4, max_batches=3).examples
    assert [batch.shape for (batch,) in batches] == [(4, 32, 32, 3)] * 3
    images = [example for (example,) in served.examples[:12]]
    np.testing.assert_array_equal(np.vstack([batch for (batch,) in batches]), np.vstack(images))
    whole = serving.with_batches(served, 1, max_batches=3).calibration
    assert len(whole) == serving.CALIBRATION
    ((many,),) = serving.with_batches(served, 600, max_batches=3).examples  # of 500 in all
    np.testing.assert_array_equal(many[:100], many[500:])


def bert(**changes):
    """The smallest published BERT on generated passages that need several windows."""
    changes = {"sequence_length": 64, "document_stride": 20, "most_question_tokens": 30, **changes}
    changes |= {"task": "qa_mini", "synthetic": "decoded", "bucket_boundaries": (61,)}
    return recipes.get("squad/bert_tiny", **changes)


def test_a_bert_reads_a_long_text_in_windows_and_its_best_answer_counts(tmp_path):
    recipe = bert(most_answer_tokens=4)
    model, data = save(tmp_path, recipe), dataset.open(recipe)
    data.save(tmp_path)
    splits, question = data.splits, "Who paid 15 dollars?"
    text = " ".join(splits.test_corpus.contexts[:9])
    answer = Reader(tmp_path)(text, question)
    assert text[answer.begin : answer.end] == answer.text and 0 < answer.probability < 1
    alone = encoding.encode_question(text, question, splits.vocabulary, recipe.data)
    (example,) = dataset.from_splits(recipe, alone).examples()
    assert len(example[0]) > 16  # more than are read at once
    logits = model(list(example), training=False).numpy()
    (wanted,) = dataset.from_splits(recipe, alone).join([logits]).texts
    assert answer.text == wanted


def test_weights_of_another_bert_are_one_line(tmp_path):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    recipe = bert()
    splits = dataset.open(recipe).splits._replace(pretrained=weights)
    words = "--pretrained=uncased_L-2_H-128_A-2: .* of bert_tiny_span: it has no embeddings/word"
    with pytest.raises(Refusal, match=words) as error:
        fitting.build(dataset.from_splits(recipe, splits))
    assert "\n" not in str(error.value)


def test_another_task_is_refused(tmp_path):
    run_folder.claim(tmp_path, DIGITS)
    with pytest.raises(Refusal, match="--task=squad: .* holds a run of digits"):
        serving.load(tmp_path, task="squad")
