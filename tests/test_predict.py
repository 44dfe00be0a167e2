"""Questions to trained models: a reading task end to end, and the classes of images."""

import csv
import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from dawnbench_tf import machine, predict, recipes, runs
from dawnbench_tf.data import dataset, qa_mini
from dawnbench_tf.data.image_files import jpeg_index
from dawnbench_tf.data.images import augment, tested
from dawnbench_tf.data.questions import tokens
from dawnbench_tf.inference.reader import Answer, Reader
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import Task
from dawnbench_tf.train import train
from tests import test_library, warm

PASSAGE = "Ada has lived in Oslo since 1961. Hugo keeps a goose called Echo."


@pytest.fixture
def trained(trained_reader):
    (trained_reader / "passage.txt").write_text(PASSAGE)
    return trained_reader


def ask(home, *flags, model="run", question="Where does Ada live now?", python=None, input=""):
    arguments = (f"--model={model}", "--context_file=passage.txt", *flags)
    command = [*(python or warm.python()), "-m", "dawnbench_tf.predict", *arguments]
    command += [question] * bool(question)
    return subprocess.run(command, cwd=home, input=input, capture_output=True, text=True)


def test_a_run_leaves_rows_predictions_and_what_is_no_entry_yet(trained):
    said = (trained / "stderr").read_text()
    assert "reached f1Score" in (trained / "stdout").read_text() and "Traceback" not in said
    assert "PredictCost" not in said and "retracing" not in said
    predictions = json.loads((trained / "run/predictions.json").read_text())
    questions = qa_mini.load(recipes.get("qa_mini/bidaf")).test_corpus.questions
    assert list(predictions) == [q.id for q in questions]
    (row,) = (trained / "run/rows.tsv").read_text().splitlines()[1:]
    exact = np.mean([predictions[q.id].lower() == q.answers[0][0].lower() for q in questions])
    assert float(row.split("\t")[3]) == pytest.approx(exact, abs=0.03)  # rules are laxer a little
    (entry,) = (trained / "run/not_an_entry/qa_mini/train").glob("*.json")
    assert "f1Score never reached 0.75" in entry.read_text()


def test_the_reader_answers_out_of_the_passage(trained):
    done = ask(trained, python=[sys.executable])
    assert done.returncode == 0, done.stderr
    answer, likely, _, marked, others = done.stdout.splitlines()
    assert answer and answer in PASSAGE and 0 < float(likely.split()[1]) <= 1
    assert marked.replace(">>>", "").replace("<<<", "") == PASSAGE
    assert f">>>{answer}<<<" in marked and others.startswith("others: ")


def test_answers_share_no_word_and_the_first_is_the_most_probable(trained):
    done = ask(trained, "--json", "--count=4")
    values = json.loads(done.stdout)
    answers = [values, *values["others"]]
    spans = sorted((answer["begin"], answer["end"]) for answer in answers)
    assert len(answers) == 4 and all(a[1] <= b[0] for a, b in pairwise(spans))
    assert values["probability"] == max(answer["probability"] for answer in answers)
    assert all(PASSAGE[a["begin"] : a["end"]] == a["text"] for a in answers)


def test_questions_are_typed_one_after_another(trained):
    done = ask(trained, "--count=1", question="", input="Where does Ada live?\n\nWhat is Echo?\n")
    assert done.returncode == 0 and done.stdout.count("probability") == 2
    assert "question: " not in done.stderr  # which is for a terminal


def test_a_long_passage_is_cut_to_the_answer_s_surroundings():
    context = "a " * 500 + "Oslo" + " b" * 500
    shown = predict.show(context, Answer("Oslo", 1000, 1004, 0.5)).splitlines()[-1]
    assert shown.startswith("...") and shown.endswith("...") and "a >>>Oslo<<< b" in shown
    assert len(shown) == 2 * predict.AROUND + len("...>>>Oslo<<<...")


