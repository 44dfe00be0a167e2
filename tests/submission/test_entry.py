"""Entries: all published ones are read; written ones follow the form and read back equal."""

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission import source
from dawnbench_tf.submission.entry import Entry, first_at, read_entry, write_entry
from dawnbench_tf.tasks import RANKED

ODD = Path(__file__).parents[1] / "fixtures/odd_entries"
NAME = "author_model_hardware_framework"


def example(dataset="CIFAR10", phase="train", **changes):
    task = RANKED[dataset]
    row = (1.0, 0.5, *[task.threshold] * (len(task.columns) - 2))
    figures = {"rows": (row,)} if phase == "train" else {"latency": 2.0, "score": row[-1]}
    facts = dict.fromkeys(("author", "framework", "model", "hardware"), "x")
    facts |= {"dataset": dataset, "phase": phase, "name": NAME, "author_email": "a@b.c"}
    facts |= {"timestamp": datetime.date(2020, 1, 31), "other": {}}
    return Entry(**{**facts, **figures, **changes})


def test_published_oddities_are_read():
    read = {path.stem: read_entry(path) for path in source.find(ODD, []) if path.suffix == ".json"}
    assert len(read) == 6
    kres = read["KRes34_1GTX1080Ti_pytorch"]  # byte-order mark, Windows line ends
    assert first_at(kres.curve(), 94.5) == (1.099812, 94.52) and kres.cost_per_hour is None
    drqa = read["dawn_drqa_1k80-ec2"]  # spaces in cells, hours after f1Score
    assert drqa.rows[0][2] < 1 and first_at(drqa.curve(), 0.75)[1] >= 0.75
    assert read["dawn_fastfusionnet-1080ti"].score == 82.52085997573373  # percent, as it stands
    assert read["ppwwyyxx_resnet152_8P100-DGX1_tensorpack"].misc["text"].startswith("CUDA version")
    haifan = read["HaifanData_resnet50_1GTX1080Ti_tensorflow"]
    assert haifan.timestamp == datetime.date(2019, 7, 22)
    baidu = read["BAIDU-USA-GAIT_BaiduNet8_1GV100_pytorch"]
    assert baidu.code_url.startswith("https://") and "commitHash" in baidu.other


@pytest.mark.parametrize("path", sorted(ODD.rglob("*.json")), ids=lambda path: path.stem)
def test_a_published_entry_is_written_in_the_form_and_reads_the_same(tmp_path, path):
    read = replace(read_entry(path), name=NAME)  # three of them have names of their own kind
    if read.score == 82.52085997573373:
        with pytest.raises(Refusal, match="should be a fraction, 0 to 1"):
            write_entry(tmp_path, read)
        assert not list(tmp_path.iterdir())
        return
    assert read_entry(write_entry(tmp_path, read)) == read


numbers = st.floats(0.001, 1e5)
words = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(sorted(RANKED)),
    st.sampled_from(["train", "inference"]),
    words,
    st.lists(st.tuples(numbers, st.floats(0, 1)), min_size=1, max_size=5),
    st.none() | numbers,
    st.dictionaries(words, words | numbers | st.booleans() | st.lists(words)),
)
def test_what_is_written_reads_the_same(
    tmp_path_factory, dataset, phase, text, points, price, misc
):
    task, hours, rows = RANKED[dataset], 0.0, []
    for epoch, (step, share) in enumerate([*points, (1.0, 1.0)]):
        hours += step
        rows.append((float(epoch), hours, *[share * task.highest] * (len(task.columns) - 2)))
    figures = {"rows": tuple(rows), "cost_per_hour": price}
    if phase == "inference":
        figures = {"latency": hours, "cost": price, "score": task.highest}
    entry = example(dataset, phase, author=text, model=text, misc=misc, **figures)
    assert read_entry(write_entry(tmp_path_factory.mktemp("tree"), entry)) == entry


def test_what_breaks_the_form_is_not_written(tmp_path):
    for changes, words in (  # tests/test_entries.py breaks every rule
        ({"rows": ((1.0, float("nan"), 95.0),)}, "should be a number"),
        ({"name": "a_b_c_d e"}, "file should be named AUTHOR_MODEL"),
        ({"author": ""}, "author is empty; it is required"),
    ):
        with pytest.raises(Refusal, match=words):
            write_entry(tmp_path, example(**changes))
    assert not list(tmp_path.iterdir())


def test_what_a_program_may_give_is_written_or_refused(tmp_path):
    with pytest.raises(Refusal, match="'Foo' is no data set, and misc states no task"):
        write_entry(tmp_path, replace(example(), dataset="Foo"))
    rows = tuple(map(tuple, np.array([[1.0, 0.01, 94.5]])))  # of NumPy's floats
    assert read_entry(write_entry(tmp_path, example(rows=rows))).rows == ((1.0, 0.01, 94.5),)
