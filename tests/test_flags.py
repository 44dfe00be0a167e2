"""Flags from fields: what --help shows, what a wrong one is told, and that TensorFlow stays out."""

import contextlib
import os
import signal
import subprocess
import sys
from itertools import islice

import pytest

from dawnbench_tf import doctor, flags, machine, recipes, terminal, train
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.settings import all_settings
from tests import warm

NO_TENSORFLOW = """
import sys
sys.argv = ["train.py", {flag!r}]
import atexit, runpy
loaded = lambda: "TENSORFLOW" if "tensorflow" in sys.modules else "CLEAN"
atexit.register(lambda: print(loaded(), file=sys.stderr))
runpy.run_module("dawnbench_tf.train", run_name="__main__")
"""


def flags_of(text):
    """The names of the flags in a help text, by its headings."""
    groups = {}
    for line in text.splitlines():
        if line and not line.startswith(" ") and line.endswith(":"):
            names = groups.setdefault(line[:-1], [])
        elif line.startswith("  --"):
            names.append(line.split()[0].removeprefix("--").removeprefix("[no]"))
    return groups


def test_helpfull_shows_a_flag_for_every_setting_in_its_group(cold_command):
    done = cold_command(program=("-c", NO_TENSORFLOW.format(flag="--helpfull")))
    assert done.stderr == "CLEAN\n"
    groups = flags_of(done.stdout)
    names = [name for group in groups.values() for name in group]
    assert sorted(names) == sorted({**all_settings(train.Options), **all_settings(Recipe)})
    assert [*groups][:3] == ["what to train", "output", "where and on what"]
    for group, name in (
        ("what to train", "epochs"),
        ("where and on what", "strategy"),
        ("optimizer and schedule", "schedule_epochs"),
        ("averages", "lookahead"),
        ("images", "image_sizes"),
        ("images", "flip"),
        ("questions", "tokenizer"),
        ("output", "output_dir"),
    ):
        assert name in groups[group]


def test_help_is_short_and_says_where_the_rest_is(cold_command):
    ended = [cold_command(flag) for flag in ("--help", "--helpshort")]
    text = ended[0].stdout
    assert all((each.returncode, each.stdout) == (0, text) for each in ended)
    assert text.count("\n") <= 40 and "--helpfull has" in text
    assert {name for names in flags_of(text).values() for name in names} == set(train.COMMON)
    text = cold_command("--task=folder", "--help").stdout
    own = {name for names in flags_of(text).values() for name in names} - set(train.COMMON)
    assert own == set(train.OWN_DATA) >= {"model", "validation_share", "image_sizes", "pretrained"}


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("--bach_size=1", "Unknown command line flag 'bach_size'. Did you mean: batch_size"),
        ("--nope", "Unknown command line flag 'nope'. Did you mean: noflip"),
        ("--batch_size=many", "flag --batch_size=many: should be a whole number"),
        ("--strategy=tpus", "flag --strategy=tpus: value should be one of <off|one_device|"),
        ("--schedule_epochs=1,x", "flag --schedule_epochs=1,x: should be comma-separated numbers"),
        ("--noflip=1", "--noflip=1 does not take an argument"),
        ("--flip=maybe", "flag --flip=maybe: should be true or false"),
        ("--model=bidaf", "--model=bidaf: takes questions, and digits has images"),
        ("--author_email=foo", "--author_email=foo: should be an address: NAME@HOST"),
        ("--profile_steps=9,3", "--profile_steps=9,3: should be FIRST,LAST"),
    ],
)
def test_a_wrong_flag_is_one_line_status_1_and_needs_no_tensorflow(cold_command, flag, line):
    done = cold_command(program=("-c", NO_TENSORFLOW.format(flag=flag)))
    assert (done.returncode, done.stdout) == (1, "")
    first, last = done.stderr.splitlines()
    assert first.startswith(f"dawnbench train: {line}") and last == "CLEAN"


def test_flags_replace_only_what_they_name(monkeypatch):
    argv = ["train.py", "--recipe=cifar10/resnet56_tf", "--epochs=3", "--schedule_epochs=1,2,2.5"]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(flags.app, "run", lambda main, flags_parser: flags_parser(argv))
    flags.run(train.main, train.Options, replaces=Recipe)
    options, changes = flags.read(train.Options), flags.replacements(Recipe)
    assert changes == {"epochs": 3, "schedule_epochs": (1, 2, 2.5)}
    recipe, row = recipes.get(options.recipe, **changes), recipes.get("cifar10/resnet56_tf")
    own, theirs = recipe.values(), row.values()
    changed = {name for name in own if own[name] != theirs[name]}
    assert changed == {"epochs", "schedule_epochs"}
    assert options.run == RunOptions()


def test_run_options_made_in_python_are_checked_too():
    with pytest.raises(Refusal, match="--strategy=tpus: should be one of"):
        RunOptions(strategy="tpus")
    for name, text in (("author", ""), ("author", " Ada"), ("hardware", " "), ("hardware", "a\n")):
        with pytest.raises(Refusal, match=f"--{name}.*: should be text on one line, no spaces"):
            Credits(**{name: text})  # the entry would be refused after the training


def test_a_path_that_no_file_can_have_is_one_line():
    for name in ("entries validate ", "infer --model=", "study report ", "leaderboard "):
        command = [*warm.python(), "-m", *f"dawnbench_tf.{name}{'n' * 5000}".split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1 and "File name too long" in done.stderr
        assert done.stderr.count("\n") == 1 and len(done.stderr) < 300


def test_a_working_folder_that_is_gone_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(flags, "read", lambda _: None)
    monkeypatch.setattr(terminal, "_shows", True)
    monkeypatch.setattr(machine, "git_revision", str)
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with flags.handling_signals(signal.default_int_handler), pytest.raises(SystemExit) as ended:
        flags._in_frame(lambda *_: os.getcwd(), object, {}, "", [""])
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1 and "working or the temporary folder: can't be opened" in line
    assert "disk" in [row.name for row in islice(doctor.examine(steps=False), 5)]


def test_an_error_that_an_interrupt_causes_is_the_interrupt(monkeypatch, tmp_path, capsys):
    def main(*_):
        with contextlib.suppress(KeyboardInterrupt):  # as TensorFlow's bindings do
            os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("MISMATCH of exception types")

    def without_cache(*_):
        raise OSError("Matplotlib requires a writable cache: set MPLCONFIGDIR")

    monkeypatch.setattr(flags, "read", lambda _: None)
    monkeypatch.setattr(terminal, "_shows", True)
    monkeypatch.setattr(flags, "SECONDS_TO_UNWIND", 100)
    monkeypatch.setattr(flags, "exit_with", lambda line, status=1, **_: sys.exit((line, status)))
    with flags.handling_signals(signal.default_int_handler), pytest.raises(SystemExit) as ended:
        flags._in_frame(without_cache, object, {}, "", [""])
    assert ended.value.code[0].endswith("set MPLCONFIGDIR")
    with flags.handling_signals(signal.default_int_handler), pytest.raises(SystemExit) as ended:
        flags._in_frame(main, object, {}, "go on", [""])
    assert ended.value.code == ("interrupted; go on", 143)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