def test_a_stranger_s_text_is_printed_without_what_a_terminal_acts_on():
    context = "Ada\x1b[2J\tis\r\nin\x07 Os\u202elo\0 now."
    begin, end = context.index("Os"), context.index("\0 now") + 1
    text = predict.show(context, Answer(context[begin:end], begin, end, 0.5))
    bad = "\N{REPLACEMENT CHARACTER}"
    assert text.splitlines()[0] == f"Os{bad}lo{bad}"
    assert text.endswith(f"Ada{bad}[2J\tis\nin{bad} >>>Os{bad}lo{bad}<<< now.")


def test_a_reader_refuses_what_takes_all_memory_and_answers_with_the_best_words_left(
    trained, monkeypatch
):
    monkeypatch.setattr(machine, "free_gib", lambda: 0.5)
    text = PASSAGE * 1500  # 24,000 tokens, whose self-attention takes 2.3 GB a matrix
    reader = Reader(trained / "run")
    with pytest.raises(Refusal, match=r"the passage has 2\d,\d{3} tokens.* cut it to "):
        reader.answers(text, "Where does Ada live now?", 1)
    assert reader.answers(PASSAGE * 10, "Where does Ada live now?", 1)[0].text
    # The next answers are the best of the words that are left.
    begins, ends = zip(*tokens.offsets(PASSAGE), strict=True)
    count = len(begins)
    logits = np.random.default_rng(0).normal(size=(1, 2, count)).astype(np.float32)
    monkeypatch.setattr(reader, "_forward", lambda _: logits)
    answers = reader.answers(PASSAGE, "Where does Ada live?", 99)
    spans = [(i, j) for i in range(count) for j in range(i, count)]
    spans.sort(key=lambda span: -logits[0, [0, 1], span].sum())
    expected = []
    while spans:
        i, j = spans[0]
        expected.append((begins[i], ends[j]))
        spans = [span for span in spans if span[1] < i or j < span[0]]
    assert [(answer.begin, answer.end) for answer in answers] == expected
    for wrong in ({"count": 0}, {"count": 1, "most_words": -1}):
        with pytest.raises(ValueError, match="should be at least 1. Received: .*=(0|-1)"):
            reader.answers(PASSAGE, "Where does Ada live?", **wrong)
    # A combining accent is a token. It belongs to the answer that ends before it.
    logits = np.array([[[9, 0, 8], [9, 0, 8]]], np.float32)
    answers = reader.answers("Jose\u0301 owns", "Who?", 3)
    assert [answer.text for answer in answers] == ["Jose\u0301", "owns"]
    logits = np.array([[[0, 8, 9], [0, 8, 9]]], np.float32)
    answers = reader.answers("Jose\u0301s", "Who?", 3)  # and it is none alone
    assert [answer.text for answer in answers] == ["s", "Jose\u0301"]


