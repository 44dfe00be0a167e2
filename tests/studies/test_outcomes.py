"""What is made of a run's end."""

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, outcomes
from tests.studies import samples

DIVERGED = "train.py: training diverged: the loss is nan at step 3; lower the rate"


@pytest.mark.parametrize(
    ("code", "log", "status", "reason"),
    [
        (0, "reached ...", outcomes.REACHED, ""),
        (
            3,
            "did not converge: best top1Accuracy 50 of 98; 4 s on the clock\nnot an entry",
            outcomes.MISSED,
            "best top1Accuracy 50 of 98",
        ),
        (1, f"epoch 1\n{DIVERGED}\n", outcomes.DIVERGED, DIVERGED[10:]),
        (
            1,
            "train.py: --batch_size=9: does not fit into the device's memory; lower it",
            outcomes.MEMORY,
            "--batch_size=9: does not fit into the device's memory; lower it",
        ),
        (
            1,
            "train.py: --data_dir=x: does not exist",
            outcomes.REFUSED,
            "--data_dir=x: does not exist",
        ),
        (-11, "epoch 1", outcomes.CRASHED, "ended by SIGSEGV"),
        (137, "Killed", outcomes.CRASHED, "ended by SIGKILL"),
        (2, "", outcomes.CRASHED, "exit status 2"),
    ],
)
def test_how_a_run_ended_is_told_from_its_status_and_its_last_line(code, log, status, reason):
    assert outcomes.status_of(code, log) == (status, reason)


def test_a_kill_while_linux_killed_for_memory_is_out_of_memory():
    assert outcomes.status_of(-9, "", killed_for_memory=True)[0] == outcomes.MEMORY
    assert outcomes.status_of(0, "", killed_for_memory=True)[0] == outcomes.REACHED
    assert outcomes.kills_for_memory() >= 0


def test_an_outcome_is_read_as_it_was_written_and_a_damaged_one_refused(tmp_path):
    outcome = samples.outcome(seed=3, latency_ms=1.5)
    outcomes.write(tmp_path, outcome)
    path = tmp_path / outcomes.OUTCOME
    assert outcomes.read(path) == outcome
    path.write_text(path.read_text().replace("99.0", "99.9"))
    with pytest.raises(Refusal, match="checksum"):
        outcomes.read(path)


def test_times_are_of_the_first_row_at_the_threshold():
    outcome = samples.outcome(seconds=10)
    assert outcome.seconds_to(40) == 5 and outcome.seconds_to(98) == 10
    assert outcome.seconds_to(99.5) is None and outcome.best == 99


def test_a_run_that_left_nothing_has_no_rows(tmp_path):
    (planned, *_) = grid.plan(samples.study())
    outcome = outcomes.of_run(planned, tmp_path, 1, 2.0)
    assert outcome.status == outcomes.REFUSED and outcome.rows == [] and outcome.seconds == 0
