"""Outcomes of runs: status, reason, files."""

import io
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, outcomes, reports
from tests.studies import samples

DIVERGED = "training diverged: the loss is nan at step 3; lower the rate"
FULL = "--batch_size=9: does not fit into the device's memory; lower it"
SRUN = "srun: error: node7: task 0: Exited with exit code 1"


@pytest.mark.parametrize(
    ("code", "log", "status", "reason"),
    [
        (1, f"epoch 1\ndawnbench train: {DIVERGED}\n", outcomes.DIVERGED, DIVERGED),
        (1, f"train.py: {FULL}", outcomes.MEMORY, FULL),
        (1, f"dawnbench train: {DIVERGED}\n{SRUN}", outcomes.DIVERGED, DIVERGED),
        (1, "0: train.py: --epochs=x: no", outcomes.REFUSED, "--epochs=x: no"),
        (1, "Submitted batch job 47", outcomes.CRASHED, "exit status 1: Submitted batch job 47"),
        (-11, "epoch 1", outcomes.CRASHED, "ended by SIGSEGV"),
        (137, "Killed", outcomes.CRASHED, "ended by SIGKILL"),
        (1, "", outcomes.CRASHED, "exit status 1"),
        (255, "", outcomes.CRASHED, "exit status 255"),
        (7, "no \x1b[31mnode", outcomes.CRASHED, "exit status 7: no \ufffd[31mnode"),
    ],
)
def test_how_a_run_failed_is_told_from_its_status_and_its_own_last_line(code, log, status, reason):
    assert outcomes.classify_failure(code, log) == (status, reason)


def test_a_kill_while_linux_killed_for_memory_is_out_of_memory():
    assert outcomes.classify_failure(-9, "", killed_for_memory=True)[0] == outcomes.MEMORY
    assert outcomes.count_oom_kills() >= 0


def test_an_outcome_is_read_as_it_was_written_and_a_damaged_one_refused(tmp_path):
    planned, other, *_ = grid.plan(samples.study())
    outcome = samples.outcome(seed=0, latency_ms=1.5)._replace(settings=planned.settings)
    outcomes.write(tmp_path, outcome)
    path = tmp_path / outcomes.OUTCOME
    assert outcomes.read(path, planned) == outcome
    with pytest.raises(Refusal, match="is of a run with other settings"):
        outcomes.read(path, other)
    path.write_text(path.read_text().replace("99.0", "99.9"))
    with pytest.raises(Refusal, match="checksum.*; remove it; `dawnbench study` makes it again"):
        outcomes.read(path, planned)


def test_an_outcome_of_an_earlier_version_has_the_settings_of_its_plan(tmp_path):
    (planned, *_) = grid.plan(samples.study())
    values = samples.outcome()._asdict()
    del values["settings"]
    (tmp_path / outcomes.OUTCOME).write_text(json.dumps({**values, "labels": ["32"]}))
    outcome = outcomes.read(tmp_path / outcomes.OUTCOME, planned)
    assert outcome.settings == {"recipe": "digits/resnet8", "batch_size": 32, "seed": 0}


OTHERS = [None, True, -1, 1e308, 2**70, "", "\x1b[2J", "$x_$", "x" * 20_000]
OTHERS += [[], [[]], {}, {"a": {"b": []}}]


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_an_outcome_of_other_types_is_refused_or_reported(tmp_path_factory, data):
    """An outcome file with any value replaced is refused in a line, or can be reported."""
    folder = tmp_path_factory.mktemp("study") / "s"
    study = samples.study(trials=1)
    samples.write(folder, study, lambda run: samples.outcome(run.labels, run.seed))
    paths = [folder / "study.json", *sorted(folder.glob("*/*/outcome.json"))]
    path = data.draw(st.sampled_from(paths))
    values = json.loads(path.read_text())
    values.pop("sha256")
    parts = list(_parts(values))
    part, key = parts[data.draw(st.integers(0, len(parts) - 1))]
    part[key] = data.draw(st.sampled_from(OTHERS))
    path.write_text(json.dumps(values))
    try:
        results = reports.load(folder)
    except Refusal as refusal:
        assert "\n" not in str(refusal) and len(str(refusal)) < 600
        return
    assert "\x1b" not in reports.format_text(results)
    reports.write_csv([results], io.StringIO())
    json.dumps(reports.values(results))
    reports.write_page(folder / "page.html", [results], [])
    assert "\x1b" not in (folder / "page.html").read_text()


def _parts(value):
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _parts(value[key])


def test_times_are_of_the_first_row_at_the_threshold():
    outcome = samples.outcome(seconds=10)
    rows = outcome.row_at(40), outcome.row_at(98)
    assert [row["hours"] * 3600 for row in rows] == [5, 10]
    assert outcome.row_at(99.5) is None and outcome.best == 99


def test_a_run_that_left_nothing_has_no_rows(tmp_path):
    (planned, *_) = grid.plan(samples.study())
    assert outcomes.read_finished(planned, tmp_path, 2.0) is None
    outcome = outcomes.read_ended(planned, tmp_path, outcomes.CRASHED, "exit status 2", 2.0)
    assert outcome.status == outcomes.CRASHED and outcome.rows == [] and outcome.seconds == 0


def test_an_outcome_has_the_facts_of_the_newest_entries(tmp_path):
    (planned, *_) = grid.plan(samples.study())
    entries = (
        ("train/a", {"hardware": "2 CPU", "misc": {"examplesPerSecond": 900.0, "author": "A"}}),
        ("inference/b", {"latency": 9.0, "misc": {"runtime": "keras", "precision": "float32"}}),
        ("inference/a", {"latency": 2.5, "misc": {"runtime": "litert", "precision": "float32"}}),
    )
    for moment, (name, values) in enumerate(entries, 1):
        path = tmp_path / f"run/CIFAR10/{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
        os.utime(path, (moment, moment))
    outcome = outcomes.read_ended(planned, tmp_path, outcomes.CRASHED, "exit status 2", 2.0)
    facts = {"hardware": "2 CPU", "examplesPerSecond": 900.0}
    assert outcome.facts == {**facts, "latency_ms": 2.5, "runtime": "litert float32"}


def test_the_end_of_a_log_is_read_from_where_the_run_began(tmp_path):
    (tmp_path / "log").write_bytes(b"$ exit 7\n" + b"\xff" * 50_000 + b"end\n")
    assert outcomes.read_tail(tmp_path / "log", 9).endswith("end\n")
    assert len(outcomes.read_tail(tmp_path / "log")) <= outcomes.LOG_TAIL
    (tmp_path / "short").write_text("$ exit 7\n")
    assert outcomes.read_tail(tmp_path / "short", 9) == outcomes.read_tail(tmp_path / "none") == ""
