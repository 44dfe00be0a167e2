"""All commands behind one: `dawnbench train ...`."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import dawnbench_tf
from dawnbench_tf import __main__ as main


def run(*arguments, program=("-m", "dawnbench_tf")):
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_every_command_is_named_with_what_it_is_for():
    ended = run("--help")
    assert ended.returncode == 0 and "TensorFlow" not in ended.stderr
    for name in ("train", "infer", "answer", "entries", "leaderboard", "recipes"):
        assert name in main.commands() and f"  {name}  " in ended.stdout
    assert run().stdout == ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_the_version_is_the_package_s():
    assert run("--version").stdout == f"dawnbench_tf {dawnbench_tf.__version__}\n"


def test_arguments_and_exit_status_are_the_command_s():
    ended = run("train", "--bach_size=1")
    assert ended.returncode == 1
    assert "Unknown command line flag 'bach_size'. Did you mean: batch_size" in ended.stderr
    ended = run("leaderboard", "--dataset=SQuAD", "--top=1")
    assert ended.returncode == 0 and "SQuAD, training time" in ended.stdout
    assert "--recipe" in run("train", "--help").stdout


def test_recipes_are_listed_and_shown_and_a_typo_gets_the_nearest():
    assert "digits/resnet8 " in run("recipes").stdout
    assert "--weight_decay=0.0005" in run("recipes", "digits/resnet8").stdout
    assert "--momentum=0.9" in run("recipes", "digits/resnet8", "--all").stdout
    ended = run("recipes", "digits/resnet")
    line = "recipes: --recipe=digits/resnet: no such recipe; did you mean digits/resnet8?\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", line)


@pytest.mark.parametrize(
    ("name", "hint"), [("trian", "did you mean train?"), ("x", "should be one of answer, doc")]
)
def test_a_typo_is_one_line(name, hint):
    ended = run(name)
    assert ended.returncode == 1 and hint in ended.stderr and ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"dawnbench: {name}: no such command")


def test_the_console_script_is_this_main():
    (script,) = entry_points(group="console_scripts", name="dawnbench")
    assert script.load() is main.main
