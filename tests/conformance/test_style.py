"""Shape: few arguments, telling names, no setting that nothing reads."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from dawnbench_tf import answer, doctor, entries, estimate, infer, leaderboard, study, train
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import (
    Average,
    Images,
    Jpegs,
    Network,
    Optimizer,
    Questions,
    Recipe,
    Schedule,
)
from dawnbench_tf.recipes import __main__ as recipes_command
from dawnbench_tf.tasks import Task

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in ROOT.glob("dawnbench_tf/**/*.py") if "dawnbench_tf/models" not in str(path)),
    *ROOT.glob("models/**/*.py"),
    *ROOT.glob("scripts/*.py"),
]
MANY_ARGUMENTS = {
    "cifar_resnets.body": "the arguments are the family",
    "imagenet_resnets.body": "the arguments are the family",
    "resnet9s.body": "the arguments are the family",
    "bidafs.body": "the arguments are the family",
    "drqas.body": "the arguments are the family",
    "fastfusionnets.body": "the arguments are the family",
    "qanets.body": "the arguments are the family",
    "berts.body": "the arguments are the family",
    "airbench.body": "the arguments are the family",
    "networks._build_classifier": "the arguments are those of models.build",
    "blocks.bottleneck": "four of them are what networks differ in, by keyword",
    "settings.setting": "all but two of them by keyword, each a property of a flag",
    "tta.TimeToAccuracy.__init__": "each has a default, and a use in somebody's fit",
}


def functions():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef):
                        item.owner = f"{node.name}."
            if isinstance(node, ast.FunctionDef):
                yield f"{path.stem}.{getattr(node, 'owner', '')}{node.name}", node


def test_functions_have_at_most_7_arguments():
    many = {
        name
        for name, node in functions()
        if len([a for a in node.args.args + node.args.kwonlyargs if a.arg not in ("self", "cls")])
        > 7
    }
    assert many == set(MANY_ARGUMENTS)


def test_files_are_named_for_what_they_hold():
    for path in FILES:
        assert path.stem not in {"utils", "helpers", "common", "core", "misc", "base"}, path


NO_NOUNS = set("found made it told known given asked seen what why at place places".split())
IDIOM = re.compile(
    r"\A(What|Those|Such|So|With|That|Which|Of) |\b(so many|as many as|likewise|of like)\b", re.I
)


@pytest.mark.parametrize("path", [*FILES, *ROOT.glob("tests/**/*.py")], ids=lambda p: p.stem)
def test_a_local_is_named_after_what_it_is(path):
    """One name for everything says nothing: `serving`, `task`, `latencies`, not `found`."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    names = stored | arguments | functions
    assert not NO_NOUNS & names
    assert not {name for name in names if re.match(r"_?of(_|$)", name)}  # nouns: `context_keys`


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_docstring_is_a_sentence_that_stands_alone(path):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    texts = [" ".join((ast.get_docstring(node) or "").split()) for node in nodes]
    assert not [text for text in texts if IDIOM.search(text)]


PROTOCOL = re.compile(
    r"_|on_|(call|compute_mask|parse|find_class|flag_type|compute_output_shape|get_config|from_config|main)$"
)


def test_every_module_and_public_function_says_what_it_is():
    for path in FILES:
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in [*tree.body, *(item for cls in classes for item in cls.body)]:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not PROTOCOL.match(node.name):
                assert ast.get_docstring(node), f"{path}: {node.name}"


COMMANDS = [
    module.Options
    for module in (
        answer,
        doctor,
        entries,
        estimate,
        infer,
        leaderboard,
        recipes_command,
        study,
        train,
    )
]
PARTS = [Recipe, Network, Optimizer, Schedule, Average, Images, Jpegs, Questions]


@pytest.mark.parametrize("cls", [*PARTS, RunOptions, Credits, Task, *COMMANDS])
def test_every_setting_is_read_somewhere(cls):
    assert not {item.name for item in fields(cls)} - attributes_read()


@cache
def attributes_read():
    nodes = (node for path in FILES for node in ast.walk(ast.parse(path.read_text())))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.ctx, ast.Load)}


def test_the_benchmark_s_constants_live_in_tasks():
    for path in FILES:
        if (
            path.stem in ("tasks", "catalog", "rows")
            or "recipes" in str(path)
            or path.parent.name == "scripts"
        ):
            continue
        numbers = {
            node.value for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        }  # fmt: skip
        assert not numbers & {94.0, 98.0, 50_000, 1_297}, path
