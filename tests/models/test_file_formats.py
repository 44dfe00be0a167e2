"""Files of one model of each family: saved in one process, loaded in another."""

import runpy
import sys
from pathlib import Path

import pytest

from tests import warm

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts/file_formats.py"))
NAMES = {*SCRIPT["names"]()}
DEFAULT = {"resnet56_stochastic", "resnet9_whitened"}  # layers of ours and of Keras's


@pytest.mark.parametrize("keras", ["0", pytest.param("1", marks=pytest.mark.long)])
@pytest.mark.parametrize("names", [DEFAULT, pytest.param(NAMES - DEFAULT, marks=pytest.mark.long)])
def test_files_of_each_family_load_in_a_fresh_process(keras, names):
    python = warm.python() if keras == "1" else [sys.executable]
    results = SCRIPT["run"](keras, names, python)
    assert results.keys() == names
    lines = (ROOT / "docs/file_formats.md").read_text().splitlines()
    for name, result in results.items():
        assert {**result, "alone": "equal"} == dict.fromkeys(SCRIPT["FORMATS"], "equal"), name
        (line,) = [line for line in lines if f"| `{name}` |" in line]
        assert result["alone"] == line.split(" | ")[2]


def test_one_import_registers_every_layer():
    folder = ROOT / "models"
    files = [path for path in folder.rglob("*.py") if "keras_serializable" in path.read_text()]
    text = (folder / "layers/__init__.py").read_text()
    assert files and all(path.parent.name == "layers" and path.stem in text for path in files)
