"""Folders are the layers: who imports whom is what each folder's docstring says, and no more."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
IMPORTING = runpy.run_path(str(ROOT / "scripts/changed_tests.py"))
MODULES = IMPORTING["modules"]()
COMMANDS = IMPORTING["commands"](MODULES)
IMPORTS = {name: IMPORTING["imports"](name, MODULES) for name in MODULES}
PACKAGES = {name: path for name, path in MODULES.items() if path.name == "__init__.py"}
# A Keras callback, for anybody's fit; its public path is at the top.
NEEDS_TENSORFLOW_AT_THE_TOP = {"dawnbench_tf.tta"}
# Kept free of it as well: what flags and scores are made of.
LIGHT = ("dawnbench_tf.inference.runtimes", "dawnbench_tf.data.questions.spans")


def declared(package, word):
    """What a folder's docstring lists after "May import:" or "Never:", as names of modules."""
    text = " ".join(ast.get_docstring(ast.parse(PACKAGES[package].read_text())).split())
    match = re.search(rf"{word}: (.+?)\.(?= |$)", text)
    items = re.sub(r"\([^)]*\)", "", match[1]).split(",") if match else []
    return {item.strip() for item in items} - {"nothing of dawnbench_tf"}


def home(name):
    """The folder that a module is in."""
    return name if name in PACKAGES else name.rpartition(".")[0]


def inside(name, item):
    """Whether a module is in a room, or one of the shared modules at the top."""
    if item == "the shared modules":
        return home(name) == "dawnbench_tf" and name not in COMMANDS
    return name == f"dawnbench_tf.{item}" or name.startswith(f"dawnbench_tf.{item}.")


def test_a_folder_says_what_lives_there_and_a_module_imports_what_its_folder_may():
    faults = []
    for package, path in PACKAGES.items():
        silent = "nothing of dawnbench_tf" not in path.read_text()
        if silent and not declared(package, "May import"):
            faults.append(f"{package} does not say what it may import")
    for name in sorted(set(MODULES) - COMMANDS):
        package = home(name)
        may, never = declared(package, "May import"), declared(package, "Never")
        allowed = [*may, "the shared modules"] if package == "dawnbench_tf" else may
        top_levels = {item.lower() for item in never}
        for target in IMPORTS[name]:
            if target.split(".")[0].lower() in top_levels:
                if name not in NEEDS_TENSORFLOW_AT_THE_TOP:
                    faults.append(f"{name} imports {target}")
            own = target == "dawnbench_tf" or f"{home(target)}.".startswith(f"{package}.")
            if target in MODULES and (package == "dawnbench_tf" or not own):
                forbidden = any(inside(target, item) for item in never)
                if forbidden or not any(inside(target, item) for item in allowed):
                    faults.append(f"{name} imports {target}; its folder may import {may}")
    assert faults == []


def test_nobody_imports_a_command_and_no_room_is_in_a_circle():
    """A room is a file or folder at the top of dawnbench_tf/."""
    assert all(not IMPORTS[name] & COMMANDS for name in MODULES)
    rooms = {name: name.split(".")[1] for name in MODULES if "." in name}
    edges = {room: set() for room in rooms.values()}
    for name in set(rooms) - COMMANDS:
        edges[rooms[name]] |= {rooms[item] for item in IMPORTS[name] & set(rooms)} - {rooms[name]}
    TopologicalSorter(edges).prepare()


def test_names_alone_and_rules_import_without_tensorflow():
    without = [
        name
        for name in sorted(set(MODULES) - COMMANDS)
        if "TensorFlow" in declared(home(name), "Never") - NEEDS_TENSORFLOW_AT_THE_TOP
        and name not in NEEDS_TENSORFLOW_AT_THE_TOP
    ]
    assert len(without) > 30
    program = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    assert "tensorflow" not in sys.modules, name
"""
    names = ["dawnbench_tf.models", *LIGHT, *without]
    ended = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_commands_say_what_they_take_without_tensorflow():
    program = """
import contextlib, io, json, os, runpy, sys
for name in sys.argv[1:]:
    if not os.fork():  # a command's flags are its process's
        sys.argv, printed = ["x", "--help"], io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        facts = name, printed.getvalue(), "tensorflow" in sys.modules
        os.write(1, json.dumps(facts).encode() + b"\\n")
        os._exit(0)
    os.wait()
