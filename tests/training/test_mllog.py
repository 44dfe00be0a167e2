"""MLPerf's log, read by mlcommons' own parser and held to its rules of order."""

import json
from pathlib import Path

import pytest
from mlperf_logging.compliance_checker.mlp_parser import parse_file

from dawnbench_tf import recipes
from dawnbench_tf.options import Credits
from dawnbench_tf.training import mllog
from dawnbench_tf.tta import TimeToAccuracy


def logged(folder: Path, scores=(90.0, 99.0), **changes):
    """The log of a run with a row for each epoch."""
    timer = TimeToAccuracy(98, "top1Accuracy")
    recipe = recipes.get("digits/resnet8", **changes)
    log = mllog.Mllog(folder, recipe, Credits(), "2 CPU", timer)
    log.on_train_begin()
    for epoch, score in enumerate(scores):
        log.on_epoch_begin(epoch)
        log.on_train_batch_end(0)
        timer.rows.append({"epoch": epoch + 1, "hours": 0.1 * (epoch + 1), "top1Accuracy": score})
        log.on_epoch_end(epoch)
    log.on_train_end()
    lines, errors = parse_file(str(folder / mllog.FILE), ruleset="5.0.0")
    assert not errors
    return lines


def test_mlcommons_parser_takes_every_line(tmp_path):
    lines = logged(tmp_path)
    keys = [line.key for line in lines]
    of_run = keys[keys.index("init_stop") :]
    epoch = ["epoch_start", "epoch_stop", "eval_start", "eval_stop", "eval_accuracy"]
    assert of_run == ["init_stop", "run_start", *epoch, *epoch, "run_stop"]
    values = {line.key: line.value["value"] for line in lines}
    assert values["eval_accuracy"] == 99 and values["global_batch_size"] == 64
    assert (values["train_samples"], values["eval_samples"]) == (1297, 500)
    assert lines[-1].value["metadata"] == {"status": "success"}


def test_what_its_rules_ask_of_every_benchmark_is_there(tmp_path):
    keys = [line.key for line in logged(tmp_path, (50.0,))]
    once = ("submission_benchmark", "submission_org", "submission_platform", "submission_division")
    for key in (*once, "submission_status", "init_stop", "run_start", "run_stop", "seed"):
        assert keys.count(key) == 1, key
    assert {"cache_clear", "init_start"} <= set(keys)
    assert keys.index("init_start") < keys.index("init_stop") < keys.index("run_start")


def test_a_miss_is_aborted_and_times_are_milliseconds_since_1970(tmp_path):
    lines = logged(tmp_path, (50.0, 60.0))
    assert lines[-1].value["metadata"] == {"status": "aborted"}
    first = json.loads(
        (tmp_path / mllog.FILE).read_text().splitlines()[0].removeprefix(":::MLLOG ")
    )
    assert 1.7e12 < first["time_ms"] < 4e12 and first["event_type"] == "POINT_IN_TIME"


def test_the_rate_is_after_scaling_and_no_cache_is_said_to_be_cleared(tmp_path):
    changes = {"learning_rate": 0.1, "scale_learning_rate_from": 32, "batch_size": 128}
    values = {line.key: line.value["value"] for line in logged(tmp_path, (50.0,), **changes)}
    assert values["opt_base_learning_rate"] == pytest.approx(0.4)
    assert values["cache_clear"] is False
