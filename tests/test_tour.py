"""docs/tour.ipynb runs from its first cell to its last, and what it shows is in it."""

import ast
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbclient import NotebookClient

TOUR = Path(__file__).parents[1] / "docs/tour.ipynb"


def outputs(notebook):
    """Returns the text that the cells printed, and the number of pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [output for cell in cells for output in cell.outputs]
    text = "".join(output.text for output in shown if output.output_type == "stream")
    return text, sum("image/png" in output.get("data", {}) for output in shown)


def test_every_name_in_the_tour_is_one_of_the_library():
    """Other tests cover the calls of each cell. The long mode runs the cells."""
    notebook = nbformat.read(TOUR, as_version=4)
    first, *cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    names = {}
    exec(first, names)
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell))]
    attributes = [
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if isinstance(names.get(node.value.id), ModuleType)
    ]
    assert len(attributes) > 15
    assert [pair for pair in attributes if not hasattr(names[pair[0]], pair[1])] == []


@pytest.mark.long
def test_the_tour_runs_and_shows_its_results(tmp_path):
    notebook = nbformat.read(TOUR, as_version=4)
    committed, pictures = outputs(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    text, pictures_now = outputs(notebook)
    assert pictures == pictures_now == 3
    for line in ("reached: True", "reached 98 %: True", "examples/s", "ms an example at "):
        assert line in text and line in committed
    entries = (tmp_path / "digits").glob("*/*/*.json")
    assert {path.parent.name for path in entries} == {"train", "inference"}
    assert "/home" not in committed and "/tmp" not in committed and "/work" not in committed
