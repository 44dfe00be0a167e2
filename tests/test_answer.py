"""A reading task end to end: a short training, its entry, and questions to the model."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dawnbench_tf import answer, machine
from dawnbench_tf.data import qa_mini
from dawnbench_tf.inference.reader import Answer
from dawnbench_tf.refusals import Refusal
from tests import warm

PASSAGE = "Ada has lived in Oslo since 1961. Hugo keeps a goose called Echo."


@pytest.fixture
def trained(trained_reader):
    (trained_reader / "passage.txt").write_text(PASSAGE)
    return trained_reader


def ask(home, model="run", question="Where does Ada live now?", python=None):
    arguments = (f"--model={model}", "--context_file=passage.txt", f"--question={question}")
    command = [*(python or warm.python()), "-m", "dawnbench_tf.answer", *arguments]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)


def test_a_run_leaves_rows_predictions_and_what_is_no_entry_yet(trained):
    said = (trained / "stderr").read_text()
    assert "reached f1Score" in (trained / "stdout").read_text() and "Traceback" not in said
    assert "PredictCost" not in said and "retracing" not in said
    predictions = json.loads((trained / "run/predictions.json").read_text())
    questions = qa_mini.load().test_corpus.questions
    assert list(predictions) == [q.id for q in questions]
    (row,) = (trained / "run/rows.tsv").read_text().splitlines()[1:]
    exact = np.mean([predictions[q.id].lower() == q.answers[0][0].lower() for q in questions])
    assert float(row.split("\t")[3]) == pytest.approx(exact, abs=0.03)  # rules are laxer a little
    (entry,) = (trained / "run/not_an_entry/qa_mini/train").glob("*.json")
    assert "f1Score never reached 0.75" in entry.read_text()


def test_the_reader_answers_out_of_the_passage(trained):
    done = ask(trained, python=[sys.executable])
    assert done.returncode == 0, done.stderr
    answer, likely, _, marked = done.stdout.splitlines()
    assert answer and answer in PASSAGE and 0 < float(likely.split()[1]) <= 1
    assert marked.replace(">>>", "").replace("<<<", "") == PASSAGE
    assert f">>>{answer}<<<" in marked


def test_a_stranger_s_text_is_printed_without_what_a_terminal_acts_on():
    context = "Ada\x1b[2J\tis\r\nin\x07 Os\u202elo\0 now."
    begin, end = context.index("Os"), context.index("\0 now") + 1
    text = answer.show(context, Answer(context[begin:end], begin, end, 0.5))
    bad = "\N{REPLACEMENT CHARACTER}"
    assert text.splitlines()[0] == f"Os{bad}lo{bad}"
    assert text.endswith(f"Ada{bad}[2J\tis\nin{bad} >>>Os{bad}lo{bad}<<< now.")


def test_a_text_that_would_take_all_memory_is_refused_at_once(trained, monkeypatch):
    monkeypatch.setattr(machine, "free_gib", lambda: 0.5)
    text = PASSAGE * 1500  # 24,000 tokens, whose self-attention takes 2.3 GB a matrix
    with pytest.raises(Refusal, match=r"the passage has 2\d,\d{3} tokens.* cut it to "):
        answer.ask(str(trained / "run"), text, "Where does Ada live now?")
    assert answer.ask(str(trained / "run"), PASSAGE * 10, "Where does Ada live now?").text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"model": "elsewhere"}, "--model=elsewhere: is no folder; should be the --output_dir"),
        ({"model": "."}, "holds no run.json; should be the --output_dir of a training run"),
        ({"question": " "}, "--question=: is required"),
    ],
)
def test_bad_input_is_one_line(trained, flags, words):
    done = ask(trained, **flags)
    assert done.returncode == 1 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "--context_file=passage.txt: can't be read (No such file or directory)"),
        (b"\xff\xfe\xfa", "--context_file=passage.txt: is not UTF-8 text"),
        (b" \n", "the passage is empty; should hold text"),
    ],
)
def test_a_bad_passage_is_one_line(trained, tmp_path, content, words):
    shutil.copytree(trained / "run", tmp_path / "run")
    if content is not None:
        (tmp_path / "passage.txt").write_bytes(content)
    done = ask(tmp_path)
    assert done.returncode == 1 and done.stderr.strip().splitlines()[-1].endswith(words)


@pytest.mark.parametrize(
    ("file", "words"),
    [("vocabulary.json", "vocabulary.json: can't be read"), ("run.json", "holds no run.json")],
)
def test_a_damaged_run_is_one_line(trained, tmp_path, file, words):
    shutil.copytree(trained, tmp_path / "home")
    (tmp_path / "home/run" / file).unlink()
    done = ask(tmp_path / "home")
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr
