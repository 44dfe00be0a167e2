"""Batches of questions: every question, in its bucket, equal for any number of replicas."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.questions import data as question_data
from dawnbench_tf.data.questions import spans, tokens
from dawnbench_tf.data.questions.data import QuestionData
from dawnbench_tf.refusals import Refusal
from tests.data.images.test_pipeline import Shared

DATA = qa_mini.generate(12 * qa_mini.QUESTIONS, 5 * qa_mini.QUESTIONS, seed=1)
RECIPE = recipes.get("qa_mini/bidaf", batch_size=8, epochs=2, bucket_boundaries=(55, 90))


def buckets(data, recipe):
    return question_data._training_windows(data, recipe)[1]


def opened(shared=None, data=DATA, recipe=RECIPE):
    return QuestionData(recipe, data, Placement(shared or Shared()))


def train(shared=None, recipe=RECIPE, **kwargs):
    batches = opened(shared, recipe=recipe).training_batches(**kwargs)
    return [[np.asarray(x) for x in tf.nest.flatten(batch)] for batch in batches]


def test_an_epoch_shows_every_question_and_pads_to_its_bucket():
    batches = train(first_epoch=1)
    assert len(batches) == opened().steps_per_epoch
    assert {batch[0].shape[1] for batch in batches} == {55, 90}
    shown = Counter()
    for words, letters, questions, _, ends in batches:
        assert letters.shape == (*words.shape, 16) and len(words) == 8
        assert not letters[words == 0].any()
        length = (words > 0).sum(1)
        assert length.max() <= words.shape[1] and np.all(ends[:, 1] < length)
        rows = zip(words, questions, ends, strict=True)
        shown.update((*a[a > 0], -1, *b[b > 0], *c) for a, b, c in rows)
    assert len(shown) >= 70  # of 72, should two be alike


def test_the_global_batch_is_the_same_however_it_is_shared():
    whole, workers = train(), [train(Shared(4, 2, index)) for index in range(2)]
    for step, batch in enumerate(whole):
        parts = [worker[step * 2 + i] for worker in workers for i in range(2)]
        for index, value in enumerate(batch):
            np.testing.assert_array_equal(np.concatenate([part[index] for part in parts]), value)


def test_epochs_differ_and_follow_from_the_seed():
    once = train()
    np.testing.assert_equal(train(), once)
    epochs = zip(once[: len(once) // 2], once[len(once) // 2 :], strict=True)
    assert not all(np.array_equal(a[0], b[0]) for a, b in epochs)


def test_every_test_answer_finds_its_question():
    shared = Shared(replicas=2)
    inputs = iter(opened(shared).test_batches(8))
    outputs = []
    for rows, lengths in opened(shared)._test_rows(8):
        assert sum(len(next(inputs)[0]) for _ in range(2)) == len(rows)
        logits = np.zeros((len(rows), 2, lengths["context"]), np.float32)
        gold = DATA.test.spans.values[rows]  # one answer each
        logits[np.arange(len(rows)), 0, gold[:, 0]] = 1
        logits[np.arange(len(rows)), 1, gold[:, 1]] = 1
        outputs.append(logits)
    assert not [*inputs]
    answers = opened(shared).collect(outputs, 8)
    perfect = {"f1Score": 1.0, "exactMatch": 1.0, "seedF1": 1.0}
    assert spans.score(answers, DATA) == perfect
    predicted = spans.predictions(answers, DATA)
    assert predicted[DATA.test_corpus.questions[3].id] == answers.texts[3]


def test_matches_are_what_a_reader_of_the_texts_would_say():
    """Features: the token as written; in lower case (twice, without lemmas); its frequency."""
    corpus = DATA.test_corpus
    inputs = opened(recipe=replace(RECIPE, model="drqa")).examples()
    for row, question in enumerate(corpus.questions):
        words, matches, tags, _ = inputs[row]
        texts = corpus.contexts[question.context], question.text
        context, asks = ([t[a:b] for a, b in tokens.offsets(t)] for t in texts)
        lower, asks_lower = [w.lower() for w in context], [w.lower() for w in asks]
        wanted = [
            [w in asks, v in asks_lower, v in asks_lower, lower.count(v) / len(lower)]
            for w, v in zip(context, lower, strict=True)
        ]
        assert words.shape == (1, len(context)) and not tags.any()
        np.testing.assert_allclose(matches[0], wanted, rtol=1e-6)


def test_an_answer_has_as_many_tokens_as_the_recipe_allows():
    form = replace(DATA.form, most_answer_tokens=2)
    logits = np.zeros((1, 2, DATA.test.contexts.lengths().max()), np.float32)
    logits[0, [0, 1, 1], [1, 7, 2]] = 5, 6, 4  # from 1 to 7, or to 2
    outputs = [logits] * len(DATA.test.context_of_question)
    for data, ends in ((DATA, [1, 7]), (DATA._replace(form=form), [1, 2])):
        assert opened(data=data).join(outputs).spans.tolist() == [ends] * len(outputs)


def test_a_long_passage_is_cut_nowhere_in_the_test():
    data = DATA._replace(test=LONG)
    batches = opened(data=data)._test_rows(500)
    sizes = [(len(rows), lengths["context"]) for rows, lengths in batches]
    assert max(length for _, length in sizes) == 50_000
    assert all(rows == 1 or rows * length <= 24_000 for rows, length in sizes)


class LONG:
    contexts = DATA.test.contexts._replace(bounds=np.array([0, 100, 500, 20_000, 70_000]))
    questions = DATA.test.questions._replace(bounds=np.arange(201) * 5)
    context_of_question = np.repeat([0, 1, 2, 3], 50)


def test_what_has_no_place_or_is_too_long_is_not_trained_on():
    spans, questions = DATA.train.spans, DATA.train.questions
    values = spans.values.copy()
    values[:10] = -1  # ten answers are nowhere
    changed = DATA._replace(train=DATA.train._replace(spans=spans._replace(values=values)))
    rows = np.concatenate(buckets(changed, RECIPE))
    assert sorted(rows) == list(range(10, 72))
    long = questions._replace(bounds=questions.bounds + 31 * (np.arange(73) > 71))  # the last one
    changed = DATA._replace(train=DATA.train._replace(questions=long))
    assert 71 not in np.concatenate(buckets(changed, RECIPE))


def test_no_question_in_any_bucket_is_refused():
    text = "no question of at most 1 tokens has its answer in the first 1 tokens"
    data = replace(RECIPE.data, bucket_boundaries=(1,), most_question_tokens=1)
    with pytest.raises(Refusal, match=f"--bucket_boundaries=1: {text}"):
        opened(recipe=replace(RECIPE, data=data)).steps_per_epoch  # noqa: B018


def test_a_context_longer_than_the_last_boundary_is_cut_as_the_seed_s_was():
    short = replace(RECIPE, data=replace(RECIPE.data, bucket_boundaries=(20,)))
    batches = train(recipe=short)
    assert all(batch[0].shape[1] == 20 and batch[0].all() for batch in batches)  # no padding
    assert all(batch[-1].max() < 20 for batch in batches)  # each answer is still there
    spans = DATA.train.spans.values[DATA.train.spans.bounds[:-1]]
    (rows,) = buckets(DATA, short)
    assert len(rows) == (spans[:, 1] < 20).sum() < len(spans)
