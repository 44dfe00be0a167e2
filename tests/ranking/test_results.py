"""Results of entries: all published entries are read; other files are reported in one line."""

from collections import Counter

import pytest

from dawnbench_tf.ranking import results
from dawnbench_tf.recipe.evidence import PUBLISHED
from dawnbench_tf.tasks import RANKED
from tests.test_entries import HEAD, put


def write(root, tsv=f"{HEAD}1\t1\t93\n2\t2\t94\n3\t3\t93\n", **changes):
    own = {"timestamp": "2019-7-2", "codeURL": " https://example.org ", "costPerHour": 0.5}
    put(root, tsv, name="a b é", **own | changes)


def read(root):
    read_results, problems = results.read_tree(root)
    assert not problems, problems
    return read_results[0]


def test_the_first_row_at_the_threshold_counts(tmp_path):
    write(tmp_path)
    result = read(tmp_path)
    assert (result.hours, result.score, result.usd) == (2, 94, 1)
    assert (result.date, result.url) == ("2019-07-02", "https://example.org")
    assert result.name == "a b é"
    lower, higher = (results.at_threshold(result, threshold) for threshold in (93.0, 99.0))
    assert (lower.hours, lower.usd, lower.score, lower.task.threshold) == (1, 0.5, 93, 93)
    assert (higher.hours, higher.usd, higher.score) == (None, None, None)


@pytest.mark.parametrize(
    "tsv",
    [
        "epoch\thours\ttop1Accuracy\n\n1\t 2 \t 94 \n\n\n",
        "extra\tepoch\thours\ttop1Accuracy\nx\t1\t2e0\t94.0\n",
    ],
)
def test_published_oddities_are_read(tmp_path, tsv):
    write(tmp_path, tsv, costPerHour=None)
    result = read(tmp_path)
    assert (result.hours, result.score, result.usd) == (2, 94, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tsv": ""}, ".tsv:1: should have columns epoch hours top1Accuracy"),
        ({"tsv": HEAD + "1\t1\tx\n"}, ".tsv:2: epoch hours top1Accuracy should be numbers"),
        ({"tsv": HEAD + "1\t1\n"}, ".tsv:2: epoch hours top1Accuracy should be numbers"),
        ({"tsv": HEAD + "1\tnan\t95\n"}, ".tsv:2: epoch hours top1Accuracy should be numbers"),
        ({"tsv": b"\xff"}, ".tsv:1: should be text in UTF-8"),
        ({"timestamp": "yesterday"}, "timestamp 'yesterday' should be YYYY-MM-DD"),
        ({"timestamp": ...}, "timestamp None should be YYYY-MM-DD"),
        ({"costPerHour": "1"}, ".json:1: costPerHour is '1'; should be a number"),
        ({"costPerHour": True}, ".json:1: costPerHour is True; should be a number"),
    ],
)
def test_what_is_no_entry_is_one_line(tmp_path, changes, words):
    write(tmp_path, **changes)
    read_results, (problem,) = results.read_tree(str(tmp_path))
    assert not read_results and words in problem and "\n" not in problem


def test_all_118_published_results_ship_with_the_package():
    read_results = results.dawnbench_results()
    assert Counter((result.dataset, result.phase) for result in read_results) == {
        ("ImageNet", "train"): 27,
        ("ImageNet", "inference"): 22,
        ("CIFAR10", "train"): 31,
        ("CIFAR10", "inference"): 21,
        ("SQuAD", "train"): 11,
        ("SQuAD", "inference"): 6,
    }
    with open(PUBLISHED) as table:  # as scripts/published_results.py writes it
        assert table.readline().split() == results.columns()
    for result in read_results:
        threshold = RANKED[result.dataset].threshold
        assert results.at_threshold(result, threshold).hours == result.hours  # of its own curve
        assert result.score >= threshold
        assert "@" not in result.author.replace("clint@KakaoBrain", "")


def test_an_inference_entry_has_its_latency_and_cost_and_no_hours(tmp_path):
    figures = {"f1Score": 75.3, "latency": 2.5, "cost": 0.02}  # percent, where 1 is all
    put(tmp_path, phase="inference", dataset="SQuAD", **figures)
    result = read(tmp_path)
    assert (result.score, result.latency, result.usd, result.hours) == (0.753, 2.5, 0.02, None)
    assert (result.missed, result.flaws) == ("", ())
    missed = results.at_threshold(result, 0.8).missed
    assert missed == "f1Score is 0.753; should be at least 0.8"


def test_percent_where_a_fraction_is_due_is_read_as_such():
    every = [r for r in results.dawnbench_results() if r.name == "dawn_fastfusionnet-1080ti"]
    assert [result.score for result in every if result.latency] == [0.8252085997573373]


def test_a_folder_of_runs_is_read_too_and_what_may_not_be_ranked_is_not(tmp_path):
    write(tmp_path / "runs" / "one")
    write(tmp_path / "runs" / "two")
    (tmp_path / "runs/two/not_an_entry").mkdir()
    (tmp_path / "runs/two/CIFAR10").rename(tmp_path / "runs/two/not_an_entry/CIFAR10")
    assert [result.name for result in results.read_tree(tmp_path / "runs")[0]] == ["a b é"]
    assert results.read_tree(tmp_path / "runs/two/not_an_entry") == ([], [])
    assert len(results.read_tree(tmp_path / "runs", misses=True)[0]) == 2


def test_only_links_that_a_browser_may_follow_are_kept(tmp_path):
    write(tmp_path, codeURL="javascript:alert(1)")
    assert read(tmp_path).url == ""
