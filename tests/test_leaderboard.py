"""The twelve tables of the published results, and one's own run among them."""

import json
import subprocess
import sys

import pytest

from dawnbench_tf import leaderboard, results
from dawnbench_tf.results import Result
from tests.test_results import write


def run(*flags, cwd=None):
    command = [sys.executable, "-m", "dawnbench_tf.leaderboard", *map(str, flags)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def by_name():
    return {(t.dataset, t.name): t.rows for t in leaderboard.tables(results.published())}


def test_there_are_twelve_tables_and_no_entry_is_lost():
    found = by_name()
    assert len(found) == 12
    assert [len(found["CIFAR10", name]) for name in leaderboard.FIGURES] == [31, 20, 21, 13]
    for (dataset, name), rows in found.items():
        figure, _ = leaderboard.FIGURES[name]
        assert [figure(row) for row in rows] == sorted(figure(row) for row in rows), (dataset, name)


@pytest.mark.parametrize(
    ("dataset", "table", "rank", "written", "model"),  # by hand from the published TSVs
    [
        ("SQuAD", "training time", 1, "0:18:46", "FastFusionNet"),
        ("SQuAD", "training time", 2, "0:27:07", "DrQA"),
        ("SQuAD", "training time", 3, "0:45:56", "QANet"),
        ("SQuAD", "training cost", 1, "$0.57", "DrQA"),
        ("SQuAD", "inference latency", 1, "7.579 ms", "PA-Occam-Bert"),
        ("SQuAD", "inference cost of 10,000", 1, "$0.1481", "BiDAF"),
        ("CIFAR10", "training time", 1, "0:00:10", "Custom Resnet 9"),
        ("ImageNet", "training time", 1, "0:02:38", "ResNet50-v1.5"),
        ("ImageNet", "training cost", 1, "$7.43", "ResNet50-v1.5"),
    ],
)
def test_known_places(dataset, table, rank, written, model):
    row = by_name()[dataset, table][rank - 1]
    figure, write_it = leaderboard.FIGURES[table]
    assert (write_it(figure(row)), row.model) == (written, model)


def result(name, hours, date="2020-01-01", **changes):
    facts = dict.fromkeys(("author", "model", "framework", "hardware", "url"), "x")
    numbers = {"metric": 94.0, "hours": hours, "latency": None, "usd": None}
    given = {"dataset": "CIFAR10", "kind": "train", "name": name, "date": date}
    return Result(**{**given, **facts, **numbers, **changes})


def test_of_equals_the_earlier_date_ranks_first_then_the_name():
    rows = [result("c", 1), result("b", 1), result("a", 1, "2020-01-02"), result("d", 0.5)]
    for order in (rows, rows[::-1]):
        (table,) = leaderboard.tables(order)
        assert [row.name for row in table.rows] == ["d", "b", "c", "a"]


def test_your_run_is_marked_and_ranked(tmp_path):
    write(tmp_path, "epoch\thours\ttop1Accuracy\n1\t0.001\t95\n")
    done = run(tmp_path, "--dataset=CIFAR10", "--top=1")
    assert done.returncode == 0, done.stderr
    assert "your a b é would rank 1 of 32" in done.stdout
    first = done.stdout.splitlines()[1]
    assert first.startswith("*   1       0:00:04")  # 3.6 s, rounded up


def test_an_embedded_task_s_run_has_a_table_of_its_own(tmp_path):
    write(tmp_path)
    (tmp_path / "CIFAR10").rename(tmp_path / "digits")
    for path in (tmp_path / "digits/train").glob("*.tsv"):
        path.write_text("epoch\thours\ttop1Accuracy\n1\t0.5\t98.4\n")
    made = json.loads(run(tmp_path, "--json").stdout)
    mine = [(t["dataset"], t["table"]) for t in made for row in t["rows"] if row["mine"]]
    assert mine == [("digits", "training time"), ("digits", "training cost")]
    assert made[-1]["dataset"] == "digits" and len(made) == 14


def test_until_threshold_and_csv(tmp_path):
    early = json.loads(run("--until=2017-12-31", "--json").stdout)
    assert all(row["date"] <= "2017-12-31" for t in early for row in t["rows"]) and early
    write(tmp_path, model="=1+1")
    done = run(tmp_path, "--dataset=CIFAR10", "--threshold=93", "--csv")
    header, first, *_ = done.stdout.splitlines()
    assert header.startswith("dataset,table,rank,figure,dataset,kind,name")
    assert first.startswith("CIFAR10,training time,1,1.0,") and ",'=1+1," in first


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nowhere"], "nowhere: is no folder"),
        (["."], ".: holds no entry; should hold DATASET/train/NAME.json or such"),
        (["--threshold=93"], "--threshold=93.0: needs --dataset"),
        (["--top=0"], "flag --top=0"),
        (["--until=2018"], "--until=2018: should be a date, YYYY-MM-DD"),
        (["--dataset=cifar"], "flag --dataset=cifar"),
    ],
)
def test_bad_input_is_one_line(tmp_path, flags, words):
    done = run(*flags, cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