"""
    command = [sys.executable, "-c", program, *sorted(COMMANDS)]
    ended = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {name for name, _, _ in lines} == COMMANDS, ended.stderr
    assert not [name for name, text, loaded in lines if loaded or len(text) <= 100]
    assert not [name for name, text, _ in lines if max(map(len, text.splitlines())) > 80]


DISTRIBUTIONS = {  # imported name: what is installed, where the two differ
    "PIL": "pillow",
    "absl": "absl-py",
    "ai_edge_litert": "ai-edge-litert",
    "official": "tf-models-official",
    "pynvml": "nvidia-ml-py",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
}


def required(*extras):
    """Names of what the installed package requires, with these extras; of all with none."""
    environments = [{"extra": extra} for extra in extras]
    return {
        row.name.lower()
        for row in map(Requirement, metadata.requires("dawnbench_tf"))
        if not extras or not row.marker or any(map(row.marker.evaluate, environments))
    }


def test_what_is_imported_is_declared():
    imported = {target.split(".")[0] for targets in IMPORTS.values() for target in targets}
    others = imported - set(sys.stdlib_module_names) - {"dawnbench_tf"}
    assert {DISTRIBUTIONS.get(name, name) for name in others} <= required()


def test_bazel_s_targets_have_all_files_and_depend_on_what_they_import():
    """A BUILD file is Python here: each rule records its sources, data and deps."""
    folder, targets, binaries = ROOT / "dawnbench_tf", {}, {}

    def files(include, exclude=()):
        paths = {str(path.relative_to(folder)) for item in include for path in folder.glob(item)}
        return sorted(paths - set(exclude))

    def library(name, srcs, data=(), deps=()):
        targets[f":{name}"] = (srcs, data, set(deps))

    rules = {"py_library": library, "glob": files, "package": lambda **_: None}
    rules["py_binary"] = lambda name, srcs, deps: binaries.update({name: (srcs, deps)})
    exec(compile((folder / "BUILD").read_text(), "BUILD", "exec"), rules)

    # Each file is in one target; by_path: module's file -> its target.
    by_path = {path: name for name, (srcs, _, _) in targets.items() for path in srcs}
    by_name = {
        name: str(path.relative_to(ROOT)).removeprefix("dawnbench_tf/")
        for name, path in MODULES.items()
    }
    assert sum(len(srcs) for srcs, _, _ in targets.values()) == len(by_path)
    assert set(by_path) == set(by_name.values())
    data = {path for _, paths, _ in targets.values() for path in paths}
    python = files(["**/*.py", "**/*.pyc", "py.typed"])
    assert data == set(files(["**/*.*", "models/*.tsv"])) - set(python)
    assert {name: srcs for name, (srcs, _) in binaries.items()} == {
        name.removesuffix(".py"): [name] for name in map(by_name.get, COMMANDS)
    }
    assert all(deps == [":commands"] for _, deps in binaries.values())

    imported = {name: set() for name in targets}
    for name, path in by_name.items():
        imported[by_path[path]] |= {by_path[by_name[item]] for item in IMPORTS[name] & set(MODULES)}
    stated = {name: deps for name, (_, _, deps) in targets.items()}
    assert stated == {name: deps - {name} for name, deps in imported.items()}
    TopologicalSorter(stated).prepare()


def test_importing_the_models_changes_nothing_in_the_importer_s_world():
    program = """
import os, sys
import tensorflow as tf
policy, layout = tf.keras.mixed_precision.global_policy().name, tf.keras.backend.image_data_format()
before = dict(os.environ)
from dawnbench_tf import models
models.build("resnet8_v1_pad", dtype="mixed_bfloat16", data_format="NCHW")
assert before == dict(os.environ)
assert policy == tf.keras.mixed_precision.global_policy().name
assert layout == tf.keras.backend.image_data_format()
ours = {name for name in sys.modules if name.startswith("dawnbench_tf.")}
assert all(name.startswith("dawnbench_tf.models") for name in ours)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]


BASE = required("")
HARNESS = required("harness") - BASE
IMPORTED = {distribution: name for name, distribution in DISTRIBUTIONS.items()}
WITHOUT_HARNESS = f"""
import sys
from graphlib import TopologicalSorter
from importlib.machinery import PathFinder

class Others(PathFinder):
    absent = {sorted(IMPORTED.get(name, name.replace("-", "_")) for name in HARNESS)}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in cls.absent else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Others
"""


def without_harness(program, *arguments):
    """Runs a program where only what `pip install .` brings can be imported."""
    command = [sys.executable, "-c", WITHOUT_HARNESS + program, *arguments]
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_models_callback_and_rules_work_without_the_harness():
    assert {"tensorflow", "keras", "numpy", "h5py"} <= BASE and {"tf-keras", "pillow"} <= HARNESS
    ended = without_harness("""
import numpy as np, tensorflow as tf
from dawnbench_tf import models
from dawnbench_tf.tta import TimeToAccuracy
model = models.build("resnet8_v1_pad", input_shape=(8, 8, 3))
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.zeros((8, 8, 8, 3)), np.zeros(8)
timer = TimeToAccuracy(0, "val_loss", mode="min")
model.fit(x, y, validation_data=(x, y), verbose=0, callbacks=[timer])
assert len(timer.rows) == 1
""")
    assert ended.returncode == 0, ended.stderr[-2000:]
    ended = without_harness("from dawnbench_tf.__main__ import main; main()", "leaderboard")
    assert ended.returncode == 0 and "CIFAR10, training time" in ended.stdout


@pytest.mark.parametrize("command", [["train"], ["leaderboard", "--html=out"]])
def test_a_command_says_what_it_lacks(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = without_harness("from dawnbench_tf.__main__ import main; main()", *command)
    assert ended.returncode == 1
    install = re.escape(f'pip install "{ROOT}[harness]" has all')
    words = f"(tf_keras|jinja2) is not installed; {install}"
    assert re.search(words, ended.stderr.splitlines()[-1])
    assert not list(tmp_path.iterdir())
