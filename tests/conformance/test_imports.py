"""Who may import whom, downwards only; BUILD says the same; names alone stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = {
    f"dawnbench_tf.{name}" for name in ("answer", "entries", "infer", "leaderboard", "train")
}
RULES = {
    f"dawnbench_tf.{name}"
    for name in (
        "clock costs entry entry_rules entry_source field_rules files latency options rankings "
        "recipe recipes recipes.cifar10 recipes.digits recipes.qa_mini recipes.squad results "
        "review_rules row_rules run_entry scores settings spans tasks"
    ).split()
}
SQUAD_RULES = "official.nlp.tools"  # the evaluator's package, which imports no TensorFlow
FILES = sorted(ROOT.glob("dawnbench_tf/**/*.py")) + sorted(ROOT.glob("models/*.py"))
FILES = [path for path in FILES if "dawnbench_tf/models" not in str(path)]


def module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("dawnbench_tf", *parts) if parts[0] == "models" else parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


def imports(path):
    """Modules that a file imports, anywhere in it, as absolute names."""
    home, found = module(path), set()
    package = home if path.name == "__init__.py" else home.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (package if node.level else "", node.module)))
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else base for name in names}
    return {name for name in found if name not in ("dawnbench_tf", home)}


@pytest.mark.parametrize("path", FILES, ids=module)
def test_imports_point_downwards(path):
    home, found = module(path), imports(path)
    ours = {name for name in found if name in MODULES}
    assert not ours & COMMANDS
    if home.startswith("dawnbench_tf.models"):
        assert all(name.startswith("dawnbench_tf.models") for name in ours)
    if home in RULES:
        assert ours <= RULES | {"dawnbench_tf.models"}
        outside = {name.split(".")[0] for name in found - {SQUAD_RULES}}
        assert not outside & {"tensorflow", "official", "keras"}


def targets(path):
    """The targets of a BUILD file: name -> (file, labels)."""
    found = {}

    def target(name, srcs, deps=(), data=()):
        found[name] = srcs[0], set(deps)

    rules = {"py_library": target, "py_binary": target, "package": lambda **_: None}
    exec(compile(path.read_text(), str(path), "exec"), rules)  # a BUILD file is Python here
    return found


def label(name, package):
    """A module's label as `package` writes it."""
    path = MODULES[name]
    folder = str(path.parent.relative_to(ROOT)).replace("models", "dawnbench_tf/models")
    target = folder.rpartition("/")[2] if path.name == "__init__.py" else path.stem
    return f":{target}" if folder == package else f"//{folder}:{target}"


@pytest.mark.parametrize(
    "folder",
    ["models", "dawnbench_tf", "dawnbench_tf/data", "dawnbench_tf/pages", "dawnbench_tf/recipes"],
)
def test_build_files_have_a_target_per_file_with_its_true_dependencies(folder):
    package = "dawnbench_tf/models" if folder == "models" else folder
    found = targets(ROOT / folder / "BUILD")
    files = {path.name: path for path in (ROOT / folder).glob("*.py")}
    assert {file for file, _ in found.values()} == set(files)
    for file, deps in found.values():
        wanted = {label(name, package) for name in imports(files[file]) if name in MODULES}
        by_name = wanted ^ deps  # families and data sets are imported by name, when they are needed
        assert not by_name or "import_module" in files[file].read_text(), (file, by_name)
        assert by_name <= {f":{path.stem}" for path in files.values()}


@pytest.mark.parametrize("name", ["dawnbench_tf", "dawnbench_tf.models", *sorted(RULES)])
def test_rules_and_the_catalogue_import_without_tensorflow(name):
    program = f"import {name}, sys; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
