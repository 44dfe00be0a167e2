"""All commands behind one: `dawnbench train ...`."""

import csv
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import dawnbench_tf
from dawnbench_tf import __main__ as main
from dawnbench_tf import models


def run(*arguments, program=("-m", "dawnbench_tf")):
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_every_command_is_named_with_what_it_is_for():
    ended = run("--help")
    assert ended.returncode == 0 and "TensorFlow" not in ended.stderr
    for name in ("train", "infer", "predict", "entries", "leaderboard", "recipes"):
        assert name in main.commands() and f"  {name}  " in ended.stdout
    assert run().stdout == ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_the_version_is_the_package_s():
    assert run("--version").stdout == f"dawnbench_tf {dawnbench_tf.__version__}\n"


def test_an_interrupt_among_a_command_s_imports_is_a_line(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(main.runpy, "run_module", interrupted)
    monkeypatch.setattr(sys, "argv", ["dawnbench", "study"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "dawnbench study: interrupted\n"


def test_recipes_are_listed_and_shown_and_a_typo_gets_the_nearest():
    assert "digits/resnet8 " in run("recipes").stdout
    assert "--momentum=0.9" in run("recipes", "digits/resnet8", "--all").stdout
    ended = run("recipes", "digits/resnet")
    line = "--recipe=digits/resnet: no such recipe; did you mean digits/resnet8?"
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"dawnbench recipes: {line}\n"


def test_models_are_listed_with_the_catalogue_s_figures():
    rows = list(csv.DictReader(run("models", "--csv").stdout.splitlines()))
    assert [row["model"] for row in rows] == models.names()
    for row in rows:
        variant = models.get(row["model"])
        assert int(row["parameters"]) == variant.parameters and row["source"] == variant.source
        assert all(row[name] for name in ("block", "shortcut", "activation"))
    (row,) = [row for row in rows if row["model"] == "resnet50_v1_5"]
    assert (row["multiply-adds"], row["top-1"]) == ("4089184256", "76.13")
    assert row["block"] == "bottleneck, stride in the 3x3"
    assert "imagenet/resnet50_v1_5" in row["recipes"].split()


def test_a_pattern_chooses_models_and_a_typo_gets_the_nearest():
    head, row = run("models", "resnet50_v1_5").stdout.splitlines()
    assert head.split()[:4] == ["model", "parameters", "multiply-adds", "top-1"]
    assert row.split()[:4] == ["resnet50_v1_5", "25,557,032", "4,089,184,256", "76.13"]
    ended = run("models", "resnet20*", "resnet56tf")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "did you mean resnet56_tf?" in ended.stderr
    assert "did you mean 'resnet50*'?" in run("models", "resnet50").stderr


@pytest.mark.parametrize(
    ("name", "hint"), [("trian", "did you mean train?"), ("x", "should be one of doctor, ent")]
)
def test_a_typo_is_one_line(name, hint):
    ended = run(name)
    assert ended.returncode == 1 and hint in ended.stderr and ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"dawnbench: {name}: no such command")


def test_the_console_script_is_this_main():
    (script,) = entry_points(group="console_scripts", name="dawnbench")
    assert script.load() is main.main
