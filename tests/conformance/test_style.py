"""Rules that ruff lacks: names, sentences of docstrings, settings that some code reads."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from dawnbench_tf import doctor, entries, estimate, infer, leaderboard, predict, study, train
from dawnbench_tf.recipe import Average, Images, Network, Optimizer, Questions, Recipe, Schedule
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.recipes import __main__ as recipes_command
from dawnbench_tf.tasks import Task

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in ROOT.glob("dawnbench_tf/**/*.py") if "dawnbench_tf/models" not in str(path)),
    *ROOT.glob("models/**/*.py"),
    *ROOT.glob("scripts/*.py"),
]


@pytest.fixture(scope="module")
def trees():
    """The syntax tree of each file of the product, the scripts and the tests."""
    paths = [*FILES, *ROOT.glob("tests/**/*.py")]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_files_are_named_for_what_they_hold():
    for path in FILES:
        assert path.stem not in {"utils", "helpers", "common", "core", "misc", "base"}, path


NO_NOUNS = set("found made it told known given asked seen what why at place places".split())
IDIOM = re.compile(
    r"\A(What|Those|Such|So|With|That|Which|Of) |\b(so many|as many as|likewise|of like)\b", re.I
)


def test_a_local_is_named_after_what_it_is(trees):
    """One name for everything says nothing: `serving`, `task`, `latencies`, not `found`."""
    faults = []
    for path, tree in trees.items():
        nodes = list(ast.walk(tree))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
        functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        for name in stored | arguments | functions:
            if name in NO_NOUNS or re.match(r"_?of(_|$)", name):  # nouns: `context_keys`
                faults.append(f"{path}: {name}")
    assert faults == []


def test_a_docstring_is_a_sentence_that_stands_alone(trees):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    faults = []
    for path in FILES:
        nodes = [node for node in ast.walk(trees[path]) if isinstance(node, kinds)]
        texts = (" ".join((ast.get_docstring(node) or "").split()) for node in nodes)
        faults += [f"{path}: {text}" for text in texts if IDIOM.search(text)]
    assert faults == []


COMMANDS = [predict, doctor, entries, estimate, infer, leaderboard, recipes_command, study, train]
PARTS = [Recipe, Network, Optimizer, Schedule, Average, Images, Questions]


def test_every_setting_is_read_somewhere(trees):
    nodes = (node for path in FILES for node in ast.walk(trees[path]))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    read = {node.attr for node in attributes if isinstance(node.ctx, ast.Load)}
    classes = [*PARTS, RunOptions, Credits, Task, *(command.Options for command in COMMANDS)]
    assert [item.name for cls in classes for item in fields(cls) if item.name not in read] == []


def test_the_benchmark_s_constants_live_in_tasks(trees):
    for path in FILES:
        exempt = path.stem in ("tasks", "catalog", "rows") or path.parent.name == "scripts"
        if exempt or "recipes" in str(path):
            continue
        numbers = {
            node.value for node in ast.walk(trees[path])
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        }  # fmt: skip
        assert not numbers & {94.0, 98.0, 50_000, 1_297}, path
