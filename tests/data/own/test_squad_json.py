"""Questions of one's own in SQuAD v1.1's JSON."""

import json

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset, qa_mini, squad
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import find_task
from tests.data.own.conftest import loaded


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def recipe(**changes):
    base = {"word_vectors": "none", "batch_size": 4, "threshold": 0.5}
    return recipes.get("own/questions", task=find_task("squad_json", "manuals"), **base | changes)


def write(folder, **contexts):
    """Writes NAME.json with a number of contexts of six questions each."""
    folder.mkdir(exist_ok=True)
    for name, count in contexts.items():
        (folder / f"{name}.json").write_bytes(qa_mini.write_json(count, 0, name))
    return str(folder)


@pytest.mark.parametrize("test", ["dev", "validation"])
def test_two_files_are_training_and_test(tmp_path, test):
    completed, encoded = loaded(recipe(), write(tmp_path / "d", **{"train": 5, test: 2}))
    assert (completed.task_row.train_examples, completed.task_row.test_examples) == (30, 12)
    assert len(encoded.vectors) == 0 and len(encoded.vocabulary.trained) > 20  # all are learned


def test_one_file_is_divided_by_passages(tmp_path):
    shared = recipe(validation_share=0.4, seed=3)
    completed, encoded = loaded(shared, write(tmp_path / "d", train=10) + "/train.json")
    assert (completed.task_row.train_examples, completed.task_row.test_examples) == (36, 24)
    content = json.loads((tmp_path / "d/train.json").read_text())
    contexts = {p["context"] for p in content["data"][0]["paragraphs"]}
    assert len(set(encoded.test_corpus.contexts) & contexts) == 4
    with pytest.raises(Refusal, match="--validation_share=0.4: divides passages; the file has one"):
        loaded(shared, write(tmp_path / "one", train=1))


def test_a_passage_that_is_there_twice_is_in_one_set(tmp_path):
    folder = tmp_path / "d"
    write(folder, train=6)
    content = json.loads((folder / "train.json").read_text())
    (article,) = content["data"]
    pairs = ((p["context"], qa) for p in article["paragraphs"] for qa in p["qas"])
    article["paragraphs"] = [{"context": context, "qas": [qa]} for context, qa in pairs]
    (folder / "train.json").write_text(json.dumps(content))
    completed, _ = loaded(recipe(validation_share=0.5), str(folder))
    assert (completed.task_row.train_examples, completed.task_row.test_examples) == (18, 18)


def test_a_part_of_the_training_questions_makes_the_vocabulary(tmp_path):
    path = write(tmp_path / "d", train=10, dev=2)
    completed, encoded = loaded(recipe(train_examples=7), path)
    assert completed.task_row.train_examples == len(encoded.train.context_of_question) == 7
    assert completed.whole_task.train_examples == encoded.whole == 60
    whole = dataset.open(recipe(), path).splits
    assert len(encoded.vocabulary.trained) < len(whole.vocabulary.trained)


def test_other_answers_than_the_run_had_are_refused(tmp_path):
    path = write(tmp_path / "d", train=5, dev=2)
    (run := tmp_path / "run").mkdir()
    dataset.open(recipe(), path).save(run)
    dataset.open(recipe(), path).check_saved(run, trains=True)
    for file, name in (("train", "training"), ("dev", "test")):
        content = json.loads((whole := tmp_path / f"d/{file}.json").read_text())
        first, second, *_ = content["data"][0]["paragraphs"][0]["qas"]
        first["answers"] = second["answers"]
        whole.write_text(json.dumps(content))
        other = dataset.open(recipe(), path)
        with pytest.raises(Refusal, match=f"^--data_dir: holds other {name} questions than"):
            other.check_saved(run, trains=True)
        if file == "train":
            other.check_saved(run)  # for inference
            write(tmp_path / "d", train=5)
    (run / "questions.json").unlink()  # earlier releases wrote none
    other.check_saved(run, trains=True)


def test_a_passage_without_a_word_is_named(tmp_path):
    write(tmp_path / "d", train=5, dev=1)
    content = json.loads((file := tmp_path / "d/dev.json").read_text())
    answers = [{"text": "\u200b", "answer_start": 0}]
    question = {"id": "odd", "question": "Who?", "answers": answers}
    content["data"][0]["paragraphs"].append({"context": "\u200b", "qas": [question]})
    file.write_text(json.dumps(content))
    pieces = "[PAD] [UNK] [CLS] [SEP] who ?".replace(" ", "\n")
    corpora = [squad.read(tmp_path / f"d/{name}.json") for name in ("train", "dev")]
    (tmp_path / "vocab.txt").write_text(pieces.replace("[UNK]", "unused\n[UNK]"))
    with pytest.raises(Refusal, match="^--data_dir: the passage of question 'odd' has no word"):
        squad.encode(recipes.get("squad/bert_tiny"), *corpora, tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("contexts", "changes", "message"),
    [
        ({"train": 2}, {}, "--validation_share=0.0: should be over 0: it divides"),
        ({"train": 2, "dev": 1}, {"validation_share": 0.2}, "dev.json is the test; leave this out"),
        ({"dev": 1}, {}, r"should have one train\*.json and one dev\*.json; has dev.json"),
        ({"train": 2, "dev": 1}, {"word_vectors": "glove.6B.100d"}, "holds no glove.6B.100d.txt"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, contexts, changes, message):
    with pytest.raises(Refusal, match=message):
        dataset.open(recipe(**changes), write(tmp_path / "d", **contexts))
