"""Windows over long contexts, compared with tf-models-official's copy of google-research/bert."""

from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from official.nlp.data import squad_lib
from official.nlp.tools import tokenization

from dawnbench_tf import recipes
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.questions import encoding, spans, windows, wordpieces
from dawnbench_tf.data.questions.data import QuestionData
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.data.questions.windows import Merged
from dawnbench_tf.recipe import Questions
from dawnbench_tf.refusals import Refusal
from tests.data.images.test_pipeline import Shared

WORDS = "ada bruno carla dimitri elena farid greta hugo ines jonas".split()
PIECES = wordpieces.from_words(WORDS)
Result = namedtuple("Result", ["unique_id", "start_logits", "end_logits"])


def corpus(random, lengths, question_lengths):
    """Returns contexts and questions of the given lengths; the answer is the second word."""
    contexts = [" ".join(random.choice(WORDS, length)) for length in lengths]
    questions = []
    for number, (context, count) in enumerate(zip(contexts, question_lengths, strict=True)):
        first, answer, *_ = context.split()
        text = " ".join(random.choice(WORDS, count))
        questions.append(Question(str(number), text, number, ((answer, len(first) + 1),)))
    return Corpus(contexts, questions)


def form(length, stride):
    most = {"most_question_tokens": 6, "most_answer_tokens": 3}
    return Questions(tokenizer="wordpiece", sequence_length=length, document_stride=stride, **most)


def encoded(texts, settings):
    words = {}
    split = encoding.encode(texts, words, settings.tokenizer, pieces=PIECES)
    return encoding.assemble(split, split, texts, list(words), {}, PIECES, settings)


def theirs(texts, settings, tmp_path):
    """Returns tf-models-official's examples and features of the same questions."""
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[unused0]", *PIECES.trained]))
    examples = [
        squad_lib.SquadExample(q.id, q.text, texts.contexts[q.context].split())
        for q in texts.questions
    ]
    features = []
    squad_lib.convert_examples_to_features(
        examples,
        tokenization.FullTokenizer(str(vocabulary)),
        settings.sequence_length,
        settings.document_stride,
        settings.most_question_tokens,
        is_training=False,
        output_fn=lambda feature, is_padding: None if is_padding else features.append(feature),
        batch_size=1,
    )
    return examples, features


@pytest.mark.parametrize(("length", "stride"), [(24, 5), (24, 128), (40, 16), (16, 2), (200, 128)])
def test_windows_and_their_best_answers_are_those_of_tf_models_official(tmp_path, length, stride):
    """On random logits: equal ids in the windows, and equal texts after merging."""
    random = np.random.default_rng(length * stride)
    texts = corpus(random, [2, 9, 17, 30, 31, 75, 120], [1, 4, 6, 9, 2, 5, 3])
    settings = form(length, stride)
    data = encoded(texts, settings)
    tested = windows.build(data.test, settings)
    examples, features = theirs(texts, settings, tmp_path)
    assert len(features) == len(tested.questions)
    recipe = recipes.get("squad/bert_tiny", sequence_length=length, most_question_tokens=6)
    rows = QuestionData(recipe, data, None).examples()
    merged, results = Merged(tested, settings.most_answer_tokens), []
    for question in range(len(texts.questions)):
        contexts, questions = rows[question]
        indices = tested.find(question)
        logits = random.normal(size=(len(indices), 2, contexts.shape[1])).astype(np.float32)
        for i, row in enumerate(indices):
            context = contexts[i][contexts[i] > 0]
            ids = [3, *questions[i], 4, *context, 4]
            assert features[row].input_ids == ids + [0] * (length - len(ids))
            ends = np.full((2, length), -1e30)
            first = questions.shape[1] + 2
            ends[:, first : first + len(context)] = logits[i, :, : len(context)]
            logits[i, :, len(context) :] = -1e30
            results.append(Result(features[row].unique_id, *ends.tolist()))
        merged.add(indices, logits)
    wanted, _, _ = squad_lib.postprocess_output(
        examples, features, results, 1000, settings.most_answer_tokens, do_lower_case=True
    )
    answers = spans.answers(data, merged.spans)
    assert answers.texts == list(wanted.values())
    assert all(0 < probability <= 1 for probability in merged.probabilities)


