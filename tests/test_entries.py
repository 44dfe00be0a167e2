"""The command `entries`: violations by file and line; packaging a run for submission."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf import entries
from dawnbench_tf.ranking import pages, results, tables
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission.entry import read_entry, write_entry
from dawnbench_tf.submission.rules import GRADES, Grade, checksum
from dawnbench_tf.tasks import GIVEN
from tests.submission.test_entry import NAME, ODD, example

GOOD = {
    "version": "v1.0",
    "author": "A",
    "authorEmail": "a@b.c",
    "framework": "F",
    "model": "M",
    "hardware": "p3.2xlarge",
    "costPerHour": 3.06,
    "timestamp": "2019-07-02",
    "misc": {"batchSize": 128, "learningRate": 0.1, "optimizer": "SGD"},
}
HEAD = "epoch\thours\ttop1Accuracy\n"
ROWS = HEAD + "1\t1\t93\n2\t2\t94\n"
FIGURES = {"latency": 1.5, "top1Accuracy": 94.0, "costPerHour": ...}  # just at the threshold


def run(*flags, cwd=None):
    command = [sys.executable, "-m", "dawnbench_tf.entries", *map(str, flags)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def put(root, tsv=ROWS, phase="train", dataset="CIFAR10", name=NAME, **changes):
    """Returns an entry with some fields changed; `...` removes a field."""
    home = root / dataset / phase
    home.mkdir(parents=True, exist_ok=True)
    fields = {**GOOD, **(FIGURES if phase == "inference" else {}), **changes}
    fields = {key: value for key, value in fields.items() if value is not ...}
    (home / f"{name}.json").write_text(json.dumps(fields, indent=1))
    if tsv is not None and phase == "train":
        (home / f"{name}.tsv").write_bytes(tsv if isinstance(tsv, bytes) else tsv.encode())


def complaints(root, grade=Grade.REVIEW):
    return [
        (violation.rule, violation.path.suffix, violation.line, violation.text)
        for violation in entries.check_tree(root, grade)[1]
    ]


@pytest.mark.parametrize("phase", ["train", "inference"])
def test_a_good_entry_breaks_no_rule(tmp_path, phase):
    put(tmp_path, HEAD + "1\t1\t93\n1\t2\t95\n", phase)  # of two evaluations in an epoch
    assert entries.check_tree(str(tmp_path)) == (1, [])


ABOUT_ROWS = {"columns", "cells", "threshold", "column order", "increasing", "took time", "range"}
TOP5 = f"{HEAD[:-1]}\ttop5Accuracy\n1\t1\t94\t93\n"
TRAINING = [  # rule, line of the TSV, words of the message; changed fields
    ("required", 1, "author is not given", {"author": ...}),
    ("version", 1, "version is 'v2'; should be v1.0", {"version": "v2"}),
    ("timestamp", 1, "timestamp is '2 July'; should be YYYY-MM-DD", {"timestamp": "2 July"}),
    ("figures", 1, "costPerHour is '3'; should be a number", {"costPerHour": "3"}),
    ("pair", 1, "a training entry has its rows in it", {"tsv": None}),
    ("columns", 1, "has 'top1' and lacks top1Acc", {"tsv": "epoch\thours\ttop1\n1\t1\t95\n"}),
    ("cells", 2, "has 2 cells; should have 3", {"tsv": HEAD + "1\t95\n2\t2\t95\n"}),
    ("cells", 2, "'95%' should be a number", {"tsv": HEAD + "1\t1\t95%\n2\t2\t95\n"}),
    ("cells", 1, "has no row", {"tsv": HEAD}),
    ("threshold", 3, "never reached 94; its best is 93.9", {"tsv": HEAD + "1\t1\t93\n2\t2\t93.9"}),
    ("texts", 1, "author is 7; should be text", {"author": 7}),
    ("written date", 1, "two digits for month and day: 2019-07-02", {"timestamp": "2019-7-2"}),
    ("written date", 1, "is in the future", {"timestamp": "2999-07-02"}),
    ("links", 1, "should be an http or https URL", {"codeURL": "javascript:alert(1)"}),
    ("links", 1, "should be an http or https URL", {"codeURL": "http://a\u00a0b"}),
    ("prices", 1, "costPerHour is null; leave it out", {"costPerHour": None}),
    ("misc", 1, "misc should be a JSON object", {"misc": "batch 128"}),
    ("file name", 1, "should be named AUTHOR_MODEL", {"name": "mine"}),
    ("column order", 1, "should be epoch hours", {"tsv": "hours\tepoch\ttop1Accuracy\n1\t1\t95"}),
    ("increasing", 3, "epoch is 1 after 2; should go up", {"tsv": HEAD + "2\t1\t93\n1\t2\t95"}),
    ("increasing", 3, "hours is 1 after 1; should go up", {"tsv": HEAD + "1\t1\t93\n2\t1\t95"}),
    ("increasing", 2, "hours is -1; should be 0 or more", {"tsv": HEAD + "1\t-1\t93\n2\t1\t95"}),
    ("took time", 2, "hours is 0 at the threshold", {"tsv": HEAD + "1\t0\t95\n"}),
    ("range", 3, "940 should be percent, 0 to 100", {"tsv": HEAD + "1\t1\t93\n2\t2\t940"}),
    ("range", 2, "94 is above top5Accuracy 93", {"dataset": "ImageNet", "tsv": TOP5}),
    ("embedded", 1, "should be in digits", {"misc": {"recipe": {"task": "digits"}}}),
    ("author", 1, "is no address", {"authorEmail": "me"}),
    ("machine type", 1, "machine type", {"hardware": "8 V100"}),
    ("machine price", 1, "3.06 an hour; 4 p3.2xlarge cost 12.24", {"hardware": "4 p3.2xlarge"}),
    ("hyper-parameters", 1, "does not give the optimizer", {"misc": {"batch": 1, "schedule": []}}),
    ("hyper-parameters", 1, "misc does not give the batch size", {"misc": ...}),
]


@pytest.mark.parametrize(("rule", "line", "words", "changes"), TRAINING)
def test_each_rule_names_file_line_and_what_is_right(tmp_path, rule, line, words, changes):
    put(tmp_path, **changes)
    hits = complaints(tmp_path)
    suffix = ".tsv" if rule in ABOUT_ROWS else ".json"
    assert hits and hits[0][:3] == (rule, suffix, line) and words in hits[0][3]


def test_what_was_not_trained_on_the_whole_task_is_told(tmp_path):
    part = {"name": "cifar10", "train_examples": 100}
    for words, misc in (
        ("on 100 train, 10000 test examples; cifar10 has 50,000 and 1", {"recipe": {"task": part}}),
        ("trained on synthetic data", {"recipe": {"synthetic": "decoded"}}),
        ("trained on 100 examples; should be on all", {"recipe": {"train_examples": 100}}),
        ("task than cifar10; should be in a folder", {"recipe": {"task": {"name": "photos"}}}),
        ("from pretrained", {"recipe": {"task": "cifar10", "pretrained": "weights.pth"}}),
        ("were given in Python", {"data": {"source": GIVEN}}),
    ):
        put(tmp_path, misc=misc)
        rule, _, line, text = complaints(tmp_path)[0]
        assert (rule, line) == ("embedded", 1) and words in text


OTHERS = [
    ("accuracy", "is 93.999999; should be at least 94", {"top1Accuracy": 93.999999}),
    ("required", "latency is not given", {"latency": ...}),
    ("figures", "latency is 0 ms; should be above 0", {"latency": 0}),
    ("figures", "cost is '1'; should be a number", {"cost": "1"}),
    ("inference range", "top1Accuracy 945 should be percent", {"top1Accuracy": 945}),
    ("possible", "cost is 0; should be above 0", {"cost": 0}),
    ("possible", "latency is 1e+10; should be at most", {"latency": 1e10}),
    ("prices", "costPerHour is no field of inference entries; cost is theirs", {"costPerHour": 3}),
    ("cost", "cost should be 1.5e-06: 3.6 USD per hour", {"cost": 2, "misc": {"costPerHour": 3.6}}),
    ("cost", "at 1.5 ms; is not given", {"misc": {"costPerHour": 3.6}}),
    # 1.275e-6 USD in 1.5 ms are 3.06 USD an hour; these are of 10,000 examples.
    ("machine price", "is 30600 an hour; 1 p3.2xlarge cost 3.06", {"cost": 0.01275}),
    ("as measured", "latency or score differ from those", {"misc": {"measuredSha256": "x"}}),
    ("whole test", "only 10 of 500 examples", {"misc": {"examples": 10, "testExamples": 500}}),
]


@pytest.mark.parametrize(("rule", "words", "changes"), OTHERS)
def test_inference_entries_have_rules_too(tmp_path, rule, words, changes):
    put(tmp_path, phase="inference", **changes)
    name, _, _, text = complaints(tmp_path)[0]
    assert name == rule and words in text


def test_a_fraction_where_percent_is_due_and_the_other_way_round(tmp_path):
    put(tmp_path, HEAD + "1\t1\t0.95\n")
    assert [hit[0] for hit in complaints(tmp_path)] == ["threshold", "percent"]
    shutil.rmtree(tmp_path / "CIFAR10")
    put(tmp_path, "epoch\thours\tf1Score\n1\t1\t82.5\n", dataset="SQuAD")
    assert [hit[:3] for hit in complaints(tmp_path)] == [("fraction", ".tsv", 2)]


def test_files_that_lack_the_other_or_are_in_no_data_set_s_folder(tmp_path):
    put(tmp_path, phase="inference")
    home = tmp_path / "CIFAR10/inference"
    (home / f"{NAME}.tsv").write_text(ROWS)
    (home / "alone.tsv").write_text(ROWS)
    put(tmp_path, dataset="cifar-10")
    assert [(rule, text[-25:]) for rule, _, _, text in complaints(tmp_path)] == [
        ("pair", "s no alone.json beside it"),
        ("no table", "ference entry has no rows"),
        ("folder", "te; did you mean CIFAR10?"),
    ]
    shutil.rmtree(tmp_path / "cifar-10")
    (tmp_path / "CIFAR10/inference").rename(tmp_path / "CIFAR10/tested")
    assert {rule for rule, *_ in complaints(tmp_path)} == {"folder"}
    assert checksum((3, 0.75)) == checksum((3.0, 0.75))  # as other tools write JSON


def test_a_key_given_twice_is_refused(tmp_path):
    put(tmp_path)
    path = tmp_path / f"CIFAR10/train/{NAME}.json"
    path.write_text('{\n"model": "a",' + path.read_text()[1:])
    assert complaints(tmp_path) == [("repeated key", ".json", 1, "'model' is given twice")]


def test_reviewers_do_not_ask_for_what_an_entry_states(tmp_path):
    for hardware, rules in (
        ("8 V100 p3.2xlarge, Amazon EC2", []),
        ("Standard_NC6s_v3", []),
        ("ND40s_v2", []),
        ("TPU v5litepod-8", []),
        ("8*V100-16GB", ["machine type"]),
        ("NVIDIA2080", ["machine type"]),
    ):
        put(tmp_path, hardware=hardware)
        assert [rule for rule, *_ in complaints(tmp_path)] == rules, hardware
    put(tmp_path, misc={"strategy": [{"lr": 0.1, "note": "max/min momentum"}]}, batchSize=128)
    assert not complaints(tmp_path)


def test_a_wrong_cost_is_not_ranked_and_a_wrong_folder_is_named(tmp_path):
    put(tmp_path, phase="inference", cost=1.5e-9, misc={"costPerHour": 3.6})
    put(tmp_path, latency="NA", top1Accuracy="94.1%")  # no fields of a training entry
    put(tmp_path, dataset="cifar10")
    collected, (problem,) = results.read_tree(tmp_path)
    reasons = [result.reasons for result in sorted(collected, key=lambda result: result.phase)]
    assert reasons[0][0].startswith("cost should be 1.5e-06") and reasons[1] == ()
    assert problem.endswith(".json:1: cifar10 is no data set; did you mean CIFAR10?")


def test_every_rule_is_broken_by_some_test():
    elsewhere = {"fraction", "percent", "inference fraction"}
    broken = {row[0] for row in [*TRAINING, *OTHERS]} | elsewhere
    assert set(GRADES) - broken == {"repeated key", "no table"}


def test_the_odd_published_entries_keep_what_was_checked_and_break_the_form():
    assert entries.check_tree(ODD, Grade.CHECKED) == (6, [])
    counts = Counter(rule for rule, *_ in complaints(ODD, Grade.FORM))
    once = ("prices", "inference fraction", "misc", "texts", "written date")
    assert counts == {"file name": 3, "column order": 2, **dict.fromkeys(once, 1)}


@settings(deadline=None, max_examples=200)
@given(st.binary() | st.text().map(str.encode), st.binary() | st.text().map(str.encode))
def test_any_bytes_are_violations_and_a_result_or_one_line(tmp_path_factory, head, rows):
    root, some = tmp_path_factory.mktemp("fuzz"), []
    put(root)
    for suffix, content in (("tsv", rows), ("json", head)):
        (root / f"CIFAR10/train/{NAME}.{suffix}").write_bytes(content)
        some += entries.check_tree(root)[1]
        collected, problems = results.read_tree(root)
        assert len(collected) + len(problems) == 1 and not any("\n" in line for line in problems)
    assert some and all(str(violation).isprintable() for violation in some)


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from([*GOOD, *FIGURES, "codeURL", "cost"]), values))
def test_any_json_values_are_violations_and_no_traceback(tmp_path_factory, changes):
    root = tmp_path_factory.mktemp("fuzz")
    for phase in ("train", "inference"):
        put(root, phase=phase, **changes)
    assert all(str(violation).isprintable() for violation in entries.check_tree(root)[1])


def test_trees_with_loops_pipes_and_what_cannot_be_read(tmp_path):
    put(tmp_path / "with space é", name="a_b_c_\u4e2d")
    home = tmp_path / "with space é" / "CIFAR10" / "train"
    (home / "loop.json").symlink_to(home / "loop.json")
    (home / "circle").symlink_to(home, target_is_directory=True)
    os.mkfifo(home / "pipe.json")
    (home / "folder.json").mkdir()
    (home / "large.json").write_bytes(b" " * (16 * 2**20 + 1))
    (home / b"line\nbreak\xff.json".decode("utf-8", "surrogateescape")).write_text("{}")
    done = run("validate", tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3 + 8 + 3 + 1 and all(".json:1: " in line for line in lines)
    assert sum("is no regular file" in line for line in lines) == 2
    assert sum("is larger than 16 MiB" in line for line in lines) == 1


def test_what_may_not_be_read_is_a_violation(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    put(tmp_path)
    monkeypatch.setattr(Path, "read_bytes", denied)  # root, as CI may be, reads everything
    assert complaints(tmp_path)[0][1:] == (".tsv", 1, "can't be read (Permission denied)")


def test_output_for_people_and_for_machines(tmp_path):
    put(tmp_path)
    done = run("validate", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    put(tmp_path, version="v2")
    done = run("validate", f"CIFAR10/train/{NAME}.json", cwd=tmp_path)
    line = f"CIFAR10/train/{NAME}.json:1: version is 'v2'; should be v1.0 [version]\n"
    assert (done.returncode, done.stdout) == (1, line)
    (row,) = json.loads(run("validate", "--format=json", ".", cwd=tmp_path).stdout)
    assert row["line"] == 1 and row["rule"] == "version" and row["path"].endswith(f"{NAME}.json")


@pytest.mark.parametrize(
    ("names", "version", "line"),
    [
        ([NAME], "v1.0", "1 entry, 0 violations"),
        ([NAME, f"b{NAME}"], "v2", "2 entries, 2 violations"),
    ],
)
def test_the_last_line_counts_entries_and_violations(tmp_path, capsys, names, version, line):
    for name in names:
        put(tmp_path, name=name, version=version)
    files = sorted(tmp_path.glob("CIFAR10/train/*"))  # two of each entry, which counts once
    entries.validate([tmp_path, *files], Grade.CHECKED, as_json=False)
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_bad_input_is_refused_in_a_line(monkeypatch):
    monkeypatch.setattr(entries.flags, "is_given", {"author", "lenient"}.__contains__)
    priced = Credits(instance="p3.2xlarge")
    for arguments, options, line in (
        ([], {}, "^nothing: should be: validate PATH..., or package RUN_DIR"),
        (["validate"], {"credits": Credits(author="A")}, "^--author=A: is for `package`"),
        (["package", "."], {"lenient": True}, "^--lenient=true: is for `validate`"),
        (["package", "no"], {"credits": priced}, "^--instance=p3.2xlarge: is of this machine"),
    ):
        with pytest.raises(Refusal, match=line):
            entries.main(entries.Options(**options), arguments)
    with pytest.raises(Refusal, match="^nowhere: is not there; should be an entry, or a tree"):
        entries.check_tree("nowhere")


def test_a_run_is_packaged_for_a_pull_request(tmp_path):
    put(tmp_path / "run", author="anonymous", authorEmail="", hardware="8 V100")
    who = ["--author=Ada Lovelace", "--author_email=ada@example.org", "--hardware_tag=1V100"]
    done = run("package", "run", *who, "--hardware=p3.2xlarge", "--cost_per_hour=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "submission/CIFAR10/train/ada-lovelace_m_1v100_f.json"
    assert done.stdout.strip() == str(path.relative_to(tmp_path)) and not done.stderr
    entry = read_entry(path)
    facts = entry.author, entry.hardware, entry.cost_per_hour
    assert facts == ("Ada Lovelace", "p3.2xlarge", 3.0)
    assert entries.check_tree(tmp_path / "submission") == (1, [])


def test_what_holds_no_entry_is_not_packaged(tmp_path):
    for folder, words in ((tmp_path, "holds no entry; runs that may not"), ("no", "is no folder")):
        with pytest.raises(Refusal, match=f"^{folder}: {words}"):
            entries.package(folder, {}, tmp_path / "out")
    assert not any(tmp_path.iterdir())


WHO = {"author": "Ada", "author_email": "ada@example.org"}


def test_an_inference_entry_is_packaged_at_the_price_asked_for(tmp_path):
    put(tmp_path / "run", phase="inference", cost=1.0)
    (path,) = entries.package(tmp_path / "run", WHO, tmp_path / "out", cost_per_hour=3.6)
    fields = json.loads(path.read_text())
    assert fields["cost"] == pytest.approx(1.5e-6) and "costPerHour" not in fields
    assert entries.check_tree(tmp_path / "out") == (1, [])


def test_what_would_replace_another_entry_is_not_packaged(tmp_path):
    for name in ("one", "two"):
        put(tmp_path / "both" / name, ROWS if name == "one" else HEAD + "1\t1\t95\n")
    one, output = tmp_path / "both/one", tmp_path / "out"
    with pytest.raises(Refusal, match="would both be ada_m_hardware_f.json"):
        entries.package(tmp_path / "both", WHO, output)
    assert not output.exists()
    (path,) = entries.package(one, WHO, output)
    path.write_text(re.sub('(?<="timestamp": ")[^"]*', "2020-01-01", path.read_text()))
    entries.package(one, WHO, output)  # of another day, it is the same
    assert "2020-01-01" not in path.read_text()
    with pytest.raises(Refusal, match="another entry of that name is there"):
        entries.package(tmp_path / "both/two", WHO, output)
    put(tmp_path / "named", author="Eve", authorEmail="eve@example.org")  # by its training's flags
    (path,) = entries.package(tmp_path / "named", {}, tmp_path / "named-too")
    assert read_entry(path).author == "Eve"
    for field, words in (("author", "--author: should name who"), ("authorEmail", "an address to")):
        put(tmp_path / field, **{field: ""})
        with pytest.raises(Refusal, match=words):
            entries.package(tmp_path / field, {}, tmp_path / "none")


def test_a_run_in_a_folder_named_as_an_entry_s_is_packaged(tmp_path, monkeypatch):
    put(tmp_path / "CIFAR10/train")
    for name in ("run.json", "clock.json", "rows.tsv"):
        (tmp_path / "CIFAR10/train" / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert len(entries.package("CIFAR10/train", WHO, "out")) == 1
    put(tmp_path / "short", name="mine")
    with pytest.raises(Refusal, match="give --hardware_tag"):
        entries.package("short", WHO, "out")


LARGE = "x_" * 500_000


@pytest.mark.parametrize(
    "changes",
    [
        {"author": LARGE},
        {"model": "a.b@" * 250_000},
        {"hardware": "1" * 1_000_000, "costPerHour": 3},
        {"hardware": "NC" * 500_000},
        {"hardware": "a1-" * 333_000},
        {"hardware": "4 p3." * 170_000},
        {"codeURL": "http://a" + " " * 1_000_000 + "b"},
        {"timestamp": "2" * 1_000_000},
        {"misc": {f"k{n}": n for n in range(60_000)}},
        {"version": LARGE, "framework": LARGE},
        {"name": "_".join("a" * 100) + " !"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_megabyte_in_a_field_is_answered_at_once(tmp_path, changes):
    for phase in ("train", "inference"):
        put(tmp_path, phase=phase, **changes)
    begin = time.process_time()
    violations = entries.check_tree(tmp_path)[1]
    assert all(len(str(violation)) < 1000 for violation in violations)
    results.read_tree(tmp_path)
    assert time.process_time() - begin < 2  # linear: the quadratic rules took minutes


@pytest.mark.parametrize(
    "changes",
    [
        {"costPerHour": 10**400},
        {"costPerHour": 10**308 * 9},
        {"timestamp": "0001-01-01"},
        {"timestamp": "9999-12-31"},
        {"codeURL": "http://\ud800"},
        {"author": "\ud800"},
        {"tsv": HEAD + "1\t1e306\t95\n"},
        {"tsv": HEAD + f"1\t{'9' * 5000}\t95\n"},
    ],
)
def test_absurd_values_are_violations_and_take_no_board_down(tmp_path, changes):
    put(tmp_path, **changes)
    assert complaints(tmp_path)
    collected, problems = results.read_tree(tmp_path)
    assert problems or collected[0].reasons or "tsv" not in changes
    assert pages.write(tmp_path / "site", tables.rank(collected), collected).exists()


def test_what_is_not_ready_is_not_packaged(tmp_path, capsys):
    write_entry(tmp_path / "embedded", example("digits"))
    put(tmp_path / "low", HEAD + "1\t1\t93\n")
    for name, words in (("embedded", "is of a task outside DAWN"), ("low", "never reached 94")):
        with pytest.raises(Refusal, match=words):
            entries.package(tmp_path / name, WHO, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    put(tmp_path / "vague", hardware="8 V100", misc={})
    entries.package(tmp_path / "vague", WHO, tmp_path / "out")
    assert capsys.readouterr().err.count("reviewers will ask: ") == 4
