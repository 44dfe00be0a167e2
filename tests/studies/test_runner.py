"""The processes of a study, with a stub in place of `train`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.flags import handling_signals
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, outcomes, runner, store
from dawnbench_tf.studies.grid import Factor, Level
from dawnbench_tf.studies.runner import Runner
from tests.faults.studies import start
from tests.studies import samples


def script(path, text):
    """Writes a program of a shell, or of what its first line names."""
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def template(tmp_path):
    return samples.launcher(tmp_path)


ONCE = ["began", "done"]


def starts(folder):
    """Returns run name -> what its processes wrote into its journal."""
    paths = folder.glob("*/*/run/journal")
    return {str(path.parents[1].relative_to(folder)): path.read_text().split() for path in paths}


def claim(folder, study):
    """Claims a folder as one call of a study does, and releases it."""
    with store.claimed(folder, study) as claimed:
        return claimed


def carry_out(folder, template, **launch):
    study = claim(folder, samples.study(trials=2))
    return Runner(folder, grid.plan(study), False, template=template, **launch).run()


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_every_run_is_run_once_and_what_is_finished_never_again(tmp_path, template, capsys):
    by_name = carry_out(tmp_path / "s", template, jobs=3)
    assert [o.status for o in by_name.values()] == [outcomes.REACHED] * 4
    store.unclaim(tmp_path / "s")  # which has runs
    assert carry_out(tmp_path / "s", template) == by_name
    assert starts(tmp_path / "s") == dict.fromkeys(by_name, ONCE)
    assert "[4/4]" in capsys.readouterr().err


@pytest.mark.long
def test_more_trials_go_on_from_those_that_there_are(tmp_path, template):
    carry_out(tmp_path / "s", template, jobs=2)
    study = claim(tmp_path / "s", samples.study(trials=3))
    planned = grid.plan(study)
    assert len(planned) == 6 and len(store.read_outcomes(tmp_path / "s", planned)) == 4
    assert claim(tmp_path / "s", samples.study(trials=1)).trials == 3


def test_a_crash_and_a_divergence_are_results(tmp_path, template, monkeypatch):
    monkeypatch.setenv("FAIL", "64/seed-1")
    monkeypatch.setenv("WHY", "train.py: training diverged: the loss is nan at step 3")
    by_name = carry_out(tmp_path / "s", template)
    assert by_name["64/seed-1"].status == outcomes.DIVERGED
    assert "nan at step 3" in by_name["64/seed-1"].reason
    assert sum(o.status == outcomes.REACHED for o in by_name.values()) == 3
    planned = grid.plan(samples.study(trials=2))
    crashed = by_name["32/seed-1"]._replace(status=outcomes.CRASHED)
    outcomes.write(tmp_path / "s/32/seed-1", crashed)
    assert len(store.read_outcomes(tmp_path / "s", planned)) == 4
    # What a dry run with --retry does not list, and what `Runner` runs again.
    assert "32/seed-1" not in store.read_outcomes(tmp_path / "s", planned, retry=True)
    shutil.rmtree(tmp_path / "s/32/seed-1/run")
    again = carry_out(tmp_path / "s", template, retry=True)
    assert again["32/seed-1"].status == outcomes.REACHED and len(again) == 4


def test_the_same_command_runs_what_was_refused(tmp_path, template, monkeypatch):
    monkeypatch.setenv("FAIL", "64/seed-0")
    monkeypatch.setenv("WHY", "train.py: x/run.json: can't be written (No space left on device)")
    with pytest.raises(Refusal, match="^64/seed-0: refused: .*No space left.*same command again"):
        carry_out(tmp_path / "s", template)
    assert len(list(tmp_path.glob("s/*/*/outcome.json"))) == 3
    monkeypatch.delenv("FAIL")
    by_name = carry_out(tmp_path / "s", template)
    assert [o.status for o in by_name.values()] == [outcomes.REACHED] * 4
    assert starts(tmp_path / "s") == dict.fromkeys(by_name, ONCE)


@pytest.mark.parametrize("status", ["0", "3"])  # reached, missed
def test_a_launcher_that_ends_before_its_run_is_refused(tmp_path, template, monkeypatch, status):
    monkeypatch.setenv("FAIL", "64/seed-0")
    monkeypatch.setenv("WHY", status)
    with pytest.raises(Refusal, match=f"^64/seed-0: its process ended with {status}, .* --wait"):
        carry_out(tmp_path / "s", template)
    assert not (tmp_path / "s/64/seed-0/outcome.json").exists()


@pytest.mark.long
def test_a_run_in_the_background_of_its_launcher_is_waited_for(tmp_path, template):
    launcher = script(tmp_path / "background", '(sleep 1; "$@") &')
    by_name = carry_out(tmp_path / "s", f"{launcher} {template}", jobs=2)
    assert [o.status for o in by_name.values()] == [outcomes.REACHED] * 4
    assert starts(tmp_path / "s") == dict.fromkeys(by_name, ONCE)


def test_a_launcher_that_fails_at_the_first_run_ends_the_study_with_its_reason(tmp_path):
    launcher = script(tmp_path / "launch", "echo no such node >&2\nexit 7")
    with pytest.raises(Refusal, match="^32/seed-0: exit status 7: no such node$"):
        carry_out(tmp_path / "s", f"{launcher} {{command}}")


def test_a_log_that_is_no_file_is_refused(tmp_path, template):
    (tmp_path / "s/32/seed-0/log.txt").mkdir(parents=True)
    (tmp_path / "s/study.json").write_text(json.dumps(samples.study(trials=2).values()))
    with pytest.raises(Refusal, match="log.txt: is no file; remove it"):
        carry_out(tmp_path / "s", template)


def test_another_run_in_a_run_s_folder_is_no_outcome(tmp_path):
    (tmp_path / "run").mkdir()
    values = recipes.get("digits/resnet8", batch_size=32).values()
    (tmp_path / "run/run.json").write_text(json.dumps(values))
    _, planned, *_ = grid.plan(samples.study())
    with pytest.raises(Refusal, match="/run: holds a run with batch_size=32, not 64"):
        outcomes.read_finished(planned, tmp_path, 1.0)


def test_an_interrupt_ends_the_runs_and_keeps_what_is_finished(tmp_path, template, monkeypatch):
    monkeypatch.setenv("HANG", "64/seed-0")
    process = start(tmp_path / "s", template, trials=2)
    wait_for(lambda: starts(tmp_path / "s").get("64/seed-0") == ONCE)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode and "KeyboardInterrupt" in said
    assert [*tmp_path.glob("s/*/*/outcome.json")] == [tmp_path / "s/32/seed-0/outcome.json"]
    monkeypatch.delenv("HANG")
    (tmp_path / "s/64/seed-0/run/rows.tsv").unlink()  # the stand-in had written all of it
    assert len(carry_out(tmp_path / "s", template)) == 4
    journals = starts(tmp_path / "s")
    assert (journals["32/seed-0"], journals["64/seed-0"]) == (ONCE, 2 * ONCE)


@pytest.mark.parametrize(
    ("status", "ran"),
    [(0, ["dawnbench_tf.train", "dawnbench_tf.infer"]), (3, ["dawnbench_tf.train"])],
)
def test_a_model_that_reached_its_goal_is_timed_too(tmp_path, monkeypatch, status, ran):
    text = f"echo $2 >> {tmp_path}/ran\n[ $2 = dawnbench_tf.infer ] || exit {status}"
    python = script(tmp_path / "python", text)
    monkeypatch.setattr(runner.machine, "python", lambda: [str(python)])
    (planned, *_) = grid.plan(samples.study())
    folder = tmp_path / "a b" / planned.name
    words = runner.build_arguments(planned, folder, "nice {command}", 0, timed=True)
    assert subprocess.run(words).returncode == status
    assert (tmp_path / "ran").read_text().split() == ran


def test_a_claimed_folder_is_refused_to_others_until_it_is_released(tmp_path):
    with store.claimed(tmp_path, samples.study()), pytest.raises(Refusal, match="carries out"):
        claim(tmp_path, samples.study())
    claim(tmp_path, samples.study())


@pytest.mark.long
def test_a_run_whose_record_failed_is_refused_and_run_again(tmp_path, template, monkeypatch):
    """Its rows reach the goal, but its entry, with price and speed, could not be written."""
    monkeypatch.setenv("FULL", "64/seed-0")
    with pytest.raises(Refusal, match="^64/seed-0: refused: .*No space left"):
        carry_out(tmp_path / "s", template)
    monkeypatch.delenv("FULL")
    assert len(carry_out(tmp_path / "s", template)) == 4
    assert starts(tmp_path / "s")["64/seed-0"] == ["began", *ONCE]


def test_a_model_that_could_not_be_timed_is_no_finished_run(tmp_path, template, monkeypatch):
    text = '[ $2 = dawnbench_tf.infer ] && echo "infer.py: x: is full" >&2 && exit 1\nshift 2\n'
    python = script(tmp_path / "python", f'{text}exec {template.split()[0]} x x x "$@"')
    monkeypatch.setattr(runner.machine, "python", lambda: [str(python)])
    study = claim(tmp_path / "s", samples.study(trials=1))
    with pytest.raises(Refusal, match="x: is full"):
        Runner(tmp_path / "s", grid.plan(study), latency=True).run()
    assert not list(tmp_path.glob("s/*/*/outcome.json"))


def test_a_folder_of_another_study_or_of_something_else_is_refused(tmp_path):
    claim(tmp_path / "a", samples.study())
    with pytest.raises(Refusal, match="study sample with recipe=digits/resnet8, not cifar10/resn"):
        claim(tmp_path / "a", samples.study(recipe="cifar10/resnet20_tf"))
    with pytest.raises(Refusal, match="holds study sample with 1 factors, not 0; name another"):
        claim(tmp_path / "a", samples.study(factors=()))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/thesis.txt").touch()
    with pytest.raises(Refusal, match="holds other files and no study"):
        claim(tmp_path / "b", samples.study())
    with pytest.raises(Refusal, match="holds no study.json"):
        store.read(tmp_path / "b")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("env", "should have {command} in it"),
        ("sh -c 'cd /x; {command}'", "should have {command} or {quoted} as words of their own"),
        ("env 'a", "can't be split into words"),
    ],
)
def test_a_template_that_can_start_nothing_is_refused(template, expected):
    runner.check_template("env {command}")
    with pytest.raises(Refusal, match=re.escape(expected)) as refused:
        runner.check_template(template)
    assert str(refused.value).startswith(f"--launch={template}: ")


EVERY_SIGN = "".join(map(chr, range(33, 127))) + " $(touch X)`touch X`;touch X&touch X{slot}{name}"


SHELLS = ["env {command}", "sh -c {quoted}", "sh -c '\"$@\"' sh {command}"]


@pytest.mark.parametrize("shell", SHELLS)
def test_values_reach_the_run_as_they_are_through_any_template(tmp_path, monkeypatch, shell):
    settings = {"author": EVERY_SIGN, "data_dir": EVERY_SIGN, "hardware": "{quoted}{command}$(id)"}
    level = Level("$(touch X)`touch X`; {quoted} {slot} & touch X", {"batch_size": 32})
    study = samples.study(settings=settings, factors=(Factor("$(touch X)", (level,)),))
    (planned, *_) = grid.plan(study)
    text = f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open('said', 'w'))\n"
    show = script(tmp_path / "python", text)
    monkeypatch.setattr(runner.machine, "python", lambda: [str(show)])
    words = runner.build_arguments(planned, tmp_path / planned.name, shell, 3, timed=False)
    subprocess.run(words, cwd=tmp_path, check=True)
    said = json.loads((tmp_path / "said").read_text())
    assert said[:2] == ["-m", "dawnbench_tf.train"]
    assert said[2:-1] == list(planned.flags) and f"--author={EVERY_SIGN}" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["python", "said"]


@pytest.mark.long
def test_a_killed_study_s_run_is_waited_for_and_never_started_twice(tmp_path, template):
    slow = script(tmp_path / "slow", f'sleep 1.5\nexec {template.split()[0]} "$@"')
    first = start(tmp_path / "s", f"{slow} {{command}}", trials=1, jobs=2)
    wait_for(lambda: len(list(tmp_path.glob("s/*/*/log.txt"))) == 2)
    first.kill()
    first.communicate()
    second = start(tmp_path / "s", f"{slow} {{command}}", trials=1, jobs=2)
    said = second.communicate()[1]
    assert second.returncode == 0, said
    assert starts(tmp_path / "s") == {"32/seed-0": ONCE, "64/seed-0": ONCE}
    assert len(list(tmp_path.glob("s/*/*/outcome.json"))) == 2


def test_a_run_that_ignores_the_signal_is_killed_at_the_second(tmp_path):
    text = f'trap "" TERM INT\necho $$ > {tmp_path}/pid\nwhile :; do sleep 0.1; done'
    deaf = script(tmp_path / "deaf", text)
    process = start(tmp_path / "s", f"{deaf} {{command}}", trials=1)
    wait_for((tmp_path / "pid").exists)
    time.sleep(0.3)  # the runner has noted the run that it started
    process.send_signal(signal.SIGINT)
    assert any("Ctrl-C again" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")


def test_what_is_ignored_stays_ignored_as_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handling_signals(lambda *_: pytest.fail("it is handled")):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
