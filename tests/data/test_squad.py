"""SQuAD from small files in the published format: words, answers, GloVe, the cache."""

import json
import re
import sys
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import squad
from dawnbench_tf.data.questions import encoding, squad_json, tokens, vocabulary
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import session

GLOVE = "glove.6B.100d.txt"
TEXT = "Ada Lovelace (1815-1852) wrote notes. Ada didn't know Lima."


def question(name, text, start, text_of_question="Who wrote notes?"):
    answers = [{"text": text, "answer_start": start}]
    return {"id": name, "question": text_of_question, "answers": answers}


def write(path, *qas, context=TEXT):
    data = [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}]
    path.write_text(json.dumps({"version": "1.1", "data": data}))


def glove(path, words, size=100):
    lines = ([word, *(f"{i}.{j % 10}" for j in range(size))] for i, word in enumerate(words))
    path.write_text("".join(" ".join(line) + "\n" for line in lines))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "squad data é"
    home.mkdir()
    write(home / squad.TRAIN, question("a", "Ada Lovelace", 0), question("b", "1852", 19))
    write(home / squad.TEST, question("c", "Lima", 54, "What did Ada not know?"))
    glove(home / GLOVE, ["ada", "notes", "zebra", "lima"])
    return home


def load(folder, recipe="squad/bidaf_tf", **changes):
    return squad.load(recipes.get(recipe, **changes), str(folder))


def words_of(split, row):
    return split.contexts.values[split.spans.values[row, 0] : split.spans.values[row, 1] + 1]


def test_answers_come_back_from_their_words(folder):
    data = load(folder)
    for split, expected in ((data.train, ["Ada Lovelace", "1852"]), (data.test, ["Lima"])):
        for (first, last), text in zip(split.spans.values, expected, strict=True):
            begin, end = split.offsets.values[first, 0], split.offsets.values[last, 1]
            assert TEXT[begin:end] == text
        assert not split.alignments.any()
    assert data.vocabulary.fixed == ["ada", "lima", "notes"]
    assert data.vectors.shape == (3, 100) and data.vectors[1, 4] == pytest.approx(3.4)
    number = data.token_ids[data.train.contexts.values[0]]  # Ada, whatever its case
    assert data.vocabulary.fixed[number - 2 - len(data.vocabulary.trained)] == "ada"


def test_answers_that_are_off_are_counted_and_none_is_dropped(folder, capsys):
    write(
        folder / squad.TRAIN,
        question("a", "Ada Lovelace", 3),  # moved
        question("b", "185", 19),  # ends inside a word
        question("c", "Turing", 0),  # nowhere
        question("d", "", 0),
    )
    data = load(folder)
    assert list(data.train.alignments) == [encoding.MOVED, encoding.CUT, *[encoding.NOWHERE] * 2]
    said = capsys.readouterr().err
    assert "squad train: 4 answers; 1 end inside a word, 1 were moved" in said
    assert "2 are empty or nowhere in the passage (not trained on)" in said
    assert data.train.spans.values[2:].tolist() == [[-1, -1]] * 2
    assert len(data.train.context_of_question) == 4


def test_the_cache_gives_the_same_and_is_rebuilt_when_damaged_or_stale(folder, monkeypatch, capsys):
    first = load(folder)
    (cache,) = (folder.parent / "cache/dawnbench_tf").iterdir()
    monkeypatch.setattr(squad, "_tokenize", lambda *_: pytest.fail("made again"))
    np.testing.assert_equal(load(folder)[:], first[:])
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    cache.write_bytes(cache.read_bytes()[:-500])  # half of it
    np.testing.assert_equal(load(folder)[:], first[:])
    write(folder / squad.TRAIN, question("z", "notes", 31))
    assert len(load(folder).train.context_of_question) == 1  # other content, other key
    assert len(list(cache.parent.iterdir())) == 2
    glove(folder / GLOVE, ["notes"])  # other vectors, other key
    assert load(folder).vocabulary.fixed == ["notes"]


def test_glove_may_be_in_its_zip(folder):
    plain = load(folder).vectors
    with zipfile.ZipFile(folder / "glove.6B.zip", "w") as archive:
        archive.writestr(GLOVE, (folder / GLOVE).read_text() + " \n\n")  # blank lines say nothing
    (folder / GLOVE).unlink()
    np.testing.assert_array_equal(load(folder).vectors, plain)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("ada " + "x " * 100 + "\n", ":1: holds what is no number"),
        ("ada" + " 1" * 100 + "\nlima 1\n", ":2: should be a word and 100 finite numbers, found 1"),
        ("zebra" + " 1" * 100 + "\n", "has none of the data's words"),
        ("ada" + " 1" * 300 + "\n", "found 300; glove.6B.100d.txt is what the recipe takes"),
        ("ada" + " nan" * 100 + "\n", "finite numbers"),
    ],
)
def test_damaged_vectors_are_refused_in_one_line(folder, lines, words):
    (folder / GLOVE).write_text(lines)
    with pytest.raises(Refusal, match=re.escape(words)) as error:
        load(folder)
    assert "\n" not in str(error.value)


