"""The scripts: failures of quickstart.sh, docs.sh and test.sh, generated documents."""

import ast
import csv
import math
import os
import re
import runpy
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.recipe.evidence import Measured

ROOT = Path(__file__).parent.parent


@pytest.fixture
def clone(tmp_path):
    """A folder with the scripts, and a PATH with the shell's own tools only."""
    shutil.copytree(ROOT / "scripts", tmp_path / "clone/scripts")
    for name in ("setup.py", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / "clone" / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "cksum", "cut", "df", "awk", "dirname", "basename"):
        (tools / name).symlink_to(shutil.which(name))
    return tmp_path


def run(clone, script, *arguments):
    return subprocess.run(
        ["bash", str(clone / "clone/scripts" / script), *arguments],
        cwd="/",
        env={"PATH": str(clone / "bin"), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
    )


def add(clone, name, text):
    path = clone / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("script", ["quickstart.sh", "docs.sh", "test.sh"])
def test_without_a_python_that_will_do_or_on_a_full_disk_the_script_says_so(clone, script):
    add(clone, "python3", "exit 1")  # another version: the check of it fails
    done = run(clone, script)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{script}: needs Python 3.11, 3.12 or 3.13 with venv on PATH")
    add(clone, "python3.11", "exit 0")
    add(clone, "df", "echo Filesystem; echo /dev/sda 9 8 1048576 89% /")
    done = run(clone, script)
    assert done.returncode == 1
    assert "needs 5 GB of free disk" in done.stderr and "found 1 GB" in done.stderr
    assert not (clone / "clone/.venv").exists()


def test_the_modes_of_the_suite_are_told_without_an_install(clone):
    done = run(clone, "test.sh", "--help")
    assert done.returncode == 0 and not (clone / "clone/.venv").exists()
    for mode in ("--long", "--changed", "--lint"):
        assert f"scripts/test.sh {mode} " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_scripts_are_executable_and_ci_runs_the_tests():
    for path in ("scripts/quickstart.sh", "scripts/docs.sh", "scripts/test.sh", ".ci/run"):
        assert os.access(ROOT / path, os.X_OK)
    assert (ROOT / ".ci/run").read_text().endswith("exec bash scripts/test.sh\n")


@pytest.fixture
def scripts(monkeypatch):
    """Makes scripts importable by one another."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return lambda name: runpy.run_path(str(ROOT / f"scripts/{name}.py"))


TOUCHED = {  # a changed file: the first test that is run
    "models/drqas.py": "tests/models/test_drqas.py",
    "models/blocks.py": "tests/models/test_models.py",
    "dawnbench_tf/tta.py": "tests/test_tta.py",
    "dawnbench_tf/clock.py": "dawnbench_tf/clock.py",  # its doctest
    "dawnbench_tf/inference/runtimes/builders.py": "tests/inference/test_runtimes.py",
    "tests/faults/victim.py": "tests/faults/test_kills.py",
    "tests/test_clock.py": "tests/test_clock.py",
    "tests/conformance/test_rooms.py": "tests/conformance/test_rooms.py",
    "docs/training.md": "tests/test_scripts.py",
    "dawnbench_tf/submission/instances.tsv": "dawnbench_tf/submission/prices.py",
}


def test_a_change_touches_the_tests_that_import_it(scripts):
    touched = scripts("changed_tests")["touched"]
    for path, first in TOUCHED.items():
        assert (ROOT / path).exists()
        files = touched([path])
        assert files[0] == first, path
        assert all((ROOT / file).exists() for file in files)
    files = touched(["dawnbench_tf/training/checkpoints.py"])
    assert files[0] == "tests/training/test_checkpoints.py"
    assert {"tests/test_train.py", "tests/training/test_strategies.py"} <= set(files)
    assert "tests/test_leaderboard.py" not in files


def test_a_mutant_is_another_program_and_the_same_seed_chooses_the_same(scripts):
    mutants = scripts("mutants")
    chosen = mutants["choose"](8, 1)
    for mutant in chosen:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        changed = text[: mutant.start] + mutant.replacement + text[mutant.end :]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert chosen == mutants["choose"](8, 1) != mutants["choose"](8, 2)
    folders = ["runs", ".git", "tests"]  # packages named runs are copied
    assert mutants["_ignored"](str(ROOT), folders) == {"runs", ".git"}
    assert mutants["_ignored"](str(ROOT / "tests"), folders) & {*folders} == set()


def test_tables_in_documents_are_our_own_rows(scripts):
    pages = scripts("doc_tables")["pages"]()
    names = "README inference cifar10_experiments hardware imagenet published_entries"
    assert sorted(path.stem for path in pages) == sorted(names.split())
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, "run scripts/doc_tables.py"
    assert "| `digits/resnet8` | top1Accuracy 98 | " in pages[ROOT / "README.md"]
    assert "| `litert` | LiteRT" in pages[ROOT / "docs/inference.md"]


def test_what_was_measured_is_what_its_runs_come_to(scripts):
    read = scripts("doc_tables")["measured_rows"]
    for path in (ROOT / "docs/measured").glob("*.tsv"):
        recipe = recipes.get(path.stem.replace("-", "/", 1))
        item = [e for e in recipe.evidence if isinstance(e, Measured)][-1]
        rows = read(path)
        scores = [row["score"] for row in rows]
        assert item.runs == len(rows) and item.reached == sum(row["reached"] for row in rows)
        assert item.mean == round(statistics.mean(scores), 2), path.name
        spread = statistics.stdev(scores) if scores[1:] else 0.0
        assert item.sd == round(spread, 2), path.name
        assert item.seconds == round(statistics.median(row["seconds"] for row in rows), 1)
        assert item.epochs == tuple(row["epoch"] for row in rows if row["reached"]), path.name


def test_what_was_measured_on_gpus_is_what_the_runs_come_to(scripts):
    ladder, kept = scripts("ladder"), []
    for name, recipe in recipes.rows().items():
        if item := ladder["measured"](recipe, gpu=True):
            rows = ladder["gpu_runs"](name)
            scores = [float(row["score"]) for row in rows]
            hits = [row for row in rows if row["reached"] == "1"]
            assert (item.runs, item.reached) == (len(rows), len(hits)), name
            spread = round(statistics.stdev(scores), 2)
            assert (item.mean, item.sd) == (round(statistics.mean(scores), 2), spread), name
            seconds = [float(r["seconds"]) if r in hits else math.inf for r in rows]
            middle = statistics.median(seconds)
            assert item.seconds == (None if middle == math.inf else round(middle, 1)), name
            assert item.epochs == tuple(float(row["epoch"]) for row in hits), name
            kept.append(name)
    assert len(kept) == 4  # the others were trained to another threshold than the recipe's


def test_the_front_door_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        page = path.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
            assert link.startswith("https://") or (path.parent / link).exists(), (path, link)
        if path.parent.name == "docs":
            assert page.splitlines()[2].startswith("*For "), path  # what it is for


def test_the_example_of_an_entry_is_valid_and_of_the_run_in_the_middle():
    from dawnbench_tf.entries import check_tree
    from dawnbench_tf.submission.entry import first_at, read_entry

    folder = ROOT / "docs/example_entry"
    assert check_tree(folder) == (1, [])
    (path,) = folder.rglob("*.json")
    entry = read_entry(path)
    with open(ROOT / "docs/measured/cifar10-cpu94.tsv", encoding="utf-8") as file:
        seconds = sorted(float(row["seconds"]) for row in csv.DictReader(file, delimiter="\t"))
    hit = first_at(entry.curve(), entry.task.threshold)
    assert hit is not None and round(hit[0] * 3600, 1) == seconds[(len(seconds) - 1) // 2]


def test_the_extra_for_keras_2_has_the_tf_keras_of_each_tensorflow(monkeypatch):
    stated = {}
    monkeypatch.setattr("setuptools.setup", lambda **fields: stated.update(fields))
    runpy.run_path(str(ROOT / "setup.py"))
    (tf_keras,) = stated["extras_require"]["keras2"]
    assert tf_keras.startswith("tf-keras>=")
    assert "tf-keras>=2.20,<2.21" in stated["extras_require"]["harness"]
    (tensorflow,) = [row for row in stated["install_requires"] if row.startswith("tensorflow>")]
    assert tensorflow.partition(">=")[2] == tf_keras.partition(">=")[2]