Extent = namedtuple("Extent", "start length")


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=5), st.integers(13, 60), st.integers(1, 70)
)
def test_every_token_is_in_a_window_and_starts_in_just_one(lengths, length, stride):
    random = np.random.default_rng(0)
    texts = corpus(random, [n + 1 for n in lengths], [3] * len(lengths))
    settings = form(length, stride)
    split = encoding.encode(texts, {}, settings.tokenizer, pieces=PIECES)
    tested = windows.build(split, settings)
    merged = Merged(tested, 0)
    for question, context in enumerate(split.contexts.lengths()):
        indices = tested.find(question)
        assert (tested.questions[indices] == question).all()
        sizes = tested.lengths()[indices]
        assert (sizes <= length - 3 - 3).all() and (sizes > 0).all()
        starts = np.zeros(context, int)
        extents = [
            Extent(int(tested.firsts[row]), int(tested.pasts[row] - tested.firsts[row]))
            for row in indices
        ]
        for number, row in enumerate(indices):
            masked = merged._mask_starts(np.array([row]), np.zeros((1, 2, tested.lengths()[row])))
            own = masked[0, 0] == 0
            starts[tested.firsts[row] : tested.pasts[row]] += own
            positions = range(tested.firsts[row], tested.pasts[row])
            wanted = [squad_lib._check_is_max_context(extents, number, n) for n in positions]
            assert own.tolist() == wanted
        assert (starts == 1).all()


def test_training_sees_each_window_that_holds_the_answer():
    random = np.random.default_rng(1)
    texts = corpus(random, [5, 40, 80], [2, 2, 2])
    settings = form(25, 4)
    data = encoded(texts, settings)
    changes = {"sequence_length": 25, "document_stride": 4, "most_question_tokens": 6}
    changes |= {"batch_size": 1, "epochs": 1, "bucket_boundaries": (22,), "schedule": "constant"}
    recipe = recipes.get("squad/bert_tiny", **changes)
    batches = list(QuestionData(recipe, data, Placement(Shared())).training_batches())
    assert len(batches) == 3  # the second word is in the first window alone
    for (context, question), ends in batches:
        assert ends.numpy().tolist() == [[1, 1]] and question.shape == (1, 2)
        assert (context.numpy()[0, :2] > 0).all()


def test_all_of_a_generated_set_goes_through_as_wordpieces():
    recipe = recipes.get("squad/bert_tiny")
    data = qa_mini.generate(12, 6, seed=1, form=recipe.data)
    contexts, questions = QuestionData(recipe, data, None).examples()[0]
    assert contexts.min() > 4 and questions.min() > 4  # nothing is [UNK], or padding
    assert data.vocabulary.pieces and data.pretrained is None
    expected = [q.answers[0][0] for q in data.test_corpus.questions]
    assert spans.answers(data, data.test.spans.values).texts == expected


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("bert_tiny", {"sequence_length": 60}, "sequence_length=60: should be at least most_quest"),
        ("bert_tiny", {"sequence_length": 0}, "sequence_length=0: is required for --tokenizer=wor"),
        ("bert_tiny", {"pretrained": ""}, "pretrained: is required for --tokenizer=wordpiece"),
        ("bert_tiny", {"tokenizer": "glove", "sequence_length": 0}, "pretrained=.*: is for"),
        (
            "bert_tiny",
            {"pretrained": "uncased_L-2"},
            "pretrained=.*: is no published BERT; did you",
        ),
        ("drqa", {"document_stride": 64}, "document_stride=64: is for --tokenizer=wordpiece"),
        ("bert_tiny", {"tuned_words": 9}, "tuned_words=9: is for --tokenizer=glove, words, tree"),
        ("bert_tiny", {"word_vectors": "none"}, "word_vectors=none: is for --tokenizer=glove, "),
        ("bert_tiny", {"learned_words": False}, "learned_words=false: is for --tokenizer=glove"),
    ],
)
def test_fields_that_go_together_are_named(name, change, words):
    with pytest.raises(Refusal, match=f"^--{words}"):
        recipes.get(f"squad/{name}", **change)