CASED = {"word_vectors": "glove.840B.300d", "tuned_words": 1, "learned_words": False}


def test_cased_vectors_learn_on_where_questions_have_them_most(folder):
    """Lines whose word contains spaces, as in glove.840B.300d, are skipped."""
    path = folder / "glove.840B.300d.txt"
    glove(path, ["Ada", "ada", "wrote", "Lima", "notes", "at name@x.org", ". . .", "notes x"], 300)
    data = load(folder, **CASED)
    assert data.vocabulary.trained == ["notes"]  # twice in training's questions, as is "wrote"
    assert data.vocabulary.fixed == ["Ada", "Lima", "wrote"] and data.vocabulary.cased
    assert data.tuned.shape == (1, 300) and data.tuned[0, 3] == pytest.approx(4.3)
    assert data.vectors.shape == (3, 300) and data.vectors[0, 3] == pytest.approx(0.3)
    ids, _ = data.vocabulary.ids(["ada", "Ada", "notes"])
    assert ids.tolist() == [vocabulary.UNKNOWN, 3, 2]
    learned = load(folder, **{**CASED, "word_vectors": "none"}).vocabulary
    assert {"ada", "lima", "notes"} < {*learned.trained} and not learned.fixed


def test_files_of_another_number_are_for_runs_that_begin(folder):
    recipe, options = recipes.get("squad/bidaf_tf", batch_size=1), RunOptions(data_dir=str(folder))
    arguments = recipe, options, Clock(), tf.distribute.get_strategy()
    data = session.prepare(*arguments)
    assert data.recipe.task_row.train_examples == len(data.splits.train.context_of_question) < 9
    with pytest.raises(Refusal, match="squad train: should hold 87599 questions"):
        session.prepare(*arguments, epochs_done=1)


def test_a_bert_s_pieces_are_its_own_and_its_weights_are_named(folder):
    name = "uncased_L-2_H-128_A-2"
    with pytest.raises(Refusal, match=f"holds no folder {name}"):
        load(folder, "squad/bert_tiny")
    (folder / name).mkdir()
    (folder / name / "bert_model.ckpt.index").touch()
    pieces = ["[UNK]", "[CLS]", "[SEP]", "ada", "love", "##lace", "notes", "1852", "lima"]
    (folder / name / "vocab.txt").write_text("\n".join(["[PAD]", "[unused0]", *pieces]))
    for _ in range(2):  # made, and from the cache
        data = load(folder, "squad/bert_tiny")
        assert data.vocabulary.trained == pieces and data.vocabulary.pieces
        assert data.pretrained == folder / name / "bert_model.ckpt.index"
        assert data.token_ids[words_of(data.train, 0)].tolist() == [5, 6, 7]
        assert data.token_ids[words_of(data.train, 1)].tolist() == [9]


def test_fasttext_s_first_line_is_no_word(folder):
    path = folder / "crawl-300d-2M.vec"
    glove(path, ["Ada", "2"], 300)
    path.write_text("2 300\n" + path.read_text())
    data = load(folder, tokenizer="words", word_vectors="crawl-300d-2M")
    assert data.vocabulary.fixed == ["Ada"] and data.vectors[0, 2] == pytest.approx(0.2)


def test_all_that_is_missing_is_named_at_once_with_what_is_at_hand(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)  # not installed
    tokens._pipeline.cache_clear()
    (folder / squad.TRAIN).unlink()
    (folder / squad.TEST).unlink()
    settings = {"tokenizer": "spacy", "word_vectors": "glove.840B.300d"}
    with pytest.raises(Refusal) as refused:
        load(folder, **settings)
    line = str(refused.value)
    for words in (
        "holds no glove.840B.300d.txt or glove.840B.300d.zip",
        "or train with --word_vectors=glove.6B.100d, which it holds",
        "train-v1.1.json: can't be read",
        "dev-v1.1.json: can't be read",
        "--tokenizer=spacy: spaCy is not installed; pip install spacy, or train with "
        "--tokenizer=glove",
    ):
        assert words in line, words
    for data_dir, start in (("", ": squad needs one"), ("none", "=none: is no folder")):
        with pytest.raises(Refusal, match=f"--data_dir{start}; .*840B.300d.*--tokenizer=glove"):
            load(data_dir, **settings)


def test_a_passage_of_100_000_characters_is_read(folder):
    write(folder / squad.TEST, question("c", "Lima", 54), context=TEXT + " word" * 20_000)
    assert load(folder).test.contexts.lengths()[0] > 20_000


def test_tfds_s_form_gives_the_same(folder):
    parsed = squad_json.parse("f", (folder / squad.TRAIN).read_bytes())

    class Dataset:
        def as_numpy_iterator(self):
            for q in parsed.questions:
                yield {
                    "context": parsed.contexts[q.context].encode(),
                    "question": q.text.encode(),
                    "id": q.id.encode(),
                    "answers": {
                        "text": np.array([text.encode() for text, _ in q.answers], object),
                        "answer_start": np.array([start for _, start in q.answers]),
                    },
                }

    assert squad._convert_split(Dataset()) == parsed
