"""Entries as others wrote them are read; what is written reads the same, and is in the form."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf import entry as entry_files
from dawnbench_tf import entry_source, tasks
from dawnbench_tf.entry import Entry

ODD = Path(__file__).parent / "odd_entries"
NAME = "author_model_hardware_framework"


def made(dataset="CIFAR10", kind="train", **changes):
    ranking = tasks.RANKED[dataset]
    row = (1.0, 0.5, *[ranking.threshold] * (len(ranking.columns) - 2))
    figures = {"rows": (row,)} if kind == "train" else {"latency": 2.0, "metric": row[-1]}
    texts = ("author", "framework", "model", "hardware")
    given = {
        "dataset": dataset,
        "kind": kind,
        "name": NAME,
        "author_email": "a@b.c",
        "timestamp": datetime.date(2020, 1, 31),
        "other": {},
        **dict.fromkeys(texts, "x"),
    }
    return Entry(**{**given, **figures, **changes})


def test_published_oddities_are_read():
    read = {
        path.stem: entry_files.read(path)
        for path in entry_source.find(ODD, [])
        if path.suffix == ".json"
    }
    assert len(read) == 6
    kres = read["KRes34_1GTX1080Ti_pytorch"]  # byte-order mark, Windows line ends
    assert kres.first_hit(94.5) == (1.099812, 94.52) and kres.cost_per_hour is None
    drqa = read["dawn_drqa_1k80-ec2"]  # spaces in cells, hours after f1Score
    assert drqa.rows[0][2] < 1 and drqa.first_hit()[1] >= 0.75
    assert read["dawn_fastfusionnet-1080ti"].metric == 82.52085997573373  # percent, as it stands
    assert read["ppwwyyxx_resnet152_8P100-DGX1_tensorpack"].misc["text"].startswith("CUDA version")
    haifan = read["HaifanData_resnet50_1GTX1080Ti_tensorflow"]
    assert haifan.timestamp == datetime.date(2019, 7, 22)
    baidu = read["BAIDU-USA-GAIT_BaiduNet8_1GV100_pytorch"]
    assert baidu.code_url.startswith("https://") and "commitHash" in baidu.other


@pytest.mark.parametrize("path", sorted(ODD.rglob("*.json")), ids=lambda path: path.stem)
def test_a_published_entry_is_written_in_the_form_and_reads_the_same(tmp_path, path):
    read = replace(entry_files.read(path), name=NAME)  # three of them have names of their own kind
    if read.metric == 82.52085997573373:
        with pytest.raises(entry_files.Invalid, match="should be a fraction, 0 to 1"):
            entry_files.write(tmp_path, read)
        assert not list(tmp_path.iterdir())
        return
    assert entry_files.read(entry_files.write(tmp_path, read)) == read


numbers = st.floats(0.001, 1e6)
words = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(sorted(tasks.RANKED)),
    st.sampled_from(["train", "inference"]),
    words,
    st.lists(st.tuples(numbers, st.floats(0, 1)), min_size=1, max_size=5),
    st.none() | numbers,
    st.dictionaries(words, words | numbers | st.booleans() | st.lists(words)),
)
def test_what_is_written_reads_the_same(tmp_path_factory, dataset, kind, text, points, price, misc):
    ranking, hours, rows = tasks.RANKED[dataset], 0.0, []
    for epoch, (step, share) in enumerate([*points, (1.0, 1.0)]):
        hours += step
        rows.append((float(epoch), hours, *[share * ranking.highest] * (len(ranking.columns) - 2)))
    figures = {"rows": tuple(rows), "cost_per_hour": price}
    if kind == "inference":
        figures = {"latency": hours, "cost": price, "metric": ranking.highest}
    entry = made(dataset, kind, author=text, model=text, misc=misc, **figures)
    assert entry_files.read(entry_files.write(tmp_path_factory.mktemp("tree"), entry)) == entry


def test_unknown_keys_are_kept(tmp_path):
    entry = made(other={"usedBlacklist": True, "commitHash": "abc"})
    path = entry_files.write(tmp_path, entry)
    assert json.loads(path.read_text())["usedBlacklist"] is True
    assert entry_files.read(path).other == entry.other


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": ()}, "has no row"),
        ({"rows": ((1.0, 1.0, 93.9),)}, "never reached 94"),
        ({"rows": ((1.0, 1.0, 95.0), (2.0, 0.5, 95.0))}, "hours is 0.5 after 1; should go up"),
        ({"rows": ((1.0, float("nan"), 95.0),)}, "should be a number"),
        ({"name": "only_two"}, "file should be named AUTHOR_MODEL"),
        ({"name": "a_b_c_d e"}, "file should be named AUTHOR_MODEL"),
        ({"code_url": "javascript:alert(1)"}, "should be an http or https URL"),
        ({"author": ""}, "author is ''; should be text"),
        ({"cost_per_hour": 0.0}, "costPerHour is 0; should be above 0"),
        ({"timestamp": datetime.date(2999, 1, 1)}, "is in the future"),
        ({"version": "v9"}, "version is 'v9'; should be v1.0"),
        ({"misc": {"recipe": {"task": "digits"}}}, "is an entry of the task digits"),
        ({"misc": {"recipe": {"synthetic": True}}}, "trained on synthetic data"),
    ],
)
def test_what_breaks_the_form_is_not_written(tmp_path, changes, words):
    with pytest.raises(entry_files.Invalid, match=words.replace("(", r"\(")):
        entry_files.write(tmp_path, made(**changes))
    assert not list(tmp_path.iterdir())