def test_a_question_that_can_t_be_answered_is_no_output(trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    (tmp_path / "passage.txt").write_text(" ")
    done = ask(tmp_path, "--json", question="", input="Who?\n\nWhat?\n")
    assert (done.returncode, done.stdout) == (1, "") and "the passage is empty" in done.stderr
    done = ask(trained, "--csv", question=" ")
    assert (done.returncode, done.stdout) == (1, "") and "a question is empty" in done.stderr


def test_a_bad_passage_and_a_damaged_run_are_refused_in_a_line(trained, tmp_path):
    run, passage = shutil.copytree(trained / "run", tmp_path / "run"), tmp_path / "passage.txt"
    (run / "vocabulary.json").unlink()
    for content, words in (
        (None, "passage.txt: can't be read .No such file or directory"),
        (b"\xff\xfe\xfa", "passage.txt: is not UTF-8 text"),
        (PASSAGE.encode(), "vocabulary.json: can't be read"),
    ):
        if content is not None:
            passage.write_bytes(content)
        options = predict.Options(model=str(run), context_file=str(passage))
        with pytest.raises(Refusal, match=words):
            predict.main(options, ["Who?"])


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A run on JPEGs of two colours, and the folder of its images."""
    home = tmp_path_factory.mktemp("photos")
    draw = np.random.default_rng(0)
    for part, count in (("train", 8), ("val", 4)):
        for name, color in (("green", (20, 200, 20)), ("red", (200, 20, 20))):
            folder = home / "data" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = np.clip(draw.normal(color, 20, (40, 50, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.jpg")
    task = Task("colours", threshold=99, reader="folder", jpegs=True, image_size=32)
    recipe = recipes.get("own/photos", task=task, image_sizes=(32,), batch_size=4, epochs=3)
    options = RunOptions(data_dir=str(home / "data"), peak_tflops=1.0)
    train(recipe.with_values(schedule="constant"), options, home / "run")
    return home


def classify(home, *arguments):
    command = [*warm.python(), "-m", "dawnbench_tf.predict", f"--model={home / 'run'}", *arguments]
    return subprocess.run(command, cwd=home, capture_output=True, text=True)


def test_probabilities_are_the_model_s_for_the_test_images(photos, tmp_path):
    run = runs.read(photos / "run")
    opened = dataset.open(run.recipe, str(photos / "data"))
    model = run.model()
    paths = [photos / "data" / name for name in opened.splits.test.names]
    Image.open(paths[0]).convert("CMYK").save(tmp_path / "cmyk.jpg")  # read as the run reads it
    *images, cmyk = predict.predict(photos / "run", [*paths, tmp_path / "cmyk.jpg"])
    for image, example in zip(images, opened.examples(), strict=True):
        probabilities = tf.nn.softmax(model(*example)[0]).numpy()
        order = np.argsort(-probabilities)
        assert image.names == [opened.splits.classes[i] for i in order]
        assert image.probabilities == pytest.approx(probabilities[order], rel=1e-4)
    assert [image.turned for image in images] == [False] * 8
    split = jpeg_index.split(jpeg_index.index_files(tmp_path, ["cmyk.jpg"], [0]))
    logits = model(tested.prepare(split, run.recipe, "NHWC", np.arange(1)))
    assert cmyk.probabilities[0] == pytest.approx(float(tf.reduce_max(tf.nn.softmax(logits))))


def test_the_page_on_data_of_your_own_classifies_a_photo(photos, tmp_path):
    (tmp_path / "RUN").symlink_to(photos / "run")
    shutil.copy(photos / "data/val/red/1.jpg", tmp_path / "photo.jpg")
    code, _ = test_library.blocks("docs/own_data.md")
    _, name, probability = test_library.run(code, tmp_path).split()
    (image,) = predict.predict(photos / "run", tmp_path / "photo.jpg")
    assert (name, float(probability)) == (image.names[0], pytest.approx(image.probabilities[0]))


def test_every_format_is_read_and_a_folder_is_a_table(photos, tmp_path):
    source = Image.open(photos / "data/val/red/0.jpg")
    for suffix in ("png", "bmp", "webp", "gif"):
        source.save(tmp_path / f"photo.{suffix}")
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation
    source.save(tmp_path / "turned.jpg", exif=exif)
    done = classify(photos, "--csv", str(tmp_path))
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert Path(rows[0]["path"]).name == "photo.bmp" and len(rows) == 5
    assert list(rows[0]) == ["path", "turned", "class1", "probability1", "class2", "probability2"]
    assert sum(row["turned"] == "True" for row in rows) == 1
    first = classify(photos, "--count=1", str(tmp_path / "turned.jpg")).stdout.splitlines()
    assert "EXIF orientation is not applied" in first[0] and len(first) == 2
    values = json.loads(classify(photos, "--json", str(tmp_path / "photo.png")).stdout)
    assert sorted(values["names"]) == ["green", "red"]
    # Damaged images, and what is not read, are said; the others are answered.
    (tmp_path / "photo.png").write_bytes(b"x")
    (tmp_path / "a.webp").write_bytes((tmp_path / "photo.webp").read_bytes()[:99])
    (tmp_path / "below").mkdir()
    (tmp_path / "notes.txt").touch()
    done = classify(photos, "--csv", "--count=1", str(tmp_path))
    names = [Path(row["path"]).name for row in csv.DictReader(done.stdout.splitlines())]
    assert done.returncode == 1 and names == ["photo.bmp", "photo.gif", "photo.webp", "turned.jpg"]
    said, line = done.stderr.strip().splitlines()
    assert said.endswith(f": not read: 1 .txt, 1 folders in {tmp_path.name}"), said
    assert "a.webp: holds no" in line and "; " in line and "photo.png: holds no image" in line


def test_a_run_without_its_classes_is_refused(photos, tmp_path):
    with pytest.raises(ValueError, match="`count` should be at least 1. Received: count=0"):
        predict.predict(photos / "run", [], 0)
    run = shutil.copytree(photos / "run", tmp_path / "run")
    (run / "classes.json").write_text('{"classes": ["green"]}')
    with pytest.raises(Refusal, match=r"classes.json: should have 2 classes, has 1"):
        predict.predict(run, photos / "data/val/red/0.jpg")
    (run / "classes.json").unlink()
    opened = dataset.open(runs.read(run).recipe, str(photos / "data"))
    for read in (lambda: predict.predict(run, []), lambda: opened.check_saved(run)):
        with pytest.raises(Refusal, match="classes.json: can't be read|classes.json: is no file"):
            read()


def test_few_images_are_prepared_as_many_are(photos):
    opened = dataset.open(runs.read(photos / "run").recipe, str(photos / "data"))
    split, recipe = opened.splits.test, opened.recipe
    whole = tested.prepare(split, recipe, "NHWC", np.arange(30) % len(split.labels))
    few = tested.prepare(split, recipe, "NHWC", np.arange(3) % len(split.labels))
    np.testing.assert_array_equal(few, whole[:3])


def test_what_is_no_image_or_no_run_is_refused_in_a_line(photos, monkeypatch):
    monkeypatch.chdir(photos)
    passage = {"context_file": "run/run.json"}
    for arguments, options, words in (
        ([], {}, "no image: dawnbench predict --model="),
        (["nowhere.jpg"], {}, "nowhere.jpg: no such file; should be an image or a folder"),
        (["data"], {}, "data: holds no image; should have .jpeg, .jpg"),
        (["data"], {"json": True, "csv": True}, "--csv=true: and --json are two forms"),
        (["run/run.json"], {}, "run/run.json: holds no image that can be decoded"),
        (["Who?"], passage, "is a run of colours; should be one of a re"),
        (["data"], {"model": ""}, "^--model: is required"),
        (["data"], {"model": "data"}, "holds no run.json; should be the --output_dir of"),
        (["data"], {"model": "none"}, "^--model=none: is no folder; should be the --output_dir"),
        (["Who?"], {"model": "none", **passage}, "^--model=none: is no folder"),
    ):
        with pytest.raises(Refusal, match=words):
            predict.main(predict.Options(**{"model": "run", **options}), arguments)


def test_images_of_a_task_of_one_size_are_read_as_the_run_reads_them_or_resized(
    trained_digits, tmp_path
):
    run = runs.read(trained_digits / "run")
    digits, model = dataset.open(run.recipe), run.model()
    pixels = digits.splits.test.images(slice(1))[0], np.zeros((60, 90, 3), np.uint8)
    paths = tmp_path / "digit.png", tmp_path / "black.png"
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    digit, image = predict.predict(trained_digits / "run", paths, 10)
    probabilities = np.sort(tf.nn.softmax(model(*digits.examples()[0])[0]))[::-1]
    assert digit.probabilities == pytest.approx(probabilities, rel=1e-5)
    standardize = augment.standardizer(run.recipe, "NHWC")
    logits = model(standardize(np.zeros((1, 32, 32, 3), np.uint8)))
    assert image.names == [str(i) for i in np.argsort(-logits[0], kind="stable")]
    assert sum(image.probabilities) == pytest.approx(1)
